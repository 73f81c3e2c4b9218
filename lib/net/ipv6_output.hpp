/// \file
/// Writes the headers of outgoing IPv6 packets.
#pragma once

#include <cstdint>
#include <cstring>

#include "net/addresses.hpp"
#include "net/config.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

class Ipv6Output {
 public:
  explicit Ipv6Output(const Config& config) : hop_limit_(config.ttl), seed_(config.seed | 1) {}

  /// Writes the header in front of the `length` octets at p + kIpv6Header, which are complete.
  void write(uint8_t* p, const IpAddress& source, const IpAddress& destination, uint8_t protocol,
             uint8_t traffic_class, uint8_t hop_limit, uint32_t length) const {
    wire::Ipv6 ip;
    ip.traffic_class = traffic_class;
    ip.flow_label = flow_label(source, destination, protocol, p + wire::kIpv6Header, length);
    ip.payload_length = length;
    ip.next_header = protocol;
    ip.hop_limit = hop_limit != 0 ? hop_limit : hop_limit_;
    ip.source = to_wire(source);
    ip.destination = to_wire(destination);
    wire::write_ipv6(p, ip);
  }

 private:
  // The flow label is the same for all packets of a flow, evenly spread and hard to guess (RFC 6437
  // s.3). It is never 0, which would mean that there is none.
  [[nodiscard]] uint32_t flow_label(const IpAddress& source, const IpAddress& destination,
                                    uint8_t protocol, const uint8_t* l4, uint32_t length) const {
    const uint64_t ports = length >= 4 && protocol != wire::kNextIcmpv6 ? base::load_be32(l4) : 0;
    uint64_t hash = (source.low() ^ (destination.high() + seed_)) * seed_;
    hash = (hash ^ (hash >> 32) ^ destination.low() ^ (ports << 8 | protocol)) * seed_ *
           0x9e3779b97f4a7c15ull;
    const auto label = static_cast<uint32_t>(hash >> 44);
    return label != 0 ? label : 1;
  }

  uint8_t hop_limit_;
  uint64_t seed_;
};

}  // namespace rnic::net
