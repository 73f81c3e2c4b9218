#include "tcp/isn.hpp"

#include <bit>

namespace rnic::tcp {

namespace {

struct SipState {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void word(uint64_t m) {
    v3 ^= m;
    round();
    round();
    v0 ^= m;
  }
};

}  // namespace

uint64_t keyed_hash(const Secret& secret, std::span<const uint64_t> words) {
  SipState s{secret[0] ^ 0x736f6d6570736575ull, secret[1] ^ 0x646f72616e646f6dull,
             secret[0] ^ 0x6c7967656e657261ull, secret[1] ^ 0x7465646279746573ull};
  for (const uint64_t word : words) s.word(word);
  s.word(uint64_t{words.size() * 8} << 56);
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t keyed_hash(const Secret& secret, const llp::Endpoint& local, const llp::Endpoint& remote) {
  const std::array<uint64_t, 5> words{local.address.high(), local.address.low(),
                                      remote.address.high(), remote.address.low(),
                                      uint64_t{local.port} << 16 | remote.port};
  return keyed_hash(secret, words);
}

}  // namespace rnic::tcp
