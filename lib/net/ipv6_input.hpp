/// \file
/// Takes received IPv6 packets (RFC 8200): checks them, walks extension headers, collects fragments
/// and passes packets on.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "net/counters.hpp"
#include "net/fragments.hpp"
#include "net/icmp.hpp"
#include "net/ipv6_headers.hpp"
#include "net/packet.hpp"
#include "net/routes.hpp"
#include "port/port.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

class Ipv6Input {
 public:
  /// All references outlive this.
  Ipv6Input(const Routes& routes, Fragments& fragments, Icmp& icmp, Counters& counters,
            bool trusted)
      : routes_(routes),
        fragments_(fragments),
        icmp_(icmp),
        counters_(counters),
        trusted_(trusted) {}

  /// \param octets the octets behind the Ethernet header of `frame`
  /// \param to_group the frame was for an Ethernet group
  /// \return a TCP packet for us; any other packet was handled or counted here
  std::optional<IpIn> input(const port::Packet& frame, base::ByteView octets, bool to_group,
                            base::Now now);

 private:
  std::optional<IpIn> other(IpIn in, const wire::Ipv6& ip, base::ByteView packet, base::Now now);
  std::optional<IpIn> deliver(IpIn& in, const Ipv6Chain& chain, base::ByteView packet,
                              uint8_t hop_limit, base::Now now);
  bool add_fragment(IpIn& in, const Ipv6Chain& chain, base::ByteView packet, base::Now now);
  std::optional<IpIn> drop(const IpIn& in, const Ipv6Chain& chain, base::ByteView packet,
                           base::Now now);
  void report(const IpIn& in, uint8_t code, uint32_t pointer, bool not_to_group,
              base::ByteView packet, base::Now now);

  const Routes& routes_;
  Fragments& fragments_;
  Icmp& icmp_;
  Counters& counters_;
  bool trusted_;
};

}  // namespace rnic::net
