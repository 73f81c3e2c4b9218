/// \file
/// Shared receive queue: receives for several queue pairs, and the events about them.
#pragma once

#include <cstdint>

#include "base/starved.hpp"
#include "device/event_queue.hpp"
#include "rdmap/shared_receive_queue.hpp"
#include "rdmap/work_opcodes.hpp"
#include "rnic/event.hpp"

namespace rnic::device {

struct SharedReceiveSpec {
  uint32_t pd = 0;
  uint32_t depth = 128;
  uint32_t max_sges = kMaxSge;
  void* context = nullptr;  ///< the application's own, for events
};

/// Knows the context that the application has given to each queue pair, for events.
class QueuePairContexts {
 public:
  /// nullptr: the queue pair has no context, or there is none with that number any more.
  [[nodiscard]] virtual void* context_of(uint32_t qp) const = 0;

 protected:
  ~QueuePairContexts() = default;
};

class SharedReceiveQueue final : private rdmap::SharedReceiveOwner,
                                 public rdmap::SharedReceiveQueue {
 public:
  /// \param events, contexts outlive it
  SharedReceiveQueue(uint32_t number, const SharedReceiveSpec& spec, EventQueue& events,
                     const QueuePairContexts& contexts)
      : rdmap::SharedReceiveQueue(spec.depth, spec.max_sges, *this),
        number_(number),
        pd_(spec.pd),
        context_(spec.context),
        events_(events),
        contexts_(contexts) {}

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] uint32_t pd() const { return pd_; }
  [[nodiscard]] void* context() const { return context_; }

  /// Application side: one thread at a time.
  rdmap::PostResult post_receive(const ReceiveRequest& work) {
    if (work.sges.size() > max_sges()) return rdmap::PostResult::TooManySge;
    return post(work) ? rdmap::PostResult::Ok : rdmap::PostResult::Full;
  }

  // --- Worker ---

  /// Nobody posts to the queue any more; it goes with the last queue pair that takes from it.
  void release() { released_ = true; }
  [[nodiscard]] bool is_released() const { return released_; }

  // The count of queue pairs that take from the queue.
  void add_user() { ++users_; }
  void drop_user() { --users_; }
  [[nodiscard]] uint32_t users() const { return users_; }

 private:
  // rdmap::SharedReceiveOwner
  void limit_reached(uint32_t posted) override {
    event::SrqLimitReached event;
    event.context = event.srq_context = context_;
    event.srq = number_;
    event.posted = posted;
    event.detail = base::worded([&] {
      return "shared receive queue " + std::to_string(number_) + ": " + std::to_string(posted) +
             " receives are posted, fewer than its limit: post more, and arm the limit again";
    });
    events_.emit(std::move(event));
  }
  void high_water_passed(uint32_t stream, uint32_t in_progress) override {
    event::SrqHighWater event;
    event.qp = stream;
    event.context = contexts_.context_of(stream);
    event.srq = number_;
    event.srq_context = context_;
    event.in_progress = in_progress;
    event.detail = base::worded([&] {
      return "queue pair " + std::to_string(stream) + " has " + std::to_string(in_progress) +
             " receives of shared receive queue " + std::to_string(number_) +
             " in progress: a peer that begins messages and does not end them can be disconnected";
    });
    events_.emit(std::move(event));
  }

  const uint32_t number_;
  const uint32_t pd_;
  void* const context_;
  EventQueue& events_;
  const QueuePairContexts& contexts_;
  uint32_t users_ = 0;
  bool released_ = false;
};

}  // namespace rnic::device
