#include "rnic-run/introduction.hpp"

#include <algorithm>

#include "rnic-run/peer_address.hpp"

namespace rnic::run {

namespace {

// A name, and the version of what stands behind it.
constexpr std::array<uint8_t, 8> kMark = {'r', 'n', 'i', 'c', '-', 'q', 'p', 1};

void put(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

uint32_t get(const uint8_t* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | at[i];
  return value;
}

}  // namespace

Introduction::Octets Introduction::octets() const {
  Octets out;
  std::copy(kMark.begin(), kMark.end(), out.begin());
  put(out.data() + 8, from);
  put(out.data() + 12, to);
  put(out.data() + 16, psn);
  return out;
}

std::optional<Introduction> Introduction::parse(std::span<const uint8_t> octets) {
  if (octets.size() != kSize || !std::equal(kMark.begin(), kMark.end(), octets.begin())) {
    return std::nullopt;
  }
  const Introduction out{.from = get(octets.data() + 8),
                         .to = get(octets.data() + 12),
                         .psn = get(octets.data() + 16)};
  // 24 bits each, as in the headers of InfiniBand.
  if (out.from > kMaxQpn || out.to > kMaxQpn || out.psn > kMaxQpn) return std::nullopt;
  return out;
}

}  // namespace rnic::run
