// The machine refuses one piece of memory, each in turn, in the middle of a start-up.

#include "device_pair.hpp"
#include "support/live_memory.hpp"

namespace rnic::nic {
namespace {

class RefusedMemory : public DevicePair {
 protected:
  /// A Request has come to the right device.
  Event request(QueuePair* from) {
    EXPECT_TRUE(left().device->connect(*from, right_end(), {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return right().has(EventKind::ConnectRequest); }));
    return *right().take(EventKind::ConnectRequest);
  }
  void destroy(Host& host, QueuePair* qp) {
    const QueuePairSpec spec = qp->spec();
    EXPECT_TRUE(host.device->destroy_qp(qp).has_value());
    EXPECT_TRUE(host.device->destroy_cq(spec.send_cq).has_value());
    EXPECT_TRUE(host.device->destroy_cq(spec.receive_cq).has_value());
    EXPECT_TRUE(host.device->free_pd(spec.pd).has_value());
  }
};

// An answer that could not be given can be given again, by the same queue pair.
TEST_F(RefusedMemory, AnAcceptCanBeRepeated) {
  int64_t n = 0;
  for (bool refused = true; refused; ++n) {
    QueuePair* near = left().make_qp(4, 16);
    QueuePair* far = right().make_qp(4, 16);
    const Event event = request(near);
    const std::vector<uint8_t> reply(200, 7);
    const auto accept = [&] {
      try {
        return right().device->accept(event.connection, *far, reply, now_, {}).has_value();
      } catch (const std::bad_alloc&) {
        return false;
      }
    };
    test::refuse_memory_after(n);
    const bool accepted = accept();
    refused = test::refuse_no_more();
    EXPECT_TRUE(accepted || refused);
    if (!accepted) {
      EXPECT_TRUE(accept()) << n;
    }
    EXPECT_TRUE(run_until([&] { return left().has(EventKind::Established); })) << n;
    left().take(EventKind::Established);
    destroy(left(), near);
    destroy(right(), far);
    run_for(std::chrono::milliseconds(100));
  }
  EXPECT_GT(n, 1);
}

// A connection of which the private data finds no room is given up, and counted.
TEST_F(RefusedMemory, AStartThatCannotGoOnIsGivenUpAndCounted) {
  constexpr int64_t kTrials = 40;
  for (int64_t n = 0; n < kTrials; ++n) {
    QueuePair* near = left().make_qp(4, 16);
    QueuePair* far = right().make_qp(4, 16);
    const Event event = request(near);
    const std::vector<uint8_t> reply(200, 7);
    ASSERT_TRUE(right().device->accept(event.connection, *far, reply, now_, {}).has_value());
    right().device->poll(now_);
    test::refuse_memory_after(n);
    for (int turn = 0; turn < 20; ++turn) {
      now_ += std::chrono::microseconds(1);
      try {
        left().device->poll(now_);
      } catch (const std::bad_alloc&) {  // the turn ends, and the next goes on
      }
    }
    test::refuse_no_more();
    run_for(std::chrono::milliseconds(100));
    destroy(left(), near);
    destroy(right(), far);
    run_for(std::chrono::milliseconds(100));
    left().collect();
    right().collect();
    left().events.clear();
    right().events.clear();
  }
  const uint64_t given_up = left().device->device_counters().starved_connections;
  EXPECT_GE(given_up, 1u);
  EXPECT_LE(given_up, static_cast<uint64_t>(kTrials));
}

// A turn that an exception has ended is told by whoever has called it.
TEST_F(RefusedMemory, TurnsThatEndEarlyAreCounted) {
  for (uint64_t n = 1; n <= 3; ++n) {
    left().device->count_starved_turn();
    EXPECT_EQ(left().device->device_counters().starved_turns, n);
  }
}

}  // namespace
}  // namespace rnic::nic
