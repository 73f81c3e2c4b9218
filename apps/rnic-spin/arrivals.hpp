/// \file
/// Completions and events: each has to be one that can be.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "rnic-spin/world.hpp"

namespace rnic::spin {

class Arrivals {
 public:
  explicit Arrivals(World& world) : world_(world) {}

  /// The queue pair has a number, and nothing was posted to it.
  void begin_life(Side& side, Pair& pair);
  /// The queue pair was destroyed, or has become idle again: what has completed is taken, and
  /// nothing else comes under its number.
  void end_life(Side& side, Pair& pair);
  /// What was posted to a shared receive queue that is gone does not complete.
  void give_up(Side& side, SharedQueue& shared);

  /// Takes some completions of some queue.
  void poll(Side& side);
  /// Arms some queue, and takes some of its completions.
  void arm_and_poll(Side& side);
  /// Takes an event of the device.
  void watch(Side& side);
  /// Takes every completion of a queue.
  void drain(Side& side, Queue& queue);
  /// Compares the memory of both devices with what may be in it.
  void check_memory();
  /// \return whether an octet of that part of the target may change before the next call. The
  /// caller looks at none that may: its own look would be the race.
  [[nodiscard]] bool may_change(const Side& side, const Stretch& where) const;

 private:
  void completed(Side& side, const Completion& done);
  Posted taken(Side& side, Life& life, const Completion& done);
  /// A request, or a message of the peer, has registered something or ended it.
  void conclude(Grant& grant, const Completion& done);
  void judge_status(const Side& side, const Posted& posted, const Completion& done);
  void received(Side& side, Life& life, const Posted& posted, const Completion& done);
  void free_slot(Side& side, size_t slot);

  void happened(Side& side, const event::ConnectRequest& event);
  void happened(Side& side, const event::Established& event);
  void happened(Side& side, const event::ConnectFailed& event);
  void happened(Side& side, const event::RequestWithdrawn& event);
  void happened(Side& side, const event::Disconnected& event);
  void happened(Side& side, const event::CompletionOverrun& event);
  void happened(Side&, const event::Common&) {}
  /// Everything that was posted to a queue pair has to complete.
  void all_completed(Side& side, Pair& pair, const char* when);

  World& world_;
};

}  // namespace rnic::spin
