#include "port/port.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "support/fake_port.hpp"

namespace rnic::port {
namespace {

constexpr base::Now kNow = base::from_nanos(0);

TEST(Port, ChecksumModesHaveNames) {
  std::set<std::string> names;
  for (const ChecksumMode mode :
       {ChecksumMode::Offload, ChecksumMode::Trusted, ChecksumMode::Software}) {
    names.insert(to_string(mode));
  }
  EXPECT_EQ(names, (std::set<std::string>{"offload", "software", "trusted"}));
}

TEST(Port, LinkStatesHaveNames) {
  EXPECT_STREQ(to_string(LinkState::Up), "up");
  EXPECT_STREQ(to_string(LinkState::Down), "down");
  EXPECT_STREQ(to_string(LinkState::Gone), "gone");
  EXPECT_STREQ(to_string(static_cast<LinkState>(3)), "unknown");
}

// The fake port is what the proofs of other layers stand on.
TEST(FakePort, FramesCrossInOrderWithTheirChecksumState) {
  test::FakePort a({.name = "a"}, 4);
  test::FakePort b({.name = "b"}, 4);
  test::FakePort::connect(a, b);
  std::array<Packet, 3> out;
  ASSERT_TRUE(a.alloc(out));
  for (uint8_t i = 0; i < 3; ++i) {
    out[i].data[0] = i;
    out[i].length = 60;
    out[i].l4_checksum = Checksum::Open;
  }
  EXPECT_EQ(a.tx_burst(out, kNow), 3u);
  std::array<Packet, 8> in;
  ASSERT_EQ(b.rx_burst(in, kNow), 3u);
  for (uint8_t i = 0; i < 3; ++i) {
    EXPECT_EQ(in[i].data[0], i);
    EXPECT_EQ(in[i].l4_checksum, Checksum::Open);
  }
  EXPECT_EQ(b.outstanding(), 3u);
  b.free(std::span(in).first(3));
}

TEST(FakePort, AllocIsAllOrNothing) {
  test::FakePort port({.name = "a"}, 2);
  std::array<Packet, 3> packets;
  EXPECT_FALSE(port.alloc(packets));
  EXPECT_EQ(port.outstanding(), 0u);
  ASSERT_TRUE(port.alloc(std::span(packets).first(2)));
  port.free(std::span(packets).first(2));
}

TEST(FakePort, RefusedFramesStayTheCallers) {
  test::FakePort port({.name = "a"}, 4);
  std::array<Packet, 4> packets;
  ASSERT_TRUE(port.alloc(packets));
  for (Packet& packet : packets) packet.length = 60;
  port.tx_room = 1;
  EXPECT_EQ(port.tx_burst(packets, kNow), 1u);
  EXPECT_EQ(port.outstanding(), 3u);
  port.free(std::span(packets).subspan(1));
}

TEST(FakePort, LeaksAndDoubleFreesAreSeen) {
  EXPECT_NONFATAL_FAILURE(
      {
        test::FakePort port({.name = "a"}, 1);
        Packet packet;
        port.alloc({&packet, 1});
      },
      "not returned");
  EXPECT_NONFATAL_FAILURE(
      {
        test::FakePort port({.name = "a"}, 1);
        Packet packet;
        port.alloc({&packet, 1});
        port.free({&packet, 1});
        port.free({&packet, 1});
      },
      "not out");
}

}  // namespace
}  // namespace rnic::port
