/// \file
/// PeerAddress: the name that queue pairs of the RoCE face give to each other.
#pragma once

#include <infiniband/verbs.h>

#include <compare>
#include <cstdint>

#include "rnic/address.hpp"

namespace rnic::run {

/// A queue pair has a number of 24 bits: the TCP port on which its process hears of peers, and
/// which of the queue pairs of that port it is. So the address and the number name an endpoint of
/// TCP, and nobody has to be asked for it (decision 61).
inline constexpr uint32_t kQueuePairsOfPort = 256;
inline constexpr uint32_t kMaxQpn = 0xffffff;

[[nodiscard]] constexpr uint32_t qpn_of(uint16_t port, uint32_t index) {
  return uint32_t{port} * kQueuePairsOfPort + index;
}
[[nodiscard]] constexpr uint16_t port_of(uint32_t qpn) {
  return static_cast<uint16_t>(qpn / kQueuePairsOfPort);
}
[[nodiscard]] constexpr uint32_t index_of(uint32_t qpn) { return qpn % kQueuePairsOfPort; }

struct PeerAddress {
  uint32_t qpn = 0;
  IpAddress address;

  /// The number comes first: the two sides need not agree on which of its addresses a machine is
  /// called by, unless the numbers are the same. The lower one of two connects.
  friend constexpr auto operator<=>(const PeerAddress&, const PeerAddress&) = default;

  [[nodiscard]] Endpoint endpoint() const { return {address, port_of(qpn)}; }
};

/// The address that a GID stands for. An IPv4 address is mapped in both.
[[nodiscard]] inline IpAddress address_of(const ibv_gid& gid) {
  uint64_t halves[2];
  for (int half = 0; half < 2; ++half) {
    halves[half] = 0;
    for (int i = 0; i < 8; ++i) halves[half] = halves[half] << 8 | gid.raw[8 * half + i];
  }
  return {halves[0], halves[1]};
}

}  // namespace rnic::run
