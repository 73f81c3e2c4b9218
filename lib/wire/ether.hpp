/// \file
/// Ethernet II header (RFC 894) and the 802.1Q tag. Frames carry no FCS here.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire {

using MacAddress = std::array<uint8_t, 6>;

inline constexpr uint32_t kEtherHeader = 14;
inline constexpr uint32_t kEtherShortest = 60;  ///< octets of a frame on the wire, without FCS
inline constexpr uint32_t kEtherDestinationAt = 0;
inline constexpr uint32_t kEtherSourceAt = 6;
inline constexpr uint32_t kEtherTypeAt = 12;

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;

inline constexpr uint32_t kVlanTag = 4;         ///< octets that a tag adds
inline constexpr uint32_t kVlanControlAt = 14;  ///< priority and identifier
inline constexpr uint32_t kVlanTypeAt = 16;     ///< EtherType of the payload behind the tag
inline constexpr uint16_t kVlanIdMask = 0x0fff;

inline constexpr MacAddress kMacBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// The address is a group; the broadcast address is one, too.
[[nodiscard]] constexpr bool is_multicast(const MacAddress& mac) { return (mac[0] & 1) != 0; }

/// An address that one station can have: neither a group nor all zero.
[[nodiscard]] constexpr bool is_station(const MacAddress& mac) {
  return !is_multicast(mac) && mac != MacAddress{};
}

/// The six octets at p.
[[nodiscard]] inline MacAddress load_mac(const uint8_t* p) {
  MacAddress mac;
  std::memcpy(mac.data(), p, mac.size());
  return mac;
}

inline void store_mac(uint8_t* p, const MacAddress& mac) { std::memcpy(p, mac.data(), mac.size()); }

/// Writes kEtherHeader octets.
inline void write_ether(uint8_t* p, const MacAddress& destination, const MacAddress& source,
                        uint16_t type) {
  store_mac(p + kEtherDestinationAt, destination);
  store_mac(p + kEtherSourceAt, source);
  base::store_be16(p + kEtherTypeAt, type);
}

}  // namespace rnic::wire
