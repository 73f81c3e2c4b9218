/// \file
/// Which receive queue a NIC gives the segments of a connection to (receive-side scaling): the
/// Toeplitz hash with a known key, in software, as NICs and rte_thash compute it.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "llp/endpoint.hpp"

namespace rnic::net {

inline constexpr uint32_t kRssKeyOctets = 40;
using RssKey = std::array<uint8_t, kRssKeyOctets>;

/// Repeats every 16 bits, so that both directions of a connection have one hash: the same worker
/// may serve both ends, and it does not matter which end a hash is computed at.
inline constexpr RssKey kSymmetricRssKey = [] {
  RssKey key{};
  for (uint32_t i = 0; i < kRssKeyOctets; ++i) key[i] = i % 2 == 0 ? 0x6d : 0x5a;
  return key;
}();

/// Octets and key must be such that octets.size() + 4 <= kRssKeyOctets.
[[nodiscard]] inline uint32_t toeplitz(base::ByteView octets, const RssKey& key) {
  uint32_t hash = 0;
  uint32_t window = base::load_be32(key.data());
  for (size_t i = 0; i < octets.size(); ++i) {
    for (int bit = 7; bit >= 0; --bit) {
      if ((octets[i] >> bit & 1) != 0) hash ^= window;
      window = window << 1 | (key[i + 4] >> bit & 1);
    }
  }
  return hash;
}

/// The hash of a received TCP segment.
/// \param source, destination as the segment has them: source is the peer.
[[nodiscard]] inline uint32_t rss_hash(const llp::Endpoint& source,
                                       const llp::Endpoint& destination, const RssKey& key) {
  std::array<uint8_t, 36> tuple;
  uint8_t* p = tuple.data();
  const bool v4 = source.address.is_v4();
  for (const llp::IpAddress& address : {source.address, destination.address}) {
    if (v4) {
      base::store_be32(p, address.as_v4());
      p += 4;
    } else {
      base::store_be64(p, address.high());
      base::store_be64(p + 8, address.low());
      p += 16;
    }
  }
  base::store_be16(p, source.port);
  base::store_be16(p + 2, destination.port);
  return toeplitz({tuple.data(), v4 ? 12u : 36u}, key);
}

/// How a port spreads connections over its queues: queue `i % queues` in place i of the indirection
/// table.
struct RssSpread {
  RssKey key = kSymmetricRssKey;
  uint32_t table = 128;  ///< places of the indirection table, a power of two
  uint32_t queues = 1;

  /// The queue, and so the worker, that gets what `remote` sends to `local`.
  [[nodiscard]] uint32_t queue_of(const llp::Endpoint& local, const llp::Endpoint& remote) const {
    return (rss_hash(remote, local, key) & (table - 1)) % queues;
  }
};

/// A local port, from `first` on upwards and around to `first` again, whose segments land on
/// `queue`. \param lowest, where it goes around to after 65535 \return 0: there is none
[[nodiscard]] inline uint16_t port_at_home(const RssSpread& spread, uint32_t queue,
                                           llp::Endpoint local, const llp::Endpoint& remote,
                                           uint16_t first, uint16_t lowest) {
  const uint32_t count = 65536u - lowest;
  for (uint32_t i = 0; i < count; ++i) {
    local.port = static_cast<uint16_t>(lowest + (first - lowest + i) % count);
    if (spread.queue_of(local, remote) == queue) return local.port;
  }
  return 0;
}

}  // namespace rnic::net
