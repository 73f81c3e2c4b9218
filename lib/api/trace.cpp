#include "rnic/trace.hpp"

namespace rnic {

const char* to_string(TraceKind kind) {
  switch (kind) {
    case TraceKind::Sent: return "sent";
    case TraceKind::Retransmitted: return "retransmitted";
    case TraceKind::InOrder: return "in order";
    case TraceKind::PlacedEarly: return "placed out of order";
    case TraceKind::Held: return "held";
    case TraceKind::CrcDropped: return "dropped by CRC";
    case TraceKind::Delivered: return "delivered";
    case TraceKind::Suspected: return "dropped on suspicion";
  }
  return "unknown";
}

}  // namespace rnic
