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
  explicit Ipv4Output(const Config& config) {
    wire::Ipv4 ip;
    ip.fragment = wire::kIpv4DontFragment;
    ip.ttl = config.ttl;
    wire::write_ipv4(header_.data(), ip);
    base::store_be16(header_.data() + wire::kIpv4ChecksumAt, 0);
    fixed_sum_ = wire::checksum_add(0, header_);
  }

  /// Writes a header of kIpv4Header octets, which `l4_length` octets follow.
  void write(uint8_t* p, uint32_t source, uint32_t destination, uint8_t protocol,
             uint8_t traffic_class, uint8_t hop_limit, uint32_t l4_length) {
    std::memcpy(p, header_.data(), header_.size());
    const uint32_t length = wire::kIpv4Header + l4_length;
    const uint16_t id = id_++;
    base::store_be16(p + wire::kIpv4LengthAt, static_cast<uint16_t>(length));
    base::store_be16(p + wire::kIpv4IdAt, id);
    p[wire::kIpv4ProtocolAt] = protocol;
    base::store_be32(p + wire::kIpv4SourceAt, source);
    base::store_be32(p + wire::kIpv4DestinationAt, destination);
    // Only the fields that differ from the template are added to its sum (RFC 1071 s.2 A).
    uint32_t sum = fixed_sum_ + length + id + protocol + (source >> 16) + (source & 0xffff) +
                   (destination >> 16) + (destination & 0xffff);
    if ((traffic_class | hop_limit) != 0) [[unlikely]] {
      p[wire::kIpv4TosAt] = traffic_class;
      sum += traffic_class;
      if (hop_limit != 0) {
        sum += (0xffffu - (uint32_t{p[wire::kIpv4TtlAt]} << 8)) + (uint32_t{hop_limit} << 8);
        p[wire::kIpv4TtlAt] = hop_limit;
      }
    }
    base::store_be16(p + wire::kIpv4ChecksumAt, wire::checksum_fold(sum));
  }

 private:
  std::array<uint8_t, wire::kIpv4Header> header_{};
  uint32_t fixed_sum_ = 0;
  // RFC 6864 s.4.1: with DF the value has no meaning; a count helps readers of a trace.
  uint16_t id_ = 0;
};

}  // namespace rnic::net
