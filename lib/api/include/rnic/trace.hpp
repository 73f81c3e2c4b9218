/// \file
/// A record of what happens to each segment of one connection, with stream offsets. It can be drawn
/// with time across and the stream offset up.
#pragma once

#include <chrono>
#include <cstdint>

namespace rnic {

enum class TraceKind : uint8_t {
  Sent,           ///< segment sent for the first time (sender's offsets)
  Retransmitted,  ///< segment sent again (sender's offsets)
  InOrder,        ///< octets arrived at the delivery point and were placed
  PlacedEarly,    ///< octets arrived out of order and were placed in their final memory
  Held,           ///< octets arrived that could not be placed yet, and are held
  CrcDropped,     ///< segment dropped before commit because an FPDU's CRC failed
  Delivered,      ///< the stream is complete up to `end`
  Suspected,      ///< segment dropped before commit: it cuts an FPDU or carries a damaged length
};
[[nodiscard]] const char* to_string(TraceKind kind);

struct TraceEvent {
  TraceKind kind = TraceKind::Sent;
  uint64_t begin = 0;               ///< stream offset of the first octet
  uint64_t end = 0;                 ///< one past the last
  std::chrono::nanoseconds time{};  ///< on the clock of Context::now()
};

}  // namespace rnic
