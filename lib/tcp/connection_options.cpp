#include "tcp/connection_options.hpp"

#include <string>

namespace rnic::tcp {

namespace {

Status take(const char* name, const std::optional<std::chrono::milliseconds>& given,
            base::Duration& out) {
  if (!given) return {};
  if (given->count() < 1 || given->count() > UINT32_MAX) {
    return base::fail(
        ErrorCode::InvalidArgument,
        std::string(name) + " is " + std::to_string(given->count()) + " ms: 1 to 4294967295 ms");
  }
  out = *given;
  return {};
}

}  // namespace

Result<ConnectionOptions> merged(ConnectionOptions out, const TcpOptions& given) {
  out.congestion_control = given.congestion_control.value_or(out.congestion_control);
  out.ecn = given.ecn.value_or(out.ecn);
  out.pacing = given.pacing.value_or(out.pacing);
  out.nagle = given.nagle.value_or(out.nagle);
  out.keep_alive = given.keep_alive.value_or(out.keep_alive);
  out.keep_alive_count = given.keep_alive_count.value_or(out.keep_alive_count);
  Status times = take("keep_alive_idle", given.keep_alive_idle, out.keep_alive_idle);
  if (times) {
    times = take("keep_alive_interval", given.keep_alive_interval, out.keep_alive_interval);
  }
  if (times) times = take("user_timeout", given.user_timeout, out.user_timeout);
  if (!times) return tl::unexpected(times.error());
  out.dscp = given.dscp.value_or(out.dscp);
  out.hop_limit = given.hop_limit.value_or(out.hop_limit);
  out.max_segment = given.max_segment.value_or(out.max_segment);
  return out;
}

Status check(const ConnectionOptions& options, const char* call) {
  const auto wrong = [call](const std::string& what) {
    return base::fail(ErrorCode::InvalidArgument, std::string(call) + ": " + what);
  };
  const auto control = static_cast<size_t>(options.congestion_control);
  if (control >= kCongestionControlNames.size() || options.ecn > Ecn::Offer) {
    return wrong("a number without a name for congestion_control or ecn: use an enumerator");
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
  // These are right also where keep-alive is off, so that right options stay right whatever
  // replaces a part of them. RFC 9293 s.3.8.4 (MUST-29): one probe without an answer proves
  // nothing.
  if (options.keep_alive_idle <= base::Duration(0) ||
      options.keep_alive_interval <= base::Duration(0) || options.keep_alive_count < 2) {
    return wrong("keep-alive needs positive times and at least two probes");
  }
  return {};
}

}  // namespace rnic::tcp
