/// \file
/// Takes received IPv4 packets (RFC 1122 s.3.2.1): checks them, collects fragments and passes
/// packets on.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "net/counters.hpp"
#include "net/fragments.hpp"
#include "net/icmp.hpp"
#include "net/packet.hpp"
#include "net/routes.hpp"
#include "port/port.hpp"

namespace rnic::net {

/// The port vouches for a received checksum; otherwise it has to be computed.
/// \param trusted checksums that were left open count as good, since the medium is memory
[[nodiscard]] inline bool vouched(port::Checksum checksum, bool trusted) {
  return checksum == port::Checksum::Good || (trusted && checksum == port::Checksum::Open);
}

class Ipv4Input {
 public:
  /// All references outlive this.
  Ipv4Input(const Routes& routes, Fragments& fragments, Icmp& icmp, Counters& counters,
            bool trusted)
      : routes_(routes),
        fragments_(fragments),
        icmp_(icmp),
        counters_(counters),
        trusted_(trusted) {}

  /// \param octets the octets behind the Ethernet header of `frame`
  /// \return a TCP packet for us; any other packet was handled or counted here
  std::optional<IpIn> input(const port::Packet& frame, base::ByteView octets, base::Now now);

 private:
  std::optional<IpIn> dispatch(const IpIn& in, base::ByteView packet, base::Now now);

  const Routes& routes_;
  Fragments& fragments_;
  Icmp& icmp_;
  Counters& counters_;
  bool trusted_;
};

}  // namespace rnic::net
