/// \file
/// The seeded generator. Engines get one at construction; nobody draws from the system below
/// `verbs`.
#pragma once

#include <cstdint>

namespace rnic::base {

/// xoshiro256** seeded by splitmix64 (Blackman and Vigna). Not for secrets.
class Prng {
 public:
  explicit Prng(uint64_t seed) {
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15ull;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
      word = z ^ (z >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  uint32_t next32() { return static_cast<uint32_t>(next() >> 32); }

  /// Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  /// Uniform in [low, high], both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }

  /// True with the given probability (0..1).
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

 private:
  static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  uint64_t state_[4];
};

}  // namespace rnic::base
