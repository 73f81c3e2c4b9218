/// \file
/// ICMP and ICMPv6 of one interface: echo requests are answered (RFC 1122 s.3.2.2.6, RFC 4443
/// s.4.2), received errors are handed up, and errors are sent; answers and errors are limited in
/// rate. Redirects are ignored.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "net/config.hpp"
#include "net/counters.hpp"
#include "net/icmp_error.hpp"
#include "net/nd.hpp"
#include "net/output.hpp"
#include "net/packet.hpp"
#include "net/rate_limit.hpp"
#include "net/routes.hpp"

namespace rnic::net {

class Icmp {
 public:
  /// All references outlive this.
  Icmp(const Config& config, const Routes& routes, Output& output, Nd& nd, Counters& counters,
       base::Now now)
      : routes_(routes),
        output_(output),
        nd_(nd),
        counters_(counters),
        echoes_(config.icmp_per_second, now),
        errors_(config.icmp_errors_per_second, now) {}

  void set_error_user(IcmpErrorUser* user) { error_user_ = user; }

  void input4(const IpIn& in, base::Now now);
  void input6(const IpIn& in, uint8_t hop_limit, base::Now now);

  /// Reports an error about a received packet, if it may be and the limit allows.
  /// \param packet from its IP header on, as much as there is
  /// \param local the address that it was for, one of ours
  void report(const IcmpErrorOut& error, base::ByteView packet, const IpAddress& local,
              const IpAddress& to, base::Now now);

  /// Tells the sender of fragments a packet size that passes in one piece (RFC 792: fragmentation
  /// needed; in IPv6: packet too big).
  void report_too_large(base::ByteView quote, uint32_t mtu, const IpAddress& local,
                        const IpAddress& to, base::Now now);

 private:
  void echo(const IpIn& in, uint8_t protocol, uint8_t reply_type, base::Now now);
  void error_in(const std::optional<llp::IcmpError>& error, base::Now now);

  const Routes& routes_;
  Output& output_;
  Nd& nd_;
  Counters& counters_;
  RateLimit echoes_;
  RateLimit errors_;
  IcmpErrorUser* error_user_ = nullptr;
};

}  // namespace rnic::net
