#include "port/port.hpp"

namespace rnic::port {

const char* to_string(ChecksumMode mode) {
  switch (mode) {
    case ChecksumMode::Offload: return "offload";
    case ChecksumMode::Trusted: return "trusted";
    case ChecksumMode::Software: return "software";
  }
  return "unknown";
}

const char* to_string(LinkState state) {
  switch (state) {
    case LinkState::Up: return "up";
    case LinkState::Down: return "down";
    case LinkState::Gone: return "gone";
  }
  return "unknown";
}

}  // namespace rnic::port
