
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class OutboundTest : public TwoNodes {};

// RDMAP-5.3-01 RDMAP-5.3-03 RDMAP-4.1-04
// UNH-RDMAP-08
TEST_F(OutboundTest, SendsOfEveryKindOfLengthArriveInOrder_RDMAP_5_3_04) {
  const uint32_t lengths[] = {0, 1, 61, 238, 239, 1000};
  for (uint64_t i = 0; i < 6; ++i) b->post_receive(100 + i, 1000 * i, 1000);
  a->fill(0, 1000, 3);
  for (uint64_t i = 0; i < 6; ++i) send(i, 0, lengths[i]);
  pair.pump();
  ASSERT_EQ(b->owner.receives.size(), 6u);
  for (uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(b->owner.receives[i].id, 100 + i);
    EXPECT_EQ(b->owner.receives[i].length, lengths[i]);
    EXPECT_FALSE(b->owner.receives[i].solicited);
    EXPECT_TRUE(std::equal(a->at(0), a->at(lengths[i]), b->at(1000 * i)));
  }
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(a->counters.messages_out, 6u);
  EXPECT_EQ(b->counters.sends_in, 6u);
}

// RDMAP-5.1-01 RDMAP-5.1-02
TEST_F(OutboundTest, WriteGathersAndTellsNobody_RDMAP_5_1_06) {
  a->fill(0, 3000, 1);
  SendRequest w{.id = 7, .opcode = Opcode::Write};
  w.sges = {{2000, 301, a->all}, {5, 0, a->all}, {10, 500, a->all}};
  w.remote = {b->all, 123};
  a->send(w);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(2000), a->at(2301), b->at(123)));
  EXPECT_TRUE(std::equal(a->at(10), a->at(510), b->at(424)));
  EXPECT_EQ(*b->at(122), Node::kGuard);
  EXPECT_EQ(*b->at(924), Node::kGuard);
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].length, 801u);
  EXPECT_TRUE(b->owner.receives.empty());
  EXPECT_EQ(b->counters.writes_in, 1u);
  EXPECT_EQ(b->counters.octets_placed, 801u);
  EXPECT_EQ(a->counters.octets_out, 801u);
}

// DDP-5.2-07
TEST_F(OutboundTest, EmptyWriteNeedsNoStag_RDMAP_5_1_05) {
  SendRequest w = a->work(1, Opcode::Write, 0, 0);
  w.remote.stag = 0xdeadbeef;
  a->send(w);
  pair.pump();
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Success);
  EXPECT_TRUE(b->owner.events.empty());
}

// DDP-5.4-04: not when pulled, but when acknowledged.
TEST_F(OutboundTest, CompletionComesWithTheLastAcknowledgement_RDMAP_5_5_04) {
  b->post_receive(1, 0, 1000);
  send(1, 0, 600);
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 3u);
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.release_up_to(2);
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.release_up_to(3);
  EXPECT_EQ(a->owner.sends.size(), 1u);
}

// RDMAP-5.5-13: a Write behind a Read waits for it.
// UNH-RDMAP-07
TEST_F(OutboundTest, CompletionInSubmissionOrderAcrossReads_RDMAP_5_5_10) {
  write(1, 0, 10, 0);
  read(2, 1000, 300, 0);
  write(3, 0, 10, 0);
  pair.a.pull_all();
  pair.a.release_all();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  ASSERT_EQ(pair.b.sent.size(), 2u);
  pair.a.arrive(pair.b, 0);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  pair.a.arrive(pair.b, 1);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
}

// Two Reads and a Send behind them are out. The answer to the first Read completes it
// alone; what was acknowledged behind the second waits for it.
TEST_F(OutboundTest, OneOfTwoReadsIsAnswered_UNH_RDMAP_07) {
  b->post_receive(50, 4000, 100);
  b->fill(0, 200, 9);
  write(1, 0, 10, 3000);
  read(2, 1000, 40, 0);
  read(3, 2000, 40, 100);
  send(4, 0, 20);
  pair.a.pull_all();
  pair.a.release_all();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  pair.b.arrive_rest(pair.a);
  EXPECT_EQ(b->owner.receives.size(), 1u) << "the peer has the Send";
  pair.b.pull_all();
  ASSERT_EQ(pair.b.sent.size(), 2u);
  pair.a.arrive(pair.b, 0);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(std::equal(b->at(0), b->at(40), a->at(1000)));
  EXPECT_EQ(*a->at(2000), Node::kGuard);
  pair.a.arrive(pair.b, 1);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(std::equal(b->at(100), b->at(140), a->at(2000)));
}

TEST_F(OutboundTest, ReadBeforeAnUnacknowledgedWriteDoesNotOvertakeIt) {
  write(1, 0, 10, 0);
  read(2, 1000, 30, 0);
  pair.pump(false);
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.release_all();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
}

// UNH-RDMAP-07
TEST_F(OutboundTest, UnsignaledWorkIsRetired) {
  SendRequest w = a->work(1, Opcode::Write, 0, 4);
  w.remote.stag = b->all;
  w.signaled = false;
  a->send(w);
  write(2, 0, 4, 0);
  pair.pump();
  EXPECT_EQ(a->endpoint.sends_completed(), 2u);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{2}));
  EXPECT_TRUE(a->endpoint.idle());
}

// RDMAP-5.2-01, RDMAP-5.2.2-01, RDMAP-5.2.2-02, RDMAP-5.5-07
TEST_F(OutboundTest, ReadsBringTheData_RDMAP_5_2_2_05) {
  b->fill(0, 3000, 9);
  for (uint64_t i = 0; i < 4; ++i) read(i, 1500 * i, 700, 100 * i);
  pair.pump();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{0, 1, 2, 3}));
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(std::equal(b->at(100 * i), b->at(100 * i + 700), a->at(1500 * i)));
    EXPECT_EQ(*a->at(1500 * i + 700), Node::kGuard);
  }
  EXPECT_EQ(b->counters.read_requests_in, 4u);
  EXPECT_EQ(a->counters.read_responses_in, 4u);
}

// Two Reads into the same sink, different sizes, Responses placed in reverse order.
TEST_F(OutboundTest, ReadsThatShareASink) {
  b->fill(0, 3000, 9);
  read(1, 0, 100, 0);
  read(2, 0, 50, 500);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.arrive(pair.b, 1);
  pair.a.arrive(pair.b, 0);
  pair.a.release_all();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(a->owner.events.empty());
}

// UNH-RDMAP-04
TEST_F(OutboundTest, EmptyReadIsAnsweredWithoutChecks_RDMAP_5_2_1_04) {
  SendRequest w = a->work(1, Opcode::Read, 0, 0);
  w.remote.stag = 0xdeadbeef;
  a->send(w);
  pair.pump();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(b->owner.events.empty());
}

// BUG-07
TEST_F(OutboundTest, ReadsStayWithinOrd_RDMAP_6_1_02) {
  // SEC-6.4.3.3-02
  start({.ird = 2, .ord = 2});
  for (uint64_t i = 0; i < 7; ++i) read(i, 100 * i, 100, 0);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 2u);
  pair.pump();
  EXPECT_EQ(a->owner.sends.size(), 7u);
  EXPECT_TRUE(b->owner.events.empty());
}

// The agreement, not what the queue has room for, is the limit.
TEST_F(OutboundTest, ReadsStayWithinTheAgreedOrd_RDMAP_6_1_02) {
  // SEC-6.4.3.3-02
  for (const uint16_t agreed : {1, 2, 3, 4, 9}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    const EndpointConfig config{.qp = 9, .pd = 4, .ird = 4, .ord = 4};
    a = std::make_unique<Node>(config, 1);
    b = std::make_unique<Node>(config, 2);
    pair.a.attach(a->endpoint.framing_user());
    pair.b.attach(b->endpoint.framing_user());
    a->endpoint.bind(pair.a, {.ord = agreed});
    b->endpoint.bind(pair.b);
    const uint32_t limit = std::min<uint32_t>(agreed, 4);
    for (uint64_t i = 0; i < 7; ++i) read(i, 100 * i, 100, 0);
    pair.a.pull_all();
    ASSERT_EQ(pair.a.sent.size(), limit);
    pair.a.release_all();
    // One more for each Response, and not before.
    for (size_t done = 0; done < 3; ++done) {
      pair.b.arrive_rest(pair.a);
      ASSERT_TRUE(pair.b.pull());
      pair.a.pull_all();
      ASSERT_EQ(pair.a.sent.size(), limit + done);
      pair.a.arrive(pair.b, done);
      pair.a.pull_all();
      ASSERT_EQ(pair.a.sent.size(), limit + done + 1);
      pair.a.release_all();
      EXPECT_EQ(a->owner.sends.size(), done + 1);
    }
    pair.pump();
    EXPECT_EQ(a->owner.sends.size(), 7u);
    EXPECT_TRUE(b->owner.events.empty());
  }
}

// RDMAP-5.5-08: the fence waits for earlier Reads only, and goes on by itself.
// UNH-RDMAP-07
TEST_F(OutboundTest, FenceWaitsForReads_BUG_07) {
  read(1, 0, 100, 0);
  read(2, 200, 100, 0);
  SendRequest w = a->work(3, Opcode::Write, 0, 8);
  w.remote.stag = b->all;
  w.fence = true;
  a->send(w);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 2u);
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.arrive(pair.b, 0);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 2u);
  const uint32_t ready_calls = pair.a.ready_calls;
  pair.a.arrive(pair.b, 1);
  EXPECT_GT(pair.a.ready_calls, ready_calls);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 3u);
}

TEST_F(OutboundTest, NoReadsWereAgreed_BUG_08) {
  start({.ird = 0, .ord = 0});
  write(1, 0, 8, 0);
  read(2, 0, 8, 0);
  write(3, 0, 8, 0);
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Success);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Connected);
}

// The place of a request that was refused is the next one's, in a queue of any length; what stands
// there then goes out once, under its own number.
TEST_F(OutboundTest, WhatTakesARefusedReadsPlaceGoesOutOnce_BUG_08) {
  for (const uint32_t depth : {1u, 2u, 3u}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start({.ird = 0, .ord = 0}, {.send = depth});
    std::vector<uint64_t> ids;
    for (uint64_t id = 1; id <= 10; ++id) {
      ids.push_back(id);
      if (id % 2 == 0) {
        read(id, 0, 8, 0);  // refused at once: there is nothing to be pulled
      } else {
        write(id, 0, 8, 0);
        pair.pump();
      }
    }
    EXPECT_EQ(a->owner.send_ids(), ids) << depth;
    EXPECT_EQ(a->counters.messages_out, 5u) << depth;
    EXPECT_EQ(b->counters.writes_in, 5u) << depth;
    EXPECT_FALSE(a->endpoint.has_work()) << depth;
  }
}

TEST_F(OutboundTest, QueuesOfLengthZero_BUG_08) {
  start({}, {.send = 0, .receive = 0});
  EXPECT_FALSE(a->sends.has_room());
  EXPECT_FALSE(a->receives.has_room());
  pair.pump();
}

TEST_F(OutboundTest, SendQueueIsFullUntilTheAcknowledgement) {
  start({}, {.send = 3});
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(a->sends.has_room());
    write(i, 0, 8, 0);
  }
  EXPECT_FALSE(a->sends.has_room());
  pair.a.pull_all();
  EXPECT_FALSE(a->sends.has_room());
  pair.a.release_up_to(1);
  EXPECT_TRUE(a->sends.has_room());
  for (uint64_t i = 3; i < 40; ++i) {
    write(i, 0, 8, 0);
    pair.pump();
  }
  EXPECT_EQ(a->owner.sends.size(), 40u);
}

// After each whole message the turn alternates between Responses and the send queue; inside a
// message never.
TEST_F(OutboundTest, TurnsAlternateByWholeMessages) {
  const auto request = [&](uint32_t msn) {
    inject(read_request(msn, {.sink_stag = 5, .size = 400, .source_stag = b->all}));
  };
  for (uint32_t msn = 1; msn <= 3; ++msn) request(msn);
  for (uint64_t i = 0; i < 3; ++i) {
    SendRequest w = b->work(i, Opcode::Write, 0, 400);
    w.remote.stag = a->all;
    b->send(w);
  }
  pair.b.pull_all();
  std::vector<uint8_t> opcodes;
  for (const auto& sent : pair.b.sent) opcodes.push_back(opcode(sent));
  EXPECT_EQ(opcodes, (std::vector<uint8_t>{0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2}));
}

TEST_F(OutboundTest, PackingTakesOnlyWholeEnds) {
  write(1, 0, 300, 0);
  write(2, 0, 8, 0);
  EXPECT_FALSE(pair.a.pull(true));
  EXPECT_TRUE(pair.a.pull(false));
  EXPECT_FALSE(pair.a.pull(true, 71));  // 58 octets and a header of 14 are left
  EXPECT_TRUE(pair.a.pull(true, 72));
  EXPECT_TRUE(pair.a.pull(true, 22));
  EXPECT_EQ(pair.a.sent.size(), 3u);
}

// A record that was pulled keeps its limits when MULPDU changes.
// UNH-MPA-2-13
TEST_F(OutboundTest, RebuildDoesNotRecut_DDP_3_02) {
  pair.a.check_rebuild = false;
  a->fill(0, 1000, 1);
  write(1, 0, 1000, 0);
  pair.a.pull();
  pair.a.user().mulpdu_changed(128);
  pair.a.pull(false, 128);
  EXPECT_EQ(pair.a.rebuild(0), pair.a.sent[0].octets);
  EXPECT_EQ(pair.a.sent[0].octets.size(), 256u);
  EXPECT_EQ(pair.a.sent[1].octets.size(), 128u);
  EXPECT_EQ(wire::parse_ddp_tagged(pair.a.sent[1].octets)->to, 242u);
}

// The rights of the second segment on are those that the first one was checked for, and these end
// with the STag.
// UNH-SEC-01
TEST_F(OutboundTest, SourceThatEndsHalfWayIsNotReadAnyMore_DDP_8_3_1_01_RDMAP_7_1_02) {
  for (uint32_t sent = 1; sent <= 3; ++sent) {
    restart();
    const uint32_t source = a->add(Access::LocalRead);
    SendRequest w = a->work(1, Opcode::Write, 0, 900);
    w.sges = {{0, 900, source}};
    w.remote = {b->all, 0};
    a->send(w);
    for (uint32_t i = 0; i < sent; ++i) EXPECT_TRUE(pair.a.pull());
    ASSERT_TRUE(a->table.remove(mem::Stag{source}).has_value());
    EXPECT_TRUE(pair.a.pull());  // the Terminate in its place
    EXPECT_FALSE(pair.a.pull());
    EXPECT_EQ(pair.a.sent.size(), sent + 1);
    EXPECT_EQ(a->counters.terminates_out, 1u);
    ASSERT_EQ(a->owner.sends.size(), 1u);
    EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
  }
}

// The end of another STag, or another registration, changes nothing.
TEST_F(OutboundTest, SourceIsReadOnWhenAnotherEndsOrBegins) {
  a->fill(0, 900, 5);
  const uint32_t other = a->add(Access::LocalRead);
  write(1, 0, 900, 0);
  EXPECT_TRUE(pair.a.pull());
  ASSERT_TRUE(a->table.remove(mem::Stag{other}).has_value());
  EXPECT_TRUE(pair.a.pull());
  a->add(Access::LocalRead);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(0), a->at(900), b->at(0)));
  EXPECT_EQ(a->owner.sends.size(), 1u);
}

// A Response of several segments is looked up once, and so is each of two messages.
TEST_F(OutboundTest, MessagesOfSeveralSegmentsHaveTheirOwnSources) {
  a->fill(0, 3000, 1);
  b->fill(0, 3000, 2);
  write(1, 100, 700, 1000);
  write(2, 1500, 600, 1700);
  read(3, 2200, 500, 20);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(100), a->at(800), b->at(1000)));
  EXPECT_TRUE(std::equal(a->at(1500), a->at(2100), b->at(1700)));
  EXPECT_TRUE(std::equal(b->at(20), b->at(520), a->at(2200)));
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
}

// Nobody is asked to pull what is not there: the last ULPDU says that it is the last one.
TEST_F(OutboundTest, LastUlpduTellsThatNoneFollows) {
  write(1, 0, 600, 0);
  write(2, 0, 10, 0);
  EXPECT_TRUE(pair.a.pull());
  EXPECT_TRUE(pair.a.told_more) << "the message goes on";
  EXPECT_TRUE(pair.a.pull());
  EXPECT_TRUE(pair.a.pull());
  EXPECT_TRUE(pair.a.told_more) << "another message waits";
  EXPECT_TRUE(pair.a.pull());
  EXPECT_FALSE(pair.a.told_more);
  const uint32_t calls = pair.a.ready_calls;
  write(3, 0, 10, 0);
  EXPECT_GT(pair.a.ready_calls, calls) << "and what comes later is told";
  EXPECT_TRUE(pair.a.pull());
}

// A response that waits, and one that comes later.
TEST_F(OutboundTest, LastUlpduKnowsOfResponses) {
  inject(read_request(1, {.sink_stag = 3, .sink_to = 8, .size = 40, .source_stag = b->all}));
  inject(read_request(2, {.sink_stag = 3, .sink_to = 8, .size = 40, .source_stag = b->all}));
  EXPECT_TRUE(pair.b.pull());
  EXPECT_TRUE(pair.b.told_more);
  EXPECT_TRUE(pair.b.pull());
  EXPECT_FALSE(pair.b.told_more);
}

// One ACK for all completes all, in the order of posting; a part of a message completes nothing.
TEST_F(OutboundTest, OneAckForSeveralMessagesCompletesAllInOrder_RDMAP_5_5_10) {
  for (uint64_t i = 1; i <= 5; ++i) write(i, 0, i == 3 ? 600 : 10, 0);
  write(6, 0, 600, 0);
  pair.a.pull_all();
  pair.a.sent.pop_back();
  pair.a.release_run();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

// After revocation no retransmission reads the memory.
// UNH-SEC-01
TEST_F(OutboundTest, RebuildOfRevokedMemoryFails_DDP_8_3_1_01) {
  write(1, 0, 100, 0);
  send(2, 0, 100);
  read(3, 0, 100, 0);
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 3u);
  pair.b.arrive(pair.a, 0);
  inject(read_request(1, {.size = 50, .source_stag = b->all}));
  ASSERT_TRUE(a->table.remove(mem::Stag{a->all}).has_value());
  EXPECT_TRUE(pair.a.rebuild(0).empty());
  EXPECT_TRUE(pair.a.rebuild(1).empty());
  EXPECT_EQ(pair.a.rebuild(2), pair.a.sent[2].octets);  // the Read Request holds no user memory
}

TEST_F(OutboundTest, RebuildOfAResponseReadsTheSource_DDP_8_3_1_01) {
  b->fill(0, 400, 1);
  inject(read_request(1, {.sink_stag = 3, .sink_to = 8, .size = 400, .source_stag = b->all}));
  pair.b.pull_all();
  ASSERT_EQ(pair.b.sent.size(), 2u);
  *b->at(300) ^= 0xff;
  auto expected = pair.b.sent[1].octets;
  expected[14 + 300 - 242] ^= 0xff;
  EXPECT_EQ(pair.b.rebuild(1), expected);
  ASSERT_TRUE(b->table.remove(mem::Stag{b->all}).has_value());
  EXPECT_TRUE(pair.b.rebuild(1).empty());
}

// The same slot serves many messages; a tag never names a later one.
TEST_F(OutboundTest, ReleasedTagsNameNothing) {
  start({}, {.send = 2});
  write(1, 0, 8, 0);
  pair.pump();
  EXPECT_TRUE(pair.a.rebuild(0).empty());
  write(2, 0, 8, 0);
  write(3, 0, 8, 0);
  pair.pump(false);
  EXPECT_TRUE(pair.a.rebuild(0).empty());
  EXPECT_EQ(a->owner.sends.size(), 1u);
}

// RDMAP-7.1-01: a bad local SGE: no headers, the request is named, the rest is
// flushed.
// UNH-RDMAP-09
TEST_F(OutboundTest, LocalProtectionErrorTerminates_RDMAP_7_1_02) {
  write(1, 0, 8, 0);
  SendRequest w = a->work(2, Opcode::Send, Node::kSize - 4, 8);
  a->send(w);
  write(3, 0, 8, 0);
  a->post_receive(8, 0, 8);
  b->send(b->work(9, Opcode::Send, 0, 4));
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::LocalProtection);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
  ASSERT_EQ(pair.a.sent.size(), 2u);
  EXPECT_EQ(pair.a.sent[1].octets.size(), 18u + 4);
  EXPECT_EQ(base::load_be32(pair.a.sent[1].octets.data() + 18), 0u);  // 0/0/00, no M, D, R
  ASSERT_EQ(b->owner.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(b->owner.events[0]));
}

TEST_F(OutboundTest, ReadSinkNeedsLocalWrite) {
  SendRequest w = a->work(1, Opcode::Read, 0, 8);
  w.sges[0].stag = a->add(Access::RemoteRead);
  w.remote.stag = b->all;
  a->send(w);
  pair.pump();
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
  EXPECT_EQ(b->counters.read_requests_in, 0u);
}

// In the place of a request that cannot be made into a message the peer is told of a
// local catastrophic error, which has neither a code nor headers (RFC 5040 s.4.8).
TEST_F(OutboundTest, AnImpossibleRequestTerminatesWithoutACode_RDMAP_7_1_02) {
  SendRequest no_right = a->work(1, Opcode::Read, 0, 8);
  no_right.sges[0].stag = a->add(Access::RemoteRead);
  SendRequest too_long = a->work(1, Opcode::FetchAdd, 0, kAtomicSize + 1);
  for (SendRequest* work : {&no_right, &too_long}) {
    if (work != &no_right) restart();
    work->remote.stag = b->all;
    if (work == &too_long) work->sges[0].stag = a->all;
    a->send(*work);
    pair.pump();
    ASSERT_EQ(pair.a.sent.size(), 1u) << "the Terminate alone";
    EXPECT_EQ(opcode(pair.a.sent[0]), static_cast<uint8_t>(wire::RdmapOpcode::Terminate));
    ASSERT_EQ(pair.a.sent[0].octets.size(), 18u + 4);
    EXPECT_EQ(base::load_be32(pair.a.sent[0].octets.data() + 18), 0u);  // 0/0/00, no M, D, R
    ASSERT_EQ(a->owner.events.size(), 1u);
    EXPECT_EQ(a->owner.fault(0).code, 0x00);
  }
}

// VERBS-21
TEST_F(OutboundTest, MessageOf4GigaoctetsIsRefused_DDP_5_2_02) {
  SendRequest w{.id = 1, .opcode = Opcode::Write};
  w.sges = {{0, UINT32_MAX, a->all}, {0, 1, a->all}};
  a->send(w);
  pair.pump();
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalLength);
}

// Step (2): whether all that waits goes into a window. Never too little is counted,
// and at most the four octets more that a tagged header is shorter.
TEST_F(OutboundTest, WhatWaitsIsCountedToTheOctet_TCP_9293_3_8_6_2_01) {
  constexpr uint32_t kOverhead = 9;
  b->post_receive(1, 4096, 100);
  const std::vector<std::function<void()>> kinds = {
      [&] { send(1, 0, 100); },         [&] { write(2, 0, 77, 2048); },
      [&] { read(3, 1024, 64, 2048); }, [&] { fetch_add(4, 2048, 1); },
      [&] { immediate(5, {1}); },
  };
  for (uint32_t count = 1; count <= kinds.size(); ++count) {
    for (uint32_t i = 0; i < count; ++i) kinds[i]();
    const auto answers = [&](test::FramingEnd& end) {
      const llp::FramingUser& user = end.user();
      uint32_t least = 0;
      while (!user.all_fits(least, kOverhead)) ++least;
      const size_t before = end.sent.size();
      end.pull_all();
      uint32_t pulled = 0;
      uint32_t tagged = 0;
      for (size_t i = before; i < end.sent.size(); ++i) {
        pulled += static_cast<uint32_t>(end.sent[i].octets.size()) + kOverhead;
        tagged += end.sent[i].octets[0] >> 7;
      }
      EXPECT_GE(least, pulled) << count;
      EXPECT_LE(least, pulled + 4 * tagged) << count;
      EXPECT_TRUE(user.all_fits(0, kOverhead)) << "nothing waits";
      return end.sent.size() - before;
    };
    EXPECT_EQ(answers(pair.a), count);
    pair.b.arrive_rest(pair.a);
    EXPECT_EQ(answers(pair.b), (count >= 3 ? 1u : 0u) + (count >= 4 ? 1u : 0u));
    pair.a.arrive_rest(pair.b);
    pair.a.release_all();
    pair.b.release_all();
    if (count < kinds.size()) restart();
    b->post_receive(1, 4096, 100);
    b->post_receive(2, 4096, 100);
  }
  // Of a message that is under way the rest.
  send(9, 0, 200);
  ASSERT_TRUE(pair.a.pull(false, 118));
  EXPECT_FALSE(pair.a.user().all_fits(18 + 100 + kOverhead - 1, kOverhead));
  EXPECT_TRUE(pair.a.user().all_fits(18 + 100 + kOverhead, kOverhead));
}

// A Terminate, too.
TEST_F(OutboundTest, AWaitingTerminateIsCountedToTheOctet_TCP_9293_3_8_6_2_01) {
  constexpr uint32_t kOverhead = 9;
  llp::FramingUser& user = pair.a.user();
  write(1, 0, 1000, 0);
  ASSERT_TRUE(pair.a.pull());  // of the rest nothing follows
  user.framing_error(llp::FramingError::Crc, {});
  uint32_t least = 0;
  while (!user.all_fits(least, kOverhead)) ++least;
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 2u);
  EXPECT_EQ(least, pair.a.sent[1].octets.size() + kOverhead);
}

// Whatever was posted before the stream could send: the RTR is the first FPDU, and its
// indication tells the user.
TEST_F(OutboundTest, TheRtrGoesBeforeWhatWasPosted_CM6581_5_01) {
  for (const auto& [rtr, opcode] : {std::pair{Rtr::Write, wire::RdmapOpcode::Write},
                                    std::pair{Rtr::Read, wire::RdmapOpcode::ReadRequest},
                                    std::pair{Rtr::Send, wire::RdmapOpcode::Send}}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    a = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4}, 1);
    b = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4}, 2);
    pair.a.attach(a->endpoint.framing_user());
    pair.b.attach(b->endpoint.framing_user());
    a->endpoint.bind(pair.a, {.rtr_out = rtr});
    b->endpoint.bind(pair.b, {.send_rtr_in = rtr == Rtr::Send});
    b->post_receive(2, 512, 16);
    a->fill(0, 16, 5);
    send(1, 0, 16);
    EXPECT_EQ(a->owner.rtrs, 0);
    pair.pump();
    ASSERT_GE(pair.a.sent.size(), 2u);
    EXPECT_EQ(TwoNodes::opcode(pair.a.sent[0]), static_cast<uint8_t>(opcode));
    EXPECT_EQ(pair.a.sent[0].octets.size(), rtr == Rtr::Write  ? wire::kDdpTaggedSize
                                            : rtr == Rtr::Send ? wire::kDdpUntaggedSize
                                                               : 46u);
    EXPECT_EQ(a->owner.rtrs, 1);
    EXPECT_TRUE(a->owner.events.empty());
    EXPECT_EQ(a->owner.send_ids(), std::vector<uint64_t>{1});
    ASSERT_EQ(b->owner.receives.size(), 1u);
    EXPECT_EQ(b->owner.receives[0].length, 16u);
  }
}

// The framing that gave up pulling is told that there is more behind the RTR, and not without need.
TEST_F(OutboundTest, WhatWaitsBehindTheRtrIsTold_CM6581_5_01) {
  for (const bool posted : {false, true}) {
    pair.a = test::FramingEnd(kMulpdu);
    a = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4}, 1);
    pair.a.attach(a->endpoint.framing_user());
    a->endpoint.bind(pair.a, {.rtr_out = Rtr::Write});
    if (posted) send(1, 0, 16);
    const uint32_t calls = pair.a.ready_calls;
    ASSERT_TRUE(pair.a.pull());
    EXPECT_EQ(pair.a.ready_calls, calls + (posted ? 1 : 0));
    EXPECT_EQ(a->counters.rtrs_out, 1u);
    EXPECT_EQ(a->counters.messages_out, 1u);
    EXPECT_EQ(a->counters.segments_out, 1u);
  }
}

// Decision 10: an empty Write wakes a peer that does not know of what it has. It is a message as
// any other, and comes only from a side that has spoken.
TEST_F(OutboundTest, TheNudgeIsCountedAsAMessage) {
  pair.a.user().peer_silent();
  EXPECT_FALSE(pair.a.pull()) << "we have said nothing yet";
  write(1, 0, 16, 0);
  ASSERT_TRUE(pair.a.pull());
  pair.a.user().peer_silent();
  write(2, 0, 16, 0);
  const uint32_t calls = pair.a.ready_calls;
  ASSERT_TRUE(pair.a.pull());
  EXPECT_EQ(pair.a.ready_calls, calls + 1) << "a Write waits behind it";
  EXPECT_EQ(a->counters.nudges_out, 1u);
  EXPECT_EQ(a->counters.messages_out, 2u);
  EXPECT_EQ(a->counters.segments_out, 2u);
  EXPECT_EQ(pair.a.sent.back().octets.size(), wire::kDdpTaggedSize);
  EXPECT_EQ(TwoNodes::opcode(pair.a.sent.back()), static_cast<uint8_t>(wire::RdmapOpcode::Write));
}

}  // namespace
}  // namespace rnic::rdmap
