// When a device takes nothing: what is told, and when. And the room of its buffers.
#include "dpdk/transmit_watch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dpdk/device_setup.hpp"

namespace rnic::dpdk {
namespace {

using News = TransmitWatch::News;

base::Now at(int64_t ms) { return base::from_nanos(1'000'000'000 + ms * 1'000'000); }

TEST(TransmitWatch, TellsAfterASecondOnceAndWhenItGoesOn) {
  TransmitWatch watch;
  EXPECT_EQ(watch.look(true, false, at(0)), News::None);
  EXPECT_EQ(watch.look(true, false, at(999)), News::None);
  EXPECT_EQ(watch.look(true, false, at(1000)), News::Stalled);
  EXPECT_EQ(watch.look(true, false, at(1001)), News::None) << "once";
  EXPECT_EQ(watch.look(true, false, at(90'000)), News::None);
  EXPECT_TRUE(watch.stalled());
  EXPECT_EQ(watch.look(false, true, at(90'001)), News::GoesOn);
  EXPECT_FALSE(watch.stalled());
  EXPECT_EQ(watch.look(false, true, at(90'002)), News::None);
  // A second stall is told like the first.
  EXPECT_EQ(watch.look(true, false, at(91'000)), News::None);
  EXPECT_EQ(watch.look(true, false, at(92'000)), News::Stalled);
}

TEST(TransmitWatch, SlowIsNotStalled) {
  TransmitWatch watch;
  for (int64_t ms = 0; ms < 10'000; ms += 900) {
    EXPECT_EQ(watch.look(true, false, at(ms)), News::None);
    EXPECT_EQ(watch.look(true, true, at(ms + 1)), News::None) << "some were taken, some wait";
  }
  // Those that wait since the last one was taken have their second from there.
  EXPECT_EQ(watch.look(true, false, at(10'900)), News::None);
  EXPECT_EQ(watch.look(true, false, at(10'901)), News::Stalled);
}

TEST(TransmitWatch, NothingToSendIsNoStall) {
  TransmitWatch watch;
  EXPECT_EQ(watch.look(true, false, at(0)), News::None);
  EXPECT_EQ(watch.look(false, false, at(500)), News::None);
  EXPECT_EQ(watch.look(true, false, at(20'000)), News::None);
  EXPECT_EQ(watch.look(true, false, at(20'999)), News::None);
}

/// What drivers of DPDK 22.11 say and need: octets of one mbuf, its headroom of 128 not counted.
struct Limits {
  const char* driver;
  uint32_t told;                    // rte_eth_dev_info::min_rx_bufsize
  uint32_t (*needs)(uint32_t mtu);  // what it refuses less than
};

TEST(BufferRoom, EveryDriverTakesWholeFrames) {
  const Limits table[] = {
      {"net_vmxnet3", 1646, [](uint32_t) { return 1646u; }},
      {"net_virtio", 64, [](uint32_t mtu) { return mtu + 14 + 4 + 12; }},
      {"net_af_xdp", 0, [](uint32_t) { return 2048u; }},
      {"net_e1000_igb", 256, [](uint32_t mtu) { return mtu + 14 + 4; }},
      {"net_i40e", 1024, [](uint32_t mtu) { return mtu + 14 + 4 + 8; }},
      {"one that takes whole pages", 4096, [](uint32_t) { return 4096u; }},
      {"net_null", 0, [](uint32_t mtu) { return mtu + 14; }},
  };
  constexpr uint32_t kMostOfAnMbuf = 65535 - 128;
  for (const Limits& driver : table) {
    for (const uint32_t mtu : {576u, 1500u, 2030u, 2048u, 9000u, 9216u, 64000u}) {
      const uint32_t room = buffer_room(driver.told, mtu + port::kLinkHeader);
      EXPECT_GE(room, driver.needs(mtu)) << driver.driver << " " << mtu;
      EXPECT_GE(room, driver.told) << driver.driver << " " << mtu;
      EXPECT_LE(room, kMostOfAnMbuf) << driver.driver << " " << mtu;
    }
  }
}

}  // namespace
}  // namespace rnic::dpdk
