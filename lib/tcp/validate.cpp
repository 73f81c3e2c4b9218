#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

/// What the scoreboard keeps as running sums, counted anew.
struct BoardSums {
  uint64_t sacked = 0;
  uint64_t lost = 0;
  uint64_t retransmitted = 0;
  uint32_t sacked_segments = 0;
};

BoardSums count_board(Connection& c) {
  BoardSums sums;
  for (uint64_t n = c.records.first(); n < c.records.past_last(); ++n) {
    const Record& r = c.records.at(n);
    const uint64_t live = c.live(r);
    if (r.is(record_flag::kSacked)) {
      RNIC_CHECK(!r.is(record_flag::kLost | record_flag::kRetransmitted));
      sums.sacked += live;
      if (r.is(record_flag::kSegmentStart)) ++sums.sacked_segments;
    }
    if (r.is(record_flag::kLost)) sums.lost += live;
    if (r.is(record_flag::kRetransmitted)) {
      RNIC_CHECK(r.is(record_flag::kLost));
      sums.retransmitted += live;
    }
    const bool waits = r.is(record_flag::kLost) && !r.is(record_flag::kRetransmitted);
    RNIC_CHECK(!waits || live == 0 || n >= c.retransmit_hint);
  }
  return sums;
}

/// Records lie end to end from SND.UNA to the end of the queue; only the last may be unsent.
void check_records(Connection& c) {
  RNIC_CHECK(c.queue_end >= c.tcb.snd_nxt);
  if (c.records.empty()) {
    RNIC_CHECK(c.queue_end == c.tcb.snd_una);
    return;
  }
  RNIC_CHECK(c.records.front().offset <= c.tcb.snd_una);
  RNIC_CHECK(c.records.front().end() > c.tcb.snd_una);
  uint64_t at = c.records.front().offset;
  for (uint64_t n = c.records.first(); n < c.records.past_last(); ++n) {
    const Record& r = c.records.at(n);
    RNIC_CHECK(r.offset == at && r.length != 0);
    at = r.end();
    RNIC_CHECK(at <= c.tcb.snd_nxt || n + 1 == c.records.past_last());
  }
  RNIC_CHECK(at == c.queue_end);
}

void check_receive_side(const Connection& c) {
  uint64_t past = c.tcb.rcv_nxt;
  for (const base::Range& range : c.committed.ranges()) {
    RNIC_CHECK(range.begin > past && !range.empty());
    past = range.end;
  }
  RNIC_CHECK(c.committed.empty() || past <= c.tcb.rcv_edge);
  RNIC_CHECK(!c.tcb.fin_reached || (c.fin_seen && c.fin_offset == c.tcb.rcv_nxt));
  RNIC_CHECK(!c.fin_seen || past <= c.fin_offset);
}

}  // namespace

void Engine::validate_connection(Connection& c) const {
  c.tcb.validate();
  check_records(c);
  check_receive_side(c);
  const BoardSums sums = count_board(c);
  RNIC_CHECK(sums.sacked == c.board.sacked_octets);
  RNIC_CHECK(sums.lost == c.board.lost_octets);
  RNIC_CHECK(sums.retransmitted == c.board.retransmitted_octets);
  RNIC_CHECK(sums.sacked_segments == c.board.sacked_segments);
  for (const base::Range& range : c.board.sacked.ranges()) {
    RNIC_CHECK(range.begin >= c.tcb.snd_una && range.end <= c.tcb.snd_nxt);
  }
  RNIC_CHECK(c.cc.cwnd() >= c.cc.smss());
  // What is in flight is watched: RFC 6298 s.5.1.
  if (synchronized(c.state) && c.state != State::TimeWait) {
    RNIC_CHECK(c.tcb.flight() == 0 || c.timers.runs(Timer::Rto));
  }
  if (c.predicted) {
    RNIC_CHECK(calm(c));
    for (uint64_t n = c.records.first(); n < c.records.past_last(); ++n) {
      const Record& r = c.records.at(n);
      RNIC_CHECK((r.flags & ~(record_flag::kPush | record_flag::kSegmentStart)) == 0);
      RNIC_CHECK(r.saved == kNoSaved);
    }
  }
  c.timers.validate();
}

void Engine::validate() {
  uint64_t records = 0;
  uint32_t half_open = 0;
  connections_.for_each([&](base::Handle, Connection& c) {
    records += c.records.size();
    if (c.doomed) return;
    if (c.state == State::SynReceived && c.acceptor != nullptr) ++half_open;
    validate_connection(c);
  });
  RNIC_CHECK(records == record_pool_.live());
  RNIC_CHECK(half_open == half_open_);
  RNIC_CHECK(free_slots_.size() + connections_.live() == connections_.capacity());
}

}  // namespace rnic::tcp
