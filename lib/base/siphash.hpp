/// \file
/// SipHash-2-4 (Aumasson and Bernstein) over 64-bit words, and the generator made of it for what
/// others must not guess. Engines get the secret at construction; nobody draws from the system
/// below `verbs`.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace rnic::base {

/// The key of a SipHash: 128 bits.
using Secret = std::array<uint64_t, 2>;

class SipHash {
 public:
  explicit SipHash(const Secret& secret)
      : v0_(secret[0] ^ 0x736f6d6570736575ull),
        v1_(secret[1] ^ 0x646f72616e646f6dull),
        v2_(secret[0] ^ 0x6c7967656e657261ull),
        v3_(secret[1] ^ 0x7465646279746573ull) {}

  void add(uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
    ++words_;
  }

  /// The hash of what was added. Once.
  uint64_t finish() {
    add(words_ * 8 << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
  uint64_t words_ = 0;
};

/// Numbers that nobody can guess who does not know the secret, however many he has seen: SipHash of
/// a count. As good as its secret, which comes from the system's randomness at the edge (RFC 4086).
class SecretSource {
 public:
  /// \param purpose of two sources with one secret, each has its own
  SecretSource(const Secret& secret, uint64_t purpose)
      : secret_{secret[0] ^ purpose, secret[1] ^ std::rotl(purpose, 32)} {}

  uint64_t next() { return of(count_++); }
  /// Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  /// A fixed function of `word` under the secret, apart from next().
  [[nodiscard]] uint64_t of(uint64_t word, uint64_t tweak = 0) const {
    SipHash hash(secret_);
    hash.add(word);
    if (tweak != 0) hash.add(tweak);
    return hash.finish();
  }

 private:
  Secret secret_;
  uint64_t count_ = 0;
};

}  // namespace rnic::base
