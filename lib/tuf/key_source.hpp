/// \file
/// Keys of alignment mode (s.5): 48 bits that nobody can guess.
#pragma once

#include <cstdint>

#include "base/siphash.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// A keyed pseudo-random function (SipHash-2-4) over a count is as good as its secret, which comes
/// from the system's randomness (RFC 1750). Neither addresses nor time go in, since others know
/// them.
class KeySource {
 public:
  explicit KeySource(const base::Secret& secret) : secret_(secret) {}
  [[nodiscard]] wire::TufKey next();

 private:
  base::Secret secret_;
  uint64_t count_ = 0;
};

}  // namespace rnic::tuf
