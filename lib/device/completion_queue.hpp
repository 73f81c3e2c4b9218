/// \file
/// Completion queue: one single-producer lane, filled by the device's worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/stamped_ring.hpp"
#include "base/time.hpp"
#include "device/completion_entry.hpp"
#include "device/notify_moderator.hpp"
#include "device/queue_listener.hpp"
#include "device/turn_clock.hpp"
#include "rnic/completion_queue.hpp"
#include "rnic/work.hpp"

namespace rnic::device {

class CompletionQueue {
 public:
  /// \param depth completions that fit; at least the sum of the work outstanding on it.
  /// \param timers outlives it
  /// \param consumer the number of the consumer that it is made for
  /// \param store memory for what few completions have; outlives it
  CompletionQueue(uint32_t number, uint32_t depth, const CompletionQueueOptions& options,
                  NotifyTimers& timers, uint32_t consumer, base::PageStore* store = nullptr)
      : number_(number),
        consumer_(consumer),
        fits_all_(options.fits_all),
        stamps_(options.timestamps),
        context_(options.context),
        clock_(timers.clock()),
        ring_(depth, store),
        notify_(options.moderation, timers) {}

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] uint32_t consumer() const { return consumer_; }
  [[nodiscard]] bool fits_all() const { return fits_all_; }
  [[nodiscard]] void* context() const { return context_; }

  /// Octets of memory that a queue of `depth` completions takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return Ring::octets_for(depth);
  }

  /// Completions that fit a queue made for `depth`.
  [[nodiscard]] static uint64_t depth_for(uint64_t depth) {
    return Ring::capacity_for(depth);
  }

  /// Worker: adds a completion. \return false: the queue was full (overrun) and it is lost
  bool push(const Completion& completion) {
    if (released_) return true;  // nobody can poll it, so it is no loss that ends its queue pair
    if (turn_ != clock_.now()) [[unlikely]] begin_turn();
    const bool fits = add(completion);
    const bool failed = completion.status != CompletionStatus::Success;
    failed_ += failed;
    count(fits, completion.solicited || failed);
    return fits;
  }
  /// Worker: does the same for a request of which there is nothing to tell but that it was carried
  /// out.
  bool push_success(uint64_t id, Opcode opcode, uint32_t length, uint32_t qp) {
    if (released_ || stamps_) [[unlikely]]
      return push({.id = id, .opcode = opcode, .length = length, .qp = qp});
    if (turn_ != clock_.now()) [[unlikely]] begin_turn();
    const bool fits = ring_.push(CompletionEntry(id, opcode, length, qp));
    count(fits, false);
    return fits;
  }
  /// Worker: `listener` is told of completions from now on.
  void set_listener(std::unique_ptr<QueueListener> listener) {
    notify_.set_listener(std::move(listener));
  }
  /// Worker: sets how many completions one wake-up stands for. InvalidArgument names the limit that
  /// `how` exceeds; nothing has changed then.
  Status moderate(const NotifyModeration& how) {
    auto status = NotifyModerator::check("moderate", how);
    if (status) notify_.set(how);
    return status;
  }

  /// Application side, one thread at a time: takes the oldest completions. \return how many were
  /// written to `out`.
  uint32_t poll(std::span<Completion> out) {
    Completion* next = out.data();
    return static_cast<uint32_t>(ring_.consume(
        out.size(), [&](const CompletionEntry& entry, const SeldomOfCompletion& seldom) {
          entry.to(*next++, seldom);
        }));
  }

  /// Completions that fit.
  [[nodiscard]] uint32_t depth() const { return static_cast<uint32_t>(ring_.capacity()); }
  /// Completions that nobody has polled.
  [[nodiscard]] uint32_t waiting() const { return static_cast<uint32_t>(ring_.size()); }

  // Worker.

  /// A completion was lost: the queue is in error until it is resized. \return true the first time
  bool set_overrun() { return !std::exchange(overrun_, true); }
  [[nodiscard]] bool is_overrun() const { return overrun_; }
  /// Gives the queue another depth while the application's thread waits for the worker. The
  /// completions in it stay, and an overrun is over. \return false: more than `depth` completions
  /// wait in it, and nothing has changed
  bool resize(uint32_t depth) {
    if (depth < waiting()) return false;
    ring_.resize(depth);
    overrun_ = false;
    return true;
  }

  /// Worker: nobody polls the queue any more; it goes with the last queue pair that completes here.
  void release() { released_ = true; }
  [[nodiscard]] bool is_released() const { return released_; }

  // Worker: completions since the queue was made.
  [[nodiscard]] uint64_t added() const { return added_; }
  [[nodiscard]] uint64_t failed() const { return failed_; }
  [[nodiscard]] uint64_t lost() const { return lost_; }

  // Worker: the count of queue pairs that complete here.
  void add_user() { ++users_; }
  void drop_user() { --users_; }
  [[nodiscard]] uint32_t users() const { return users_; }

 private:
  using Ring = base::StampedRing<CompletionEntry, SeldomOfCompletion>;

  [[gnu::noinline]] void begin_turn() {
    turn_ = clock_.now();
    ring_.rewind();
  }
  void count(bool fits, bool urgent) {
    ++(fits ? added_ : lost_);
    notify_.added(urgent);
    if (!fits) [[unlikely]] notify_.tell();
  }
  /// \return whether there was room
  bool add(const Completion& completion) {
    const bool results = (completion.original | completion.invalidated_stag) != 0;
    const bool plain = !results && !completion.has_immediate && !stamps_;
    return plain ? ring_.push(completion) : add_seldom(completion);
  }
  [[gnu::noinline]] bool add_seldom(const Completion& completion) {
    CompletionEntry entry(completion);
    entry.mark();
    const SeldomOfCompletion seldom{
        .original = completion.original,
        .immediate = completion.immediate,
        .time = std::chrono::nanoseconds(stamps_ ? base::nanos(clock_.now()) : 0),
        .invalidated_stag = completion.invalidated_stag,
        .written = completion.written};
    return ring_.push(entry, &seldom);
  }

  const uint32_t number_;
  const uint32_t consumer_;
  const bool fits_all_;
  const bool stamps_;
  void* const context_;
  const TurnClock& clock_;
  Ring ring_;
  base::Now turn_{};  // in which the latest completion was added
  uint64_t added_ = 0;
  uint64_t failed_ = 0;  // completions with an error, added or lost
  uint64_t lost_ = 0;
  bool overrun_ = false;
  uint32_t users_ = 0;
  bool released_ = false;
  NotifyModerator notify_;
};

}  // namespace rnic::device
