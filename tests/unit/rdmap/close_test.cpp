#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class CloseTest : public TwoNodes {};

TEST_F(CloseTest, BeforeTheConnection) {
  Node idle({.qp = 1, .pd = 1}, 1);
  EXPECT_EQ(idle.endpoint.state(), EndpointState::Idle);
  idle.post_receive(5, 0, 8);
  EXPECT_TRUE(idle.owner.receives.empty());
  idle.send(idle.work(6, Opcode::Send, 0, 8));
  ASSERT_EQ(idle.owner.sends.size(), 1u);
  EXPECT_EQ(idle.owner.sends[0].status, CompletionStatus::Flushed);
  EXPECT_FALSE(idle.endpoint.idle());
  idle.endpoint.abort();
  ASSERT_EQ(idle.owner.receives.size(), 1u);
  EXPECT_EQ(idle.owner.receives[0].status, CompletionStatus::Flushed);
  EXPECT_TRUE(idle.endpoint.idle());
}

// "Signaled" is about success: whoever asked for no completion is told of every failure.
TEST_F(CloseTest, UnsignaledWorkThatFailsIsTold) {
  const auto unsignaled = [this](uint64_t id, Opcode opcode, uint32_t n) {
    SendRequest work = a->work(id, opcode, 0, n);
    work.signaled = false;
    work.remote.stag = b->all;
    return work;
  };
  a->send(unsignaled(1, Opcode::Write, 8));
  pair.pump();
  EXPECT_TRUE(a->owner.sends.empty()) << "success is not told";
  a->send(unsignaled(2, Opcode::Read, 8));
  a->send(unsignaled(3, Opcode::Write, 8));
  pair.a.pull_all();
  a->endpoint.abort();
  a->send(unsignaled(4, Opcode::Write, 8));
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{2, 3, 4}));
  for (const Completion& told : a->owner.sends) EXPECT_EQ(told.status, CompletionStatus::Flushed);
}

TEST_F(CloseTest, UnsignaledWorkThatIsRefusedHereIsTold) {
  SendRequest bad = a->work(1, Opcode::Write, 0, 8);
  bad.signaled = false;
  bad.sges[0].stag ^= 1;
  bad.remote.stag = b->all;
  a->send(bad);
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
}

// RDMAP-6.2-01: what was posted goes out and completes; what comes later is refused,
// in order.
// UNH-RDMAP-10
TEST_F(CloseTest, GracefulLetsPostedWorkFinish_DDP_6_2_1_01) {
  b->fill(0, 100, 4);
  write(1, 0, 300, 1000);
  read(2, 3000, 100, 0);
  a->endpoint.disconnect();
  write(3, 0, 8, 0);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Closing);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.close_calls, 0u) << "the Response is still to come";
  pair.pump();
  EXPECT_EQ(pair.a.close_calls, 1u);
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::Success);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Flushed);
  pair.a.user().ended(StreamEnd::Closed, {});
  EXPECT_EQ(a->endpoint.state(), EndpointState::Closed);
  ASSERT_EQ(a->owner.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<event::Disconnected>(a->owner.events[0]));
}

TEST_F(CloseTest, IdleDisconnectClosesAtOnce) {
  a->endpoint.disconnect();
  a->endpoint.disconnect();
  EXPECT_EQ(pair.a.close_calls, 1u);
}

// DDP-3-09
// UNH-MPA-2-14
TEST_F(CloseTest, PeerHalfCloseLeavesOurDirectionOpen_DDP_6_2_1_03) {
  write(1, 0, 8, 0);
  pair.a.user().peer_finished(true, {});
  ASSERT_EQ(a->owner.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<event::PeerClosed>(a->owner.events[0]));
  write(2, 0, 8, 0);
  pair.pump();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::Success);
  a->endpoint.disconnect();
  EXPECT_EQ(pair.a.close_calls, 1u);
}

TEST_F(CloseTest, PeerClosesWithReadsOutstanding) {
  read(1, 0, 8, 0);
  write(2, 0, 8, 0);
  pair.a.pull_all();
  pair.a.user().peer_finished(true, {});
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
  EXPECT_EQ(pair.a.close_calls, 1u);
}

TEST_F(CloseTest, ReadAfterThePeerClosedIsFlushed) {
  pair.a.user().peer_finished(true, {});
  read(1, 0, 8, 0);
  pair.a.pull_all();
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Flushed);
}

// DDP-6.2.2-01-a: the FIN came inside an FPDU: told as a loss, with layer, type and code.
// UNH-MPA-2-14
TEST_F(CloseTest, UncleanFinish_DDP_6_2_2_01) {
  a->post_receive(1, 0, 8);
  pair.a.user().peer_finished(false, {});
  EXPECT_TRUE(pair.a.aborted);
  EXPECT_EQ(a->owner.receives.size(), 1u);
  pair.a.user().ended(StreamEnd::Aborted, {});
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
  ASSERT_EQ(a->owner.events.size(), 1u);
  const event::Disconnected& told = a->owner.disconnected(0);
  EXPECT_EQ(told.end, StreamEnd::Aborted);
  EXPECT_EQ(told.fault.value().layer, FaultLayer::Llp);
  EXPECT_EQ(told.fault.value().type, 0x0);
  EXPECT_EQ(told.fault.value().code, 0x01);
  EXPECT_NE(told.detail.find("TCP connection closed or lost"), std::string::npos);
}

// A request whose success nobody wants to hear of is told of all the same when it fails: of
// those that were not signaled, the one that succeeded is silent.
TEST_F(CloseTest, UnsignaledFailuresAreTold_BUG_06) {
  for (uint64_t id = 1; id <= 3; ++id) {
    SendRequest w = a->work(id, Opcode::Write, 0, 8);
    w.remote.stag = b->all;
    w.signaled = false;
    a->send(w);
  }
  SendRequest read = a->work(4, Opcode::Read, 0, 8);
  read.remote.stag = b->all;
  read.signaled = false;
  a->send(read);
  pair.a.pull();
  pair.a.release_up_to(1);
  EXPECT_EQ(a->endpoint.sends_completed(), 1u);
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.user().ended(StreamEnd::TimedOut, {});
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{2, 3, 4}));
  for (const Completion& told : a->owner.sends) EXPECT_EQ(told.status, CompletionStatus::Flushed);
  EXPECT_EQ(a->endpoint.sends_completed(), 4u);
  EXPECT_EQ(a->counters.flushed, 3u);
}

// RDMAP-7.1-02: the same for one that could not be sent for a fault of its own.
TEST_F(CloseTest, AnUnsignaledLocalErrorIsTold_BUG_06) {
  SendRequest w = a->work(1, Opcode::Write, Node::kSize, 8);  // behind the region
  w.remote.stag = b->all;
  w.signaled = false;
  a->send(w);
  pair.a.pull();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
}

// DDP-6.2.2-02 MPA-8-01 DDP-6.2.2-01-b: both queues, in post order; and
// whatever is posted to the dead endpoint. The code of the loss is 2/0/01.
// UNH-RDMAP-10
TEST_F(CloseTest, LossFlushesInPostOrder_BUG_06) {
  for (uint64_t i = 0; i < 5; ++i) a->post_receive(10 + i, 0, 8);
  write(1, 0, 8, 0);
  read(2, 0, 8, 0);
  write(3, 0, 1000, 0);
  pair.a.pull();
  pair.a.pull();
  pair.a.pull();
  pair.a.release_up_to(1);
  pair.a.user().ended(StreamEnd::TimedOut, {});
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Success);
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::Lost);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Flushed);
  ASSERT_EQ(a->owner.receives.size(), 5u);
  EXPECT_EQ(a->owner.receives[4].id, 14u);
  EXPECT_EQ(a->counters.flushed, 6u);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
  EXPECT_TRUE(a->endpoint.idle());
  for (uint64_t i = 0; i < 300; ++i) {
    EXPECT_TRUE(a->sends.has_room());
    EXPECT_TRUE(a->receives.has_room());
    write(20 + i, 0, 8, 0);
    a->post_receive(20 + i, 0, 8);
  }
  EXPECT_EQ(a->owner.sends.size(), 303u);
  EXPECT_EQ(a->owner.receives.size(), 305u);
  ASSERT_EQ(a->owner.events.size(), 1u);
  EXPECT_EQ(a->owner.disconnected(0).end, StreamEnd::TimedOut);
  EXPECT_EQ(a->owner.fault(0).layer, FaultLayer::Llp);
  EXPECT_EQ(a->owner.fault(0).type, 0);
  EXPECT_EQ(a->owner.fault(0).code, 1);
}

// Which ends are a loss: not a graceful one, not our own, and not one that comes after.
// UNH-RDMAP-10
TEST_F(CloseTest, OnlyALossHasACode_MPA_8_01) {
  for (const StreamEnd how : {StreamEnd::Closed, StreamEnd::PeerReset, StreamEnd::TimedOut,
                              StreamEnd::Unreachable, StreamEnd::Aborted}) {
    for (const bool in_use : {true, false}) {
      restart();
      if (!in_use) a->endpoint.abort();
      pair.a.user().ended(how, {});
      ASSERT_EQ(a->owner.events.size(), 1u);
      const bool lost = in_use && how != StreamEnd::Closed && how != StreamEnd::Aborted;
      const std::optional<Fault>& fault = a->owner.disconnected(0).fault;
      ASSERT_EQ(fault.has_value(), lost) << to_string(how) << in_use;
      EXPECT_EQ(fault.value_or(Fault{}).code, lost ? 1 : 0) << to_string(how);
      EXPECT_EQ(a->owner.disconnected(0).end, how);
    }
  }
}

// What the user posts from inside a completion of the flush comes after what was posted
// before.
TEST_F(CloseTest, PostingDuringAFlushKeepsTheOrder_BUG_06) {
  for (uint64_t i = 0; i < 3; ++i) write(i, 0, 8, 0);
  uint64_t next = 3;
  a->owner.on_send = [&] {
    if (next < 6) write(next++, 0, 8, 0);
  };
  a->endpoint.abort();
  EXPECT_TRUE(pair.a.aborted);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
  a->owner.on_send = nullptr;
}

// The same with a queue that was full: each request that is told of has given its place
// back before, also one of which nothing was ever sent.
TEST_F(CloseTest, PostingDuringAFlushOfAFullQueue_BUG_06_BUG_09) {
  restart({.qp = 9, .pd = 4}, {.send = 3});
  for (uint64_t i = 0; i < 3; ++i) write(i, 0, 8, 0);
  EXPECT_FALSE(a->sends.has_room());
  uint64_t next = 3;
  a->owner.on_send = [&] {
    EXPECT_TRUE(a->sends.has_room());
    if (next < 12) write(next++, 0, 8, 0);
  };
  a->endpoint.abort();
  a->owner.on_send = nullptr;
  const std::vector<uint64_t> ids = a->owner.send_ids();
  ASSERT_EQ(ids.size(), 12u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

// Refused requests give their places back while the close goes on.
TEST_F(CloseTest, RefusedWorkKeepsNoPlace_DDP_6_2_1_01) {
  restart({.qp = 9, .pd = 4}, {.send = 2});
  read(1, 0, 8, 0);  // keeps the stream from closing
  a->endpoint.disconnect();
  write(2, 0, 8, 0);
  EXPECT_FALSE(a->sends.has_room());
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.release_all();
  pair.a.arrive_rest(pair.b);
  for (uint64_t id = 3; id < 10; ++id) {
    ASSERT_TRUE(a->sends.has_room()) << id;
    write(id, 0, 8, 0);
    EXPECT_EQ(a->owner.sends.back().id, id);
    EXPECT_EQ(a->owner.sends.back().status, CompletionStatus::Flushed);
  }
}

// RDMAP-6.2-01: what the peer has asked for goes out before the close.
TEST_F(CloseTest, ReadResponsesComeBeforeTheClose) {
  read(1, 0, 600, 0);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  b->endpoint.disconnect();
  EXPECT_EQ(pair.b.close_calls, 0u);
  ASSERT_TRUE(pair.b.pull());
  EXPECT_EQ(pair.b.close_calls, 0u) << "the Response has three segments";
  pair.b.pull_all();
  EXPECT_EQ(pair.b.close_calls, 1u);
  EXPECT_EQ(pair.b.sent.size(), 3u);
}

// Work posted from a completion while all is well.
TEST_F(CloseTest, PostingFromACompletion) {
  start({}, {.send = 1});
  uint64_t next = 1;
  a->owner.on_send = [&] {
    if (next < 20) write(next++, 0, 8, 0);
  };
  write(0, 0, 8, 0);
  pair.pump();
  EXPECT_EQ(a->owner.sends.size(), 20u);
  a->owner.on_send = nullptr;
}

}  // namespace
}  // namespace rnic::rdmap
