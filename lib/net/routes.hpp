/// \file
/// The addresses and routes of one interface: our addresses, the networks on the link, and the next
/// hop and the source address for a destination.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "net/config.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// All of it is fixed at construction, except that an IPv6 address may be unusable (yet). Routes
/// are a list that is searched from the longest prefix down: it is short, and Output remembers the
/// next hop of the last destination.
class Routes {
 public:
  /// An interface with an IPv6 address also gets a link-local address made from `mac`, unless the
  /// configuration has one (RFC 4291 s.2.1, 2.5.6).
  Routes(const Config& config, const port::MacAddress& mac);

  [[nodiscard]] bool is_ours(uint32_t v4) const {
    for (const Local4& local : locals4_) {
      if (local.address == v4) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_ours(const IpAddress& address) const;
  /// A group that we have to be in because of our addresses: all nodes, or a solicited-node group
  /// (RFC 4291 s.2.8).
  [[nodiscard]] bool is_our_group(const IpAddress& group) const;
  [[nodiscard]] bool has_ipv6() const { return !locals6_.empty(); }
  /// All our IPv6 addresses, unusable ones included.
  [[nodiscard]] std::vector<IpAddress> addresses6() const;
  /// Makes an IPv6 address usable or unusable. An unusable address does not count as ours and is no
  /// source, but we stay in its groups (RFC 4862 s.5.4).
  void set_usable(const IpAddress& address, bool usable);

  /// The address is that of one other host: not ours, not zero, loopback, multicast, reserved or a
  /// broadcast address (RFC 1122 s.3.2.1.3).
  [[nodiscard]] bool is_other_host(uint32_t v4) const {
    const uint32_t net = v4 >> 24;
    if (net == 0 || net == 127 || net >= 224) return false;
    for (const Local4& local : locals4_) {
      if (v4 == local.address) return false;
      // All addresses of a /31 or a /32 are hosts (RFC 3021).
      const uint32_t host = v4 & ~local.mask;
      const bool on_link = ((v4 ^ local.address) & local.mask) == 0;
      if (on_link && ~local.mask >= 2 && (host == 0 || host == ~local.mask)) return false;
    }
    return true;
  }
  /// As the one above, for both families. In IPv6 `::`, `::1`, multicast addresses and mapped IPv4
  /// addresses are no other hosts.
  [[nodiscard]] bool is_other_host(const IpAddress& address) const;

  /// A neighbour whose link-layer address we may ask for, or that may ask for ours.
  [[nodiscard]] bool is_neighbour(const IpAddress& address) const;

  /// The neighbour that takes packets for `destination`.
  [[nodiscard]] std::optional<IpAddress> next_hop(const IpAddress& destination) const;

  /// The address of ours to use towards `destination` (RFC 1122 s.3.3.4.3, RFC 6724 s.5):
  /// preferably of its scope, then on the link of the next hop, then with the longest common
  /// prefix. Unspecified: there is none of its family, or no route.
  [[nodiscard]] IpAddress source_for(const IpAddress& destination) const;

 private:
  struct Local4 {
    uint32_t address = 0;
    uint32_t mask = 0;
  };
  struct Local6 {
    Prefix prefix;
    bool usable = true;
  };
  // A prefix on the link (no gateway), or behind a gateway.
  struct Way {
    Prefix to;
    IpAddress gateway;
  };

  void add_local(const Prefix& prefix);
  void add_way(const Prefix& to, const IpAddress& gateway);
  [[nodiscard]] const Way* find(const IpAddress& destination) const;

  std::vector<Local4> locals4_;
  std::vector<Local6> locals6_;
  std::vector<Way> ways_;  // longest prefix first
};

/// True when `address` is in `prefix`.
[[nodiscard]] bool contains(const Prefix& prefix, const IpAddress& address);

}  // namespace rnic::net
