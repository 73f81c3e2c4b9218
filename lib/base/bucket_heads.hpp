/// \file
/// The heads of a hash table's buckets, passed over quickly where they are empty.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::base {

/// Calls each(bucket) for the heads that are not `empty`. A recount after each event looks at all
/// the buckets of tables that hold next to nothing, so eight empty ones are one comparison.
/// \param heads an array of uint32_t with data() and size()
template <typename Heads, typename F>
void for_each_busy_bucket(const Heads& heads, uint32_t empty, F&& each) {
  constexpr size_t kAtOnce = 8;
  const uint32_t* const head = heads.data();
  size_t bucket = 0;
  while (bucket < heads.size()) {
    if (heads.size() - bucket >= kAtOnce) {
      uint32_t different = 0;
      for (size_t i = 0; i < kAtOnce; ++i) different |= head[bucket + i] ^ empty;
      if (different == 0) {
        bucket += kAtOnce;
        continue;
      }
    }
    // Up to the next eight, one by one.
    const size_t end = heads.size() - bucket < kAtOnce ? heads.size() : bucket + kAtOnce;
    for (; bucket < end; ++bucket) {
      if (head[bucket] != empty) each(bucket);
    }
  }
}

}  // namespace rnic::base
