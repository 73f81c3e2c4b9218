#include "wire/inet_checksum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/endian.hpp"
#include "base/prng.hpp"
#include "exact.hpp"

namespace rnic::wire {
namespace {

/// RFC 1071 section 4.1, word by word.
uint16_t reference(base::ByteView octets, uint64_t start = 0) {
  uint64_t sum = start;
  for (size_t i = 0; i < octets.size(); i += 2) {
    sum += static_cast<uint64_t>(octets[i]) << 8;
    if (i + 1 < octets.size()) sum += octets[i + 1];
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// RFC 1071 section 3, the worked example: sum ddf2.
TEST(InetChecksum, WorkedExample) {
  const std::array<uint8_t, 8> octets{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(checksum_fold(checksum_add(0, octets)), static_cast<uint16_t>(~0xddf2));
}

TEST(InetChecksum, AllLengthsAndAlignmentsAgainstTheReference) {
  base::Prng prng(1);
  std::vector<uint8_t> store(700);
  for (uint8_t& octet : store) octet = static_cast<uint8_t>(prng.next());
  for (size_t n = 0; n <= 600; ++n) {
    for (size_t offset = 0; offset < 16; ++offset) {
      const base::ByteView view(store.data() + offset, n);
      ASSERT_EQ(checksum_fold(checksum_add(0, view)), reference(view)) << n << " at " << offset;
    }
  }
}

// In memory of exactly the octets that count.
TEST(InetChecksum, ReadsNothingBehindTheEnd) {
  const Octets octets(200, 0x3c);
  for (size_t n = 0; n <= octets.size(); ++n) {
    const Exact exact(octets, n);
    EXPECT_EQ(checksum_fold(checksum_add(0, exact.view())), reference(exact.view())) << n;
  }
}

TEST(InetChecksum, AllOnesDoNotLoseCarries) {
  const std::vector<uint8_t> ones(65535, 0xff);
  for (const size_t n : {size_t{31}, size_t{1500}, size_t{65534}, size_t{65535}}) {
    const base::ByteView view(ones.data(), n);
    EXPECT_EQ(checksum_fold(checksum_add(0xffffffff, view)), reference(view, 0xffffffff)) << n;
  }
}

TEST(InetChecksum, EvenPartsCompose) {
  base::Prng prng(2);
  std::vector<uint8_t> store(9001);
  for (uint8_t& octet : store) octet = static_cast<uint8_t>(prng.next());
  const base::ByteView whole(store);
  for (int round = 0; round < 200; ++round) {
    const size_t cut = prng.below(4500) * 2;
    const uint32_t sum = checksum_add(checksum_add(0, whole.first(cut)), whole.subspan(cut));
    ASSERT_EQ(checksum_fold(sum), reference(whole)) << cut;
  }
}

TEST(InetChecksum, PseudoHeaderEqualsItsOctets) {
  std::array<uint8_t, 12> octets{};
  base::store_be32(octets.data(), 0xc0a80102);
  base::store_be32(octets.data() + 4, 0xfffefdfc);
  octets[9] = 6;
  base::store_be16(octets.data() + 10, 1480);
  EXPECT_EQ(checksum_fold(pseudo_header_sum(0xc0a80102, 0xfffefdfc, 6, 1480)), reference(octets));
}

TEST(InetChecksum, OverACorrectFieldIsZero) {
  std::array<uint8_t, 20> header{0x45, 0, 0,  40, 1, 2, 0x40, 0, 64, 6,
                                 0,    0, 10, 0,  0, 1, 10,   0, 0,  2};
  base::store_be16(header.data() + 10, checksum_fold(checksum_add(0, header)));
  EXPECT_EQ(checksum_fold(checksum_add(0, header)), 0);
}

}  // namespace
}  // namespace rnic::wire
