#include "socket/options.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "socket/system.hpp"

namespace rnic::socket {

namespace {

using std::chrono::milliseconds;

constexpr int kMostSeconds = 32'767;  // MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL
constexpr int kMostProbes = 127;      // MAX_TCP_KEEPCNT
constexpr int kSystemsHops = -1;      // ip(7), ipv6(7)
constexpr int kDscpShift = 2;         // RFC 2474 s.3: the upper six bits of the octet

int seconds(milliseconds time) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(time).count();
  return static_cast<int>(std::clamp<int64_t>(whole, 1, kMostSeconds));
}

int bounded(milliseconds time) {
  return static_cast<int>(std::min<int64_t>(time.count(), INT32_MAX));
}

/// Sets options of one socket, and keeps the name of the first that was refused.
class Setter {
 public:
  Setter(System& system, int descriptor) : system_(system), descriptor_(descriptor) {}

  void set(const char* name, int level, int option, int value) {
    note(name, set_option(system_, descriptor_, level, option, value));
  }
  /// An option of both IP versions: a socket of IPv6 may carry IPv4, too.
  void set_of_ip(const char* name, int of_v4, int of_v6, int value) {
    const bool v4 = set_option(system_, descriptor_, IPPROTO_IP, of_v4, value);
    const bool v6 = set_option(system_, descriptor_, IPPROTO_IPV6, of_v6, value);
    note(name, v4 || v6);
  }
  [[nodiscard]] Status status() const {
    if (refused_ == nullptr) return {};
    return base::fail(ErrorCode::Unsupported, std::string("the system's TCP does not take ") +
                                                  refused_ +
                                                  ": leave it out, or give another value");
  }

 private:
  void note(const char* name, bool taken) {
    if (!taken && refused_ == nullptr) refused_ = name;
  }

  System& system_;
  const int descriptor_;
  const char* refused_ = nullptr;  // nullptr: none
};

milliseconds whole(base::Duration time) { return std::chrono::duration_cast<milliseconds>(time); }

}  // namespace

TcpOptions options_of(const Config& config) {
  TcpOptions options;
  options.nagle = config.nagle;
  options.user_timeout = whole(config.user_timeout);
  if (!config.keep_alive) return options;  // the system's defaults stay for whoever turns it on
  options.keep_alive = true;
  options.keep_alive_idle = whole(config.keep_alive_idle);
  options.keep_alive_interval = whole(config.keep_alive_interval);
  options.keep_alive_count = config.keep_alive_count;
  return options;
}

Status apply(System& system, int descriptor, const TcpOptions& options) {
  Setter to(system, descriptor);
  // RFC 5044 s.5.1: without Nagle a short FPDU is not held back, and the next one begins a segment.
  if (options.nagle) to.set("nagle", IPPROTO_TCP, TCP_NODELAY, *options.nagle ? 0 : 1);
  if (options.keep_alive) {
    to.set("keep_alive", SOL_SOCKET, SO_KEEPALIVE, *options.keep_alive ? 1 : 0);
  }
  if (options.keep_alive_idle) {
    to.set("keep_alive_idle", IPPROTO_TCP, TCP_KEEPIDLE, seconds(*options.keep_alive_idle));
  }
  if (options.keep_alive_interval) {
    to.set("keep_alive_interval", IPPROTO_TCP, TCP_KEEPINTVL,
           seconds(*options.keep_alive_interval));
  }
  if (options.keep_alive_count) {
    to.set("keep_alive_count", IPPROTO_TCP, TCP_KEEPCNT,
           static_cast<int>(std::min<uint32_t>(*options.keep_alive_count, kMostProbes)));
  }
  if (options.user_timeout) {
    to.set("user_timeout", IPPROTO_TCP, TCP_USER_TIMEOUT, bounded(*options.user_timeout));
  }
  if (options.dscp) to.set_of_ip("dscp", IP_TOS, IPV6_TCLASS, *options.dscp << kDscpShift);
  if (options.hop_limit) {
    const int hops = *options.hop_limit == 0 ? kSystemsHops : *options.hop_limit;
    to.set_of_ip("hop_limit", IP_TTL, IPV6_UNICAST_HOPS, hops);
  }
  if (options.max_segment) {
    to.set("max_segment", IPPROTO_TCP, TCP_MAXSEG, *options.max_segment);
  }
  return to.status();
}

}  // namespace rnic::socket
