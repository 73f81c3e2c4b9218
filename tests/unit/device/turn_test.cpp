// How much a turn of a device takes from its port, and what it gives TCP to send with.

#include <gtest/gtest.h>

#include "base/log.hpp"
#include "device/device.hpp"
#include "support/fake_port.hpp"

namespace rnic::device {
namespace {

constexpr IpAddress kOwn = IpAddress::v4(0x0a000001);
constexpr IpAddress kPeer = IpAddress::v4(0x0a000002);
constexpr uint32_t kTurn = 128;  // frames: four bursts of 32

class Turn : public ::testing::Test {
 protected:
  Turn() {
    base::set_log_level(base::LogLevel::Off);
    config_.net.address = kOwn;
  }
  /// Frames of which the device knows nothing but that they are there.
  void inject(uint32_t frames) {
    for (uint32_t i = 0; i < frames; ++i) port_.inject(std::vector<uint8_t>(60));
  }

  base::Now now_{std::chrono::seconds(1)};
  DeviceConfig config_;
  test::FakePort port_{{"fake", {2, 0, 0, 0, 0, 1}, 1500, port::ChecksumMode::Software, {}}};
};

// A turn goes on to the next burst while the port has more, and leaves the rest of a flood to the
// next turn, so that timers and senders have theirs.
TEST_F(Turn, TakesSeveralBurstsAndLeavesAFloodToTheNext) {
  Device device(config_, port_, now_);
  inject(kTurn - 1);
  EXPECT_EQ(device.poll(now_), kTurn - 1);
  EXPECT_EQ(port_.waiting(), 0u);
  inject(kTurn + 40);
  EXPECT_EQ(device.poll(now_), kTurn);
  EXPECT_EQ(port_.waiting(), 40u);
  EXPECT_EQ(device.poll(now_), 40u);
  EXPECT_EQ(device.poll(now_), 0u);
}

// A slot says nothing of the segment that it was used for before: where TCP has no wish of its own
// traffic class and TTL are the interface's.
TEST_F(Turn, ASlotBeginsWithTheInterfacesOwnTtl) {
  net::Interface interface(config_.net, port_, now_);
  Egress egress(interface);
  tcp::TxSlot slot;
  ASSERT_TRUE(egress.begin(kOwn, kPeer, slot, now_));
  slot.traffic_class = 0x28;
  slot.hop_limit = 9;
  egress.cancel(slot);
  ASSERT_TRUE(egress.begin(kOwn, kPeer, slot, now_));
  EXPECT_EQ(slot.traffic_class, 0u);
  EXPECT_EQ(slot.hop_limit, 0u);
  egress.cancel(slot);
}

// A path is asked for as it is at a time: nothing else has to tell the interface what time it is.
TEST_F(Turn, ThePathIsAskedForAsItIsAtATime) {
  net::Interface interface(config_.net, port_, now_);
  Egress egress(interface);
  egress.reduce_path_mtu(kPeer, 1300, now_);
  const base::Now forgotten = now_ + config_.net.path_mtu_lifetime;
  EXPECT_EQ(egress.path_mtu(kPeer, forgotten - base::Duration(1)), 1300u);
  EXPECT_EQ(egress.path_mtu(kPeer, forgotten), 1500u);
  EXPECT_EQ(egress.link_mtu(kPeer), 1500u);
}

}  // namespace
}  // namespace rnic::device
