// Which frames are kept when their turn is over, and for how long.
#include "device/kept_frames.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/fake_port.hpp"

namespace rnic::device {
namespace {

port::PortInfo info() { return {"fake", {2, 0, 0, 0, 0, 1}, 1500, port::ChecksumMode::Software}; }

struct KeptFramesTest : ::testing::Test {
  /// A burst, whose frames are the caller's.
  std::span<port::Packet> receive(uint32_t frames) {
    const std::span<port::Packet> burst = std::span(packets).first(frames);
    EXPECT_TRUE(port.alloc(burst));
    return burst;
  }

  test::FakePort port{info()};  // fails if a buffer is missing at the end
  std::array<port::Packet, KeptFrames::kMost + 1> packets;
};

TEST_F(KeptFramesTest, GoBackWhenTheNextTurnIsOver) {
  KeptFrames kept(port);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(kept.keep(receive(KeptFrames::kMost)));
    kept.turn_over();
    EXPECT_EQ(kept.count(), KeptFrames::kMost);
    EXPECT_EQ(port.outstanding(), KeptFrames::kMost);
    kept.turn_over();
    EXPECT_EQ(kept.count(), 0u);
    EXPECT_EQ(port.outstanding(), 0u);
    kept.turn_over();
  }
}

TEST_F(KeptFramesTest, NoLargeBurstIsKept) {
  KeptFrames kept(port);
  const auto burst = receive(KeptFrames::kMost + 1);
  EXPECT_FALSE(kept.keep(burst));
  EXPECT_EQ(kept.count(), 0u);
  port.free(burst);
}

TEST_F(KeptFramesTest, NoBurstIsKeptBesideAnother) {
  KeptFrames kept(port);
  ASSERT_TRUE(kept.keep(receive(1)));
  kept.turn_over();
  const auto burst = receive(1);
  EXPECT_FALSE(kept.keep(burst));
  port.free(burst);
  kept.turn_over();
  EXPECT_EQ(port.outstanding(), 0u) << "the first one has waited long enough";
}

TEST_F(KeptFramesTest, NoneIsLostAtTheEnd) {
  KeptFrames kept(port);
  ASSERT_TRUE(kept.keep(receive(2)));
}

}  // namespace
}  // namespace rnic::device
