#include "rnic-stream/content.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace rnic::stream {

namespace {

/// The block twice, so that every block's worth lies in one piece.
const std::vector<uint8_t>& blocks() {
  static const std::vector<uint8_t> octets = [] {
    std::vector<uint8_t> out(2 * size_t{Content::kBlock});
    uint64_t x = 1;
    for (size_t i = 0; i < Content::kBlock; ++i) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      out[i] = out[i + Content::kBlock] = static_cast<uint8_t>(x >> 56);
    }
    return out;
  }();
  return octets;
}

using HashTables = std::array<std::array<uint32_t, 256>, 8>;

/// Table k tells what an octet does to the state k octets later.
constexpr HashTables make_tables() {
  HashTables tables{};
  for (uint32_t octet = 0; octet < 256; ++octet) {
    uint32_t state = octet;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb88320u : 0);
    tables[0][octet] = state;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (uint32_t octet = 0; octet < 256; ++octet) {
      const uint32_t before = tables[k - 1][octet];
      tables[k][octet] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr HashTables kTables = make_tables();

}  // namespace

Content::Content(uint16_t client_port, Way way)
    : begin_((client_port * 7919u + static_cast<uint32_t>(way) * 32749u) % kBlock) {}

std::span<const uint8_t> Content::at(uint64_t offset, uint64_t n) const {
  const size_t from = (begin_ + offset) % kBlock;
  return {blocks().data() + from, static_cast<size_t>(std::min<uint64_t>(n, kBlock))};
}

std::optional<uint64_t> Content::first_difference(uint64_t offset,
                                                  std::span<const uint8_t> octets) const {
  for (size_t done = 0; done < octets.size();) {
    const auto expected = at(offset + done, octets.size() - done);
    if (std::memcmp(expected.data(), octets.data() + done, expected.size()) != 0) {
      const auto found = octets.subspan(done, expected.size());
      const auto it = std::mismatch(expected.begin(), expected.end(), found.begin());
      return offset + done + static_cast<uint64_t>(it.first - expected.begin());
    }
    done += expected.size();
  }
  return std::nullopt;
}

void RunningHash::add(std::span<const uint8_t> octets) {
  uint32_t state = state_;
  size_t i = 0;
  for (; i + 8 <= octets.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, octets.data() + i, 8);
    word ^= state;
    state = 0;
    for (size_t k = 0; k < 8; ++k) state ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; i < octets.size(); ++i) state = (state >> 8) ^ kTables[0][(state ^ octets[i]) & 0xff];
  state_ = state;
}

std::string hex(uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

}  // namespace rnic::stream
