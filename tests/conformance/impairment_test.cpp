// A bad network between two devices, one impairment at a time in a range of degrees, with and
// without markers and CRC. The worlds are the simulator's: its checkers compare every octet, allow
// no completion before its data and no Terminate, and want an end.

#include <gtest/gtest.h>

#include <functional>

#include "../sim/world.hpp"
#include "base/log.hpp"
#include "base/prng.hpp"
#include "support/long_form.hpp"

namespace rnic::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Impairments : public ::testing::TestWithParam<int> {
 protected:
  static void nothing(WorldPlan&, base::Prng&) {}
  [[nodiscard]] static bool markers() { return (GetParam() & 1) != 0; }
  [[nodiscard]] static bool crc() { return (GetParam() & 2) != 0; }
  void SetUp() override { base::set_log_level(base::LogLevel::Off); }

  /// \return what happened in the world
  static Totals run(const char* name, uint64_t seed,
                    const std::function<void(WorldPlan&, Weather&)>& impair) {
    const Profile profile{name, "", nothing};
    WorldPlan plan = make_plan(profile, seed);
    plan.bits_per_second = 1'000'000'000;
    plan.mtu = 1500;
    plan.octets = test::by_form(2u << 20, 4u << 20);
    for (device::DeviceConfig& device : plan.devices) {
      device.mpa.markers_receive = markers();
      device.mpa.crc = crc();
      device.net.mtu = plan.mtu;
    }
    for (Weather& weather : plan.weather) {
      weather.repair = 0;
      impair(plan, weather);
    }
    World world(plan, {});
    const Outcome outcome = world.run();
    EXPECT_TRUE(outcome.ok) << name << " " << seed << ": " << outcome.checker << ": "
                            << outcome.message << "\n"
                            << outcome.state;
    EXPECT_LT(outcome.virtual_seconds, 3600);
    EXPECT_EQ(outcome.totals.terminates, 0u);
    EXPECT_GE(outcome.totals.octets, 1u << 20);
    return outcome.totals;
  }
};

// Nothing is lost: the twin of all the others.
TEST_P(Impairments, None_UNH_IMP_01_UNH_IMP_02_UNH_IMP_04_UNH_IMP_05) {
  const Totals totals = run("none", 1, [](WorldPlan&, Weather&) {});
  EXPECT_EQ(totals.drops + totals.reordered + totals.duplicated + totals.crc_drops, 0u);
}

TEST_P(Impairments, Loss_UNH_IMP_01) {
  for (const double loss : {0.001, 0.01, 0.05, 0.1}) {
    for (uint64_t seed = 1; seed <= test::by_form(1u, 2u); ++seed) {
      const Totals t = run("loss", seed, [&](WorldPlan&, Weather& w) { w.drop = loss; });
      if (loss >= 0.01) {
        EXPECT_GT(t.drops, 10u);
        EXPECT_GT(t.retransmissions, 0u);
      }
    }
  }
}

TEST_P(Impairments, BurstsOfLoss_UNH_IMP_02) {
  for (const double enter : {0.001, 0.01}) {
    for (const double leave : {0.5, 0.2}) {
      const Totals t = run("bursts", 1, [&](WorldPlan&, Weather& w) {
        w.burst_enter = enter;
        w.burst_leave = leave;
      });
      if (enter > 0.005) {
        EXPECT_GT(t.drops, 10u);
      }
    }
  }
}

TEST_P(Impairments, Delay_UNH_IMP_03) {
  for (const uint32_t ms : {0u, 1u, 20u, 200u}) {
    const Totals t =
        run("delay", ms, [&](WorldPlan& plan, Weather&) { plan.delay = milliseconds(ms); });
    EXPECT_EQ(t.drops, 0u);
  }
}

TEST_P(Impairments, JitterAndReordering_UNH_IMP_04) {
  for (const double share : {0.01, 0.1, 0.3, 0.5}) {
    const Totals t = run("reorder", 1, [&](WorldPlan&, Weather& w) {
      w.reorder = share;
      w.jitter = microseconds(500);
    });
    EXPECT_GT(t.reordered, 5u);
    if (markers()) {
      EXPECT_GT(t.placed_early, 0u) << "markers locate FPDUs ahead of the order";
    } else {
      EXPECT_EQ(t.placed_early, 0u);
    }
  }
}

TEST_P(Impairments, Duplicates_UNH_IMP_05) {
  for (const double share : {0.01, 0.2, 0.5}) {
    const Totals t = run("duplicate", 1, [&](WorldPlan&, Weather& w) { w.duplicate = share; });
    EXPECT_GT(t.duplicated, 5u);
  }
}

// With a CRC every changed frame has its TCP checksum made right again: only MPA can see it.
// Without one none has.
TEST_P(Impairments, Corruption_UNH_IMP_06) {
  for (const double share : {0.002, 0.01, 0.02}) {
    const Totals t = run("corrupt", 1, [&](WorldPlan&, Weather& w) {
      w.corrupt = share;
      w.repair = crc() ? 1 : 0;
    });
    EXPECT_GT(t.corrupted, 0u);
    if (crc() && share >= 0.01) {
      EXPECT_GT(t.crc_drops, 0u);
    }
    if (!crc()) {
      EXPECT_EQ(t.crc_drops, 0u);
    }
  }
}

TEST_P(Impairments, Resegmentation_UNH_IMP_07) {
  for (const double share : {0.05, 0.5, 1.0}) {
    for (const double loss : {0.0, 0.01}) {
      const Totals t = run("cut", 1, [&](WorldPlan&, Weather& w) {
        w.resegment = share;
        w.drop = loss;
      });
      EXPECT_GT(t.cut, 20u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MarkersAndCrc, Impairments, ::testing::Range(0, 4), [](const auto& p) {
  return std::string((p.param & 1) != 0 ? "Markers" : "NoMarkers") +
         ((p.param & 2) != 0 ? "Crc" : "NoCrc");
});

}  // namespace
}  // namespace rnic::simulation
