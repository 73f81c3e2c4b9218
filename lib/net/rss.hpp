/// \file
/// Computes the receive queue to which a NIC gives the segments of a connection (receive-side
/// scaling): the Toeplitz hash with a known key, in software, as NICs and rte_thash compute it.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

inline constexpr uint32_t kRssKeyOctets = port::ReceiveSpread::kKeyOctets;
using RssKey = std::array<uint8_t, kRssKeyOctets>;

/// A key that repeats every 16 bits, so that both directions of a connection have the same hash:
/// the same worker may serve both ends, and it does not matter for which end a hash is computed.
inline constexpr RssKey kSymmetricRssKey = [] {
  RssKey key{};
  for (uint32_t i = 0; i < kRssKeyOctets; ++i) key[i] = i % 2 == 0 ? 0x6d : 0x5a;
  return key;
}();

/// The Toeplitz hash of at most kRssKeyOctets - 4 octets.
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
/// \param source, destination as in the segment: source is the peer
[[nodiscard]] inline uint32_t rss_hash(const Endpoint& source, const Endpoint& destination,
                                       const RssKey& key) {
  std::array<uint8_t, 36> tuple;
  uint8_t* p = tuple.data();
  const bool v4 = source.address.is_v4();
  for (const IpAddress& address : {source.address, destination.address}) {
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

/// The spread of a device as a driver sets it up: the places of the table get the queues in turn.
/// \param places a power of two, at least `queues`
[[nodiscard]] inline port::ReceiveSpread even_spread(uint16_t queues, uint32_t places,
                                                     const RssKey& key = kSymmetricRssKey) {
  port::ReceiveSpread spread;
  spread.key = key;
  spread.queues = queues;
  spread.table.resize(places);
  for (uint32_t i = 0; i < places; ++i) spread.table[i] = static_cast<uint16_t>(i % queues);
  return spread;
}

/// The queue, and so the worker, that gets the segments from `remote` to `local`.
[[nodiscard]] inline uint32_t queue_of(const port::ReceiveSpread& spread, const Endpoint& local,
                                       const Endpoint& remote) {
  if (spread.queues == 1) return 0;
  return spread.table[rss_hash(remote, local, spread.key) & (spread.table.size() - 1)];
}

/// Segments from `remote` to `local` come to this port.
[[nodiscard]] inline bool lands_here(const port::ReceiveSpread& spread, const Endpoint& local,
                                     const Endpoint& remote) {
  return queue_of(spread, local, remote) == spread.queue;
}

}  // namespace rnic::net
