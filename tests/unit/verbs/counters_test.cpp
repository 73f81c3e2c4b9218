// What is counted of one queue pair, of one completion queue, and of Terminate messages by code.

#include <algorithm>
#include <optional>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

class VerbsCounters : public ::testing::TestWithParam<bool> {
 protected:
  World world_{GetParam() ? socket_config(false) : loopback_config()};
};

INSTANTIATE_TEST_SUITE_P(Modes, VerbsCounters, ::testing::Bool(), [](const auto& mode) {
  return mode.param ? "Sockets" : "Wire";
});

/// The count of that code; nothing: it is not there.
std::optional<TerminateCount> count_of(const Device& device, const FaultCode& code) {
  for (const TerminateCount& count : must(device.terminates())) {
    if (count.code == code) return count;
  }
  return std::nullopt;
}

TEST_P(VerbsCounters, WorkOfAQueuePairAndACompletionQueue_VERBS_27) {
  Side a(world_.left);
  Side b(world_.right);
  EXPECT_EQ(must(a.qp.info()).counters.connections, 0u);
  world_.connect(a, b);
  Memory from(a.pd, octets(1000, 1), kEverything);
  Memory to(b.pd, std::vector<uint8_t>(1000), kEverything);
  for (uint64_t id = 1; id <= 3; ++id) must(b.qp.post_receive(receive(to.all(), id)));
  SendRequest silent = request(Opcode::Send, from.region.sge(0, 300));
  silent.signaled = false;
  must(a.qp.post_send(silent));
  must(a.qp.post_send(request(Opcode::Send, from.region.sge(0, 400), 2)));
  world_.expect_done(a.send_cq, 2, 400);
  world_.expect_done(b.receive_cq, 1, 300);
  world_.expect_done(b.receive_cq, 2, 400);
  const QueuePairCounters sender = must(a.qp.info()).counters;
  EXPECT_EQ(sender.connections, 1u);
  EXPECT_EQ(must(a.qp.info()).sends_completed, 2u) << "signaled or not";
  EXPECT_EQ(sender.receives, 0u);
  EXPECT_EQ(sender.flushed + sender.failed, 0u);
  const QueuePairCounters receiver = must(b.qp.info()).counters;
  EXPECT_EQ(receiver.receives, 2u);
  EXPECT_EQ(receiver.octets_received, 700u);
  EXPECT_EQ(must(a.send_cq.info()).completions, 1u);
  EXPECT_EQ(must(b.receive_cq.info()).completions, 2u);
  world_.disconnect(a, b);
  const QueuePairCounters ended = must(b.qp.info()).counters;
  EXPECT_EQ(ended.flushed, 1u) << "the third receive";
  EXPECT_EQ(ended.terminates_sent + ended.terminates_received, 0u);
  const CqInfo cq = must(b.receive_cq.info());
  EXPECT_EQ(cq.completions, 3u);
  EXPECT_EQ(cq.failed, 1u);
  EXPECT_EQ(cq.lost, 0u);
}

// The life of a queue pair goes on when it is idle again, and so do its counters.
TEST_P(VerbsCounters, TheyOutliveAConnection_VERBS_27) {
  Side a(world_.left);
  Side b(world_.right);
  Memory from(a.pd, octets(1000, 1), kEverything);
  for (uint64_t round = 1; round <= 2; ++round) {
    world_.connect(a, b);
    must(b.qp.post_receive(receive({}, round)));
    must(a.qp.post_send(request(Opcode::Send, from.region.sge(0, 0), round)));
    world_.expect_done(b.receive_cq, round, 0);
    world_.expect_done(a.send_cq, round, 0);
    world_.disconnect(a, b);
    must(a.qp.modify({.state = QueuePairState::Idle}));
    must(b.qp.modify({.state = QueuePairState::Idle}));
    EXPECT_EQ(must(a.qp.info()).counters.connections, round);
    EXPECT_EQ(must(b.qp.info()).counters.receives, round);
  }
}

TEST_P(VerbsCounters, TerminatesByTheirCode_VERBS_27) {
  const FaultCode bounds{FaultLayer::Ddp, 1, 1};
  EXPECT_EQ(count_of(world_.left, bounds), std::nullopt);
  for (uint64_t round = 1; round <= 2; ++round) {
    Side a(world_.left);
    Side b(world_.right);
    world_.connect(a, b);
    Memory from(a.pd, octets(100, 1), kEverything);
    Memory to(b.pd, std::vector<uint8_t>(100), kEverything);
    SendRequest beyond = request(Opcode::Write, from.all(), to);
    beyond.remote.offset += 1;
    must(a.qp.post_send(beyond));
    ASSERT_TRUE(world_.await<event::TerminateReceived>(world_.left));
    ASSERT_TRUE(world_.await<event::TerminateSent>(world_.right));
    EXPECT_EQ(must(a.qp.info()).counters.terminates_received, 1u);
    EXPECT_EQ(must(b.qp.info()).counters.terminates_sent, 1u);
    ASSERT_TRUE(count_of(world_.left, bounds));
    EXPECT_EQ(count_of(world_.left, bounds)->received, round);
    EXPECT_EQ(count_of(world_.left, bounds)->sent, 0u);
    ASSERT_TRUE(count_of(world_.right, bounds));
    EXPECT_EQ(count_of(world_.right, bounds)->sent, round);
    EXPECT_EQ(must(world_.right.terminates()).size(), 1u);
  }
}

}  // namespace
}  // namespace rnic::test
