#include "rnic/queue_pair.hpp"

namespace rnic {

const char* to_string(QueuePairState state) {
  switch (state) {
    case QueuePairState::Idle: return "idle";
    case QueuePairState::Rts: return "rts";
    case QueuePairState::Closing: return "closing";
    case QueuePairState::Terminate: return "terminate";
    case QueuePairState::Error: return "error";
  }
  return "unknown";
}

}  // namespace rnic
