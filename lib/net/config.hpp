/// \file
/// The configuration of an interface.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// An address and the length of its network part: 10.0.0.1/24, fd00::1/64.
struct Prefix {
  IpAddress address;
  uint8_t length = 0;  ///< bits: 0..32 for IPv4, 0..128 for IPv6
  friend bool operator==(const Prefix&, const Prefix&) = default;
};

/// Destinations in `to` go through `gateway`, a neighbour of the same family.
struct StaticRoute {
  Prefix to;
  IpAddress gateway;
  friend bool operator==(const StaticRoute&, const StaticRoute&) = default;
};

/// The treatment of fragments: the choices of RFC 5044 appendix A.5.1.
enum class FragmentPolicy : uint8_t {
  Drop,      ///< fragments are dropped; the sender is told a size that fits
  Mtu,       ///< one buffer of `mtu` octets; the sender is told if a datagram does not fit
  Many,      ///< reassembly_datagrams buffers, each for a datagram of the largest size
  One,       ///< one buffer for a datagram of the largest size
  Spanning,  ///< reassembly_datagrams share one buffer of reassembly_octets
};

struct Config {
  static constexpr uint32_t kMaxAddresses = 16;
  static constexpr uint32_t kMaxRoutes = 64;

  IpAddress address;  ///< of either family
  uint8_t prefix_length = 24;
  std::vector<Prefix> addresses;    ///< further addresses, at most kMaxAddresses
  IpAddress gateway;                ///< of IPv4; unspecified: none
  IpAddress gateway6;               ///< of IPv6; unspecified: none
  std::vector<StaticRoute> routes;  ///< at most kMaxRoutes
  uint16_t vlan = 0;                ///< 802.1Q identifier of every frame, 1..4094; 0: untagged
  uint32_t mtu = 1500;              ///< octets of an IP packet; <= the port's
  uint8_t ttl = 64;                 ///< TTL of IPv4 and hop limit of IPv6
  uint32_t neighbours = 256;        ///< entries at once, of both families
  base::Duration arp_lifetime = std::chrono::minutes(5);
  base::Duration nd_lifetime = std::chrono::seconds(30);  ///< RFC 4861 s.10 REACHABLE_TIME
  base::Duration neighbour_retry = std::chrono::seconds(1);
  uint32_t neighbour_retries = 5;
  /// Number of solicitations, neighbour_retry apart, that must stay unanswered before one of our
  /// IPv6 addresses is used (RFC 4862 s.5.1 DupAddrDetectTransmits); 0: it is used at once.
  uint32_t dad_transmits = 0;
  uint32_t icmp_per_second = 100;         ///< echo replies and neighbour advertisements
  uint32_t icmp_errors_per_second = 100;  ///< ICMP errors that are sent
  base::Duration path_mtu_lifetime = std::chrono::minutes(10);
  FragmentPolicy fragments = FragmentPolicy::Many;
  uint32_t reassembly_datagrams = 64;       ///< reassembled at once; 0: fragments are dropped
  uint32_t reassembly_octets = 256u << 10;  ///< octets of all of them with FragmentPolicy::Spanning
  base::Duration reassembly_timeout = std::chrono::seconds(60);
  uint64_t seed = 1;  ///< seed of flow labels
};

}  // namespace rnic::net
