// The same API with a worker thread for each device.

#include <atomic>
#include <chrono>
#include <thread>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

TEST(Threaded, WriteReadSend) {
  World world(loopback_config(true));
  EXPECT_TRUE(world.context.threaded());
  EXPECT_EQ(world.context.poll(), 0u);
  EXPECT_FALSE(world.context.next_deadline()) << "the workers see to what is planned";
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  for (const uint32_t size : {1u, 64u, 1500u, 65537u, 1u << 20}) {
    exchange(world, a, b, size, size);
  }
  world.disconnect(a, b);
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST(Threaded, EveryWayToIdle) {
  for (const char* idle : {"spin", "yield", "sleep", "auto"}) {
    Config config = loopback_config(true);
    config.set(std::string("worker.idle=") + idle);
    World world(config);
    Side a(world.left);
    Side b(world.right);
    world.connect(a, b);
    exchange(world, a, b, 10000, 3);
  }
}

TEST(Threaded, OneWorkerForTwoDevices) {
  for (const char* idle : {"spin", "yield", "sleep", "auto"}) {
    Config config = loopback_config(true);
    config.set("worker.count=1").set(std::string("worker.idle=") + idle);
    World world(config);
    Side a(world.left);
    Side b(world.right);
    world.connect(a, b);
    for (const uint32_t size : {1u, 1500u, 65537u}) exchange(world, a, b, size, size);
    world.disconnect(a, b);
    EXPECT_TRUE(world.becomes_quiescent()) << idle;
  }
}

/// Writes of its own queue pair, each verified by reading it back into other memory.
void hammer(Side& a, const Memory& far, uint64_t seed, std::atomic<int>& good) {
  Memory from(a.pd, octets(far.data.size(), seed), Access::LocalWrite);
  Memory back(a.pd, std::vector<uint8_t>(far.data.size()), Access::LocalWrite);
  const auto await = [&a](uint64_t id) {
    Completion done;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (a.send_cq.poll({&done, 1}) == 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return done.id == id && done.status == CompletionStatus::Success;
  };
  for (uint64_t i = 0; i < 50; ++i) {
    std::ranges::copy(octets(far.data.size(), seed + i), from.data.begin());
    std::ranges::fill(back.data, uint8_t{0});
    if (!a.qp.post_send(request(Opcode::Write, from.all(), far, 2 * i)) || !await(2 * i)) return;
    if (!a.qp.post_send(request(Opcode::Read, back.all(), far, 2 * i + 1)) || !await(2 * i + 1)) {
      return;
    }
    if (back.data == from.data) ++good;
  }
}

TEST(Threaded, TwoApplicationThreads) {
  World world(loopback_config(true));
  Side a1(world.left);
  Side b1(world.right);
  Side a2(world.left);
  Side b2(world.right);
  world.connect(a1, b1);
  world.connect(a2, b2);
  Memory far1(b1.pd, std::vector<uint8_t>(20000), kEverything);
  Memory far2(b2.pd, std::vector<uint8_t>(3001), kEverything);
  std::atomic<int> good{0};
  std::atomic<bool> stop{false};
  std::thread first([&] { hammer(a1, far1, 1000, good); });
  std::thread second([&] { hammer(a2, far2, 2000, good); });
  uint64_t looks = 0;
  std::thread watcher([&] {
    uint64_t before = 0;
    while (!stop.load()) {
      const uint64_t now = must(world.left.counter("tcp", "data_segments_out"));
      EXPECT_GE(now, before);
      before = now;
      ++looks;
      std::this_thread::yield();
    }
  });
  first.join();
  second.join();
  stop.store(true);
  watcher.join();
  EXPECT_EQ(good.load(), 100);
  EXPECT_GT(looks, 0u);
}

/// What a thread asks of a device while others do the same. \return how often all was as it is to
int ask_for_all(World& world, CompletionQueue& shared, int rounds) {
  int good = 0;
  for (int i = 0; i < rounds; ++i) {
    auto pd = world.left.alloc_pd();
    if (!pd) continue;
    std::vector<uint8_t> octets(64);
    auto region = pd->register_memory(std::as_writable_bytes(std::span(octets)), kEverything);
    auto cq = world.left.create_cq(8);
    auto qp = cq ? pd->create_qp(*cq, shared) : Result<QueuePair>(tl::unexpected(cq.error()));
    const bool had = region && qp && qp->number() != 0;
    const bool refused = !pd->destroy();
    if (had && refused && qp->destroy() && cq->destroy() && region->deregister() &&
        pd->destroy() && world.left.counter("device", "regions_registered")) {
      ++good;
    }
  }
  return good;
}

// Four threads make and end all kinds of things of one device, of which two use one completion
// queue, while a connection of it has traffic and a condition that is waited for calls it as well.
TEST(Threaded, CallsOfManyThreads_VERBS_28) {
  constexpr int kRounds = 60;
  World world(loopback_config(true));
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  Memory far(b.pd, std::vector<uint8_t>(4000), kEverything);
  std::atomic<int> good{0};
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      good += ask_for_all(world, a.receive_cq, kRounds);
      ++ended;
    });
  }
  std::atomic<int> moved{0};
  threads.emplace_back([&] { hammer(a, far, 7, moved); });
  // Nobody holds a lock while the condition is asked: it may call what it likes.
  EXPECT_TRUE(world.wait([&] {
    auto mine = world.left.alloc_pd();
    return mine && mine->destroy() && ended == 4;
  }));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4 * kRounds);
  EXPECT_EQ(moved, 50);
  EXPECT_EQ(must(world.left.limits()).regions, 0u);
}

TEST(Threaded, ManyContextsStartAndStop) {
  for (int i = 0; i < 12; ++i) {
    World world(loopback_config(i % 2 == 0));
    Side a(world.left);
    Side b(world.right);
    world.connect(a, b);
    exchange(world, a, b, 100 + i, 3);
  }
}

TEST(Threaded, TwoContextsAtOnce) {
  World one(loopback_config(true));
  World two(loopback_config(true));
  Side a1(one.left);
  Side b1(one.right);
  Side a2(two.left);
  Side b2(two.right);
  one.connect(a1, b1);
  two.connect(a2, b2);
  exchange(one, a1, b1, 5000, 3);
  exchange(two, a2, b2, 5000, 4);
}

TEST(Threaded, HandlesGoWhileDataMoves) {
  World world(loopback_config(true));
  for (int i = 0; i < 5; ++i) {
    auto a = std::make_unique<Side>(world.left);
    auto b = std::make_unique<Side>(world.right);
    world.connect(*a, *b);
    Memory from(a->pd, octets(1 << 20, 5), Access::LocalWrite);
    Memory to(b->pd, std::vector<uint8_t>(1 << 20), kEverything);
    must(a->qp.post_send(request(Opcode::Write, from.all(), to)));
    must(to.region.deregister());
    const std::vector<uint8_t> then = to.data;
    b->qp = QueuePair();
    a->qp = QueuePair();
    must(from.region.deregister());
    EXPECT_TRUE(world.becomes_quiescent());
    EXPECT_EQ(to.data, then);
  }
}

}  // namespace
}  // namespace rnic::test
