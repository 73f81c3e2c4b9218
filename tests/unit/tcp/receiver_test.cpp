// The receiving half of a connection, without a stack that checks the rest of a segment.

#include "tcp/receiver.hpp"

#include "core_parts.hpp"
#include "support/transitions.hpp"

namespace rnic::testing {
namespace {

using llp::InspectVerdict;
using Ranges = std::vector<base::Range>;

struct Receiving : CoreParts {
  static constexpr uint32_t kWindow = 4000;

  explicit Receiving(const tcp::Config& of = {}) : CoreParts(of) {
    establish();
    user.room = kWindow;
    receiver.offer(kWindow);
    for (uint32_t i = 0; i < stream.size(); ++i) stream[i] = octet_at(i, 22);
  }
  ~Receiving() {
    receiver.validate();
    EXPECT_TRUE(user.clean());
  }
  /// Octets of the peer's stream. \param begin may lie before it, of a segment without text
  [[nodiscard]] tcp::Segment segment(int64_t begin, uint32_t size, uint8_t more_flags = 0) const {
    tcp::Segment s;
    s.seq = base::Seq32(kIrs + 1 + static_cast<uint32_t>(begin));
    s.flags = static_cast<uint8_t>(flag::kAck | more_flags);
    if (size != 0) s.payload = base::ByteView(stream).subspan(static_cast<size_t>(begin), size);
    return s;
  }
  /// \return it is taken, the text that is new of it at least
  bool take(int64_t begin, uint32_t size, uint8_t more_flags = 0) {
    const tcp::Segment s = segment(begin, size, more_flags);
    if (!receiver.acceptable(s)) return false;
    tcp::Receiver::NewText text;
    if (!receiver.inspect_text(receiver.text_of(s), text, now)) return false;
    receiver.take_text(receiver.text_of(s), text, now);
    time_wait = receiver.take_fin(now);
    return true;
  }
  /// As when the ACK that is owed goes out.
  uint32_t send_ack() {
    const uint32_t window = receiver.advertise();
    receiver.ack_sent_alone(now);
    return window;
  }
  [[nodiscard]] uint64_t rcv_nxt() const { return core.tcb.rcv_nxt; }
  [[nodiscard]] tcp::State state() const { return core.life.state(); }

  std::array<uint8_t, 10'000> stream{};
  tcp::Receiver receiver{core, core.timers_};
  bool time_wait = false;
};

// RFC 9293 s.3.10.7.4, first: the table of section 3.4, with SEG.LEN and RCV.WND zero or not.
TEST(Receiver, WhatTouchesTheWindowIsAcceptable) {
  Receiving r;
  ASSERT_TRUE(r.take(0, 1000));
  r.core.tcb.rcv_edge = 3000;
  struct Case {
    int64_t begin;
    uint32_t size;
    bool good;
  };
  for (const Case& c :
       {Case{1000, 0, true}, Case{2999, 0, true}, Case{999, 0, false}, Case{3000, 1, false},
        Case{2999, 10, true}, Case{500, 500, false}, Case{500, 501, true}, Case{500, 4000, true}}) {
    r.receiver.ack_sent();
    EXPECT_EQ(r.receiver.acceptable(r.segment(c.begin, c.size)), c.good)
        << c.begin << " " << c.size;
    EXPECT_EQ(r.receiver.ack().due(), !c.good) << "what is not is answered";
  }
  EXPECT_EQ(r.counters.unacceptable, 3u);
  EXPECT_EQ(r.counters.duplicate_octets_in, 500u);
  r.receiver.ack_sent();
  EXPECT_FALSE(r.receiver.acceptable(r.segment(999, 0, flag::kRst)));
  EXPECT_FALSE(r.receiver.ack().due()) << "but a RST";
  EXPECT_EQ(r.counters.unacceptable, 3u);
}

TEST(Receiver, AFullOrShutWindowLeavesRoomForThePlaceOfAnAck) {
  Receiving r;
  EXPECT_TRUE(r.receiver.acceptable(r.segment(4000, 0)));
  EXPECT_FALSE(r.receiver.acceptable(r.segment(4000, 0, flag::kSyn)));
  EXPECT_FALSE(r.receiver.acceptable(r.segment(4001, 0)));
  ASSERT_TRUE(r.take(0, 4000));
  EXPECT_EQ(r.core.tcb.rcv_wnd(), 0u);
  EXPECT_TRUE(r.receiver.acceptable(r.segment(4000, 0)));
  EXPECT_TRUE(r.receiver.acceptable(r.segment(4000, 10))) << "MUST-66: for its ACK";
  EXPECT_FALSE(r.receiver.acceptable(r.segment(4001, 0)));
  ASSERT_TRUE(r.take(4000, 10));
  EXPECT_EQ(r.rcv_nxt(), 4000u) << "but not for its text";
}

// RFC 7323 s.5.3, and s.4.3 (2) for what TS.Recent follows.
TEST(Receiver, AnOlderTimestampIsRejectedUnlessOursIsTooOldItself) {
  Receiving r;
  r.core.tcb.ts_ok = true;
  const auto stamped = [&](int64_t begin, uint32_t stamp) {
    tcp::Segment s = r.segment(begin, 0);
    s.options.timestamps = wire::TcpTimestamps{stamp, 0};
    return s;
  };
  r.receiver.take_timestamp(stamped(0, 1000), r.now);
  EXPECT_EQ(r.core.tcb.ts_recent, 1000u);
  EXPECT_TRUE(r.receiver.survives_paws(stamped(0, 1000), r.now));
  EXPECT_TRUE(r.receiver.survives_paws(stamped(0, 0x80000000 + 999), r.now)) << "2^31 - 1 ahead";
  EXPECT_FALSE(r.receiver.survives_paws(r.segment(0, 0), r.now));
  EXPECT_FALSE(r.receiver.ack().due()) << "s.3.2: without one it is dropped, and nothing said";
  EXPECT_TRUE(r.receiver.survives_paws(r.segment(0, 0, flag::kRst), r.now));
  EXPECT_FALSE(r.receiver.survives_paws(stamped(0, 999), r.now));
  EXPECT_TRUE(r.receiver.ack().due());
  EXPECT_EQ(r.counters.paws_rejected, 2u);
  r.receiver.take_timestamp(stamped(1, 2000), r.now);
  EXPECT_EQ(r.core.tcb.ts_recent, 1000u) << "it does not cover Last.ACK.sent";
  const base::Duration life = std::chrono::hours(24 * 24);
  EXPECT_FALSE(r.receiver.survives_paws(stamped(0, 999), r.now + life - milliseconds(1)));
  EXPECT_TRUE(r.receiver.survives_paws(stamped(0, 999), r.now + life));
}

TEST(Receiver, OnlyWhatIsNewOfATextIsHandedUp) {
  Receiving r;
  Ranges inspected;
  r.user.verdict = [&](base::Range range) {
    inspected.push_back(range);
    return InspectVerdict::Accept;
  };
  ASSERT_TRUE(r.take(1000, 500));
  ASSERT_TRUE(r.take(2000, 500));
  EXPECT_EQ(r.receiver.taken_to(), 2500u);
  ASSERT_TRUE(r.take(500, 3000));  // over both islands
  EXPECT_EQ(r.user.places,
            (Ranges{{1000, 1500}, {2000, 2500}, {500, 1000}, {1500, 2000}, {2500, 3500}}));
  EXPECT_EQ(r.user.ordered_to, 0u);
  ASSERT_TRUE(r.take(0, 600));
  EXPECT_EQ(r.user.ordered_to, 3500u);
  EXPECT_TRUE(r.receiver.committed().empty());
  ASSERT_TRUE(r.take(3000, 2000));  // old at its begin, beyond the window at its end
  EXPECT_EQ(r.user.places.back(), (base::Range{3500, 4000}));
  EXPECT_EQ(r.user.places, (Ranges{{1000, 1500},
                                   {2000, 2500},
                                   {500, 1000},
                                   {1500, 2000},
                                   {2500, 3500},
                                   {0, 500},
                                   {3500, 4000}}));
  EXPECT_EQ(inspected, r.user.places) << "and was looked at before";
  EXPECT_EQ(r.counters.octets_in, 4000u);
  EXPECT_EQ(r.counters.duplicate_octets_in, 1000u + 100 + 1500);
}

TEST(Receiver, TheUserMayTakeATextAsLostOrCutItShort) {
  Receiving r;
  InspectVerdict verdict = InspectVerdict::Drop;
  r.user.verdict = [&](base::Range range) {
    return range.begin >= 1500 ? verdict : InspectVerdict::Accept;
  };
  ASSERT_TRUE(r.take(1000, 500));
  EXPECT_FALSE(r.take(0, 2000)) << "of its two new parts one is dropped: all of it is";
  EXPECT_EQ(r.rcv_nxt(), 0u);
  verdict = InspectVerdict::NoRoom;
  EXPECT_FALSE(r.take(1500, 500)) << "nothing before it is new";
  ASSERT_TRUE(r.take(0, 2000));
  EXPECT_EQ(r.rcv_nxt(), 1500u);
  EXPECT_EQ(r.counters.inspect_drops, 3u);
  r.user.verdict = nullptr;
  ASSERT_TRUE(r.take(1500, 500));
  EXPECT_EQ(r.user.ordered_to, 2000u);
}

TEST(Receiver, AFinCountsWhereTheOrderReachesIt) {
  Receiving r;
  ASSERT_TRUE(r.take(1000, 500, flag::kFin));
  EXPECT_EQ(r.state(), tcp::State::Established);
  EXPECT_EQ(r.core.tcb.ack_offset(), 0u);
  ASSERT_TRUE(r.take(1400, 200));
  EXPECT_EQ(r.receiver.taken_to(), 1500u) << "nothing follows it";
  ASSERT_TRUE(r.take(500, 100, flag::kFin));  // contradicts the first
  ASSERT_TRUE(r.take(0, 1000));
  EXPECT_EQ(r.state(), tcp::State::CloseWait);
  EXPECT_TRUE(r.user.peer_has_finished);
  EXPECT_FALSE(r.time_wait);
  EXPECT_EQ(r.rcv_nxt(), 1500u);
  EXPECT_EQ(r.core.tcb.ack_offset(), 1501u);
  r.receiver.ack_sent();
  EXPECT_FALSE(r.take(1000, 500, flag::kFin));
  EXPECT_TRUE(r.receiver.ack().due()) << "it comes again";

  Receiving behind;  // octets of it were taken, or it lies beyond the window
  ASSERT_TRUE(behind.take(1000, 500));
  ASSERT_TRUE(behind.take(500, 100, flag::kFin));
  ASSERT_TRUE(behind.take(3900, 101, flag::kFin));
  ASSERT_TRUE(behind.take(0, 4000));
  EXPECT_EQ(behind.state(), tcp::State::Established);
  EXPECT_EQ(behind.rcv_nxt(), 4000u);

  Receiving closed;  // ours was acknowledged before
  closed.core.life.want_fin();
  closed.core.life.fin_sent(closed.now);
  ASSERT_EQ(closed.core.life.fin_acked(closed.now), tcp::Life::Next::Same);
  ASSERT_TRUE(closed.take(0, 0, flag::kFin));
  EXPECT_TRUE(closed.time_wait);
}

TEST(PeersFins, EachPairIsLegalOrNot) {
  // None, Seen, Reached
  expect_transitions(tcp::kPeersFinTransitions, {".x.", "..x", "..."}, "..x");
}

TEST(PeersFins, WhateverArrivesLeadsToALegalOneAndEachLegalOneIsReached) {
  struct Arrival {
    const char* name;
    int64_t begin;
    uint32_t size;
    uint8_t flags;
  };
  static constexpr Arrival kArrivals[] = {
      {"the first octets", 0, 500, 0},
      {"the last octets", 500, 500, 0},
      {"the last octets and the FIN", 500, 500, flag::kFin},
      {"the FIN alone", 1000, 0, flag::kFin},
      {"a FIN that contradicts it", 250, 0, flag::kFin},
  };
  SeenTransitions seen(tcp::kPeersFinTransitions);
  for (int way = 0; way < 5 * 5 * 5; ++way) {
    Receiving r;
    for (int rest = way, step = 0; step < 3; ++step, rest /= 5) {
      const Arrival& arrival = kArrivals[rest % 5];
      // A FIN in order is seen by the seventh step and reached by the eighth.
      const tcp::Segment s = r.segment(arrival.begin, arrival.size, arrival.flags);
      tcp::Receiver::NewText text;
      const tcp::Receiver::Text arrived = r.receiver.text_of(s);
      if (!r.receiver.acceptable(s) || !r.receiver.inspect_text(arrived, text, r.now)) continue;
      tcp::PeersFin from = r.core.tcb.peers_fin;
      r.receiver.take_text(r.receiver.text_of(s), text, r.now);
      seen.note(from, r.core.tcb.peers_fin, arrival.name);
      from = r.core.tcb.peers_fin;
      EXPECT_FALSE(r.receiver.take_fin(r.now));
      seen.note(from, r.core.tcb.peers_fin, arrival.name);
      r.receiver.validate();
    }
  }
  seen.expect_all();
}

// RFC 9293 s.3.8.6.2.2.
TEST(Receiver, TheWindowOpensByStepsThatAreWorthItAndNeverShrinks) {
  Receiving r;
  ASSERT_TRUE(r.take(0, 1000));
  EXPECT_EQ(r.receiver.ack().rcv_mss(), 1000u);
  r.user.room = 3000;
  EXPECT_EQ(r.send_ack(), 3000u);
  r.user.room = 0;
  EXPECT_EQ(r.send_ack(), 3000u) << "what was offered stays";
  r.user.room = 3000 + 999;
  EXPECT_EQ(r.send_ack(), 3000u);
  r.user.room = 3000 + 1000;
  EXPECT_EQ(r.send_ack(), 4000u) << "a full segment";
  r.user.room = 4000 + 1999;
  r.receiver.room_grew();
  EXPECT_FALSE(r.receiver.ack().due());
  r.user.room = 4000 + 2000;
  r.receiver.room_grew();
  EXPECT_TRUE(r.receiver.ack().due()) << "two are worth an ACK of their own";
  EXPECT_TRUE(r.core.in_round());
  EXPECT_EQ(r.send_ack(), 6000u);

  Receiving small;  // of less than two segments: half the buffer
  small.user.room = 600;
  small.receiver.offer(600);
  EXPECT_EQ(small.send_ack(), 600u);
  ASSERT_TRUE(small.take(0, 600));
  small.user.room = 0;
  EXPECT_EQ(small.send_ack(), 0u);
  small.user.room = 300;
  small.receiver.room_grew();
  EXPECT_FALSE(small.receiver.ack().due());
  small.user.room = 301;
  small.receiver.room_grew();
  EXPECT_TRUE(small.receiver.ack().due());
}

TEST(Receiver, AScaledWindowIsOfferedInWholeSteps) {
  tcp::Config config;
  config.receive_window = 1 << 20;
  Receiving r(config);
  r.core.tcb.rcv_wind_shift = 4;
  r.user.room = (1 << 20) + 1000;
  EXPECT_EQ(r.receiver.advertise(), 65535u) << "the field can name no more";
  EXPECT_EQ(r.core.tcb.rcv_edge, 65535u * 16);
  Receiving odd;
  odd.core.tcb.rcv_wind_shift = 4;
  odd.user.room = 10'015;
  EXPECT_EQ(odd.receiver.advertise(), 625u);
  EXPECT_EQ(odd.core.tcb.rcv_edge, 10'000u) << "as the header said it";
}

}  // namespace
}  // namespace rnic::testing
