/// \file
/// Writes the headers of outgoing IPv4 packets from a template that is completed for each packet.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "net/config.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"

namespace rnic::net {

class Ipv4Output {
 public:
  explicit Ipv4Output(const Config& config) : ttl_(config.ttl) { make(0, 0, 0, 0, 0); }

  /// A header for packets that differ in length and identification.
  struct Prepared {
    // These come first: a copy of all is written in pieces of 16 octets, and read across none.
    std::array<uint8_t, wire::kIpv4Header> octets;
    uint32_t source = 0;
    uint32_t destination = 0;
    uint8_t protocol = 0;
    uint8_t traffic_class = 0;
    uint8_t hop_limit = 0;
    uint32_t sum = 0;  // of the octets
  };

  /// The header for these terms, valid until the next call. The last one is remembered.
  const Prepared& prepare(uint32_t source, uint32_t destination, uint8_t protocol,
                          uint8_t traffic_class, uint8_t hop_limit) {
    const bool same = last_.source == source && last_.destination == destination &&
                      last_.protocol == protocol && last_.traffic_class == traffic_class &&
                      last_.hop_limit == hop_limit;
    if (!same) [[unlikely]] make(source, destination, protocol, traffic_class, hop_limit);
    return last_;
  }

  /// The identification of the next packet, and of so many behind it.
  uint16_t take_ids(uint32_t count) {
    const uint16_t first = id_;
    id_ = static_cast<uint16_t>(id_ + count);
    return first;
  }

  /// Writes a header of kIpv4Header octets, which `l4_length` octets follow.
  static void write(uint8_t* p, const Prepared& header, uint16_t id, uint32_t l4_length) {
    std::memcpy(p, header.octets.data(), wire::kIpv4Header);
    const uint32_t length = wire::kIpv4Header + l4_length;
    base::store_be16(p + wire::kIpv4LengthAt, static_cast<uint16_t>(length));
    base::store_be16(p + wire::kIpv4IdAt, id);
    // Only the fields that differ from the template are added to its sum (RFC 1071 s.2 A).
    base::store_be16(p + wire::kIpv4ChecksumAt, wire::checksum_fold(header.sum + length + id));
  }

 private:
  [[gnu::noinline]] void make(uint32_t source, uint32_t destination, uint8_t protocol,
                              uint8_t traffic_class, uint8_t hop_limit) {
    wire::Ipv4 ip;
    ip.fragment = wire::kIpv4DontFragment;
    ip.tos = traffic_class;
    ip.ttl = hop_limit != 0 ? hop_limit : ttl_;
    ip.protocol = protocol;
    ip.source = source;
    ip.destination = destination;
    last_ = {{}, source, destination, protocol, traffic_class, hop_limit, 0};
    wire::write_ipv4(last_.octets.data(), ip);
    base::store_be16(last_.octets.data() + wire::kIpv4ChecksumAt, 0);
    last_.sum = wire::checksum_add(0, last_.octets);
  }

  uint8_t ttl_;
  // RFC 6864 s.4.1: with DF the value has no meaning; a count helps readers of a trace.
  uint16_t id_ = 0;
  Prepared last_;
};

}  // namespace rnic::net
