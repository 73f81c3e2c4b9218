// validate() of the owners in TCP: each of its checks fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core_parts.hpp"
#include "inside.hpp"
#include "tcp/byte_stream.hpp"
#include "tcp/connection_table.hpp"
#include "tcp/engine.hpp"

namespace rnic::testing {
namespace {

using test::expect_noticed;
using test::notices;

RNIC_OPEN(tcp::AckPolicy, duplicates_)
RNIC_OPEN(tcp::AckPolicy, fresh_)
RNIC_OPEN(tcp::AckPolicy, last_ack_sent_)
RNIC_OPEN(tcp::AckPolicy, octets_)
RNIC_OPEN(tcp::AckPolicy, parts_count_)
RNIC_OPEN(tcp::ByteStream, end_)
RNIC_OPEN(tcp::ByteStream, told_)
RNIC_OPEN(tcp::ByteStream, written_)
RNIC_OPEN(tcp::ByteStream, stream_)
RNIC_OPEN(tcp::ChallengeAcks, sent_)
RNIC_OPEN(tcp::Connection, core_)
RNIC_OPEN(tcp::Connection, handle_)
RNIC_OPEN(tcp::Connection, handshake_)
RNIC_OPEN(tcp::Connection, seat_)
RNIC_OPEN(tcp::ConnectionList, ends_)
RNIC_OPEN(tcp::ConnectionTable, flows_)
RNIC_OPEN(tcp::ConnectionTable, last_)
RNIC_OPEN(tcp::Cubic, acked_)
RNIC_OPEN(tcp::Cubic, credit_)
RNIC_OPEN(tcp::Cubic, cwnd_prior_)
RNIC_OPEN(tcp::Cubic, due_)
RNIC_OPEN(tcp::Cubic, k_)
RNIC_OPEN(tcp::Cubic, stage_)
RNIC_OPEN(tcp::Cubic, w_est_)
RNIC_OPEN(tcp::Cubic, w_max_)
RNIC_OPEN(tcp::Dctcp, alpha_)
RNIC_OPEN(tcp::EcnState, echo_)
RNIC_OPEN(tcp::EcnState, holds_)
RNIC_OPEN(tcp::EffectiveMss, emss_)
RNIC_OPEN(tcp::Sender, emss_)
RNIC_OPEN(tcp::Engine, listeners_)
RNIC_OPEN(tcp::Flight, cwnd_full_to_)
RNIC_OPEN(tcp::FlowTable, buckets_)
RNIC_OPEN(tcp::HalfOpenPlaces, taken_)
RNIC_OPEN(tcp::Handshake, state_)
RNIC_OPEN(tcp::Handshake, tries_)
RNIC_OPEN(tcp::HyStart, rtt_sample_count_)
RNIC_OPEN(tcp::Life, fin_wanted_)
RNIC_OPEN(tcp::Life, orphan_until_)
RNIC_OPEN(tcp::Life, state_)
RNIC_OPEN(tcp::ListenerTable, free_)
RNIC_OPEN(tcp::Pacing, waiting_)
RNIC_OPEN(tcp::PathMtuDiscovery, failures_)
RNIC_OPEN(tcp::PathMtuDiscovery, high_)
RNIC_OPEN(tcp::PathMtuDiscovery, limit_)
RNIC_OPEN(tcp::PathMtuDiscovery, next_at_)
RNIC_OPEN(tcp::PathMtuDiscovery, probe_begin_)
RNIC_OPEN(tcp::PathMtuDiscovery, probe_end_)
RNIC_OPEN(tcp::PathMtuDiscovery, probed_)
RNIC_OPEN(tcp::PathMtuDiscovery, state_)
RNIC_OPEN(tcp::Persist, backoff_)
RNIC_OPEN(tcp::Persist, unanswered_)
RNIC_OPEN(tcp::PooledRanges, set_)
RNIC_OPEN(tcp::Prediction, beside_)
RNIC_OPEN(tcp::Prediction, header_octets_)
RNIC_OPEN(tcp::Prediction, on_)
RNIC_OPEN(tcp::Prediction, window_field_)
RNIC_OPEN(tcp::Rack, dsack_round_)
RNIC_OPEN(tcp::Rack, extent_)
RNIC_OPEN(tcp::Rack, window_multiplier_)
RNIC_OPEN(tcp::Rack, window_persist_)
RNIC_OPEN(tcp::Receiver, committed_)
RNIC_OPEN(tcp::Receiver, fin_offset_)
RNIC_OPEN(tcp::RecordPool, directory_size_)
RNIC_OPEN(tcp::RecordPool, live_)
RNIC_OPEN(tcp::RecordQueue, directory_)
RNIC_OPEN(tcp::RecordQueue, directory_mask_)
RNIC_OPEN(tcp::RecordQueue, head_)
RNIC_OPEN(tcp::RecordQueue, past_last_)
RNIC_OPEN(tcp::Recovery, forced_)
RNIC_OPEN(tcp::Recovery, point_)
RNIC_OPEN(tcp::ReplyQueue, first_)
RNIC_OPEN(tcp::RtoEstimator, measured_)
RNIC_OPEN(tcp::RtoEstimator, rto_)
RNIC_OPEN(tcp::RtoEstimator, srtt_)
RNIC_OPEN(tcp::Scoreboard, altered_until_)
RNIC_OPEN(tcp::Scoreboard, duplicate_acks_)
RNIC_OPEN(tcp::Scoreboard, fack_)
RNIC_OPEN(tcp::Scoreboard, hole_)
RNIC_OPEN(tcp::Scoreboard, lost_octets_)
RNIC_OPEN(tcp::Scoreboard, queue_end_)
RNIC_OPEN(tcp::Scoreboard, records_)
RNIC_OPEN(tcp::Scoreboard, reno_advance_)
RNIC_OPEN(tcp::Scoreboard, retransmit_hint_)
RNIC_OPEN(tcp::Scoreboard, retransmitted_octets_)
RNIC_OPEN(tcp::Scoreboard, sacked_)
RNIC_OPEN(tcp::Scoreboard, sacked_octets_)
RNIC_OPEN(tcp::Scoreboard, sacked_segments_)
RNIC_OPEN(tcp::SpuriousDetector, frto_)
RNIC_OPEN(tcp::SpuriousDetector, undo_)
RNIC_OPEN(tcp::SpuriousDetector, undo_marker_)
RNIC_OPEN(tcp::SynCookies, periods_)
RNIC_OPEN(tcp::TailProbe, count_)
RNIC_OPEN(tcp::TailProbe, end_)
RNIC_OPEN(tcp::TailProbe, state_)
RNIC_OPEN(tcp::TailProbe, turn_)
RNIC_OPEN(tcp::TimeWait, timer_)
RNIC_OPEN(tcp::TimeWaitEntry, remote_port_)
RNIC_OPEN(tcp::TimeWaitTable, buckets_)
RNIC_OPEN(tcp::TimeWaitTable, entries_)
RNIC_OPEN(tcp::TimeWaitTable, first_)
RNIC_OPEN(tcp::TimeWaitTable, live_)
RNIC_OPEN(tcp::TimeWaitTable, used_)
RNIC_OPEN(tcp::Timers, at_)

constexpr uint64_t kBeyond = UINT64_MAX;

base::Now& at(const tcp::Timers& timers, tcp::Timer timer) {
  return at_(timers)[static_cast<size_t>(timer)];
}

/// Heads of the chains of a hash table: of one that has links, and of an empty one.
uint32_t& first_used(base::ZeroArray<uint32_t>& heads) {
  return *std::find_if(heads.data(), heads.data() + heads.size(),
                       [](uint32_t h) { return h != 0; });
}
uint32_t& first_free(base::ZeroArray<uint32_t>& heads) {
  return *std::find(heads.data(), heads.data() + heads.size(), 0u);
}

/// A connection that stands, with octets received and acknowledged.
struct Standing : RawPeer {
  Standing() : RawPeer(with_sack()) {
    data(0, 100);
    wait(seconds(1));
    RNIC_CHECK(connection.tcb().rcv_nxt == 100);
  }
  static tcp::Config with_sack() {
    tcp::Config c = bare();
    c.sack = true;
    return c;
  }
  /// Segments of one record each, in flight.
  void fly(uint32_t segments) {
    for (uint32_t i = 0; i < segments; ++i) user.queue(kMss);
    stack.output(now);
    RNIC_CHECK(connection.tcb().flight() == uint64_t{segments} * kMss);
  }
  [[nodiscard]] tcp::Tcb& tcb() const { return core_(connection).tcb; }

  tcp::Connection& connection = opened();
  tcp::Inside in{connection};

 private:
  /// The stack has this connection alone.
  tcp::Connection& opened() {
    accept(option_mss(kMss) + option_sack_permitted());
    return static_cast<tcp::Connection&>(*user.stream);
  }
};

TEST(Damage, OfATcb) {
  Standing s;
  notices(s.tcb(), "tcp/tcb.hpp: snd_una <= snd_nxt", [&] { s.tcb().snd_una = kBeyond; });
  notices(s.tcb(), "tcp/tcb.hpp: rcv_wind_shift <= 14", [&] { s.tcb().rcv_wind_shift = 15; });
  notices(s.tcb(), "tcp/tcb.hpp: snd_wnd <= snd_max_wnd", [&] { ++s.tcb().snd_wnd; });
}

TEST(Damage, OfAConnection) {
  Standing s;
  s.fly(1);
  s.inject({.seq = kIrs + 101, .ack = kIss + 1 + kMss, .flags = flag::kAck});
  ASSERT_TRUE(core_(s.connection).prediction.on());
  notices(s.connection, "tcp/connection.cpp: fast_path::predictable_beside",
          [&] { fin_wanted_(core_(s.connection).life) = true; });
  notices(s.connection, "tcp/connection.cpp: fast_path::predictable(",
          [&] { s.tcb().snd_wl1 = INT64_MAX; });
  tcp::HalfOpenPlaces places;
  notices(s.connection, "tcp/connection.cpp: !half_open() ||",
          [&] { seat_(s.connection).of_listener = &places; });
  notices(s.connection, "tcp/connection.cpp: handshake_.is_done() != opening",
          [&] { state_(handshake_(s.connection)) = tcp::HandshakeState::Sent; });
  notices(s.connection, "tcp/connection.cpp: !sender_.is_quiet() ||",
          [&] { state_(handshake_(s.connection)) = tcp::HandshakeState::Due; });
  notices(handshake_(s.connection), "tcp/handshake.cpp: tries_ == 0 || ambiguous", [&] {
    state_(handshake_(s.connection)) = tcp::HandshakeState::Sent;
    tries_(handshake_(s.connection)) = 1;
  });
  const tcp::Life& life = core_(s.connection).life;
  notices(life, "tcp/life.hpp: !fin_queued() ||", [&] { state_(life) = tcp::State::FinWait1; });
  notices(life, "tcp/life.hpp: orphan_until_ == base::kNever ||",
          [&] { orphan_until_(life) = s.now; });
  const tcp::EcnState& ecn = s.in.ecn;
  notices(ecn, "tcp/ecn_state.cpp: owed_count_ <= kMaxOwed &&", [&] { holds_(ecn) = 7; });
  notices(ecn, "tcp/ecn_state.cpp: on() || (!echo_", [&] { echo_(ecn) = true; });
  notices(s.in.timers, "tcp/timers.cpp: first == base::kNever ||",
          [&] { at(s.in.timers, tcp::Timer::Pacing) = {}; });
}

TEST(Damage, OfThePrediction) {
  Standing s;
  s.fly(1);
  s.inject({.seq = kIrs + 101, .ack = kIss + 1 + kMss, .flags = flag::kAck});
  const tcp::Prediction& prediction = core_(s.connection).prediction;
  ASSERT_TRUE(prediction.on());
  notices(s.connection, "tcp/prediction.cpp: compare(header.data())",
          [&] { on_(prediction) = false; });
  notices(s.connection, "tcp/prediction.cpp: beside_ || !on_",
          [&] { beside_(prediction) = false; });
  notices(s.connection, "tcp/prediction.cpp: header_octets_ == header_octets",
          [&] { header_octets_(prediction) += 4; });
  notices(s.connection, "tcp/prediction.cpp: unscaled << shift == window",
          [&] { window_field_(prediction) = 0; });
}

TEST(Damage, OfAReceiver) {
  Standing s;
  const tcp::Receiver& receiver = s.connection.receiver();
  const tcp::PooledRanges& committed = s.in.committed;
  const uint64_t next = s.tcb().rcv_nxt;
  const uint64_t edge = s.tcb().rcv_edge;
  notices(receiver, "tcp/receiver.cpp: range.begin > past", [&] {
    committed_(receiver).insert({next, next + 1});
  });
  notices(receiver, "tcp/receiver.cpp: past <= core_.tcb.rcv_edge", [&] {
    committed_(receiver).insert({next + 1, edge + 1});
  });
  notices(receiver, "tcp/receiver.cpp: past <= fin_offset_", [&] {
    s.tcb().peers_fin = tcp::PeersFin::Seen;
    fin_offset_(receiver) = next - 1;
  });
  notices(receiver, "tcp/receiver.cpp: fin_offset_ == core_.tcb.rcv_nxt", [&] {
    s.tcb().peers_fin = tcp::PeersFin::Reached;
    fin_offset_(receiver) = next + 1;
  });
  committed_(receiver).insert({next + 1, next + 2});
  notices(committed, "tcp/range_pool.hpp: !set_->empty()", [&] { set_(committed)->clear(); });
  const tcp::AckPolicy& ack = s.in.ack;
  notices(ack, "tcp/ack_policy.cpp: last_ack_sent_ <=", [&] { last_ack_sent_(ack) = kBeyond; });
  notices(ack, "tcp/ack_policy.cpp: fresh_ <= recent_count_", [&] { fresh_(ack) = 17; });
  notices(ack, "tcp/ack_policy.cpp: parts_count_ <=", [&] { parts_count_(ack) = 3; });
  notices(ack, "tcp/ack_policy.cpp: octets_ != 0 ||", [&] { parts_count_(ack) = 1; });
  notices(ack, "tcp/ack_policy.cpp: duplicates_ == 0", [&] { duplicates_(ack) = 1; });
  notices(ack, "tcp/ack_policy.cpp: runs(Timer::DelayedAck)", [&] { octets_(ack) = 1; });
}

TEST(Damage, OfASender) {
  Standing s;
  s.fly(2);
  const tcp::Sender& sender = s.connection.sender();
  const tcp::Flight& flight = sender.flight();
  notices(sender, "tcp/sender.cpp: runs(Timer::Rto)",
          [&] { at(s.in.timers, tcp::Timer::Rto) = base::kNever; });
  notices(flight, "tcp/flight.cpp: !recovery_.open() || !spurious_.frto()", [&] {
    undo_(s.in.spurious) = tcp::UndoState::Saved;
    frto_(s.in.spurious) = tcp::FrtoStep::AwaitFirst;
  });
  notices(flight, "tcp/flight.cpp: cwnd_full_to_ <=", [&] { cwnd_full_to_(flight) = kBeyond; });
  const tcp::EffectiveMss& emss = emss_(sender);
  notices(emss, "tcp/effective_mss.hpp: emss_ != 0", [&] { emss_(emss) = 0; });
  const tcp::Persist& persist = sender.persist();
  notices(persist,
          "tcp/persist.hpp: unanswered_ <=", [&] { unanswered_(persist) = backoff_(persist) + 2; });
}

TEST(Damage, OfTheSearchForAPathMtu) {
  Standing s;
  s.fly(1);
  const tcp::PathMtuDiscovery& path = s.in.path;
  notices(path, "tcp/path_mtu_discovery.cpp: failures_ <", [&] { failures_(path) = 2; });
  notices(path, "tcp/path_mtu_discovery.cpp: enabled() == (limit_", [&] { limit_(path) = 1; });
  notices(path, "tcp/path_mtu_discovery.cpp: enabled() == (limit_",
          [&] { state_(path) = tcp::PathSearchState::Searching; });
  notices(path, "tcp/path_mtu_discovery.cpp: next_at_ == base::Now{}",
          [&] { next_at_(path) = s.now; });
  notices(path, "tcp/path_mtu_discovery.cpp: !at_rest() ||", [&] { failures_(path) = 1; });
  notices(path, "tcp/path_mtu_discovery.cpp: !at_rest() ||", [&] {
    state_(path) = tcp::PathSearchState::SearchComplete;
    limit_(path) = 1024;
    high_(path) = 1499;
  });
  const auto probing = [&] {
    state_(path) = tcp::PathSearchState::Probing;
    limit_(path) = 1024;
  };
  notices(path, "tcp/path_mtu_discovery.cpp: probed_ != 0", probing);
  notices(path, "tcp/path_mtu_discovery.cpp: probe_begin_ < probe_end_", [&] {
    probing();
    probed_(path) = 1500;
    probe_end_(path) = probe_begin_(path) = 1;
  });
}

TEST(Damage, OfAnRtoEstimator) {
  const tcp::Config config;
  tcp::RtoEstimator rto(config);
  notices(rto, "tcp/rto_estimator.hpp: srtt_ > base::Duration(0)", [&] { measured_(rto) = true; });
  notices(rto, "tcp/rto_estimator.hpp: rto_ >= config_.rto_min", [&] {
    measured_(rto) = true;
    srtt_(rto) = seconds(1);
    rto_(rto) = {};
  });
}

TEST(Damage, OfLossDetection) {
  Standing s;
  const tcp::Rack& rack = s.in.rack;
  notices(rack, "tcp/rack.cpp: window_multiplier_ >= 1", [&] { window_multiplier_(rack) = 0; });
  notices(rack, "tcp/rack.cpp: window_persist_ <=", [&] { window_persist_(rack) = 17; });
  notices(rack, "tcp/rack.cpp: window_multiplier_ == 1", [&] {
    window_persist_(rack) = 0;
    window_multiplier_(rack) = 2;
  });
  notices(rack, "tcp/rack.cpp: extent_ <=", [&] { extent_(rack) = seconds(60); });
  notices(rack, "tcp/rack.cpp: dsack_round_ <=", [&] { dsack_round_(rack) = kBeyond; });
  const tcp::Recovery& recovery = s.in.recovery;
  notices(recovery, "tcp/recovery.cpp: point_ <=", [&] { point_(recovery) = kBeyond; });
  notices(recovery, "tcp/recovery.cpp: !open() || !forced_", [&] { forced_(recovery) = true; });
  const tcp::SpuriousDetector& spurious = s.in.spurious;
  notices(spurious,
          "tcp/spurious_detector.cpp: undo_marker_ <=", [&] { undo_marker_(spurious) = kBeyond; });
  notices(spurious, "tcp/spurious_detector.cpp: tcb_.ts_ok",
          [&] { undo_(spurious) = tcp::UndoState::AwaitEcho; });
  notices(spurious, "tcp/spurious_detector.cpp: undo_ != UndoState::Nothing",
          [&] { frto_(spurious) = tcp::FrtoStep::AwaitFirst; });
  notices(spurious, "tcp/spurious_detector.cpp: frto_new_ != 0", [&] {
    undo_(spurious) = tcp::UndoState::Saved;
    frto_(spurious) = tcp::FrtoStep::SendNew;
  });
}

TEST(Damage, OfATailProbe) {
  Standing s;
  const tcp::TailProbe& probe = s.in.tail_probe;
  notices(probe, "tcp/tail_probe.cpp: board_.tcb().flight() != 0",
          [&] { at(s.in.timers, tcp::Timer::Probe) = s.now; });
  s.fly(1);
  notices(probe, "tcp/tail_probe.cpp: end_ <=", [&] { end_(probe) = kBeyond; });
  notices(probe, "tcp/tail_probe.cpp: unmeasured() || count_ == 0", [&] { count_(probe) = 1; });
  notices(probe, "tcp/tail_probe.cpp: !due() ||", [&] {
    turn_(probe) = tcp::ProbeTurn::Due;
    state_(probe) = tcp::ProbeState::Repeated;
  });
  notices(probe, "tcp/tail_probe.cpp: wanted()", [&] {
    at(s.in.timers, tcp::Timer::Probe) = s.now;
    s.tcb().sack_ok = false;
  });
}

/// Four segments in flight, each a record of 1000 octets.
struct Board {
  Board() {
    tcb.sack_ok = true;
    for (int i = 0; i < 4; ++i) {
      tcp::Record record;
      record.length = 1000;
      record.flags = tcp::record_flag::kSegmentStart;
      board.push(record);
      tcb.snd_nxt += 1000;
    }
  }
  tcp::Record& second() { return records_(board).at(1); }

  tcp::RecordPool pool{256, 4, 128};
  tcp::RangePool ranges{4};
  tcp::Tcb tcb;
  tcp::Prediction prediction;
  tcp::Scoreboard board{tcb, pool, ranges, prediction};
};

TEST(Damage, OfTheRecordsOfAScoreboard) {
  Board b;
  const auto notes = [&](std::string_view check, auto damage) { notices(b.board, check, damage); };
  notes("tcp/scoreboard.cpp: queue_end_ >= tcb_.snd_nxt", [&] { ++b.tcb.snd_nxt; });
  notes("tcp/scoreboard.cpp: front().offset <= tcb_.snd_una",
        [&] { records_(b.board).front().offset = 1; });
  notes("tcp/scoreboard.cpp: front().end() > tcb_.snd_una", [&] { b.tcb.snd_una = 1000; });
  notes("tcp/scoreboard.cpp: record.offset == end", [&] { ++b.second().offset; });
  notes("tcp/scoreboard.cpp: end <= tcb_.snd_nxt ||", [&] { b.tcb.snd_nxt = 1500; });
  notes("tcp/scoreboard.cpp: clean || end <= altered_until_",
        [&] { b.second().flags |= tcp::record_flag::kResent; });
  notes("tcp/scoreboard.cpp: end == queue_end_", [&] { ++queue_end_(b.board); });
  Board none;
  records_(none.board).clear();
  none.tcb.snd_una = none.tcb.snd_nxt;
  notices(none.board, "tcp/scoreboard.cpp: queue_end_ == tcb_.snd_una",
          [&] { ++queue_end_(none.board); });
}

TEST(Damage, OfTheSumsOfAScoreboard) {
  using namespace tcp::record_flag;
  Board b;
  const auto notes = [&](std::string_view check, auto damage) { notices(b.board, check, damage); };
  notes("tcp/scoreboard.cpp: !record.is(record_flag::kLost | record_flag::kRetransmitted)",
        [&] { b.second().flags |= kSacked | kLost; });
  notes("tcp/scoreboard.cpp: record.is(record_flag::kLost)", [&] {
    b.second().flags |= kRetransmitted;
    altered_until_(b.board) = 4000;
  });
  notes("tcp/scoreboard.cpp: n >= retransmit_hint_", [&] {
    b.second().flags |= kLost;
    retransmit_hint_(b.board) = 3;
  });
  notes("tcp/scoreboard.cpp: sacked == sacked_octets_", [&] { ++sacked_octets_(b.board); });
  notes("tcp/scoreboard.cpp: lost == lost_octets_", [&] { ++lost_octets_(b.board); });
  notes("tcp/scoreboard.cpp: retransmitted == retransmitted_octets_",
        [&] { ++retransmitted_octets_(b.board); });
  notes("tcp/scoreboard.cpp: segments == sacked_segments_", [&] { ++sacked_segments_(b.board); });
  notes("tcp/scoreboard.cpp: altered_until_ <= queue_end_",
        [&] { altered_until_(b.board) = kBeyond; });
}

TEST(Damage, OfWhatAcksHaveTold) {
  Board b;
  const auto notes = [&](std::string_view check, auto damage) { notices(b.board, check, damage); };
  notes("tcp/scoreboard.cpp: range.begin >= tcb_.snd_una", [&] {
    sacked_(b.board).insert({5000, 6000});
  });
  notes("tcp/scoreboard.cpp: !covered || n == first()", [&] {
    sacked_(b.board).insert({1000, 2000});
  });
  notes("tcp/scoreboard.cpp: std::max(fack_", [&] { fack_(b.board) = 4000; });
  notes("tcp/scoreboard.cpp: duplicate_acks_ == 0", [&] { duplicate_acks_(b.board) = 1; });
  notes("tcp/scoreboard.cpp: hole_ <= tcb_.flight()", [&] {
    b.tcb.sack_ok = false;
    hole_(b.board) = 5000;
  });
  notes("tcp/scoreboard.cpp: reno_advance_ <= tcb_.snd_una", [&] { reno_advance_(b.board) = 1; });
}

TEST(Damage, OfCubic) {
  tcp::Cubic cubic;
  notices(cubic, "tcp/cubic.cpp: acked_ < due_", [&] { due_(cubic) = acked_(cubic) = 1; });
  notices(cubic, "tcp/cubic.cpp: credit_ < 1", [&] { credit_(cubic) = 1; });
  notices(cubic, "tcp/cubic.cpp: k_ >= 0", [&] { k_(cubic) = -1; });
  notices(cubic, "tcp/cubic.cpp: acked_ == 0 && due_ == 0", [&] { acked_(cubic) = 1; });
  notices(cubic, "tcp/cubic.cpp: w_est_ > 0", [&] { stage_(cubic) = tcp::CubicStage::Running; });
  notices(cubic, "tcp/cubic.cpp: stage_ == CubicStage::Running ||", [&] {
    stage_(cubic) = tcp::CubicStage::Paused;
    w_max_(cubic) = cwnd_prior_(cubic) = w_est_(cubic) = due_(cubic) = 1;
  });
}

TEST(Damage, OfMeasuredRounds) {
  tcp::Dctcp dctcp;
  expect_noticed(
      "tcp/dctcp.hpp: alpha_ <= kScale", [&] { dctcp.validate(0); },
      [&] { alpha_(dctcp) = UINT32_MAX; });
  tcp::HyStart hystart;
  expect_noticed(
      "tcp/hystart.cpp: (rtt_sample_count_ == 0)", [&] { hystart.validate({}, 0); },
      [&] { rtt_sample_count_(hystart) = 1; });
  CoreParts c;
  tcp::Pacing pacing;
  expect_noticed(
      "tcp/pacing.hpp: !waiting_ ||", [&] { pacing.validate(c.core.timers()); },
      [&] { waiting_(pacing) = true; });
}

TEST(Damage, OfAQueueOfRecords) {
  tcp::RecordPool pool(256, 4, 128);
  notices(pool, "tcp/record_queue.cpp: live_ <= max_records_ +", [&] { live_(pool) = 321; });
  notices(pool, "tcp/record_queue.cpp: live_ <= uint64_t{chunks_in_use()}",
          [&] { live_(pool) = 1; });
  tcp::RecordQueue queue(pool);
  uint32_t directory[16] = {};
  notices(queue, "tcp/record_queue.cpp: !is_wide()", [&] {
    directory_(queue) = directory;
    directory_mask_(queue) = directory_size_(pool) - 1;
  });
  tcp::Record record;
  record.length = 1;
  for (int i = 0; i < 40; ++i) queue.push_back(record);
  notices(queue, "tcp/record_queue.cpp: size() <= pool_.max_per_connection_",
          [&] { past_last_(queue) += 128; });
  notices(queue, "tcp/record_queue.cpp: directory_mask_ ==", [&] { directory_mask_(queue) = 7; });
  notices(queue, "tcp/record_queue.cpp: head_ == &at(first_)", [&] { ++head_(queue); });
  notices(queue, "tcp/record_queue.cpp: !mine[chunk]",
          [&] { directory_(queue)[1] = directory_(queue)[0]; });
}

TEST(Damage, OfAByteStream) {
  RawPeer p;
  p.accept();
  tcp::ByteStream user(1024);
  notices(user, "tcp/byte_stream.cpp: written - released <=", [&] { written_(user) = 1; });
  notices(user, "tcp/byte_stream.cpp: read <= ordered", [&] { told_(user) = 1; });
  notices(user, "tcp/byte_stream.cpp: !how_ended()", [&] {
    stream_(user) = p.user.stream;
    end_(user).set(StreamEnd::Closed);
  });
}

TEST(Damage, OfTheTableOfConnections) {
  SharedParts parts;
  tcp::ConnectionTable table(3, SharedParts::kSecret);
  const Endpoint here{IpAddress::v4(0x0a000001), 4420};
  tcp::Connection& c = *table.insert(here, {IpAddress::v4(0x0a000002), 1}, parts.shared);
  tcp::Connection other(parts.shared);
  notices(table, "tcp/connection_table.hpp: connection.handle() == handle",
          [&] { handle_(c) = {}; });
  notices(table, "tcp/connection_table.hpp: slot_of(",
          [&] { flows_(table).erase(c.handle().index, c.local(), c.remote()); });
  notices(table, "tcp/connection_table.hpp: last_ == nullptr ||",
          [&] { last_(table) = const_cast<tcp::Connection*>(&other); });
  const tcp::FlowTable& flows = flows_(table);
  const auto flow_of = [&c](uint32_t) { return tcp::FlowTable::Flow{c.local(), c.remote()}; };
  expect_noticed(
      "tcp/flow_table.hpp: bucket(flow.local", [&] { flows.validate(1, flow_of); },
      [&] { std::swap(first_used(buckets_(flows)), first_free(buckets_(flows))); });
}

TEST(Damage, OfWhatConnectionsShare) {
  SharedParts parts;
  const auto validate = [&] { parts.shared.validate({}); };
  expect_noticed(
      "tcp/shared.hpp: held.half_open ==", [] {}, [&] { parts.shared.validate({.half_open = 1}); });
  expect_noticed("tcp/challenge_acks.hpp: sent_ <= limit_", validate,
                 [&] { sent_(parts.shared.challenges) = UINT32_MAX; });
  expect_noticed("tcp/reply_queue.hpp: first_ < kCapacity", validate,
                 [&] { first_(parts.replies) = UINT32_MAX; });
  tcp::HalfOpenPlaces none;
  notices(none, "tcp/half_open.cpp: taken_ <= limit_", [&] { taken_(none) = 1; });
  tcp::HalfOpenPlaces two(2, std::make_unique<llp::Admission>(2, SharedParts::kSecret));
  notices(two, "tcp/half_open.cpp: by_age_->size() == taken_", [&] { taken_(two) = 1; });
  tcp::SynCookies cookies(parts.config, SharedParts::kSecret, parts.shared.syn_terms);
  notices(cookies, "tcp/syn_cookies.hpp: periods_[i] % 2 == i", [&] { periods_(cookies)[0] = 1; });
}

TEST(Damage, OfListsOfConnectionsAndListeners) {
  tcp::ConnectionList list;
  tcp::ConnectionLink link(nullptr);
  notices(list, "tcp/connection_list.hpp: ends_.prev == before", [&] { ends_(list).prev = &link; });
  UserAcceptor acceptor;
  tcp::ListenerTable table(4);
  const uint32_t place = table.insert({RawPeer::kUs, 80}, acceptor, {});
  const uint32_t more = table.insert({{}, 80}, acceptor, {});
  notices(table, "tcp/listener_table.hpp: is_listener(i) || is_alone(i)",
          [&] { table.at(place).acceptor = nullptr; });
  notices(table, "tcp/listener_table.hpp: place_of(listeners_[i].local) == i",
          [&] { table.at(more).local = table.at(place).local; });
  table.erase(more);
  table.erase(place);
  notices(table, "tcp/listener_table.hpp: places == listeners_.size()",
          [&] { free_(table) = tcp::ListenerTable::kNone; });
}

TEST(Damage, OfAnEngine) {
  CaptureEgress egress;
  tcp::Engine engine({}, egress, SharedParts::kSecret, 3, base::Now{});
  UserAcceptor acceptor;
  ASSERT_TRUE(engine.listen({RawPeer::kUs, RawPeer::kOurPort}, acceptor, {}).has_value());
  notices(engine, "tcp/engine.cpp: all.half_open == of_listeners",
          [&] { taken_(listeners_(engine).at(0).half_open) = 1; });
}

TEST(Damage, OfTimeWait) {
  base::Now now = base::from_nanos(1'000'000'000);
  SharedParts parts;
  tcp::TimeWait& waiting = parts.shared.time_wait;
  const Endpoint here{IpAddress::v4(0x0a000001), 4420};
  const Endpoint there{IpAddress::v4(0x0a000002), 1};
  waiting.enter(here, there, {}, false, now);
  notices(waiting, "tcp/time_wait.cpp: timer_.armed()",
          [&] { parts.shared.wheel.cancel(timer_(waiting)); });

  tcp::TimeWaitTable table(4, seconds(1), SharedParts::kSecret);
  table.add(here, there, {}, now);
  const auto notes = [&](std::string_view check, auto damage) { notices(table, check, damage); };
  base::ZeroArray<uint32_t>& buckets = buckets_(table);
  notes("tcp/time_wait_table.cpp: first_ < capacity()", [&] { first_(table) = 4; });
  notes("tcp/time_wait_table.cpp: used_ == 0 || !entries_[first_].gone()",
        [&] { remote_port_(entries_(table)[0]) = 0; });
  notes("tcp/time_wait_table.cpp: live == live_", [&] { ++live_(table); });
  notes("tcp/time_wait_table.cpp: % capacity() < used_", [&] { first_used(buckets) = 2; });
  notes("tcp/time_wait_table.cpp: ++linked <= live_",
        [&] { std::swap(first_used(buckets), first_free(buckets)); });
  notes("tcp/time_wait_table.cpp: linked == live_", [&] { first_used(buckets) = 0; });
  EXPECT_EQ(used_(table), 1u);
}

}  // namespace
}  // namespace rnic::testing
