/// \file
/// EventQueue: the asynchronous events of a device, on their way to the application.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/spsc_queue.hpp"
#include "device/queue_listener.hpp"
#include "rnic/event.hpp"

namespace rnic::device {

/// The worker emits and one application thread reads. An event that finds no room is counted and
/// lost.
class EventQueue {
 public:
  /// \param lost counts what finds no room; outlives the queue
  EventQueue(uint32_t depth, uint64_t& lost) : queue_(depth), lost_(lost) {}

  /// Octets of memory that a queue of `depth` events takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return base::SpscQueue<Event>::octets_for(depth);
  }

  // --- Worker ---

  void emit(Event event) {
    if (!push(std::move(event))) ++lost_;
  }
  /// Emits an event that is as good later. \return false: there was no room, and nothing is lost
  [[nodiscard]] bool offer(Event event) { return push(std::move(event)); }
  /// Emits an event of a connection that a peer has asked for and the application has not accepted.
  /// Such events fill at most half of the queue, and those about failed requests at most a quarter,
  /// so that neither pushes out what is worth more. \return false: there was no room for it
  bool emit_unsolicited(Event event) {
    const size_t part = std::holds_alternative<event::RequestFailed>(event) ? 4 : 2;
    if (queue_.size() < (queue_.capacity() + part - 1) / part && push(std::move(event))) {
      return true;
    }
    ++lost_;
    return false;
  }

  /// The application's own pointer to the device: every event from now on bears it.
  void set_context(void* context) { context_ = context; }

  /// `listener` is told of each event from now on.
  void set_listener(std::unique_ptr<QueueListener> listener) { listener_ = std::move(listener); }

  // --- Application side, one thread at a time ---

  /// The oldest event; nothing when there is none.
  std::optional<Event> poll() {
    std::optional<Event> event(std::in_place);
    if (!queue_.pop(*event)) event.reset();
    return event;
  }

 private:
  bool push(Event&& event) {
    event::common(event).device_context = context_;
    if (!queue_.push(std::move(event))) return false;
    if (listener_ != nullptr) listener_->added(true);
    return true;
  }

  base::SpscQueue<Event> queue_;
  uint64_t& lost_;
  void* context_ = nullptr;
  std::unique_ptr<QueueListener> listener_;  // nullptr: nobody has asked for a descriptor
};

}  // namespace rnic::device
