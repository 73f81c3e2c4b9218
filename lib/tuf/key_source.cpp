#include "tuf/key_source.hpp"

#include <bit>

namespace rnic::tuf {
namespace {

struct Sip {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

wire::TufKey KeySource::next() {
  Sip sip{secret_[0] ^ 0x736f6d6570736575, secret_[1] ^ 0x646f72616e646f6d,
          secret_[0] ^ 0x6c7967656e657261, secret_[1] ^ 0x7465646279746573};
  sip.take(count_++);
  sip.take(uint64_t{8} << 56);
  sip.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) sip.round();
  return (sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3) & wire::kTufKeyMask;
}

}  // namespace rnic::tuf
