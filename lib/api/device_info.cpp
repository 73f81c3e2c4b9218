#include "rnic/device_info.hpp"

namespace rnic {

const char* to_string(SendLimit limit) {
  switch (limit) {
    case SendLimit::Application: return "application";
    case SendLimit::ReceiverWindow: return "receiver's window";
    case SendLimit::Congestion: return "congestion";
    case SendLimit::Pool: return "pool";
    case SendLimit::Rtr: return "RTR";
  }
  return "unknown";
}

}  // namespace rnic
