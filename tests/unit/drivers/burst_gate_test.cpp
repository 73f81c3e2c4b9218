// DPDK's interrupt thread waits for a burst before it takes a connection of net_memif apart.

#include "dpdk/burst_gate.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rte_interrupts.h>

#include <atomic>
#include <optional>
#include <thread>

namespace rnic::dpdk {
namespace {

// What DPDK's plugins are bound to when they are loaded.
TEST(BurstGate, StandsInFrontOfDpdk) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "rte_intr_callback_unregister"),
            reinterpret_cast<void*>(&rte_intr_callback_unregister));
  EXPECT_NE(dlsym(RTLD_NEXT, "rte_intr_callback_unregister"),
            reinterpret_cast<void*>(&rte_intr_callback_unregister));
}

TEST(BurstGate, DpdkIsAskedFirst) {
  EXPECT_LT(rte_intr_callback_unregister(nullptr, nullptr, nullptr), 0) << "there is no such one";
}

TEST(BurstGate, WaitsForTheEndOfABurst) {
  BurstGate gate;
  std::optional<BurstGate::Pass> burst(std::in_place, &gate);
  std::atomic<bool> ended{false};
  std::atomic<bool> too_early{false};
  std::atomic<bool> done{false};
  std::thread interrupts([&] {
    rte_intr_callback_unregister(nullptr, nullptr, nullptr);
    too_early = !ended;
    done = true;
  });
  while (BurstGate::waiting() == 0 && !done) std::this_thread::yield();
  ended = true;
  burst.reset();
  interrupts.join();
  EXPECT_FALSE(too_early);
}

TEST(BurstGate, WaitsForNobodyWhoIsOutside) {
  BurstGate gate;
  { const BurstGate::Pass burst(&gate); }
  { const BurstGate::Pass none(nullptr); }
  BurstGate::wait_for_bursts();
  EXPECT_EQ(BurstGate::waiting(), 0u);
}

}  // namespace
}  // namespace rnic::dpdk
