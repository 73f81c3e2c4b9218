// What is in flight, without a sender that decides what goes out.

#include "tcp/flight.hpp"

#include "core_parts.hpp"

namespace rnic::testing {
namespace {

using tcp::AckResult;
using tcp::RecoveryPhase;
using tcp::Timer;

struct Flying : CoreParts {
  static constexpr uint32_t kSegment = 1000;
  static constexpr uint32_t kInitialWindow = 10 * kSegment;

  Flying() : CoreParts(new_reno()) {
    establish();
    core.tcb.sack_ok = true;
    flight.set_smss(kSegment);
    flight.begin(now);
    flight.establish(0, false, now);
  }
  ~Flying() { flight.validate(); }
  static tcp::Config new_reno() {
    tcp::Config c;
    c.congestion_control = CongestionControl::NewReno;
    return c;
  }
  /// Segments of one record each.
  void send(uint32_t segments) {
    for (uint32_t i = 0; i < segments; ++i) {
      tcp::Record r;
      r.length = kSegment;
      r.tag = {board().queue_end(), kSegment};
      r.flags = tcp::record_flag::kSegmentStart;
      r.sent_at = now;
      flight.push(r);
      flight.sent(kSegment, now);
    }
  }
  /// All the steps of an ACK. \param sacked segments, by their numbers; the second is not
  AckResult ack(uint64_t to, std::pair<uint32_t, uint32_t> sacked = {}) {
    AckResult result;
    if (to > core.tcb.snd_una) flight.advance_una(to, result, now);
    wire::TcpOptions options;
    if (sacked.second != 0) {
      options.sack[options.sack_count++] = {core.tcb.snd_seq(sacked.first * kSegment),
                                            core.tcb.snd_seq(sacked.second * kSegment)};
    }
    flight.take_sack(options, result, now);
    flight.measure(result, now);
    if (result.acked != 0) flight.progressed(now);
    const bool lost = flight.detect_losses(result, now);
    flight.recover(result, lost, now);
    flight.tail_probe_acked(result);
    if (result.acked != 0) flight.restart_timers(now);
    return result;
  }
  /// Takes an ACK in one step. \return it was late
  bool plain_ack(uint64_t to) {
    EXPECT_TRUE(flight.predictable());
    const uint32_t acked = flight.plain_ack(core.tcb.snd_seq(to).value);
    EXPECT_EQ(acked, to - core.tcb.snd_una);
    tcp::Flight::PlainAck plain = flight.plain_records(acked);
    const bool late = !flight.in_order(plain, now);
    flight.take_plain_ack(plain, 0, now);
    flight.settle_plain_ack(plain, now);
    flight.release(plain);
    return late;
  }
  [[nodiscard]] const tcp::Scoreboard& board() const { return flight.board(); }
  [[nodiscard]] uint32_t cwnd() const { return flight.congestion().cwnd(); }

  tcp::Flight flight{core, core.timers_};
};

// RFC 6298 s.5.1 to s.5.3.
TEST(Flight, IsWatchedFromItsFirstOctetToItsLast) {
  Flying f;
  EXPECT_FALSE(f.core.timers().runs(Timer::Rto));
  const base::Now first = f.now;
  f.send(1);
  f.now += milliseconds(10);
  f.send(1);
  EXPECT_EQ(f.core.tcb.snd_nxt, 2000u);
  EXPECT_EQ(f.core.timers().at(Timer::Rto), first + f.config.rto_initial) << "it is not put off";
  f.now += milliseconds(10);
  f.ack(1000);
  EXPECT_EQ(f.core.timers().at(Timer::Rto), f.now + f.flight.rto().rto());
  f.ack(2000);
  EXPECT_FALSE(f.core.timers().runs(Timer::Rto));
  EXPECT_FALSE(f.core.timers().runs(Timer::Probe));
}

TEST(Flight, AnAckReleasesTheRecordsThatItCoversWhole) {
  Flying f;
  const std::vector<uint8_t> copy(1000);
  f.send(3);
  f.flight.keep(0, f.saved.save(copy));
  f.flight.keep(1, f.saved.save(copy));
  f.now += milliseconds(40);
  const AckResult part = f.ack(1500);
  EXPECT_EQ(part.acked, 1500u);
  EXPECT_EQ(part.delivered, 1500u);
  EXPECT_EQ(part.rtt, milliseconds(40));
  EXPECT_EQ(f.user.released_to, 1000u);
  EXPECT_EQ(f.core.tcb.snd_una, 1500u);
  EXPECT_EQ(f.saved.blocks_in_use(), 1u);
  EXPECT_EQ(f.ack(3000).acked, 1500u);
  EXPECT_EQ(f.user.released_to, 3000u);
  EXPECT_EQ(f.saved.blocks_in_use(), 0u);
}

TEST(Flight, RecordsThatWereSackedAreReleasedByTheRun) {
  Flying f;
  const std::vector<uint8_t> copy(1000);
  f.send(70);  // in three chunks of the queue
  f.flight.keep(10, f.saved.save(copy));
  EXPECT_EQ(f.ack(0, {1, 60}).delivered, 59'000u);
  EXPECT_EQ(f.board().sacked_segments(), 59u);
  const AckResult first = f.ack(20'500);
  EXPECT_EQ(first.delivered, 1000u) << "the others were delivered before";
  EXPECT_EQ(f.user.released_to, 20'000u);
  EXPECT_EQ(f.saved.blocks_in_use(), 0u) << "the copy behind the begin of a run";
  EXPECT_EQ(f.board().sacked_octets(), 39'500u);
  f.flight.validate();
  EXPECT_EQ(f.ack(65'000).delivered, 5000u) << "the run ends where nothing was SACKed";
  EXPECT_EQ(f.user.released_to, 65'000u);
  EXPECT_EQ(f.board().sacked_segments(), 0u);
  EXPECT_EQ(f.board().size(), 5u);
}

// Karn's rule (RFC 6298 s.3).
TEST(Flight, WhatWasSentAgainMeasuresNothing) {
  Flying f;
  f.send(2);
  f.now += milliseconds(10);
  f.flight.resent(0, f.now);
  f.now += milliseconds(30);
  EXPECT_LT(f.ack(2000).rtt, base::Duration(0)) << "nor does what waited behind it";
  EXPECT_FALSE(f.flight.rto().measured());
  f.send(1);
  f.now += milliseconds(40);
  EXPECT_EQ(f.ack(3000).rtt, milliseconds(40));
  EXPECT_EQ(f.flight.rto().srtt(), milliseconds(40));
}

TEST(Flight, TheWindowHoldsBackAndGrowsWhereItDid) {
  Flying f;
  EXPECT_EQ(f.cwnd(), Flying::kInitialWindow);
  EXPECT_FALSE(f.flight.holds_back(20'000)) << "nothing is in flight";
  f.send(9);
  EXPECT_FALSE(f.flight.holds_back(1000));
  EXPECT_TRUE(f.flight.holds_back(1001));
  f.send(1);
  EXPECT_TRUE(f.flight.holds_back(1));
  f.now += milliseconds(40);
  f.ack(10'000);
  const uint32_t grown = f.cwnd();
  EXPECT_EQ(grown, Flying::kInitialWindow + 8 * Flying::kSegment) << "RFC 3465, L = 8";
  f.send(4);
  f.now += milliseconds(40);
  f.ack(14'000);
  EXPECT_EQ(f.cwnd(), grown) << "less than half of it was used";
}

TEST(Flight, OneStepDoesWhatAllStepsDo) {
  Flying whole;
  Flying plain;
  for (int round = 0; round < 12; ++round) {
    for (Flying* f : {&whole, &plain}) {
      f->send(static_cast<uint32_t>(3 + round % 5));
      f->now += milliseconds(20 + 3 * round);
    }
    const uint64_t sent = whole.core.tcb.snd_nxt;  // all, a record less, or one more in part
    const uint64_t acked = round % 3 == 2 ? sent : sent - Flying::kSegment - round % 2;
    whole.ack(acked);
    EXPECT_FALSE(plain.plain_ack(acked));
    EXPECT_EQ(plain.core.tcb.snd_una, acked);
    EXPECT_EQ(plain.user.released_to, whole.user.released_to);
    EXPECT_EQ(plain.board().size(), whole.board().size());
    EXPECT_EQ(plain.cwnd(), whole.cwnd());
    EXPECT_EQ(plain.flight.rto().srtt(), whole.flight.rto().srtt());
    EXPECT_EQ(plain.flight.rack().xmit_at(), whole.flight.rack().xmit_at());
    for (const Timer timer : {Timer::Rto, Timer::Probe}) {
      EXPECT_EQ(plain.core.timers().at(timer), whole.core.timers().at(timer));
    }
  }
  EXPECT_GT(plain.cwnd(), Flying::kInitialWindow);
  // None of these is as plain as that.
  plain.send(2);
  const uint64_t una = plain.core.tcb.snd_una;
  for (const uint64_t to : {una, una - 1, una + 999, plain.core.tcb.snd_nxt + 1}) {
    EXPECT_EQ(plain.flight.plain_ack(plain.core.tcb.snd_seq(to).value), 0u) << to - una;
  }
}

// Without SACK nothing waits for what may be reordered: such an ACK comes as a plain one.
TEST(Flight, AnAckOfWhatWasSentBeforeSomethingThatHasArrivedIsLate) {
  Flying f;
  f.core.tcb.sack_ok = false;
  f.send(3);
  f.now += milliseconds(10);
  f.flight.resent(0, f.now);
  EXPECT_FALSE(f.flight.predictable());
  f.now += milliseconds(40);
  f.ack(1000);
  ASSERT_TRUE(f.flight.predictable()) << "the others went out once";
  EXPECT_EQ(f.flight.rack().xmit_at(), f.now - milliseconds(40));
  EXPECT_TRUE(f.plain_ack(2000));
  EXPECT_TRUE(f.plain_ack(3000));
  EXPECT_EQ(f.flight.rack().xmit_at(), f.now - milliseconds(40)) << "that is the latest still";
  f.send(1);
  f.now += milliseconds(40);
  EXPECT_FALSE(f.plain_ack(4000));
}

// RFC 6675 s.5, RFC 6937.
TEST(Flight, AHoleIsALossOnceEnoughLiesBehindIt) {
  Flying f;
  f.send(5);
  f.now += milliseconds(40);
  f.ack(0, {1, 3});
  EXPECT_EQ(f.flight.recovery().phase(), RecoveryPhase::Open);
  EXPECT_TRUE(f.core.timers().runs(Timer::Reorder)) << "it may be reordered";
  f.ack(0, {1, 4});
  EXPECT_EQ(f.flight.recovery().phase(), RecoveryPhase::Recovery);
  EXPECT_EQ(f.counters.fast_recoveries, 1u);
  EXPECT_EQ(f.board().lost_octets(), 1000u);
  EXPECT_EQ(f.flight.congestion().ssthresh(), 2500u);
  EXPECT_EQ(f.flight.next_lost(), 0u);
  EXPECT_TRUE(f.flight.recovery().forced());
  f.flight.resent(0, f.now);
  f.flight.retransmitted_lost();
  EXPECT_EQ(f.flight.next_lost(), f.board().past_last());
  f.now += milliseconds(40);
  f.ack(5000);
  EXPECT_EQ(f.flight.recovery().phase(), RecoveryPhase::Open);
  EXPECT_EQ(f.cwnd(), 2500u);
  EXPECT_TRUE(f.flight.predictable());
}

// RFC 6298 s.5.4 to s.5.6, RFC 5681 s.3.1, RFC 9293 s.3.8.3.
TEST(Flight, ATimeOutLosesAllBacksOffAndIsGivenUpInTheEnd) {
  Flying f;
  f.flight.select(CongestionControl::Cubic, false);  // by a share of cwnd
  f.binding.options.user_timeout = seconds(10);
  const base::Now begin = f.now;
  f.send(6);
  f.now += seconds(1);
  EXPECT_FALSE(f.flight.time_out(f.now)) << "the first";
  f.flight.lose_all(false, f.now);
  EXPECT_EQ(f.core.timers().at(Timer::Rto), begin + seconds(1 + 2));
  EXPECT_FALSE(f.core.timers().runs(Timer::Probe));
  EXPECT_EQ(f.flight.recovery().phase(), RecoveryPhase::TimedOut);
  EXPECT_EQ(f.board().lost_octets(), 6000u);
  EXPECT_EQ(f.cwnd(), 1000u);
  EXPECT_EQ(f.flight.congestion().ssthresh(), 7000u);
  f.flight.resent(0, f.now);
  f.now += seconds(2);
  EXPECT_TRUE(f.flight.time_out(f.now)) << "and nothing has come since";
  f.flight.lose_all(true, f.now);
  EXPECT_EQ(f.flight.congestion().ssthresh(), 7000u) << "it is held";
  EXPECT_EQ(f.core.timers().at(Timer::Rto), begin + seconds(3 + 4));
  EXPECT_TRUE(f.egress.doubted.empty());
  f.now += seconds(4);
  EXPECT_TRUE(f.flight.time_out(f.now));
  EXPECT_EQ(f.egress.doubted, std::vector{RawPeer::kPeer}) << "R1";
  EXPECT_EQ(f.core.timers().at(Timer::Rto), begin + seconds(10)) << "R2 comes before the next";
  EXPECT_FALSE(f.flight.stalled(begin + seconds(10) - microseconds(1)));
  EXPECT_TRUE(f.flight.stalled(begin + seconds(10)));
}

}  // namespace
}  // namespace rnic::testing
