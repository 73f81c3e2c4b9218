/// \file
/// The addresses of one interface: what is on the link, what is a host, where a packet goes next.
#pragma once

#include <cstdint>
#include <optional>

#include "llp/endpoint.hpp"
#include "net/net.hpp"

namespace rnic::net {

/// One address, its subnet and at most one gateway.
class Route {
 public:
  explicit Route(const Config& config)
      : address_(config.address.as_v4()),
        mask_(config.prefix_length == 0 ? 0 : ~uint32_t{0} << (32 - config.prefix_length)),
        gateway_(config.gateway.as_v4()) {}

  [[nodiscard]] bool is_ours(uint32_t ip) const { return ip == address_; }

  [[nodiscard]] bool on_link(uint32_t ip) const { return ((ip ^ address_) & mask_) == 0; }

  /// A neighbour that may stand in an ARP packet.
  [[nodiscard]] bool is_neighbour(uint32_t ip) const {
    return is_other_host(ip) && (on_link(ip) || ip == gateway_);
  }

  /// One host other than us: not zero, loopback, multicast, reserved or a broadcast address
  /// (RFC 1122 s.3.2.1.3).
  [[nodiscard]] bool is_other_host(uint32_t ip) const {
    const uint32_t net = ip >> 24;
    if (net == 0 || net == 127 || net >= 224 || ip == address_) return false;
    // Of a /31 and a /32 all addresses are hosts (RFC 3021).
    const uint32_t host = ip & ~mask_;
    return ~mask_ < 2 || !on_link(ip) || (host != 0 && host != ~mask_);
  }

  /// The neighbour that takes packets for `destination`.
  [[nodiscard]] std::optional<llp::IpAddress> next_hop(llp::IpAddress destination) const {
    if (!destination.is_v4() || !is_other_host(destination.as_v4())) return std::nullopt;
    if (on_link(destination.as_v4())) return destination;
    if (gateway_ == 0) return std::nullopt;
    return llp::IpAddress::v4(gateway_);
  }

 private:
  uint32_t address_;
  uint32_t mask_;
  uint32_t gateway_;
};

}  // namespace rnic::net
