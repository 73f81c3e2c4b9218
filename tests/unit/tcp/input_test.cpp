#include <algorithm>

#include "base/prng.hpp"
#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

// TCP-9293-3.5.2-01
TEST(Input, UnknownSegmentsDrawTheRightReset_TCP_9293_3_10_01) {
  RawPeer p;
  p.our_port = 9;
  p.inject({.seq = 100, .ack = 4711, .flags = flag::kAck});
  p.expect({.flags = flag::kRst, .seq = 4711});
  p.inject({.seq = 100, .flags = flag::kSyn});
  p.expect({.flags = flag::kRst | flag::kAck, .seq = 0, .ack = 101});
  p.inject({.seq = 100, .flags = flag::kRst});
  EXPECT_TRUE(p.silent());
}

TEST(Input, AnAckToAListenerIsReset) {
  RawPeer p;
  p.inject({.seq = 100, .ack = 4711, .flags = flag::kAck});
  p.expect({.flags = flag::kRst});
}

TEST(Input, SynSentWantsAnAcceptableAck_TCP_9293_3_10_02) {
  RawPeer p;
  compare(p.connect(), {.flags = flag::kSyn});
  p.inject({.seq = kIrs, .ack = kIss + 9, .flags = flag::kSyn | flag::kAck});
  p.expect({.flags = flag::kRst, .seq = kIss + 9});
  p.inject({.seq = kIrs, .ack = kIss + 9, .flags = flag::kRst | flag::kAck});
  p.inject({.seq = kIrs, .flags = flag::kRst});
  EXPECT_FALSE(p.user.how_ended);
  p.inject({.seq = kIrs, .ack = kIss + 1, .flags = flag::kSyn | flag::kAck});
  EXPECT_TRUE(p.user.is_established);
  EXPECT_EQ(p.user.established_emss, 536u);  // TCP-9293-3.7.1-02: no MSS option
  p.expect({.ack = kIrs + 1});
}

// A reset of a simultaneous open is a refusal that the user hears of; a passive one goes back to
// LISTEN, and nobody does.
TEST(Input, AResetInSynReceivedIsWhatTheOpenWas_TCP_9293_3_5_02) {
  RawPeer active;
  active.connect();
  active.inject({.seq = kIrs, .flags = flag::kSyn});
  active.expect({.flags = flag::kSyn | flag::kAck});
  active.inject({.seq = kIrs + 1, .flags = flag::kRst});
  ASSERT_TRUE(active.user.how_ended);
  EXPECT_EQ(*active.user.how_ended, StreamEnd::Refused);
  RawPeer passive;
  for (int i = 0; i < 2; ++i) {
    passive.inject({.seq = kIrs, .flags = flag::kSyn});
    passive.expect({.flags = flag::kSyn | flag::kAck});
    passive.inject({.seq = kIrs + 1, .flags = flag::kRst});
    EXPECT_EQ(passive.stack.live_connections(), 0u);
  }
  EXPECT_EQ(passive.acceptor.accepted, 0u);
}

TEST(Input, ResetsMustBeExact_TCP_5961_3_01) {
  RawPeer p;
  p.accept();
  p.inject({.seq = kIrs + 50, .flags = flag::kRst});  // in the window
  p.expect({.flags = flag::kAck});
  EXPECT_FALSE(p.user.how_ended);
  p.inject({.seq = kIrs - 50, .flags = flag::kRst});  // outside
  EXPECT_TRUE(p.silent());
  EXPECT_FALSE(p.user.how_ended);
  p.inject({.seq = kIrs + 1, .flags = flag::kRst});
  EXPECT_EQ(*p.user.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(p.stack.counters().resets_in, 1u);
}

TEST(Input, ASynInAConnectionIsChallenged_TCP_5961_4_01) {
  RawPeer p;
  p.accept();
  p.inject({.seq = kIrs + 1, .flags = flag::kSyn});
  p.expect({.flags = flag::kAck, .ack = kIrs + 1});
  EXPECT_EQ(p.stack.counters().challenge_acks, 1u);
}

TEST(Input, ChallengeAcksAreLimited_TCP_5961_7_01) {
  tcp::Config config = RawPeer::bare();
  config.challenge_ack_limit = 3;
  RawPeer p(config);
  p.accept();
  for (int i = 0; i < 10; ++i) p.inject({.seq = kIrs + 50, .flags = flag::kRst});
  EXPECT_EQ(p.egress.sent.size(), 3u);
  EXPECT_EQ(p.stack.counters().challenge_acks_limited, 7u);
  p.egress.sent.clear();
  p.wait(seconds(1));
  p.inject({.seq = kIrs + 50, .flags = flag::kRst});
  EXPECT_EQ(p.egress.sent.size(), 1u);
}

TEST(Input, AcksFarBehindOrAheadAreNotTaken_TCP_5961_5_01) {
  RawPeer p;
  p.accept();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 - 70000, .flags = flag::kAck, .payload = 10});
  p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = flag::kAck, .payload = 10});
  EXPECT_EQ(p.user.ordered_to, 0u);
  EXPECT_EQ(p.egress.sent.size(), 2u);
  p.data(0, 10);
  EXPECT_EQ(p.user.ordered_to, 10u);
}

TEST(Input, UnacceptableSegmentsAreAnsweredWithAnAck_TCP_9293_3_10_03) {
  RawPeer p;
  p.accept();
  p.data(0, 100, flag::kPsh);
  p.expect({.ack = kIrs + 101});
  p.data(0, 100);  // all old
  p.expect({.ack = kIrs + 101});
  p.data(10'000'000, 100);  // beyond the window
  p.expect({.ack = kIrs + 101});
  EXPECT_EQ(p.stack.counters().unacceptable, 2u);
  p.inject({.seq = kIrs + 51, .ack = kIss + 1, .flags = flag::kAck | flag::kPsh, .payload = 100});
  EXPECT_EQ(p.user.ordered_to, 150u);  // the new half is taken
  EXPECT_TRUE(p.user.clean());
}

// A segment that swallows one island and ends inside, or right at, the next.
TEST(Input, ASegmentJoinsEveryIslandItReaches_TCP_9293_3_10_06) {
  for (const uint32_t length : {600u, 500u}) {
    RawPeer p;
    p.accept();
    p.data(100, 100);
    p.data(500, 200);
    p.data(0, length);
    EXPECT_EQ(p.user.ordered_to, 700u) << length;
    p.data(700, 100);
    EXPECT_EQ(p.user.ordered_to, 800u) << length;
    EXPECT_TRUE(p.user.clean());
  }
}

// TCP-5681-3.2-02
TEST(Input, OutOfOrderOctetsAreKeptAndPlacedOnce_TCP_9293_3_10_06) {
  RawPeer p;
  p.accept();
  p.data(200, 100);
  p.expect({.ack = kIrs + 1});  // at once
  p.data(400, 100);
  p.data(100, 450);  // overlaps both
  EXPECT_EQ(p.user.places,
            (std::vector<base::Range>{{200, 300}, {400, 500}, {100, 200}, {300, 400}, {500, 550}}));
  EXPECT_EQ(p.user.ordered_to, 0u);
  p.egress.sent.clear();
  p.data(0, 150);
  EXPECT_EQ(p.user.ordered_to, 550u);
  p.expect({.ack = kIrs + 551});  // a filled hole is acknowledged at once
  EXPECT_TRUE(p.user.clean());
}

TEST(Input, TheFirstCommitOfAnOctetWins) {
  RawPeer p;
  p.accept();
  p.data(100, 100);
  // The same range again with other content, and more: only what is new is handed up.
  std::vector<uint8_t> forged(300, 0xee);
  for (uint32_t i = 0; i < 100; ++i) forged[i] = octet_at(i, 22);
  for (uint32_t i = 200; i < 300; ++i) forged[i] = octet_at(i, 22);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .octets = forged});
  EXPECT_EQ(p.user.ordered_to, 300u);
  EXPECT_TRUE(p.user.clean());
  EXPECT_EQ(p.stack.counters().duplicate_octets_in, 100u);
}

TEST(Input, ADroppedSegmentLeavesNoTraceNotEvenItsAck) {
  RawPeer p;
  p.accept();
  p.send_record(100);
  p.next();
  p.user.verdict = [](base::Range r) {
    return r.contains(250) ? llp::InspectVerdict::Drop : llp::InspectVerdict::Accept;
  };
  p.data(100, 100);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 101, .flags = flag::kAck, .payload = 300});
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.user.released_to, 0u);
  EXPECT_EQ(p.user.ordered_to, 0u);
  EXPECT_EQ(p.user.places.size(), 1u);
  p.user.verdict = nullptr;
  p.inject({.seq = kIrs + 1, .ack = kIss + 101, .flags = flag::kAck, .payload = 300});
  EXPECT_EQ(p.user.released_to, 100u);
  EXPECT_EQ(p.user.ordered_to, 300u);
  EXPECT_TRUE(p.user.clean());
}

// A segment closes the hole at the delivery point and goes on behind an island, where the user has
// no room: the hole is closed all the same. Lost as a whole it would come again for ever.
TEST(Input, WhatFindsNoRoomBehindAnIslandEndsTheSegment) {
  RawPeer p;
  p.accept();
  p.send_record(100);
  p.next();
  p.user.verdict = [](base::Range r) {
    return r.end > 200 ? llp::InspectVerdict::NoRoom : llp::InspectVerdict::Accept;
  };
  p.data(100, 100);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 101, .flags = kFinAck, .payload = 300});
  EXPECT_EQ(p.user.released_to, 100u);
  EXPECT_EQ(p.user.ordered_to, 200u);
  EXPECT_EQ(p.user.places, (std::vector<base::Range>{{100, 200}, {0, 100}}));
  p.expect({.ack = kIrs + 1 + 200});
  EXPECT_FALSE(p.user.peer_has_finished);
  EXPECT_EQ(p.stack.counters().inspect_drops, 1u);
  // With nothing new before it the segment is lost, its ACK, too.
  p.egress.sent.clear();
  p.data(200, 100);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().inspect_drops, 2u);
  p.user.verdict = nullptr;
  p.inject({.seq = kIrs + 1 + 200, .ack = kIss + 101, .flags = kFinAck, .payload = 100});
  EXPECT_EQ(p.user.ordered_to, 300u);
  EXPECT_TRUE(p.user.peer_has_finished);
  EXPECT_TRUE(p.user.clean());
}

// The same of a segment ahead of the order, with two islands: the first two of its three pieces
// are promised to the peer, and the third is not.
TEST(Input, NoRoomEndsASegmentAheadOfTheOrderToo) {
  tcp::Config config = RawPeer::bare();
  config.sack = true;
  RawPeer p(config);
  p.accept(option_mss(1460) + option_sack_permitted());
  p.user.verdict = [](base::Range r) {
    return r.end > 600 ? llp::InspectVerdict::NoRoom : llp::InspectVerdict::Accept;
  };
  p.data(300, 100);
  p.data(500, 100);
  p.egress.sent.clear();
  p.data(200, 500);
  EXPECT_EQ(p.user.places,
            (std::vector<base::Range>{{300, 400}, {500, 600}, {200, 300}, {400, 500}}));
  // RFC 2883: the first island, and the block that holds it.
  p.expect(
      {.ack = kIrs + 1, .sack = SackBlocks{{kIrs + 301, kIrs + 401}, {kIrs + 201, kIrs + 601}}});
  p.user.verdict = nullptr;
  p.data(0, 200);
  p.data(600, 100);
  EXPECT_EQ(p.user.ordered_to, 700u);
  EXPECT_TRUE(p.user.clean());
}

TEST(Input, TooManySeparateRangesAreRefusedNotForgotten) {
  RawPeer p;
  p.accept();
  for (uint32_t i = 0; i < 80; ++i) p.data(100 + i * 200, 100);
  EXPECT_EQ(p.stack.counters().commit_full, 80u - 64u);
  EXPECT_EQ(p.user.places.size(), 64u);
  p.data(100, 100);  // old text needs no range, nor does what comes in order
  p.data(0, 50);
  EXPECT_EQ(p.user.ordered_to, 50u);
  EXPECT_EQ(p.stack.counters().commit_full, 80u - 64u);
  for (uint32_t i = 0; i < 81; ++i) p.data(i * 200, 200);
  EXPECT_EQ(p.user.ordered_to, 81u * 200);
  EXPECT_TRUE(p.user.clean());
}

TEST(Input, AFinOutOfOrderWaitsForItsPlace) {
  RawPeer p;
  p.accept();
  p.data(100, 100, flag::kFin);
  EXPECT_FALSE(p.user.peer_has_finished);
  p.data(0, 100);
  EXPECT_TRUE(p.user.peer_has_finished);
  EXPECT_EQ(p.user.ordered_to, 200u);
  compare(p.egress.sent.back(), {.ack = kIrs + 1 + 200 + 1});
}

// TCP-7323-3.2-01, TCP-7323-3.2-02
TEST(Input, OldTimestampsAreRejected_TCP_7323_5_01) {
  tcp::Config config;
  RawPeer p(config);
  p.accept(option_mss(1460) + option_timestamps(1000, 0), option_timestamps(1000, 1));
  const auto send = [&](uint32_t offset, uint32_t tsval) {
    p.inject({.seq = kIrs + 1 + offset,
              .ack = kIss + 1,
              .flags = flag::kAck | flag::kPsh,
              .payload = 10,
              .options = option_timestamps(tsval, 1)});
  };
  send(0, 2000);
  p.expect({.ts_echo = 2000});
  send(10, 1999);
  EXPECT_EQ(p.user.ordered_to, 10u);
  p.expect({.ack = kIrs + 11});
  EXPECT_EQ(p.stack.counters().paws_rejected, 1u);
  p.data(10, 10);  // no timestamp at all: dropped, not reset
  EXPECT_EQ(p.user.ordered_to, 10u);
  EXPECT_FALSE(p.user.how_ended);
  send(10, 2000);
  EXPECT_EQ(p.user.ordered_to, 20u);
  p.inject({.seq = kIrs + 21, .flags = flag::kRst, .options = option_timestamps(1, 1)});
  EXPECT_TRUE(p.user.how_ended);  // RST is exempt
}

// With prediction these segments take the short ways, without it the steps of s.3.10.7.4.
TEST(Input, OnlyTheSegmentAtTheAckSetsTsRecent_TCP_7323_4_3_01) {
  for (const bool prediction : {true, false}) {
    SCOPED_TRACE(prediction);
    RawPeer p(tcp::Config{});
    p.stack.set_prediction(prediction);
    p.accept(option_mss(1460) + option_timestamps(1000, 0), option_timestamps(1000, 1));
    const auto send = [&](uint32_t offset, uint32_t tsval, uint8_t flags) {
      p.inject({.seq = kIrs + 1 + offset,
                .ack = kIss + 1,
                .flags = flags,
                .payload = 10,
                .options = option_timestamps(tsval, 1)});
    };
    const auto echo = [&p] { return p.next().parsed.timestamps->echo; };
    send(10, 1500, kPshAck);  // ahead of a hole: the old echo stays
    EXPECT_EQ(echo(), 1000u);
    send(0, 1400, kPshAck);  // fills the hole
    EXPECT_EQ(echo(), 1400u);
    send(20, 1600, flag::kAck);
    EXPECT_TRUE(p.silent());  // an ACK that waits echoes the first of those that it answers
    send(30, 1700, kPshAck);
    EXPECT_EQ(echo(), 1600u);
    EXPECT_EQ(p.stack.counters().predicted_in != 0, prediction);
  }
}

// A segment whose ACK is impossible is no segment of the peer: its timestamp must not shut the real
// peer out by PAWS.
TEST(Input, AForgedTimestampWithAnImpossibleAckIsNotBelieved) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);
  p.accept(option_mss(1460) + option_timestamps(100, 0), option_timestamps(100, 0));
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1 + (1u << 30),
            .flags = flag::kAck,
            .payload = 10,
            .options = option_timestamps(2'000'000'000, 0)});
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck,
            .payload = 10,
            .options = option_timestamps(101, 0)});
  EXPECT_EQ(p.user.ordered_to, 10u);
  EXPECT_EQ(p.stack.counters().paws_rejected, 0u);
}

TEST(Input, TheNewestRangeIsTheFirstSackBlock_TCP_2018_4_01) {
  RawPeer p(tcp::Config{});
  p.accept(option_mss(1460) + option_sack_permitted());
  p.data(100, 100);
  p.data(300, 100);
  p.data(500, 100);
  p.egress.sent.clear();
  p.data(200, 50);  // joins the first range
  p.expect({.ack = kIrs + 1,
            .sack = SackBlocks{
                {kIrs + 101, kIrs + 251}, {kIrs + 501, kIrs + 601}, {kIrs + 301, kIrs + 401}}});
}

// RFC 2883 s.4 (4): a duplicate of what is held ahead of order, and behind it at once the block
// that holds it, however many others there are and whichever of them came last.
TEST(Input, ADuplicateIsFollowedByTheBlockThatHoldsIt_TCP_2883_4_01) {
  for (const bool stamped : {false, true}) {
    RawPeer p(tcp::Config{});
    p.accept(option_mss(1460) + option_sack_permitted() +
                 (stamped ? option_timestamps(1, 0) : std::vector<uint8_t>{}),
             stamped ? option_timestamps(1, 0) : std::vector<uint8_t>{});
    const auto data = [&](uint32_t at, uint32_t length) {
      p.inject({.seq = kIrs + 1 + at,
                .ack = kIss + 1,
                .flags = flag::kAck,
                .payload = length,
                .options = stamped ? option_timestamps(1, 0) : std::vector<uint8_t>{}});
    };
    for (const uint32_t at : {200u, 400u, 600u, 800u}) data(at, 100);
    p.egress.sent.clear();
    for (const uint32_t at : {200u, 225u, 400u, 450u, 600u, 800u}) {
      data(at, 50);
      SackBlocks named = sack_blocks(p.next().parsed);
      ASSERT_EQ(named.size(), stamped ? 3u : 4u);
      named.resize(2);
      const uint32_t left = kIrs + 1 + at;
      const uint32_t held = kIrs + 1 + at / 100 * 100;
      EXPECT_EQ(named, (SackBlocks{{left, left + 50}, {held, held + 100}}));
    }
    // A burst of them: each in an ACK of its own, and with what is new beside it.
    p.hold_output = true;
    data(250, 50);
    data(1000, 100);
    data(450, 50);
    p.hold_output = false;
    p.stack.output(p.now);
    ASSERT_EQ(p.egress.sent.size(), 2u);
    bool new_named = false;
    for (const Segment& s : p.egress.sent) {
      const auto& sack = s.parsed.sack;
      EXPECT_TRUE(base::before_eq(sack[1].left, sack[0].left));
      EXPECT_TRUE(base::before_eq(sack[0].right, sack[1].right));
      for (uint32_t i = 2; i < s.parsed.sack_count; ++i) {
        new_named = new_named || sack[i].left.value == kIrs + 1001;
      }
    }
    EXPECT_TRUE(new_named);
  }
}

// Of two that arrive before the ACK, the later one leads; then the others, the most recently
// reported first.
TEST(Input, TheOrderOfSackBlocksIsThatOfTheirNews_TCP_2018_4_01) {
  RawPeer p(tcp::Config{});
  p.accept(option_mss(1460) + option_sack_permitted());
  const auto burst = [&p](const std::vector<uint32_t>& offsets) {
    p.egress.sent.clear();
    p.hold_output = true;
    for (const uint32_t at : offsets) p.data(at, 100);
    p.hold_output = false;
    p.stack.output(p.now);
    std::vector<uint32_t> named;
    const Segment s = p.next();
    for (uint32_t i = 0; i < s.parsed.sack_count; ++i) {
      named.push_back(s.parsed.sack[i].left.value - (kIrs + 1));
    }
    return named;
  };
  EXPECT_EQ(burst({500, 300}), (std::vector<uint32_t>{300, 500}));
  EXPECT_EQ(burst({700}), (std::vector<uint32_t>{700, 300, 500}));
  EXPECT_EQ(burst({1100, 900}), (std::vector<uint32_t>{900, 1100, 700, 300}));
}

TEST(Input, ABurstWithManyHolesIsReportedWhole) {
  RawPeer p(tcp::Config{});
  p.accept(option_mss(1460) + option_sack_permitted());
  p.hold_output = true;  // one burst
  for (uint32_t i = 1; i <= 9; ++i) p.data(i * 200, 100);
  p.hold_output = false;
  p.stack.output(p.now);
  std::vector<uint32_t> named;
  ASSERT_EQ(p.egress.sent.size(), 3u);
  for (const Segment& s : p.egress.sent) {
    for (uint32_t i = 0; i < s.parsed.sack_count; ++i) {
      const uint32_t at = s.parsed.sack[i].left.value - (kIrs + 1);
      if (std::find(named.begin(), named.end(), at) == named.end()) named.push_back(at);
    }
  }
  EXPECT_EQ(named.size(), 9u);
  EXPECT_EQ(p.egress.sent.back().parsed.sack[0].left.value, kIrs + 1 + 1800);
}

TEST(Input, DuplicatesAreReported_TCP_2883_4_01) {
  RawPeer p(tcp::Config{});
  p.accept(option_mss(1460) + option_sack_permitted());
  p.data(0, 200, flag::kPsh);
  p.egress.sent.clear();
  p.data(100, 100);
  p.expect({.sack = SackBlocks{{kIrs + 101, kIrs + 201}}});
}

TEST(Input, WithoutSackEachOutOfOrderSegmentGivesItsDuplicateAck) {
  RawPeer p;
  p.accept();
  p.stack.output(p.now);
  for (uint32_t i = 1; i <= 4; ++i) p.data(i * 100, 100);
  EXPECT_EQ(p.egress.sent.size(), 4u);
  while (!p.silent()) p.expect({.ack = kIrs + 1});
}

// RFC 5681 s.2: to the peer a second ACK of the new number is a duplicate.
TEST(Input, AHoleThatIsFilledInTheSameBurstOwesNoDuplicates) {
  RawPeer p;
  p.accept();
  p.stack.output(p.now);
  p.egress.sent.clear();
  p.hold_output = true;
  for (uint32_t i = 1; i <= 4; ++i) p.data(i * 100, 100);
  p.data(0, 100);
  p.stack.output(p.now);
  ASSERT_EQ(p.egress.sent.size(), 1u);
  compare(p.egress.sent[0], {.ack = kIrs + 501});
  // With a hole left, each segment behind it is told of.
  for (uint32_t i = 6; i <= 8; ++i) p.data(i * 100, 100);
  p.stack.output(p.now);
  ASSERT_EQ(p.egress.sent.size(), 4u);
  compare(p.egress.sent.back(), {.ack = kIrs + 501});
}

// RFC 5681 s.4.2: each segment behind a hole is owed a duplicate ACK of the number before that
// hole, and none of another number.
TEST(Input, AHoleThatIsFilledLeavesTheDuplicatesOfTheNextOne) {
  RawPeer p;
  p.accept();
  p.stack.output(p.now);
  p.egress.sent.clear();
  p.hold_output = true;
  for (const uint32_t at : {100, 200, 300, 600}) p.data(at, 100);  // holes at 0, 400
  p.data(0, 100);
  p.stack.output(p.now);
  ASSERT_EQ(p.egress.sent.size(), 1u);
  compare(p.egress.sent[0], {.ack = kIrs + 401});
  p.egress.sent.clear();
  for (const uint32_t at : {700, 800}) p.data(at, 100);
  p.data(400, 100);                                             // the hole is at 500
  for (const uint32_t at : {900, 1000, 1100}) p.data(at, 100);  // three of it are a loss
  p.stack.output(p.now);
  ASSERT_EQ(p.egress.sent.size(), 4u);
  while (!p.silent()) p.expect({.ack = kIrs + 501});
}

// The ACK of a segment out of order is one, also where it is the first of what came in order.
TEST(Input, ADelayedAckIsThatOfTheFirstSegmentBehindTheHole) {
  RawPeer p;
  p.accept();
  p.data(0, 100);
  EXPECT_TRUE(p.silent());
  p.data(200, 100);
  ASSERT_EQ(p.egress.sent.size(), 1u);
  p.expect({.ack = kIrs + 101});
  p.data(300, 100);
  ASSERT_EQ(p.egress.sent.size(), 1u);
  p.expect({.ack = kIrs + 101});
}

TEST(Input, AcksAreDelayedButNotForLong_TCP_9293_3_8_6_3_01) {
  RawPeer p;
  p.accept();
  p.data(0, 1000);
  EXPECT_TRUE(p.silent());
  p.wait(milliseconds(45));
  p.expect({.ack = kIrs + 1001});
  p.data(1000, 1000);
  EXPECT_TRUE(p.silent());
  p.data(2000, 1000);  // every second full segment
  p.expect({.ack = kIrs + 3001});
  p.data(3000, 10, flag::kPsh);
  p.expect({.ack = kIrs + 3011});
}

TEST(Input, AnAckRidesOnData) {
  RawPeer p;
  p.accept();
  p.user.on_place = [&](base::Range) { p.user.queue(50); };
  p.data(0, 100, flag::kPsh);
  p.expect({.flags = kPshAck, .ack = kIrs + 101, .payload = 50});
  EXPECT_TRUE(p.silent());
}

TEST(Input, OldSegmentsDoNotChangeTheWindow_TCP_9293_3_10_07) {
  // All of its text is old, so that it fails the first step already; or a part of it is new.
  for (const uint32_t octets : {100u, 200u}) {
    SCOPED_TRACE(octets);
    RawPeer p;
    p.accept();
    p.data(0, 100);
    p.inject({.seq = kIrs + 101, .ack = kIss + 1, .flags = flag::kAck, .window = 40000});
    p.inject(
        {.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 0, .payload = octets});
    EXPECT_EQ(p.user.ordered_to, octets);
    p.egress.sent.clear();
    p.send_record(536);
    p.expect({.flags = kPshAck, .ack = kIrs + 1 + octets, .payload = 536u});
  }
}

// Also when the path has become narrower: after a few, every second of the smaller segments is
// acknowledged again.
TEST(Input, SmallerFullSegmentsAreAcknowledgedInPairs_TCP_9293_3_8_6_3_01) {
  for (const bool prediction : {true, false}) {
    RawPeer p;
    p.stack.set_prediction(prediction);
    p.accept();
    uint32_t at = 0;
    const auto acks_of = [&](uint32_t count, uint32_t size) {
      p.egress.sent.clear();
      for (uint32_t i = 0; i < count; ++i, at += size) p.data(at, size);
      return p.egress.sent.size();
    };
    EXPECT_EQ(acks_of(10, 1460), 5u);
    EXPECT_GE(acks_of(10, 500), 3u);
    EXPECT_EQ(acks_of(10, 500), 5u);
    EXPECT_EQ(acks_of(10, 1460), 5u);
    acks_of(100, 10);  // what fills no path changes nothing
    EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->rcv_mss, 1460u);
  }
}

// A segment that fills a hole is older than the one beyond the hole, and does not make the next one
// that is older than that look new. With prediction they go the way of text beside the next
// segment.
TEST(Input, ALateSegmentDoesNotChangeTheWindow_TCP_9293_3_10_07) {
  for (const bool prediction : {true, false}) {
    SCOPED_TRACE(prediction);
    RawPeer p;
    p.stack.set_prediction(prediction);
    p.accept();
    const tcp::Inside c(*p.user.stream);
    const auto text = [&](uint32_t offset, uint16_t window) {
      p.inject({.seq = kIrs + 1 + offset,
                .ack = kIss + 1,
                .flags = flag::kAck,
                .window = window,
                .payload = 100});
    };
    text(200, 40000);
    EXPECT_EQ(c.tcb.snd_wnd, 40000u);
    text(0, 20);  // SND.WL1 > SEG.SEQ
    EXPECT_EQ(p.user.ordered_to, 100u);
    EXPECT_EQ(c.tcb.snd_wnd, 40000u);
    text(100, 30);  // newer than the one before, and older than the first
    EXPECT_EQ(p.user.ordered_to, 300u);
    EXPECT_EQ(c.tcb.snd_wnd, 40000u);
    text(300, 30000);
    EXPECT_EQ(c.tcb.snd_wnd, 30000u);
  }
}

TEST(Input, HostileHeadersOnlyCount_TCP_9293_3_1_05) {
  RawPeer p;
  p.accept();
  const std::vector<std::vector<uint8_t>> bad{
      {2, 0, 0, 0}, {2, 1, 0, 0}, {8, 11, 0, 0}, {1, 1, 1, 5}, {200, 255, 0, 0}};
  for (const auto& options : bad) {
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .options = options});
  }
  EXPECT_EQ(p.stack.counters().malformed, bad.size());
  std::vector<uint8_t> octets(64);
  for (size_t n = 0; n < octets.size(); ++n) {  // truncated at every length
    octets[12] = 0xf0;
    p.stack.input({.source = RawPeer::kPeer,
                   .destination = RawPeer::kUs,
                   .tcp = {octets.data(), n},
                   .checksum_verified = true},
                  p.now);
  }
  // TCP-9293-3.9.2.3-01: from or to what is no host
  std::vector<uint8_t> whole(20);
  wire::write_tcp(whole.data(), {.source_port = 1, .destination_port = 2, .flags = flag::kSyn});
  for (const uint32_t address : {0u, 0xffffffffu, 0xe0000001u}) {
    p.stack.input({.source = IpAddress::v4(address),
                   .destination = RawPeer::kUs,
                   .tcp = whole,
                   .checksum_verified = true},
                  p.now);
  }
  p.stack.output(p.now);
  EXPECT_TRUE(p.silent());
  EXPECT_FALSE(p.user.how_ended);
}

TEST(Input, RandomOctetsAreSafe) {
  RawPeer p(tcp::Config{});
  p.accept(option_mss(1460) + option_sack_permitted() + option_timestamps(1, 0),
           option_timestamps(1, 1));
  base::Prng random(99);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> t(random.between(20, 120));
    for (uint8_t& o : t) o = static_cast<uint8_t>(random.next());
    base::store_be16(&t[0], RawPeer::kPeerPort);
    base::store_be16(&t[2], RawPeer::kOurPort);
    base::store_be32(&t[4], kIrs + static_cast<uint32_t>(random.below(300)));
    base::store_be32(&t[8], kIss + static_cast<uint32_t>(random.below(3)));
    t[12] = static_cast<uint8_t>(random.between(5, 15) << 4);
    t[13] &= static_cast<uint8_t>(random.chance(0.9) ? ~flag::kRst : 0xff);
    p.stack.input({.source = RawPeer::kPeer,
                   .destination = RawPeer::kUs,
                   .tcp = t,
                   .checksum_verified = true},
                  p.now);
    p.stack.on_timers(p.now);
    p.stack.output(p.now);
    p.now += microseconds(random.below(1000));
  }
  EXPECT_EQ(p.user.placed_twice, 0u);
}

// TCP-7323-2.3-01-b, TCP-7323-2.3-01-c: the windows of our SYN and SYN-ACK are not scaled, however
// large the shift beside them, which is 14 at most.
TEST(Input, WindowsInOurSynsAreNotScaled_TCP_7323_2_3_01) {
  for (const uint32_t most : {1u << 20, 1u << 29, UINT32_MAX}) {
    tcp::Config config = RawPeer::bare();
    config.window_scaling = true;
    config.receive_window = most;
    RawPeer p(config);
    p.user.room = UINT32_MAX;
    const uint8_t shift = most == 1u << 20 ? 5 : 14;
    compare(p.connect(), {.flags = flag::kSyn, .window = 65535, .window_scale = shift});
    RawPeer q(config);
    q.user.room = UINT32_MAX;
    q.acceptor.next.push_back(&q.user);
    q.inject({.seq = kIrs, .flags = flag::kSyn, .options = {3, 3, 7, 0}});
    q.expect({.flags = kSynAck, .window = 65535, .window_scale = shift});
  }
}

// TCP-7323-2.3-01-a, TCP-7323-2.3-01-b: a shift above 14 is 14, on either side of the handshake.
TEST(Input, AShiftAbove14Is14_TCP_7323_2_3_01) {
  tcp::Config config = RawPeer::bare();
  config.window_scaling = true;
  for (const uint8_t shift : {14, 15, 16, 31, 255}) {
    RawPeer p(config);
    p.acceptor.next.push_back(&p.user);
    p.inject({.seq = kIrs, .flags = flag::kSyn, .window = 3000, .options = {3, 3, shift, 0}});
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 3});
    ASSERT_TRUE(p.user.is_established);
    const tcp::Inside c(*p.user.stream);
    EXPECT_EQ(c.tcb.snd_wind_shift, 14) << int{shift};
    EXPECT_EQ(c.tcb.snd_wnd, 3u << 14) << int{shift};
    RawPeer q(config);
    q.connect();
    q.inject({.seq = kIrs,
              .ack = kIss + 1,
              .flags = flag::kSyn | flag::kAck,
              .window = 3000,
              .options = {3, 3, shift, 0}});
    ASSERT_TRUE(q.user.is_established);
    const tcp::Inside d(*q.user.stream);
    EXPECT_EQ(d.tcb.snd_wnd, 3000u);  // the window of a SYN is never scaled
    EXPECT_EQ(d.tcb.snd_wind_shift, 14) << int{shift};
  }
}

// A scale that we did not offer is not used, whoever opens; nor is ours when the peer offered none,
// and what stands behind the SYN is no offer.
TEST(Input, WindowScaleIsUsedOnlyWhenBothSentIt_TCP_7323_2_2_01) {
  tcp::Config config = RawPeer::bare();
  config.window_scaling = true;
  RawPeer p(config);
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = {3, 3, 15, 0}});  // above 14
  p.expect({.flags = kSynAck, .window = 65535, .window_scale = 7});        // 4 MB
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  p.data(0, 100, flag::kPsh);
  p.expect({.ack = kIrs + 101, .window = (4u << 20) >> 7});
  const std::vector<uint8_t> scale{3, 3, 7, 0};
  for (const bool ours : {true, false}) {
    config.window_scaling = ours;
    RawPeer q(config);  // one side's offer only
    q.acceptor.next.push_back(&q.user);
    q.inject({.seq = kIrs, .flags = flag::kSyn, .options = ours ? std::vector<uint8_t>{} : scale});
    q.expect({.flags = kSynAck, .options = kinds::kMss});
    q.inject(
        {.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 3000, .options = scale});
    EXPECT_EQ(q.stack.info(*q.user.stream, q.now)->snd_wnd, 3000u);
    q.data(0, 100, flag::kPsh);
    q.expect({.window = 65535 - 100});  // the edge of the SYN's window
    RawPeer r(config);
    compare(r.connect(), {.flags = flag::kSyn,
                          .options = ours ? kinds::kMss | kinds::kWindowScale : kinds::kMss});
    r.inject({.seq = kIrs,
              .ack = kIss + 1,
              .flags = flag::kSyn | flag::kAck,
              .options = ours ? std::vector<uint8_t>{} : scale});
    r.expect({.window = 65535});
    r.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 3000});
    EXPECT_EQ(r.stack.info(*r.user.stream, r.now)->snd_wnd, 3000u);
  }
}

// What a hostile peer sends behind its own FIN does not exist: not committed, whichever comes
// first.
TEST(Input, OctetsBehindAFinAreNotTaken) {
  for (const bool fin_ahead : {true, false}) {
    RawPeer p(tcp::Config{});
    p.accept(option_mss(1460) + option_sack_permitted());
    if (fin_ahead) p.data(50, 50, flag::kFin);  // the FIN is at 100; [0, 50) is missing
    p.data(0, fin_ahead ? 200 : 50);
    if (!fin_ahead) p.data(50, 50, flag::kFin);
    p.data(100, 100);
    EXPECT_EQ(p.user.ordered_to, 100u);
    EXPECT_TRUE(p.user.peer_has_finished);
    EXPECT_TRUE(p.user.clean());
    for (const base::Range& placed : p.user.places) EXPECT_LE(placed.end, 100u);
    compare(p.egress.sent.back(), {.ack = kIrs + 1 + 101, .sack = SackBlocks{}});
  }
}

}  // namespace
}  // namespace rnic::testing
