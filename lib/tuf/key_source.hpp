/// \file
/// Keys of alignment mode (s.5): 48 bits that nobody can guess.
#pragma once

#include <cstdint>

#include "base/siphash.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// A key is a keyed pseudo-random function (SipHash-2-4) of a count, which is as good as its
/// secret; this comes from the system's randomness (RFC 1750). Addresses and time are not used,
/// since others know them.
class KeySource {
 public:
  explicit KeySource(const base::Secret& secret) : secret_(secret) {}
  [[nodiscard]] wire::TufKey next();

 private:
  base::Secret secret_;
  uint64_t count_ = 0;
};

}  // namespace rnic::tuf
