/// \file
/// Neighbour solicitations and advertisements (RFC 4861 s.4.3, 4.4).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/ipv6.hpp"

namespace rnic::wire {

inline constexpr uint32_t kNdFlagsAt = 4;  ///< advertisement only
inline constexpr uint32_t kNdTargetAt = 8;
inline constexpr uint32_t kNdOptionsAt = 24;
inline constexpr uint32_t kNdLinkOption = 8;  ///< octets of a link-layer address option
inline constexpr uint32_t kNdMessage = kNdOptionsAt + kNdLinkOption;

inline constexpr uint8_t kNdFlagRouter = 0x80;
inline constexpr uint8_t kNdFlagSolicited = 0x40;
inline constexpr uint8_t kNdFlagOverride = 0x20;

inline constexpr uint8_t kNdSourceLink = 1;
inline constexpr uint8_t kNdTargetLink = 2;

inline constexpr uint8_t kNdHopLimit = 255;

struct NeighbourMessage {
  uint8_t type = 0;
  uint8_t flags = 0;
  Ipv6Address target;
  std::optional<MacAddress> link;  ///< source (solicitation) or target (advertisement) address
};

/// Parses a whole ICMPv6 message of either type, whose checksum was checked before. Empty: a
/// length, a code or an option is impossible (RFC 4861 s.7.1).
[[nodiscard]] inline std::optional<NeighbourMessage> parse_neighbour_message(base::ByteView m) {
  if (m.size() < kNdOptionsAt || m[kIcmpCodeAt] != 0) return std::nullopt;
  NeighbourMessage out;
  out.type = m[kIcmpTypeAt];
  out.flags = m[kNdFlagsAt];
  out.target = load_ipv6_address(m.data() + kNdTargetAt);
  if (out.target.high >> 56 == 0xff) return std::nullopt;
  const uint8_t wanted = out.type == kIcmpv6NeighbourSolicitation ? kNdSourceLink : kNdTargetLink;
  for (base::ByteView rest = m.subspan(kNdOptionsAt); !rest.empty();) {
    if (rest.size() < 2 || rest[1] == 0 || rest[1] * 8u > rest.size()) return std::nullopt;
    // Unknown options are skipped (RFC 4861 s.4.6).
    if (rest[0] == wanted && rest[1] == 1) out.link = load_mac(rest.data() + 2);
    rest = rest.subspan(rest[1] * 8u);
  }
  return out;
}

/// Writes the message, with a link-layer address option if it has an address. The checksum field is
/// 0.
/// \return octets written
inline uint32_t write_neighbour_message(uint8_t* p, const NeighbourMessage& message) {
  p[kIcmpTypeAt] = message.type;
  p[kIcmpCodeAt] = 0;
  base::store_be16(p + kIcmpChecksumAt, 0);
  base::store_be32(p + kNdFlagsAt, uint32_t{message.flags} << 24);
  store_ipv6_address(p + kNdTargetAt, message.target);
  if (!message.link) return kNdOptionsAt;
  p[kNdOptionsAt] = message.type == kIcmpv6NeighbourSolicitation ? kNdSourceLink : kNdTargetLink;
  p[kNdOptionsAt + 1] = 1;
  store_mac(p + kNdOptionsAt + 2, *message.link);
  return kNdMessage;
}

/// The Ethernet address of an IPv6 group: 33:33 and the last four octets of its address (RFC 2464
/// s.7).
[[nodiscard]] constexpr MacAddress multicast_mac(const Ipv6Address& group) {
  return {0x33,
          0x33,
          static_cast<uint8_t>(group.low >> 24),
          static_cast<uint8_t>(group.low >> 16),
          static_cast<uint8_t>(group.low >> 8),
          static_cast<uint8_t>(group.low)};
}

/// The solicited-node group of an address: ff02::1:ffXX:XXXX (RFC 4291 s.2.7.1).
[[nodiscard]] constexpr Ipv6Address solicited_node(const Ipv6Address& address) {
  return {0xff02000000000000, 0x00000001ff000000 | (address.low & 0xffffff)};
}

inline constexpr Ipv6Address kAllNodes{0xff02000000000000, 1};

}  // namespace rnic::wire
