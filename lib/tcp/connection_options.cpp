#include "tcp/connection_options.hpp"

#include <string>

namespace rnic::tcp {

Status check(const ConnectionOptions& options, const char* call) {
  const auto wrong = [call](const std::string& what) {
    return base::fail(ErrorCode::InvalidArgument, std::string(call) + ": " + what);
  };
  const auto control = static_cast<size_t>(options.congestion_control);
  if (control >= kCongestionControlNames.size() || options.ecn > Ecn::Offer) {
    return wrong("a number without a name for congestion_control or ecn");
  }
  if (options.dscp > 63) {
    return wrong("dscp " + std::to_string(options.dscp) + " is more than six bits; give 0 to 63");
  }
  if (options.max_segment != 0 && options.max_segment < 64) {
    return wrong("max_segment " + std::to_string(options.max_segment) +
                 " leaves no room for data; give 64 at least, or 0 for no limit");
  }
  if (options.user_timeout <= base::Duration(0)) {
    return wrong("user_timeout is not positive; give the time without progress that ends it");
  }
  if (options.keep_alive &&
      (options.keep_alive_idle <= base::Duration(0) ||
       options.keep_alive_interval <= base::Duration(0) || options.keep_alive_count < 2)) {
    // RFC 9293 s.3.8.4 (MUST-29): one probe without an answer proves nothing.
    return wrong("keep-alive needs positive times and at least two probes");
  }
  return {};
}

}  // namespace rnic::tcp
