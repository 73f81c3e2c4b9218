/// \file
/// WireAlarm: lets the two ends of a pair of rings wake each other; private to the driver.
#pragma once

#include <memory>

#include "base/fail.hpp"
#include "dpdk/frame_ring.hpp"
#include "wakeup/event_signal.hpp"

namespace rnic::dpdk {

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
