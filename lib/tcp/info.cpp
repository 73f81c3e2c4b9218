#include "tcp/info.hpp"

#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

LossState loss_state_of(const Connection& c) {
  switch (c.recovery.phase()) {
    case RecoveryPhase::Recovery: return LossState::Recovery;
    case RecoveryPhase::Loss: return LossState::Loss;
    case RecoveryPhase::Open: break;
  }
  const bool disorder = c.board.sacked_octets() != 0 || c.board.duplicate_acks() != 0;
  return disorder ? LossState::Disorder : LossState::Open;
}

/// Walks the records once: a record that began a segment stands for it.
void count_segments(const Connection& c, ConnectionInfo& info) {
  for (uint64_t n = c.board.first(); n < c.board.past_last(); ++n) {
    const Record& r = c.board.at(n);
    const uint64_t live = c.board.live(r);
    if (live == 0) continue;
    const bool starts = r.is(record_flag::kSegmentStart) || n == c.board.first();
    const uint64_t pieces = r.length > c.effective_mss
                                ? (live + c.effective_mss - 1) / c.effective_mss
                                : (starts ? 1 : 0);
    const auto count = static_cast<uint32_t>(pieces);
    info.unacked += count;
    if (r.is(record_flag::kSacked)) info.sacked += count;
    if (r.is(record_flag::kLost)) info.lost += count;
    if (r.is(record_flag::kRetransmitted)) info.retransmitted += count;
    if (r.is(record_flag::kResent)) info.total_resent += count;
  }
}

}  // namespace

ConnectionInfo Engine::info(const Connection& c) const {
  ConnectionInfo info;
  info.state = c.state;
  info.loss_state = loss_state_of(c);
  info.timestamps = c.tcb.ts_ok;
  info.sack = c.tcb.sack_ok;
  info.ecn = c.ecn.on();
  info.snd_wind_shift = c.tcb.snd_wind_shift;
  info.rcv_wind_shift = c.tcb.rcv_wind_shift;
  info.window_scaling = c.handshake.offered().scale;
  info.emss = c.effective_mss;
  info.rcv_mss = c.ack.rcv_mss();
  info.path_mtu = egress_.path_mtu(c.remote_end.address);
  info.cwnd = c.cc.cwnd();
  info.ssthresh = c.cc.ssthresh();
  info.slow_start = c.cc.in_slow_start();
  info.snd_una = c.tcb.snd_una;
  info.snd_nxt = c.tcb.snd_nxt;
  info.snd_wnd = c.tcb.snd_wnd;
  info.pipe = c.board.pipe();
  count_segments(c, info);
  if (!c.tcb.sack_ok) {
    info.sacked =
        static_cast<uint32_t>((c.board.reno_sacked() + c.effective_mss - 1) / c.effective_mss);
  }
  info.reorder_degree = kDupThresh;
  info.reordering_seen = c.rack.reordering_seen();
  info.rcv_nxt = c.tcb.rcv_nxt;
  info.rcv_wnd = static_cast<uint32_t>(c.tcb.rcv_wnd());
  info.out_of_order_ranges = static_cast<uint32_t>(c.committed.ranges().size());
  if (c.rto.measured()) {
    info.srtt = c.rto.srtt();
    info.rttvar = c.rto.rttvar();
    info.min_rtt = c.rto.min_rtt();
  }
  info.rto = c.rto.rto();
  info.rto_backoff = c.rto.backoff();
  info.window_probes = c.persist_backoff;
  return info;
}

}  // namespace rnic::tcp
