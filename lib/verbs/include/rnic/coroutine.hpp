/// \file
/// Work requests that a C++20 coroutine waits for. No other header of the API includes this one, so
/// a program that does not use it pays nothing for it.
///
///     coroutine::Dispatcher dispatcher(cq);               // one for each completion queue
///     coroutine::Operations operations(qp, dispatcher, dispatcher);
///     ...
///     auto page = co_await operations.read(region.sge(0, 4096), remote);
///     if (page && page->status == CompletionStatus::Success) ...
///     ...
///     while (work()) { context.poll(); dispatcher.dispatch(); }
///
/// The loop may also sleep on CompletionQueue::fd(). Any kind of coroutine may wait, and any loop
/// may dispatch: the library brings no executor and no task type of its own.
///
/// co_await returns the error of the post, without waiting, if the request was not taken; otherwise
/// it returns the completion, whose status tells how the request went.
///
/// Threads: a Dispatcher, and everything that awaits by it, belongs to the thread that polls its
/// completion queue.
///
/// Ownership: a Dispatcher outlives the coroutines that wait by it, and the completion queue
/// outlives the Dispatcher. A coroutine that is destroyed while it waits is not resumed; even so
/// the memory of its request belongs to the device until the completion. The requests of a queue
/// pair that is destroyed never complete (QueuePair::~QueuePair()), and a coroutine that waits for
/// one stays suspended: before, move the queue pair to QueuePairState::Error (QueuePair::modify())
/// and dispatch until nobody waits, or destroy the coroutine.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "rnic/verbs.hpp"

namespace rnic::coroutine {

class Operation;

/// Resumes the coroutines that wait for completions of one completion queue. Each operation under
/// way has a place here, whose index and generation are the `id` of its request; the depths of the
/// queue pairs limit how many there are. Ids below 2^32 are never used, so that an application may
/// have requests of its own in the same queues.
class Dispatcher {
 public:
  /// Completions that one dispatch() polls, at most.
  static constexpr size_t kBatch = 32;

  explicit Dispatcher(CompletionQueue& cq) : cq_(&cq) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher() = default;

  /// Polls once, and resumes the coroutines whose completions came. \return completions polled
  uint32_t dispatch() {
    return dispatch([](std::coroutine_handle<> waiting) { waiting.resume(); });
  }
  /// Polls once, and calls `run` with the handle of each coroutine, which it resumes now or later,
  /// on this thread or another. `run` must not throw: the other completions polled would be lost.
  template <typename Run>
  uint32_t dispatch(Run&& run) {
    std::array<Completion, kBatch> done;
    const uint32_t count = cq_->poll(done);
    for (const Completion& one : std::span(done).first(count)) {
      if (!resume(one, run)) ++unclaimed_;
    }
    return count;
  }
  /// Hands over a completion that the application has polled by itself. \return false: nobody waits
  /// for it
  template <typename Run>
  bool resume(const Completion& done, Run&& run);

  /// Operations under way.
  [[nodiscard]] size_t waiting() const { return waiting_; }
  /// Completions that dispatch() has polled and nobody waited for.
  [[nodiscard]] uint64_t unclaimed() const { return unclaimed_; }

  // The rest is for Operation.

  /// \return the id of its request. ResourceExhausted: no memory.
  Result<uint64_t> enlist(Operation& operation) {
    if (free_ == places_.size()) {
      try {
        Place& added = places_.emplace_back();
        added.next_free = static_cast<uint32_t>(places_.size());
      } catch (const std::bad_alloc&) {
        return tl::unexpected(Error{ErrorCode::ResourceExhausted, "out of memory"});
      }
    }
    const uint32_t index = free_;
    Place& place = places_[index];
    free_ = place.next_free;
    place.operation = &operation;
    ++waiting_;
    return uint64_t{place.generation} << 32 | index;
  }
  /// Takes an operation out: nobody waits for its completion any more. \return the operation;
  /// nullptr: none has that id
  Operation* strike(uint64_t id) {
    const uint64_t index = id & UINT32_MAX;
    if (index >= places_.size() || places_[index].generation != id >> 32) return nullptr;
    Place& place = places_[index];
    Operation* const operation = std::exchange(place.operation, nullptr);
    if (operation == nullptr) return nullptr;
    if (++place.generation == 0) place.generation = 1;
    place.next_free = std::exchange(free_, static_cast<uint32_t>(index));
    --waiting_;
    return operation;
  }

 private:
  struct Place {
    Operation* operation = nullptr;
    uint32_t generation = 1;  // never 0
    uint32_t next_free = 0;   // the number of places: none
  };

  CompletionQueue* cq_;
  std::vector<Place> places_;
  uint32_t free_ = 0;  // index of the first free one; the number of places: none
  size_t waiting_ = 0;
  uint64_t unclaimed_ = 0;
};

/// One request, which the constructor posts. co_await waits for its completion, at once or later: a
/// coroutine that expects an answer makes the receive first, and then awaits the Send. An operation
/// is awaited once, and cannot be moved.
class Operation {
 public:
  /// \param post posts the request, signalled, under the id that it is given
  template <typename Post>
  Operation(Dispatcher& dispatcher, Post&& post) : dispatcher_(&dispatcher) {
    const Result<uint64_t> id = dispatcher.enlist(*this);
    Status posted = id ? post(*id) : Status(tl::unexpected(id.error()));
    if (posted) {
      id_ = *id;
      return;
    }
    if (id) dispatcher.strike(*id);
    result_ = tl::unexpected(std::move(posted.error()));
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() {
    if (id_ != 0) dispatcher_->strike(id_);
  }

  [[nodiscard]] bool await_ready() const noexcept { return id_ == 0; }
  void await_suspend(std::coroutine_handle<> handle) noexcept { handle_ = handle; }
  [[nodiscard]] Result<Completion> await_resume() { return std::move(result_); }
  /// Called by the Dispatcher. \return the coroutine to resume; empty: none waits yet
  std::coroutine_handle<> complete(const Completion& done) {
    id_ = 0;
    result_ = done;
    return handle_;
  }

 private:
  Dispatcher* dispatcher_;
  std::coroutine_handle<> handle_;
  uint64_t id_ = 0;  // of the request while it is under way; 0: it is not
  Result<Completion> result_;
};

template <typename Run>
bool Dispatcher::resume(const Completion& done, Run&& run) {
  Operation* const operation = strike(done.id);
  if (operation == nullptr) return false;
  if (const auto waiting = operation->complete(done)) run(waiting);
  return true;
}

/// The operations of one queue pair that a coroutine may wait for. It is a view: the queue pair and
/// the dispatchers outlive it, and the queue pair also the coroutines that wait by it, since what
/// is under way when it is destroyed never completes. Its calls post in their order. Each call
/// moves one piece of memory, because GCC 12 takes no list in braces within a co_await; carry_out()
/// takes several.
class Operations {
 public:
  /// \param sends, receives the dispatchers of the completion queues of `qp`: the same one twice if
  /// `qp` has the same queue for both
  Operations(QueuePair& qp, Dispatcher& sends, Dispatcher& receives)
      : qp_(&qp), sends_(&sends), receives_(&receives) {}

  [[nodiscard]] Operation send(const Sge& source) const {
    SendRequest request;
    request.sges.push_back(source);
    return carry_out(request);
  }
  [[nodiscard]] Operation receive(const Sge& sink) const {
    return {*receives_,
            [&](uint64_t id) { return qp_->post_receive(id, SgeList(std::span(&sink, 1))); }};
  }
  /// As QueuePair::post_write().
  [[nodiscard]] Operation write(const Sge& source, const RemoteAddress& target) const {
    SendRequest request;
    request.opcode = Opcode::Write;
    request.sges.push_back(source);
    request.remote = target;
    return carry_out(request);
  }
  /// As QueuePair::post_read().
  [[nodiscard]] Operation read(const Sge& sink, const RemoteAddress& source) const {
    SendRequest request;
    request.opcode = Opcode::Read;
    request.sges.push_back(sink);
    request.remote = source;
    return carry_out(request);
  }
  /// As QueuePair::post_fetch_add(). Completion::original is the value before.
  [[nodiscard]] Operation fetch_add(const RemoteAddress& remote, uint64_t add) const {
    SendRequest request;
    request.opcode = Opcode::FetchAdd;
    request.remote = remote;
    request.atomic.data = add;
    return carry_out(request);
  }
  /// As QueuePair::post_compare_swap() of all 64 bits.
  [[nodiscard]] Operation compare_swap(const RemoteAddress& remote, uint64_t compare,
                                       uint64_t swap) const {
    SendRequest request;
    request.opcode = Opcode::CompareSwap;
    request.remote = remote;
    request.atomic.data = swap;
    request.atomic.mask = request.atomic.compare_mask = ~uint64_t{0};
    request.atomic.compare = compare;
    return carry_out(request);
  }
  /// Posts any request of the send queue. Its `id` and `signaled` are ignored.
  [[nodiscard]] Operation carry_out(const SendRequest& request) const {
    return {*sends_, [&](uint64_t id) {
              SendRequest posted = request;
              posted.id = id;
              posted.signaled = true;
              return qp_->post_send(posted);
            }};
  }

 private:
  QueuePair* qp_;
  Dispatcher* sends_;
  Dispatcher* receives_;
};

}  // namespace rnic::coroutine
