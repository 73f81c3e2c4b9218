// Immediate Data (RFC 7306 section 6).

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using wire::DdpUntaggedHeader;

class ImmediateTest : public TwoNodes {
 protected:
  static constexpr std::array<uint8_t, 8> kOctets{1, 2, 3, 4, 5, 6, 7, 8};
};

// R7306-6-01: with and without SE; an empty buffer will do, and the memory of a
// larger one is untouched.
// UNH-RDMAP-11
TEST_F(ImmediateTest, TakesAReceiveAndGivesEightOctets_R7306_6_02) {
  b->post_receive(10, 0, 0);
  b->post_receive(11, 0, 100);
  b->post_receive(12, 200, 4);
  const auto before = b->memory;
  immediate(1, kOctets);
  immediate(2, {8, 7, 6, 5, 4, 3, 2, 1}, true);
  immediate(3, {}, false);
  pair.pump();
  ASSERT_EQ(b->owner.receives.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b->owner.receives[i].id, 10u + i);
    EXPECT_TRUE(b->owner.receives[i].has_immediate);
    EXPECT_EQ(b->owner.receives[i].solicited, i == 1);
    EXPECT_EQ(b->owner.receives[i].length, 8u);
  }
  EXPECT_EQ(b->owner.receives[0].immediate, kOctets);
  EXPECT_EQ(b->owner.receives[1].immediate, (std::array<uint8_t, 8>{8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(b->owner.receives[2].immediate, (std::array<uint8_t, 8>{}));
  EXPECT_EQ(b->memory, before);
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].length, 8u);
  EXPECT_EQ(b->counters.immediates_in, 3u);
  // Untagged, queue 0, 8 octets, Invalidate STag zero.
  ASSERT_EQ(pair.a.sent.size(), 3u);
  EXPECT_EQ(wire::parse_ddp_untagged(pair.a.sent[0].octets),
            (DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x48, .qn = 0, .msn = 1}));
  EXPECT_EQ(wire::parse_ddp_untagged(pair.a.sent[1].octets),
            (DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x49, .qn = 0, .msn = 2}));
  EXPECT_EQ(pair.a.sent[0].octets.size(), 26u);
  EXPECT_EQ(pair.a.sent[0].octets[18], 1);
}

// A Send has no immediate data.
TEST_F(ImmediateTest, SendsBetweenThemHaveNone_R7306_6_02) {
  for (uint64_t i = 0; i < 3; ++i) b->post_receive(i, 0, 8);
  send(1, 0, 8);
  immediate(2, kOctets);
  send(3, 0, 8);
  pair.pump();
  EXPECT_FALSE(b->owner.receives.at(0).has_immediate);
  EXPECT_TRUE(b->owner.receives.at(1).has_immediate);
  EXPECT_FALSE(b->owner.receives.at(2).has_immediate);
}

// Every other length is an error; no receive completes with success.
// UNH-RDMAP-11
TEST_F(ImmediateTest, EveryOtherLength_R7306_6_01) {
  for (size_t n = 0; n <= 20; ++n) {
    for (const uint8_t control : {0x48, 0x49}) {
      restart();
      b->post_receive(1, 0, 100);
      const auto before = b->memory;
      inject(ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = control, .qn = 0, .msn = 1}, n));
      if (n < 8) expect_terminate(0, 2, 0xff);
      if (n > 8) expect_terminate(1, 2, 0x05);
      ASSERT_EQ(b->owner.receives.size(), 1u);
      EXPECT_EQ(b->owner.receives[0].status,
                n == 8 ? CompletionStatus::Success : CompletionStatus::Flushed);
      EXPECT_EQ(b->memory, before);
    }
  }
}

// Without a receive it is the error of a Send without one.
TEST_F(ImmediateTest, WithoutAReceive_R7306_6_01) {
  immediate(1, kOctets);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 2, 0x02);
}

// The 8 octets in two segments, in both orders; a Send's segment among them does not count.
TEST_F(ImmediateTest, InTwoSegments_R7306_6_01) {
  for (const bool reversed : {false, true}) {
    for (uint32_t first = 1; first < 8; ++first) {
      restart();
      b->post_receive(1, 0, 0);
      const auto part = [&](uint32_t mo, uint32_t n, bool last) {
        auto octets = ulpdu(
            DdpUntaggedHeader{.last = last, .rsvd_ulp = 0x48, .qn = 0, .msn = 1, .mo = mo}, n);
        std::copy_n(kOctets.begin() + mo, n, octets.begin() + 18);
        pair.a.sent.push_back({octets, {}, last});
      };
      part(0, first, false);
      part(first, 8 - first, true);
      pair.b.arrive(pair.a, reversed ? 1 : 0);
      EXPECT_TRUE(b->owner.receives.empty());
      pair.b.arrive(pair.a, reversed ? 0 : 1);
      ASSERT_EQ(b->owner.receives.size(), 1u);
      EXPECT_EQ(b->owner.receives[0].immediate, kOctets);
    }
  }
}

// The completion is there only when the whole Write before it is, in every order.
TEST_F(ImmediateTest, WriteWithImmediate_R7306_6_03) {
  std::array<size_t, 4> order{0, 1, 2, 3};
  do {
    restart();
    a->fill(0, 600, 9);
    b->post_receive(1, 0, 0);
    bool whole = false;
    b->owner.on_receive = [&] { whole = std::equal(a->at(0), a->at(600), b->at(1000)); };
    write(1, 0, 600, 1000);
    immediate(2, kOctets);
    pair.a.pull_all();
    ASSERT_EQ(pair.a.sent.size(), 4u);
    for (const size_t i : order) {
      EXPECT_FALSE(whole);
      pair.b.arrive(pair.a, i);
    }
    EXPECT_TRUE(whole);
    EXPECT_EQ(b->owner.receives.size(), 1u);
    b->owner.on_receive = nullptr;
  } while (std::next_permutation(order.begin(), order.end()));
}

// A Send's rules: completion in order, at the acknowledgement; flush; local errors.
TEST_F(ImmediateTest, CompletesAsASend_R7306_6_04) {
  for (uint64_t i = 0; i < 2; ++i) b->post_receive(i, 0, 8);
  read(1, 1000, 8, 0);
  immediate(2, kOctets);
  send(3, 0, 8);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  EXPECT_EQ(b->owner.receives.size(), 2u) << "before the Read is answered (RDMAP-5.5-12)";
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.release_all();
  EXPECT_TRUE(a->owner.sends.empty()) << "the Read before them";
  pair.pump();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(pair.a.rebuild(1), std::vector<uint8_t>{}) << "released";

  restart();
  b->post_receive(1, 0, 8);
  immediate(1, kOctets);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  EXPECT_TRUE(a->owner.sends.empty()) << "not acknowledged";
  pair.a.release_all();
  EXPECT_EQ(a->owner.sends.size(), 1u);

  restart();
  immediate(1, kOctets);
  pair.a.user().ended(StreamEnd::TimedOut, {});
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Flushed);

  restart();
  SendRequest w = a->work(1, Opcode::Immediate, 0, 8);  // memory has no meaning here
  a->send(w);
  pair.pump();
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::LocalLength);
  EXPECT_EQ(b->counters.immediates_in, 0u);
}

// A Write with immediate is one request: two messages, one slot, one completion.
class WriteImmediateTest : public ImmediateTest {
 protected:
  void write_immediate(uint64_t id, uint32_t n, bool solicited = false) {
    SendRequest w = a->work(id, Opcode::WriteImmediate, 0, n);
    w.remote = {b->all, 1000};
    w.immediate = kOctets;
    w.solicited = solicited;
    a->send(w);
  }
};

TEST_F(WriteImmediateTest, IsAWriteAndImmediateDataBehindIt) {
  a->fill(0, 700, 3);
  b->post_receive(10, 0, 0);
  b->post_receive(11, 0, 0);
  write_immediate(1, 700, true);
  write_immediate(2, 0);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(0), a->at(700), b->at(1000)));
  ASSERT_EQ(b->owner.receives.size(), 2u);
  EXPECT_EQ(b->owner.receives[0].immediate, kOctets);
  EXPECT_TRUE(b->owner.receives[0].has_immediate);
  EXPECT_TRUE(b->owner.receives[0].solicited);
  EXPECT_FALSE(b->owner.receives[1].solicited);
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(a->owner.sends[0].opcode, Opcode::WriteImmediate);
  EXPECT_EQ(a->owner.sends[0].length, 700u);
  EXPECT_EQ(b->counters.writes_in, 2u);
  EXPECT_EQ(b->counters.immediates_in, 2u);
  EXPECT_EQ(a->counters.messages_out, 4u);
  const auto last = wire::parse_ddp_untagged(pair.a.sent.back().octets);
  EXPECT_EQ(last, (DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x48, .qn = 0, .msn = 2}));
}

// It completes when the peer has both messages, and each of them is rebuilt as it was sent.
TEST_F(WriteImmediateTest, CompletesWithItsSecondMessage) {
  b->post_receive(10, 0, 0);
  write_immediate(1, 700);
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(pair.a.rebuild(i), pair.a.sent[i].octets);
  pair.a.release_up_to(3);
  EXPECT_TRUE(a->owner.sends.empty());
  EXPECT_EQ(pair.a.rebuild(3), pair.a.sent[3].octets);
  a->endpoint.validate();
  pair.a.release_up_to(4);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  a->endpoint.validate();
}

// Neither of its messages is left out of what waits.
TEST_F(WriteImmediateTest, BothMessagesAreCounted) {
  write_immediate(1, 50);
  constexpr uint32_t kBoth = 14 + 50 + 18 + 8 + 2 * 6;
  auto& user = a->endpoint.framing_user();
  EXPECT_TRUE(user.fills_segment(kBoth, 6));
  EXPECT_FALSE(user.fills_segment(kBoth + 1, 6));
  EXPECT_TRUE(user.all_fits(kBoth, 6));
  EXPECT_FALSE(user.all_fits(kBoth - 1, 6));
  ASSERT_TRUE(pair.a.pull());
  EXPECT_TRUE(user.all_fits(18 + 8 + 6, 6));
  EXPECT_FALSE(user.all_fits(18 + 8 + 5, 6));
}

// Of the octets between two messages of queue 0: those of the Write, and of others before it.
TEST_F(WriteImmediateTest, TellsWhatWasWrittenSinceTheLastMessage) {
  for (uint64_t i = 0; i < 5; ++i) b->post_receive(10 + i, 0, 8);
  write_immediate(1, 700);
  write_immediate(2, 0);
  write(3, 0, 50, 1000);
  write_immediate(4, 600);
  write(5, 0, 50, 1000);
  send(6, 0, 8);
  immediate(7, kOctets);
  pair.pump();
  std::vector<uint32_t> written;
  for (const Completion& each : b->owner.receives) written.push_back(each.written);
  EXPECT_EQ(written, (std::vector<uint32_t>{700, 0, 650, 0, 0}));
  EXPECT_EQ(b->owner.receives[0].length, 8u);
}

// In whatever order the segments come: what counts is the order of the stream.
TEST_F(WriteImmediateTest, WhatWasWrittenIsCountedInOrder) {
  b->post_receive(10, 0, 0);
  write_immediate(1, 700);
  write(2, 0, 600, 1000);
  pair.a.pull_all();
  ASSERT_GT(pair.a.sent.size(), 4u);
  for (size_t i = pair.a.sent.size(); i-- > 0;) pair.b.arrive(pair.a, i);
  ASSERT_EQ(b->owner.receives.size(), 1u);
  EXPECT_EQ(b->owner.receives[0].written, 700u);
}

// The Terminate about either of its messages is about the request.
TEST_F(WriteImmediateTest, FailsWithEitherMessage) {
  for (const bool receive : {false, true}) {
    restart();
    if (receive) b->post_receive(10, 0, 0);
    SendRequest w = a->work(1, Opcode::WriteImmediate, 0, 8);
    w.remote = {receive ? b->all ^ 1 : b->all, 0};
    a->send(w);
    pair.pump(false);
    ASSERT_EQ(a->owner.sends.size(), 1u);
    EXPECT_EQ(a->owner.sends[0].status,
              receive ? CompletionStatus::RemoteAccess : CompletionStatus::RemoteInvalidRequest);
  }
}

}  // namespace
}  // namespace rnic::rdmap
