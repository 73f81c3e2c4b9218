// A worker that has started asks for no memory and for no lock, whatever its connections carry.

#include <mutex>
#include <string>
#include <thread>

#include "support/calls_of_others.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint32_t kMessage = 30000;  // octets: many segments
constexpr int kRounds = 8;

/// Two devices with a worker each that drives them alone, since it never sleeps.
Config config_of(const std::string& impairment) {
  Config config = loopback_config(true);
  config.set("worker.idle=spin");
  if (!impairment.empty()) {
    for (const char* device : {"rnic0", "rnic1"}) {
      config.set(std::string("device.").append(device).append(".impair.").append(impairment));
    }
  }
  return config;
}

/// What both ends need, made before anything is counted.
struct Ends {
  explicit Ends(World& world) : a(world.left), b(world.right) { world.connect(a, b); }

  /// One message of each kind, each waited for.
  void exchange(World& world) {
    must(b.qp.post_receive(receive(far.all(), 1)));
    must(a.qp.post_send(request(Opcode::Send, near.all(), 2)));
    world.expect_done(b.receive_cq, 1, kMessage);
    world.expect_done(a.send_cq, 2, kMessage);
    must(a.qp.post_send(request(Opcode::Write, near.all(), far, 3)));
    world.expect_done(a.send_cq, 3, kMessage);
    must(a.qp.post_send(request(Opcode::Read, near.all(), far, 4)));
    world.expect_done(a.send_cq, 4, kMessage);
    SendRequest add = request(Opcode::FetchAdd, word.all(), far, 5);
    add.atomic.data = 1;
    must(a.qp.post_send(add));
    world.expect_done(a.send_cq, 5, sizeof(uint64_t));
  }

  Side a;
  Side b;
  Memory near{a.pd, octets(kMessage, 1), Access::LocalRead | Access::LocalWrite};
  Memory far{b.pd, octets(kMessage, 2), kEverything | Access::RemoteAtomic};
  Memory word{a.pd, octets(sizeof(uint64_t), 3), Access::LocalWrite};
};

class QuietWorker : public testing::TestWithParam<const char*> {};

TEST_P(QuietWorker, AsksForNoMemoryAndForNoLock) {
  calls_of_this_thread_do_not_count();
  World world(config_of(GetParam()));
  Ends ends(world);
  ends.exchange(world);  // what is made on first use has been made
  (void)calls_of_others();
  for (int i = 0; i < kRounds; ++i) ends.exchange(world);
  const CallsOfOthers asked = calls_of_others();
  EXPECT_EQ(asked.memory, 0u) << asked.last;
  EXPECT_EQ(asked.locks, 0u) << asked.last;
  if (*GetParam() != '\0') {
    EXPECT_GT(must(world.left.counter("tcp", "retransmitted_segments")), 0u) << "nothing was lost";
  }
}

INSTANTIATE_TEST_SUITE_P(, QuietWorker, testing::Values("", "drop=0.02"));

TEST(CallsOfOthers, AreSeen) {
  calls_of_this_thread_do_not_count();
  (void)calls_of_others();
  std::mutex mutex;
  std::string text;
  std::thread([&] {
    const std::lock_guard locked(mutex);
    text.assign(1000, 'x');
  }).join();
  const CallsOfOthers asked = calls_of_others();
  EXPECT_EQ(text.size(), 1000u);
  EXPECT_GE(asked.memory, 1u);
  EXPECT_GE(asked.locks, 1u);
}

}  // namespace
}  // namespace rnic::test
