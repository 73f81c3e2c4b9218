// What goodput is compared with: the floors place what is right and nothing else.

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "dpdk/eal.hpp"
#include "dpdk/floor_frames.hpp"
#include "dpdk/link_floor.hpp"
#include "dpdk/mbuf_pool.hpp"

namespace rnic::dpdk {
namespace {

constexpr uint32_t kMtu = 1500;
constexpr uint64_t kRegion = 10'000;  // octets: seven frames, which leave some over

class OneFrame : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pool = make_pool(64, kMtu + 64);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    ASSERT_TRUE(allocate_mbufs(pool_.get(), &frame_, 1));
  }
  void TearDown() override {
    if (frame_ != nullptr) rte_pktmbuf_free(frame_);
  }
  /// \return whether a frame is right that suffers this on its way
  bool passes(const std::function<void(rte_mbuf*, uint8_t*)>& damage) {
    FloorFrames frames(kMtu, kRegion);
    frames.make(frame_);
    damage(frame_, rte_pktmbuf_mtod(frame_, uint8_t*));
    frames.place(frame_);
    return frames.verified();
  }

  MbufPool pool_;
  rte_mbuf* frame_ = nullptr;
};

TEST_F(OneFrame, IsPlacedWhenItIsRight) {
  EXPECT_TRUE(passes([](rte_mbuf*, uint8_t*) {}));
  FloorFrames frames(kMtu, kRegion);
  for (int i = 0; i < 20; ++i) {
    frames.make(frame_);
    frames.place(frame_);
  }
  EXPECT_TRUE(frames.verified());
}

TEST_F(OneFrame, IsNotPlacedWithAnotherOctet) {
  const FloorFrames frames(kMtu, kRegion);
  for (const uint32_t at : {FloorFrames::kLowerHeaders, FloorFrames::kLowerHeaders + 20,
                            frames.octets() - 1}) {
    EXPECT_FALSE(passes([at](rte_mbuf*, uint8_t* octets) { octets[at] ^= 1; })) << at;
  }
}

TEST_F(OneFrame, IsNotPlacedWithAnotherLength) {
  EXPECT_FALSE(passes([](rte_mbuf* frame, uint8_t*) { --frame->data_len; }));
  EXPECT_FALSE(passes([](rte_mbuf* frame, uint8_t*) { frame->data_len = 0; }));
}

TEST_F(OneFrame, OfALargerRegionIsNotPlacedBehindTheTarget) {
  FloorFrames large(kMtu, 2 * kRegion);
  FloorFrames small(kMtu, kRegion);
  for (uint64_t octets = 0; octets + large.payload() <= kRegion; octets += large.payload()) {
    large.make(frame_);
    small.place(frame_);
  }
  EXPECT_TRUE(small.verified());
  large.make(frame_);
  small.place(frame_);
  EXPECT_FALSE(small.verified());
}

TEST_F(OneFrame, ThatNeverCameIsMissed) {
  FloorFrames frames(kMtu, kRegion);
  const uint64_t each = kRegion / frames.payload();
  for (uint64_t i = 0; i < 2 * each; ++i) {
    frames.make(frame_);
    if (i % each != 3) frames.place(frame_);
  }
  EXPECT_FALSE(frames.verified());
}

/// Both ends of net_memif in this process, the receiver with a thread of its own.
TEST(LinkFloorTest, MovesFramesOverALink) {
  std::string folder = (std::filesystem::temp_directory_path() / "floor-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto end = [&](const std::string& number, const std::string& role) {
    return LinkFloor::Options{.port = "net_memif" + number + ",role=" + role + ",id=0,socket=" +
                                      folder + "/floor,socket-abstract=no",
                              .mtu = kMtu,
                              .region = kRegion};
  };
  LinkFloor::Progress progress;
  auto receiver = LinkFloor::create(end("20", "server"), progress);
  ASSERT_TRUE(receiver) << receiver.error().message;
  auto sender = LinkFloor::create(end("21", "client"), progress);
  ASSERT_TRUE(sender) << sender.error().message;
  while (!(*sender)->is_up() || !(*receiver)->is_up()) std::this_thread::yield();
  std::atomic<bool> stop{false};
  std::thread taker([&] {
    while (!stop.load()) (*receiver)->receive();
  });
  const auto goodput = (*sender)->send(std::chrono::milliseconds(60));
  stop.store(true);
  taker.join();
  ASSERT_TRUE(goodput) << goodput.error().message;
  EXPECT_GT(progress.received.load(), kRegion / kMtu);
  EXPECT_TRUE((*receiver)->verified());
  EXPECT_NE((*receiver)->kernels().find("copy "), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(LinkFloorTest, NeedsADevice) {
  LinkFloor::Progress progress;
  const auto floor = LinkFloor::create({.port = "net_nothing0"}, progress);
  EXPECT_FALSE(floor);
}

}  // namespace
}  // namespace rnic::dpdk
