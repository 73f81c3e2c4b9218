#include "tcp/segment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/bytes.hpp"
#include "llp/pseudo_header.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::tcp {
namespace {

namespace flag = wire::tcp_flag;

const IpAddress kPeer = IpAddress::v4(0x0a000002);
const IpAddress kUs = IpAddress::v4(0x0a000001);

/// A segment with `payload` octets, its checksum right.
std::vector<uint8_t> segment_of(const wire::TcpHeader& header, uint32_t payload,
                                const IpAddress& from = kPeer) {
  std::vector<uint8_t> octets(header.header_length + payload);
  wire::write_tcp(octets.data(), header);
  const uint32_t sum =
      llp::pseudo_header_sum(from, kUs, wire::kProtocolTcp, static_cast<uint32_t>(octets.size()));
  base::store_be16(octets.data() + wire::kTcpChecksumAt,
                   wire::checksum_fold(wire::checksum_add(sum, octets)));
  return octets;
}

const wire::TcpHeader kHeader{.source_port = 4000,
                              .destination_port = 80,
                              .sequence = base::Seq32(7),
                              .acknowledgment = base::Seq32(9),
                              .flags = flag::kAck | flag::kFin,
                              .window = 500,
                              .header_length = wire::kTcpHeaderMin};

TEST(Segment, IsWhatTheHeaderSays) {
  const auto octets = segment_of(kHeader, 3);
  Segment s;
  ASSERT_EQ(parse({kPeer, kUs, octets, false, 0xff}, s), FormError::None);
  EXPECT_EQ(s.local, (Endpoint{kUs, 80}));
  EXPECT_EQ(s.remote, (Endpoint{kPeer, 4000}));
  EXPECT_EQ(s.seq, base::Seq32(7));
  EXPECT_EQ(s.ack, base::Seq32(9));
  EXPECT_EQ(s.window, 500u);
  EXPECT_EQ(s.ecn, 3u);
  EXPECT_EQ(s.payload.size(), 3u);
  EXPECT_EQ(s.length(), 4u) << "the FIN counts";
  EXPECT_TRUE(s.has(flag::kAck));
  EXPECT_FALSE(s.has(flag::kSyn));
}

TEST(Segment, WhatIsWrongWithItsForm) {
  const auto good = segment_of(kHeader, 3);
  auto bad = good;
  bad.back() ^= 1;
  Segment s;
  EXPECT_EQ(parse({kPeer, kUs, bad}, s), FormError::Checksum);
  EXPECT_EQ(parse({kPeer, kUs, bad, true}, s), FormError::None) << "the port vouches";
  EXPECT_EQ(parse({kPeer, kUs, base::ByteView(good).first(19)}, s), FormError::Malformed);
  wire::TcpHeader portless = kHeader;
  portless.source_port = 0;
  EXPECT_EQ(parse({kPeer, kUs, segment_of(portless, 0)}, s), FormError::Malformed);
  const IpAddress group = IpAddress::v4(0xe0000001);
  EXPECT_EQ(parse({group, kUs, segment_of(kHeader, 0, group)}, s), FormError::Malformed);
  const std::vector<uint8_t> large = segment_of(kHeader, 0x10000 - wire::kTcpHeaderMin);
  EXPECT_EQ(parse({kPeer, kUs, large, true}, s), FormError::Malformed);
}

TEST(Segment, TheFourCasesOfWindowAndLength) {
  EXPECT_TRUE(in_window(0, 0, 0));
  EXPECT_FALSE(in_window(1, 0, 0));
  EXPECT_TRUE(in_window(0, 0, 10));
  EXPECT_TRUE(in_window(9, 0, 10));
  EXPECT_FALSE(in_window(10, 0, 10));
  EXPECT_FALSE(in_window(-1, 0, 10));
  EXPECT_TRUE(in_window(0, 1, 0)) << "for what it carries beside its text";
  EXPECT_FALSE(in_window(-1, 1, 10));
  EXPECT_TRUE(in_window(-1, 2, 10)) << "its last octet";
  EXPECT_TRUE(in_window(9, 5, 10)) << "its first octet";
  EXPECT_TRUE(in_window(-5, 20, 10)) << "all of the window";
  EXPECT_FALSE(in_window(10, 5, 10));
}

}  // namespace
}  // namespace rnic::tcp
