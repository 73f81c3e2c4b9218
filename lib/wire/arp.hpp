/// \file
/// ARP for IPv4 over Ethernet (RFC 826).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/ether.hpp"

namespace rnic::wire {

inline constexpr uint32_t kArpPacket = 28;
inline constexpr uint32_t kArpHardwareAt = 0;
inline constexpr uint32_t kArpProtocolAt = 2;
inline constexpr uint32_t kArpHardwareLengthAt = 4;
inline constexpr uint32_t kArpProtocolLengthAt = 5;
inline constexpr uint32_t kArpOperationAt = 6;
inline constexpr uint32_t kArpSenderMacAt = 8;
inline constexpr uint32_t kArpSenderIpAt = 14;
inline constexpr uint32_t kArpTargetMacAt = 18;
inline constexpr uint32_t kArpTargetIpAt = 24;

inline constexpr uint16_t kArpHardwareEthernet = 1;
inline constexpr uint16_t kArpRequest = 1;
inline constexpr uint16_t kArpReply = 2;

/// An ARP packet; IP addresses are in host order.
struct Arp {
  uint16_t operation = 0;
  MacAddress sender_mac{};
  uint32_t sender_ip = 0;
  MacAddress target_mac{};
  uint32_t target_ip = 0;
};

/// Parses the octets behind the Ethernet header, which padding may follow. Empty unless they are a
/// request or reply for IPv4 over Ethernet.
[[nodiscard]] inline std::optional<Arp> parse_arp(base::ByteView octets) {
  if (octets.size() < kArpPacket) return std::nullopt;
  const uint8_t* p = octets.data();
  if (base::load_be16(p + kArpHardwareAt) != kArpHardwareEthernet ||
      base::load_be16(p + kArpProtocolAt) != kEtherTypeIpv4 || p[kArpHardwareLengthAt] != 6 ||
      p[kArpProtocolLengthAt] != 4) {
    return std::nullopt;
  }
  Arp arp;
  arp.operation = base::load_be16(p + kArpOperationAt);
  if (arp.operation != kArpRequest && arp.operation != kArpReply) return std::nullopt;
  arp.sender_mac = load_mac(p + kArpSenderMacAt);
  arp.sender_ip = base::load_be32(p + kArpSenderIpAt);
  arp.target_mac = load_mac(p + kArpTargetMacAt);
  arp.target_ip = base::load_be32(p + kArpTargetIpAt);
  return arp;
}

/// Writes kArpPacket octets.
inline void write_arp(uint8_t* p, const Arp& arp) {
  base::store_be16(p + kArpHardwareAt, kArpHardwareEthernet);
  base::store_be16(p + kArpProtocolAt, kEtherTypeIpv4);
  p[kArpHardwareLengthAt] = 6;
  p[kArpProtocolLengthAt] = 4;
  base::store_be16(p + kArpOperationAt, arp.operation);
  store_mac(p + kArpSenderMacAt, arp.sender_mac);
  base::store_be32(p + kArpSenderIpAt, arp.sender_ip);
  store_mac(p + kArpTargetMacAt, arp.target_mac);
  base::store_be32(p + kArpTargetIpAt, arp.target_ip);
}

}  // namespace rnic::wire
