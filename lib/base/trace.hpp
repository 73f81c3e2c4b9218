/// \file
/// The trace edge: what happened to each segment of one connection, with stream offsets. Nobody
/// listens by default; a listener turns the events into a picture (time across, stream offset up).
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"

namespace rnic::base {

enum class TraceKind : uint8_t {
  Sent,           ///< segment sent for the first time (sender's offsets)
  Retransmitted,  ///< segment sent again (sender's offsets)
  InOrder,        ///< octets arrived at the delivery point and were placed
  PlacedEarly,    ///< octets arrived out of order and were placed in their final memory
  Held,           ///< octets arrived that could not be placed yet, and are held
  CrcDropped,     ///< segment dropped before commit because an FPDU's CRC failed
  Delivered,      ///< the stream is complete up to range.end
  Suspected,      ///< segment dropped before commit: it cuts an FPDU or carries a damaged length
};

/// Listener for one connection; called on the worker, must not block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void record(TraceKind kind, Range range, Now now) = 0;
};

}  // namespace rnic::base
