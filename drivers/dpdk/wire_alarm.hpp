/// \file
/// WireAlarm: lets the two ends of a pair of rings wake each other; private to the driver.
#pragma once

#include <memory>

#include "base/fail.hpp"
#include "base/stamped_ring.hpp"
#include "wakeup/event_signal.hpp"

struct rte_mbuf;

namespace rnic::dpdk {

/// Frames on their way in one direction. The receiver looks at the place of the next frame and at
/// no mark of the sender's: a frame's pointer comes to its core with the word that tells of it.
using FrameRing = base::StampedRing<rte_mbuf*>;

/// The alarm of one direction: the receiver may sleep until the sender has put frames into the
/// ring.
class WireAlarm {
 public:
  /// ResourceExhausted when the system has no descriptor left.
  /// \param ring outlives it \param one_thread one thread polls both ends
  static Result<std::unique_ptr<WireAlarm>> make(const FrameRing& ring, bool one_thread);

  /// The sender: frames were put into the ring.
  void sent() { one_thread_ ? bell_.ring_unfenced() : bell_.ring(); }
  /// The receiver: port::Port::arm().
  int arm();

 private:
  WireAlarm(const FrameRing& ring, bool one_thread, wakeup::EventSignal signal)
      : ring_(ring), one_thread_(one_thread), bell_(std::move(signal)) {}

  const FrameRing& ring_;
  const bool one_thread_;
  wakeup::Bell bell_;
};

}  // namespace rnic::dpdk
