// Two devices with a path between them that lets frames overtake each other: what the receiver does
// with bursts whose segments are out of order.
#include <gtest/gtest.h>

#include "device_pair.hpp"
#include "impair/impair.hpp"
#include "support/damage.hpp"

namespace rnic::device {
namespace {

RNIC_OPEN(Device, own_)
RNIC_OPEN(BurstOrder, enabled_)
RNIC_OPEN(BurstOrder, held_)
RNIC_OPEN(BurstOrder, left_)
RNIC_OPEN(BurstOrder, most_fresh_)
RNIC_OPEN(BurstOrder, rest_)
RNIC_OPEN(BurstOrder, waited_)
RNIC_OPEN(BurstOrder, disorder_)
RNIC_OPEN(BurstOrder, lanes_)

/// Every fifth frame is held back by some places.
impair::Config disorder() {
  impair::Config config;
  config.reorder = 0.2;
  config.reorder_max = 8;
  config.reorder_timeout = std::chrono::microseconds(20);
  return config;
}

/// The first base of a test, as the ports are there before the devices.
class Ports {
 protected:
  /// \param faults of what the left device sends
  explicit Ports(const impair::Config& faults, uint64_t seed) : faults_(faults), seed_(seed) {}
  port::Port& decorate(uint32_t host, port::Port& end) {
    ports_[host].emplace(end, host == 0 ? faults_ : impair::Config{}, seed_);
    return *ports_[host];
  }

  const impair::Config faults_;
  const uint64_t seed_;
  std::array<std::optional<impair::ImpairedPort>, 2> ports_;
};

class ReorderedPath : protected Ports, public DevicePair {
 protected:
  explicit ReorderedPath(
      const Tweak& tweak = [](DeviceConfig&) {}, const impair::Config& faults = disorder(),
      uint64_t seed = 7)
      : Ports(faults, seed),
        DevicePair(tweak,
                   [this](uint32_t host, port::Port& end) -> port::Port& {
                     return decorate(host, end);
                   }) {
    connect(a_ = left().make_qp(), b_ = right().make_qp());
    source_ = octets(kSize, 11);
    target_.assign(kSize, 0);
    source_stag_ = left().add(source_, a_->spec().pd, Access::LocalWrite);
    target_stag_ = right().add(target_, b_->spec().pd, Access::LocalWrite | Access::RemoteWrite);
  }

  ~ReorderedPath() override { take_away(); }

  /// The frames that the ports hold go back to the link.
  void take_away() {
    for (auto& host : hosts_) host.reset();
    for (auto& port : ports_) port.reset();
  }
  void post() {
    SendRequest write = work(Opcode::Write, 1, source_, source_stag_, kSize);
    write.remote = {target_stag_.value, reinterpret_cast<uint64_t>(target_.data())};
    ASSERT_EQ(a_->post_send(write), PostResult::Ok);
  }
  /// Writes until all have arrived.
  void write(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      std::fill(target_.begin(), target_.end(), 0);
      post();
      std::vector<Completion> done;
      ASSERT_TRUE(run_until([&] {
        done = left().completions(a_->spec().send_cq);
        return !done.empty();
      }));
      ASSERT_EQ(done[0].status, CompletionStatus::Success);
      ASSERT_TRUE(target_ == source_) << i;
    }
  }
  /// Writes until segments wait for the next turn of the right device.
  [[nodiscard]] bool write_until_some_wait() {
    write(4);
    post();
    return run_until([&] { return order().held() != 0; });
  }
  BurstOrder& order() { return own_(*right().device)->order; }
  [[nodiscard]] const DeviceCounters& counted() { return right().device->device_counters(); }
  /// Octets that TCP has taken ahead of their order, of those of a Write.
  [[nodiscard]] double ahead() {
    const tcp::Counters& tcp = right().device->tcp_counters();
    return static_cast<double>(tcp.out_of_order_octets_in) / static_cast<double>(tcp.octets_in);
  }

  static constexpr uint32_t kSize = 300'000;
  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  mem::Stag source_stag_;
  mem::Stag target_stag_;
};

class AsItComes : public ReorderedPath {
 protected:
  AsItComes() : ReorderedPath([](DeviceConfig& config) { config.order_bursts = false; }) {}
};

TEST_F(ReorderedPath, HasLittleTextAheadOfItsOrder) {
  write(20);
  EXPECT_GT(counted().overtaken_in, 100u);
  EXPECT_GT(counted().waited_in, 100u);
  EXPECT_LT(ahead(), 0.1);
}

TEST_F(AsItComes, MostTextIsAheadOfItsOrder) {
  write(20);
  EXPECT_EQ(counted().overtaken_in, 0u);
  EXPECT_EQ(counted().waited_in, 0u);
  EXPECT_GT(ahead(), 0.3);
}

// Nobody may sleep while segments wait for the next turn, since no frame has to come.
TEST_F(ReorderedPath, TheNextTurnIsDueWhereSegmentsWait) {
  ASSERT_TRUE(write_until_some_wait());
  EXPECT_EQ(right().device->next_deadline(), base::Now{});
  EXPECT_FALSE(right().device->quiescent());
  const uint64_t taken = right().device->tcp_counters().segments_in;
  const uint32_t held = order().held();
  EXPECT_EQ(right().device->poll(now_, Turn::Posted), 0u) << "takes no frame";
  EXPECT_EQ(order().held(), held);
  EXPECT_GE(right().device->poll(now_), held);
  EXPECT_GE(right().device->tcp_counters().segments_in, taken + held);
}

TEST_F(ReorderedPath, WhatWaitsGoesBackWithTheDevice) {
  ASSERT_TRUE(write_until_some_wait());
  take_away();
  EXPECT_EQ(link_.held(), 0u);
}

// --- With other faults ---

class FaultyPath : public ReorderedPath {
 public:
  FaultyPath(bool shortcuts, uint64_t seed)
      : ReorderedPath(
            [=](DeviceConfig& config) {
              config.shortcuts = shortcuts;
              config.mpa.markers_receive = seed % 2 != 0;
            },
            faults(), seed) {}
  void TestBody() override {}

  static impair::Config faults() {
    impair::Config config = disorder();
    config.drop = config.duplicate = config.corrupt = config.resegment = 0.005;
    config.repair = 0;  // TCP finds all damage, so that no stream ends
    return config;
  }
  /// What the devices have counted, but for what tells the ways apart that segments took.
  std::string run() {
    write(20);
    std::string told;
    for (Host* host : {&left(), &right()}) {
      host->device->for_each_counter([&](const char* layer, const base::CounterRow& row) {
        if (std::string_view(row.name) == "predicted_in") return;
        told += std::string(layer) + " " + row.name + " " + std::to_string(row.value) + "\n";
      });
    }
    EXPECT_GT(counted().overtaken_in, 10u);
    EXPECT_GT(counted().waited_in, 10u);
    return told;
  }
};

// Every octet is right whatever else happens to the frames, and the ways past the longer one make
// no difference.
TEST(FaultyPaths, CarryTheSameWithShortcutsAndWithout) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_EQ(FaultyPath(true, seed).run(), FaultyPath(false, seed).run());
  }
}

using DamageOfBurstOrder = ReorderedPath;

TEST_F(DamageOfBurstOrder, IsNoticed) {
  ASSERT_TRUE(write_until_some_wait());
  const auto notices = [&](const char* check, auto damage) {
    test::expect_noticed(check, [&] { right().device->validate(); }, [&] { damage(order()); });
  };
  notices("device/burst_order.cpp: held_ <= kMostHeld",
          [](BurstOrder& order) { held_(order) = BurstOrder::kMostHeld + 1; });
  notices("device/burst_order.cpp: held_ == 0 || on()",
          [](BurstOrder& order) { left_(order) = 0; });
  notices("device/burst_order.cpp: waited_ <= held_",
          [](BurstOrder& order) { waited_(order) = order.held() + 1; });
  notices("device/burst_order.cpp: disorder_ <= kMostDisorder",
          [](BurstOrder& order) { disorder_(order) = 17; });
  notices("device/burst_order.cpp: rest_ == 0 || !on()",
          [](BurstOrder& order) { rest_(order) = 1; });
  notices("device/burst_order.cpp: most_fresh_ ==",
          [](BurstOrder& order) { most_fresh_(order) = BurstOrder::kBurst; });
  notices("device/burst_order.cpp: enabled_ || !on()",
          [](BurstOrder& order) { enabled_(order) = false; });
  notices("device/burst_order.cpp: waiting == held_",
          [](BurstOrder& order) { ++lanes_(order)[0].count; });
}

}  // namespace
}  // namespace rnic::device
