#include "tcp/time_wait.hpp"

#include "base/prng.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

/// The stack closed first and stands in TIME-WAIT. \return its last timestamp.
uint32_t into_time_wait(RawPeer& p, bool stamped = false) {
  const auto stamps = [&](uint32_t value) {
    return stamped ? option_timestamps(value, 0) : std::vector<uint8_t>{};
  };
  p.accept(option_mss(1460) + stamps(1000), stamps(1001));
  p.user.stream->close();
  p.stack.output(p.now);
  p.expect({.flags = kFinAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck, .options = stamps(1002)});
  EXPECT_EQ(*p.user.how_ended, StreamEnd::Closed);
  const Segment last = p.expect({.ack = kIrs + 2});
  return stamped ? last.parsed.timestamps->value : 0;
}

tcp::Config with_timestamps() {
  tcp::Config c = RawPeer::bare();
  c.timestamps = true;
  return c;
}

TEST(TimeWait, HoldsNoConnectionAndAcknowledgesTheFin_TCP_9293_3_6_1_02) {
  tcp::Config config = with_timestamps();
  config.max_connections = 1;
  config.time_wait = seconds(240);
  RawPeer p(config);
  const uint32_t stamp = into_time_wait(p, true);
  EXPECT_TRUE(p.stack.quiescent());  // the only slot is free again
  p.wait(seconds(100));
  p.inject(
      {.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck, .options = option_timestamps(1002, 0)});
  p.expect({.flags = flag::kAck,
            .seq = kIss + 2,
            .ack = kIrs + 2,
            .ts_value = stamp + 100'000,  // the clock went on
            .ts_echo = 1002});
  p.wait(seconds(239));
  EXPECT_EQ(p.stack.live_connections(), 1u);  // 2 MSL began anew
  p.wait(seconds(2));
  EXPECT_EQ(p.stack.live_connections(), 0u);
}

// RFC 9293 s.3.10.7.4, eighth: the peer's FIN again starts 2 MSL anew. A FIN of another place, or
// with a timestamp from before it (RFC 7323 s.5.3), is not that one: it is answered, and neither
// the time nor the timestamp that is echoed goes by it.
TEST(TimeWait, OnlyTheSameFinStartsItAnew) {
  struct Case {
    uint32_t seq;
    uint32_t stamp;
    bool anew;
  };
  for (const Case& c : {Case{kIrs + 1, 1002, true}, Case{kIrs + 1, 1001, false},
                        Case{kIrs, 1003, false}, Case{kIrs + 2, 1003, false}}) {
    tcp::Config config = with_timestamps();
    config.time_wait = seconds(240);
    RawPeer p(config);
    into_time_wait(p, true);
    p.wait(seconds(100));
    p.inject({.seq = c.seq,
              .ack = kIss + 2,
              .flags = kFinAck,
              .options = option_timestamps(c.stamp, 0)});
    p.expect({.ack = kIrs + 2, .ts_echo = 1002});
    p.wait(seconds(141));
    EXPECT_EQ(p.stack.live_connections(), c.anew ? 1u : 0u) << c.seq - kIrs << " " << c.stamp;
  }
}

TEST(TimeWait, ARstDoesNotEndIt) {
  RawPeer p;
  into_time_wait(p);
  p.inject({.seq = kIrs + 2, .flags = flag::kRst});  // RFC 1337
  p.inject({.seq = kIrs + 2, .ack = kIss + 2, .flags = flag::kRst | flag::kAck});
  EXPECT_EQ(p.stack.live_connections(), 1u);
  EXPECT_TRUE(p.silent());
}

TEST(TimeWait, OldSegmentsAreAnsweredAtALimitedRate) {
  tcp::Config config = RawPeer::bare();
  config.challenge_ack_limit = 5;
  config.challenge_ack_interval = milliseconds(100);
  RawPeer p(config);
  into_time_wait(p);
  p.inject({.seq = kIrs + 2, .ack = kIss + 2, .flags = flag::kAck});  // in sequence: nothing to say
  EXPECT_TRUE(p.silent());
  for (int i = 0; i < 20; ++i) p.data(0, 1);
  EXPECT_EQ(p.egress.sent.size(), 5u);
  EXPECT_EQ(p.stack.counters().challenge_acks_limited, 15u);
  p.wait(milliseconds(100));
  p.data(0, 1);
  EXPECT_EQ(p.egress.sent.size(), 6u);
  p.egress.sent.clear();
  for (int i = 0; i < 20; ++i) p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck});
  EXPECT_EQ(p.egress.sent.size(), 20u);  // a FIN is always answered
}

// RFC 7323 s.3.2: where timestamps were agreed on, a segment without one is dropped, and counted.
TEST(TimeWait, ASegmentWithoutItsTimestampIsDropped) {
  RawPeer p(with_timestamps());
  into_time_wait(p, true);
  p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck});
  p.inject({.seq = kIrs + 2, .ack = kIss + 2, .flags = flag::kAck, .payload = 10});
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().paws_rejected, 2u);
  p.inject(
      {.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck, .options = option_timestamps(1002, 0)});
  p.expect({.flags = flag::kAck});
  EXPECT_EQ(p.stack.counters().paws_rejected, 2u);
}

TEST(TimeWait, ReopensByTimestampOrSequence_TCP_9293_3_6_1_03) {
  struct Case {
    bool was_stamped;
    std::optional<uint32_t> stamp;
    uint32_t seq;
    bool opens;
  };
  // RFC 6191 s.2, case by case; the old incarnation's last timestamp was 1002.
  const std::array<Case, 8> cases{{
      {true, 1003, kIrs - 5, true},           // newer stamp, whatever the sequence
      {true, 1002, kIrs + 3, true},           // equal stamp, larger sequence
      {true, 1002, kIrs + 2, false},          // equal stamp, not larger
      {true, 1001, kIrs + 1000, false},       // older stamp
      {true, std::nullopt, kIrs + 3, true},   // no stamp any more: the sequence decides
      {true, std::nullopt, kIrs, false},      //
      {false, 1, kIrs - 5, true},             // a stamp at last
      {false, std::nullopt, kIrs + 1, false}  //
  }};
  for (const Case& c : cases) {
    RawPeer p(with_timestamps());
    into_time_wait(p, c.was_stamped);
    RecordUser again{11, 22};
    p.acceptor.next.push_back(&again);
    p.inject({.seq = c.seq,
              .flags = flag::kSyn,
              .options = option_mss(1460) +
                         (c.stamp ? option_timestamps(*c.stamp, 0) : std::vector<uint8_t>{})});
    SCOPED_TRACE(&c - cases.data());
    if (c.opens) {
      const Segment syn_ack = p.expect({.flags = flag::kSyn | flag::kAck, .ack = c.seq + 1});
      // MAY-2 (1): beyond every number of the old incarnation.
      EXPECT_GE(static_cast<int32_t>(syn_ack.seq - (kIss + 2)), 0x10000);
      EXPECT_EQ(p.stack.counters().time_wait_reopened, 1u);
    } else {
      p.expect({.flags = flag::kAck, .ack = kIrs + 2});
    }
  }
}

TEST(TimeWait, AnActiveOpenUsesThePortAgainWhenTheClockHasTicked) {
  for (const bool stamped : {true, false}) {
    tcp::Config config;
    config.timestamps = stamped;
    config.time_wait = seconds(60);
    Pair p(config, config);
    const Endpoint from{kAddressA, 5000};
    const Endpoint to{kAddressB, kPort};
    p.a.stream = *p.link.a.connect(from, to, p.a, p.link.now);
    ASSERT_TRUE(p.link.run_until([&] { return p.b.is_established; }, seconds(1)));
    // Many octets in no time: the clock of the ISN has not come so far.
    for (int i = 0; i < 2000; ++i) p.a.queue(1448);
    ASSERT_TRUE(p.drain());
    p.a.stream->close();
    ASSERT_TRUE(p.link.run_until([&] { return p.b.peer_has_finished; }, seconds(1)));
    p.b.stream->close();
    ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended.has_value(); }, seconds(1)));
    RecordUser again{11, 22};
    const auto at_once = p.link.a.connect(from, to, again, p.link.now);
    ASSERT_FALSE(at_once.has_value());
    EXPECT_EQ(at_once.error().code, ErrorCode::AlreadyExists);
    p.link.run(milliseconds(2));
    RecordUser peer{22, 11};
    p.acceptor.next.push_back(&peer);
    auto later = p.link.a.connect(from, to, again, p.link.now);
    ASSERT_EQ(later.has_value(), stamped);
    if (!stamped) continue;
    again.stream = *later;
    again.queue(1000);
    ASSERT_TRUE(p.link.run_until([&] { return again.released_to == 1000; }, seconds(5)));
    EXPECT_TRUE(peer.clean());
    EXPECT_EQ(p.link.a.counters().time_wait_reused, 1u);
  }
}

TEST(TimeWait, TheOldestGivesWay) {
  tcp::TimeWaitTable table(4, seconds(10), {1, 2});
  base::Now now = base::from_nanos(0);
  const auto remote = [](uint16_t port) { return Endpoint{kAddressB, port}; };
  const Endpoint local{kAddressA, 80};
  for (uint16_t port = 1; port <= 6; ++port) {
    tcp::TimeWaitEntry entry;
    entry.snd_nxt = base::Seq32(port);
    EXPECT_EQ(table.add(local, remote(port), entry, now), port > 4);
    now += seconds(1);
  }
  EXPECT_EQ(table.live(), 4u);
  EXPECT_EQ(table.find(local, remote(2)), nullptr);
  ASSERT_NE(table.find(local, remote(3)), nullptr);
  EXPECT_EQ(table.find(local, remote(3))->snd_nxt.value, 3u);
  EXPECT_EQ(table.find(local, remote(3))->remote(), remote(3));
  table.restart(*table.find(local, remote(3)), now);  // at 6 s
  table.erase(*table.find(local, remote(5)));
  EXPECT_EQ(table.live(), 3u);
  now = base::from_nanos(0) + seconds(15);
  table.expire(now);
  EXPECT_EQ(table.find(local, remote(4)), nullptr);  // began at 3 s
  EXPECT_NE(table.find(local, remote(3)), nullptr);
  EXPECT_EQ(table.find(local, remote(6)), nullptr);  // began at 5 s
  table.expire(base::from_nanos(0) + seconds(16));
  EXPECT_EQ(table.live(), 0u);
  EXPECT_EQ(table.next_deadline(now), base::kNever);
}

// Timestamps count milliseconds: what is sent from the next one on is newer than the last segment
// of the connection that was (RFC 6191 s.2).
TEST(TimeWait, TheClockHasTickedWithTheNextMillisecond) {
  for (const int64_t start : {5'000'000, 5'999'999}) {
    tcp::TimeWaitTable table(4, seconds(10), {1, 2});
    const Endpoint local{kAddressA, 80}, remote{kAddressB, 90};
    table.add(local, remote, {}, base::from_nanos(start));
    const tcp::TimeWaitEntry& entry = *table.find(local, remote);
    EXPECT_FALSE(table.clock_ticked(entry, base::from_nanos(start)));
    EXPECT_FALSE(table.clock_ticked(entry, base::from_nanos(5'999'999)));
    EXPECT_TRUE(table.clock_ticked(entry, base::from_nanos(6'000'000)));
  }
}

TEST(TimeWait, TheTableAgreesWithAnObviousOne) {
  tcp::TimeWaitTable table(32, milliseconds(100), {5, 6});
  std::map<uint16_t, base::Now> obvious;
  base::Prng random(9);
  base::Now now = base::from_nanos(0);
  const Endpoint local{kAddressA, 80};
  for (int i = 0; i < 20000; ++i) {
    now += milliseconds(random.below(8));
    table.expire(now);
    std::erase_if(obvious, [&](const auto& e) { return e.second <= now; });
    const auto port = static_cast<uint16_t>(random.between(1, 40));
    const Endpoint remote{kAddressB, port};
    tcp::TimeWaitEntry* entry = table.find(local, remote);
    // An entry restarted in the queue's midst lives longer than its own time, never shorter.
    if (obvious.contains(port)) {
      ASSERT_NE(entry, nullptr) << i;
    }
    if (entry == nullptr) {
      if (obvious.size() < 20) {
        table.add(local, remote, {}, now);
        obvious[port] = now + milliseconds(100);
      }
    } else if (random.chance(0.3)) {
      table.erase(*entry);
      obvious.erase(port);
    } else if (random.chance(0.1)) {
      table.restart(*entry, now);
      obvious[port] = now + milliseconds(100);
    }
    ASSERT_GE(table.live(), obvious.size());
  }
  table.expire(now + seconds(1));
  table.expire(now + seconds(2));
  EXPECT_EQ(table.live(), 0u);
}

// Entries that are gone hold no place and no timer once their turn has come.
TEST(TimeWait, WhatIsGoneIsNotWaitedFor) {
  tcp::TimeWaitTable table(4, seconds(10), {1, 2});
  const base::Now start = base::from_nanos(1'000'000'000);
  const auto end = [](uint16_t port) { return Endpoint{RawPeer::kPeer, port}; };
  const Endpoint ours{RawPeer::kUs, 80};
  for (uint16_t i = 1; i <= 4; ++i) table.add(ours, end(i), {}, start + seconds(i));
  table.erase(*table.find(ours, end(1)));
  EXPECT_EQ(table.next_deadline(start), start + seconds(12));
  table.erase(*table.find(ours, end(3)));  // in the middle
  table.expire(start + seconds(12));
  EXPECT_EQ(table.live(), 1u);
  EXPECT_EQ(table.next_deadline(start + seconds(12)), start + seconds(14));
  for (uint16_t i = 5; i <= 7; ++i) EXPECT_FALSE(table.add(ours, end(i), {}, start + seconds(13)));
  EXPECT_EQ(table.live(), 4u);
  EXPECT_TRUE(table.add(ours, end(8), {}, start + seconds(13)));
}

/// The class alone: verdicts to the engine, replies into a queue.
struct OneInTimeWait {
  using Verdict = tcp::TimeWait::Verdict;

  OneInTimeWait() {
    tcp::TimeWaitEntry entry;
    entry.snd_nxt = base::Seq32(500);
    entry.rcv_nxt = base::Seq32(900);
    entry.window = 100;
    time_wait.enter(local, remote, entry, false, now);
  }
  [[nodiscard]] tcp::Segment segment(uint32_t seq, uint8_t flags) const {
    tcp::Segment s;
    s.local = local;
    s.remote = remote;
    s.seq = base::Seq32(seq);
    s.ack = base::Seq32(500);
    s.flags = flags;
    return s;
  }
  /// The one reply, taken out; nothing: there was none.
  std::optional<tcp::Reply> reply() {
    if (replies.empty()) return std::nullopt;
    const tcp::Reply first = replies.front();
    replies.pop();
    EXPECT_TRUE(replies.empty());
    return first;
  }

  const Endpoint local{kAddressA, 80};
  const Endpoint remote{kAddressB, 90};
  base::Now now = base::Now{} + seconds(1);
  tcp::Counters counters;
  base::TimerWheel wheel{now};
  tcp::ReplyQueue replies;
  tcp::ChallengeAcks challenge_acks{1, seconds(1), counters};
  tcp::TimeWait time_wait{with_timestamps(), {1, 2}, wheel, replies, challenge_acks, counters};
};

TEST(TimeWaitClass, AnswersTheFinAlwaysAndTheRestAtALimit) {
  using Verdict = OneInTimeWait::Verdict;
  OneInTimeWait t;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(t.time_wait.input(t.segment(899, kFinAck), true, t.now), Verdict::Done);
    const auto reply = t.reply();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->flags, flag::kAck);
    EXPECT_EQ(reply->seq, base::Seq32(500));
    EXPECT_EQ(reply->ack, base::Seq32(900));
  }
  EXPECT_EQ(t.time_wait.input(t.segment(900, flag::kRst), true, t.now), Verdict::Done);
  EXPECT_FALSE(t.reply().has_value());
  EXPECT_EQ(t.time_wait.input(t.segment(2000, flag::kAck), true, t.now), Verdict::Done);
  EXPECT_TRUE(t.reply().has_value());
  EXPECT_EQ(t.time_wait.input(t.segment(2000, flag::kAck), true, t.now), Verdict::Done);
  EXPECT_FALSE(t.reply().has_value()) << "one in an interval";
  tcp::Segment other = t.segment(2000, flag::kAck);
  other.remote.port = 91;
  EXPECT_EQ(t.time_wait.input(other, true, t.now), Verdict::Elsewhere);
  t.time_wait.validate();
}

TEST(TimeWaitClass, ASynEndsItWhereSomebodyListens) {
  using Verdict = OneInTimeWait::Verdict;
  OneInTimeWait t;
  EXPECT_EQ(t.time_wait.input(t.segment(900, flag::kSyn), true, t.now), Verdict::Done) << "old";
  EXPECT_TRUE(t.reply().has_value());
  EXPECT_EQ(t.time_wait.input(t.segment(901, flag::kSyn), false, t.now), Verdict::Done);
  EXPECT_EQ(t.counters.time_wait_reopened, 0u);
  EXPECT_EQ(t.time_wait.input(t.segment(901, flag::kSyn), true, t.now), Verdict::Reopen);
  EXPECT_EQ(t.counters.time_wait_reopened, 1u);
  EXPECT_EQ(t.time_wait.end(t.local, t.remote), base::Seq32(500));
  EXPECT_EQ(t.time_wait.end(t.local, t.remote), std::nullopt);
  EXPECT_EQ(t.time_wait.live(), 0u);
}

TEST(TimeWaitClass, ItsTimeIsWaitedForAndAConnectionOfOursMayComeEarlier) {
  OneInTimeWait t;
  tcp::TimeWaitEntry stamped;
  stamped.ts_ok = true;
  const Endpoint other{kAddressB, 91};
  t.time_wait.enter(t.local, other, stamped, true, t.now);
  EXPECT_TRUE(t.reply().has_value()) << "an ACK was owed";
  EXPECT_FALSE(t.time_wait.may_reuse(t.local, t.remote, t.now + milliseconds(1)));
  EXPECT_FALSE(t.time_wait.may_reuse(t.local, other, t.now));
  EXPECT_TRUE(t.time_wait.may_reuse(t.local, other, t.now + milliseconds(1)));
  t.now += with_timestamps().time_wait + milliseconds(1);
  EXPECT_LE(t.wheel.next_deadline(), t.now);
  int fired = 0;
  t.wheel.expire(t.now, [&](base::TimerNode& node) {
    EXPECT_EQ(node.owner, nullptr);
    t.time_wait.fired(t.now);
    ++fired;
  });
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(t.time_wait.live(), 0u);
  EXPECT_TRUE(t.time_wait.may_reuse(t.local, t.remote, t.now));
  t.time_wait.validate();
}

}  // namespace
}  // namespace rnic::testing
