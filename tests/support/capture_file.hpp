/// \file
/// Reads a capture file of the library (pcapng) back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/endian.hpp"

namespace rnic::test {

struct CaptureFrame {
  uint64_t stamp = 0;  ///< ns
  uint32_t flags = 0;  ///< 1: inbound, 2: outbound
  std::vector<uint8_t> octets;
};

/// The frame in the block of a packet.
inline CaptureFrame frame_of(const uint8_t* block, uint32_t total) {
  using base::load_le32;
  const uint32_t length = load_le32(block + 20);
  const uint32_t padded = (length + 3) / 4 * 4;
  EXPECT_EQ(load_le32(block + 24), length);
  EXPECT_EQ(total, 28 + padded + 16);
  if (total < 28 + padded + 16) return {};
  return {uint64_t{load_le32(block + 12)} << 32 | load_le32(block + 16),
          load_le32(block + 28 + padded + 4),
          {block + 28, block + 28 + length}};
}

/// The frames of a file. Each length is compared with its twin, and a torn block is a failure.
inline std::vector<CaptureFrame> read_capture(const std::string& path) {
  using base::load_le32;
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> octets{std::istreambuf_iterator<char>(file), {}};
  std::vector<CaptureFrame> frames;
  std::vector<uint32_t> types;
  for (size_t at = 0; at < octets.size();) {
    const size_t left = octets.size() - at;
    const uint8_t* const block = &octets[at];
    const uint32_t total = left < 12 ? 0 : load_le32(block + 4);
    if (total % 4 != 0 || total < 12 || total > left) {
      ADD_FAILURE() << "a torn block, or one with a wrong length, at octet " << at;
      return frames;
    }
    EXPECT_EQ(load_le32(block + total - 4), total);
    types.push_back(load_le32(block));
    if (types.back() == 0x0a0d0d0a) {
      EXPECT_EQ(load_le32(block + 8), 0x1a2b3c4du);
    }
    if (types.back() == 1) {
      EXPECT_EQ(block[8], 1);  // Ethernet
      const std::string text(block, block + total);
      EXPECT_NE(text.find(std::string("\x09\x00\x01\x00\x09\x00\x00\x00", 8)), text.npos);
    }
    if (types.back() == 6 && total >= 44) frames.push_back(frame_of(block, total));
    at += total;
  }
  EXPECT_GE(types.size(), 2u);
  if (types.size() >= 2) {
    EXPECT_EQ(types[0], 0x0a0d0d0au);
    EXPECT_EQ(types[1], 1u);
  }
  return frames;
}

}  // namespace rnic::test
