/// \file
/// Keyed hash of a connection's 4-tuple: initial sequence numbers (RFC 6528) and the flow table.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/seq32.hpp"
#include "base/siphash.hpp"
#include "base/time.hpp"
#include "rnic/address.hpp"

namespace rnic::tcp {

using Secret = base::Secret;

/// SipHash-2-4.
[[nodiscard]] uint64_t keyed_hash(const Secret& secret, std::span<const uint64_t> words);
/// The hash of a 4-tuple.
[[nodiscard]] uint64_t keyed_hash(const Secret& secret, const Endpoint& local,
                                  const Endpoint& remote);

/// RFC 6528 s.3: ISN = M + F(4-tuple, secret); M ticks every 4 microseconds.
/// \param hash keyed_hash() of the 4-tuple
[[nodiscard]] inline base::Seq32 initial_sequence(uint64_t hash, base::Now now) {
  const uint32_t clock = static_cast<uint32_t>(static_cast<uint64_t>(base::nanos(now)) / 4000);
  return base::Seq32(static_cast<uint32_t>(hash) + clock);
}

/// The value of our timestamp clock at time 0 for a 4-tuple (RFC 7323 s.5.4). It is the same for
/// each incarnation, so that the timestamps of a later one are larger (RFC 6191).
[[nodiscard]] inline uint32_t timestamp_offset(uint64_t hash) {
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace rnic::tcp
