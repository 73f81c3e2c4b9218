/// \file
/// Headers of outgoing IPv4 frames: a prepared template, completed for each frame.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "net/net.hpp"
#include "port/port.hpp"
#include "wire/ether.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"

namespace rnic::net {

/// Octets in front of the IP payload.
inline constexpr uint32_t kHeaders = wire::kEtherHeader + wire::kIpv4Header;

/// Writes headers; the destination's MAC address is written apart, it may come later.
class Ipv4Output {
 public:
  Ipv4Output(const Config& config, const port::MacAddress& mac) {
    wire::write_ether(headers_.data(), port::MacAddress{}, mac, wire::kEtherTypeIpv4);
    wire::Ipv4 ip;
    ip.fragment = wire::kIpv4DontFragment;
    ip.ttl = config.ttl;
    ip.source = config.address.as_v4();
    uint8_t* p = headers_.data() + wire::kEtherHeader;
    wire::write_ipv4(p, ip);
    base::store_be16(p + wire::kIpv4ChecksumAt, 0);
    fixed_sum_ = wire::checksum_add(0, {p, wire::kIpv4Header});
  }

  void write(uint8_t* frame, uint32_t destination, uint8_t protocol, uint8_t traffic_class,
             uint8_t hop_limit, uint32_t l4_length) {
    std::memcpy(frame, headers_.data(), headers_.size());
    uint8_t* p = frame + wire::kEtherHeader;
    const uint32_t length = wire::kIpv4Header + l4_length;
    const uint16_t id = id_++;
    base::store_be16(p + wire::kIpv4LengthAt, static_cast<uint16_t>(length));
    base::store_be16(p + wire::kIpv4IdAt, id);
    p[wire::kIpv4ProtocolAt] = protocol;
    base::store_be32(p + wire::kIpv4DestinationAt, destination);
    // Only what differs from the template is added to its sum (RFC 1071 s.2 A).
    uint32_t sum =
        fixed_sum_ + length + id + protocol + (destination >> 16) + (destination & 0xffff);
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
  std::array<uint8_t, kHeaders> headers_{};
  uint32_t fixed_sum_ = 0;
  uint16_t id_ =
      0;  // RFC 6864 s.4.1: with DF its value means nothing; counting helps whoever reads a trace
};

}  // namespace rnic::net
