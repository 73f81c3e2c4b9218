#include "tcp/engine.hpp"

namespace rnic::tcp {

// Header prediction (RFC 7323 s.5.6, after Van Jacobson): what nearly every segment of a calm
// connection is, the next one in order or the acknowledgment of what was sent once, is recognized
// by a few comparisons. All others go the whole way of input.cpp, with the same result: what is
// done here is what is left of it when nothing out of the ordinary is under way.

namespace flag = wire::tcp_flag;

namespace {

// Of a header's fourth word: the data offset and all flags but PSH. Reserved bits are not looked
// at (RFC 9293 s.3.1).
constexpr uint32_t kPredictedBits = 0xf0f70000;

constexpr base::Duration kStampTick = std::chrono::milliseconds(1);
constexpr uint32_t kTimestampsHead = 0x0101080a;  // NOP NOP TSopt (RFC 7323 appendix A)

}  // namespace

bool Engine::calm(const Connection& c) {
  const Scoreboard& b = c.board;
  const Recovery& r = c.recovery;
  const bool no_end = c.state == State::Established && !c.doomed && !c.fin_seen && !c.fin_wanted;
  const bool no_loss = r.phase == RecoveryPhase::Open && !r.tlp_outstanding && !r.tlp_unmeasured &&
                       !r.adapt_rto && b.sacked.empty() && b.lost_octets == 0 &&
                       b.sacked_octets == 0 && b.reno_sacked == 0 && b.duplicate_acks == 0 &&
                       b.fack <= c.tcb.snd_una && c.deadlines.reorder == base::kNever &&
                       c.odd_until <= c.tcb.snd_una;
  const bool no_hole = c.committed.empty() && c.tcb.snd_wl1 <= static_cast<int64_t>(c.tcb.rcv_nxt);
  return no_end && no_loss && no_hole && c.path.probe_end == 0 && c.tcb.snd_wnd != 0 &&
         c.deadlines.persist == base::kNever && !c.ecn.echo;
}

void Engine::predict(Connection& c) const {
  const bool plain = predicting_ && !base::sabotaged(base::Defect::SkipAckedRecord);
  c.prediction = plain && calm(c) ? header_length(c) << 26 | uint32_t{flag::kAck} << 16 : 0;
}

Connection* Engine::find_flow(const SegmentIn& in) {
  const uint32_t ports = base::load_be32(in.tcp.data());
  Connection* c = last_flow_;
  if (c != nullptr && (uint32_t{c->remote_end.port} << 16 | c->local_end.port) == ports &&
      c->remote_end.address == in.source && c->local_end.address == in.destination) [[likely]] {
    return c;
  }
  const uint32_t slot = flows_.find({in.destination, static_cast<uint16_t>(ports)},
                                    {in.source, static_cast<uint16_t>(ports >> 16)});
  if (slot == FlowTable::kNone) return nullptr;
  return last_flow_ = by_slot_[slot];
}

bool Engine::take_predicted(Connection& c, const SegmentIn& in, base::Now now) {
  Tcb& t = c.tcb;
  const uint8_t* p = in.tcp.data();
  const uint32_t word = base::load_be32(p + wire::tcp_offset::kDataOffset);
  if (((word ^ c.prediction) & kPredictedBits) != 0) return false;
  const uint32_t header = word >> 28 << 2;
  const size_t size = in.tcp.size();
  const uint64_t end = t.rcv_nxt + size - header;
  const uint32_t acked =
      base::load_be32(p + wire::tcp_offset::kAcknowledgment) - t.snd_seq(t.snd_una).value;
  if (base::load_be32(p + wire::tcp_offset::kSequence) != t.rcv_seq(t.rcv_nxt).value ||
      size < header || size > 0xffff || end > t.rcv_edge || acked > t.flight()) {
    return false;
  }
  const uint32_t window = word & 0xffff;
  if (window == 0 || (in.ecn == ecn_codepoint::kCe && c.ecn.on)) return false;
  const bool stamped = header != wire::kTcpHeaderMin;
  uint32_t stamp = 0;
  if (stamped) {
    stamp = base::load_be32(p + wire::tcp_offset::kOptions + 4);
    if (base::load_be32(p + wire::tcp_offset::kOptions) != kTimestampsHead ||
        static_cast<int32_t>(stamp - t.ts_recent) < 0) {
      return false;
    }
  }
  if (acked == 0 ? size == header : c.records.front().end() > t.snd_una + acked) return false;
  if (!in.checksum_verified && !checksum_good(in)) return false;

  ++counters_.segments_in;
  ++counters_.predicted_in;
  c.heard_at = now;
  if (stamped && t.rcv_nxt <= t.last_ack_sent) {  // RFC 7323 s.4.3 (2)
    t.ts_recent = stamp;
    t.ts_recent_at = now;
  }
  if (size == header) {
    ++counters_.acks_in;
    take_predicted_ack(c, acked, window, p, now);
    return true;
  }
  const base::ByteView text{p + header, size - header};
  const base::Range range{t.rcv_nxt, end};
  if (c.user->inspect(range, text, now) == llp::InspectVerdict::Drop) {
    ++counters_.inspect_drops;
    return true;
  }
  if (c.doomed) return true;
  if (acked != 0 || window << t.snd_wind_shift != t.snd_wnd || t.flight() != 0) {
    take_predicted_ack(c, acked, window, p, now);
    if (c.doomed) return true;
  } else {
    t.snd_wl1 = static_cast<int64_t>(t.rcv_nxt);
    t.snd_wl2 = static_cast<int64_t>(t.snd_una);
    if (c.user_ready || c.has_waiting()) make_ready(c);
  }
  take_predicted_text(c, range, text, (word & uint32_t{flag::kPsh} << 16) != 0, now);
  return true;
}

bool Engine::rack_overtaken(Connection& c) {
  // Was the oldest in flight sent before the newest that arrived? Then so may others have been: a
  // retransmission came in between. Without it rack_detect() has nothing to find.
  if (!c.tcb.sack_ok || c.tcb.flight() == 0) return false;
  const Record& r = c.records.front();
  return c.rack.xmit_at > r.sent_at || (c.rack.xmit_at == r.sent_at && c.rack.end > r.end());
}

void Engine::settle_predicted(Connection& c, uint64_t acked, base::Duration rtt, base::Now now) {
  AckYield yield;
  yield.acked = yield.delivered = acked;
  yield.rtt = rtt;
  settle(c, yield, now);
  schedule(c);
  predict(c);  // there may be a loss now
}

[[gnu::always_inline]] inline void Engine::restart_calm(Connection& c, base::Now now) {
  const Tcb& t = c.tcb;
  if (t.flight() == 0) {
    c.deadlines.rto = c.deadlines.probe = base::kNever;
    return;
  }
  // restart_timers() and arm_probe(), calm as it is; an armed timer that is early stays.
  const base::Now rto = now + c.rto.base();
  base::Now probe = base::kNever;
  if (t.sack_ok && config_.tail_loss_probe) {
    const bool delayed = t.flight() <= c.effective_mss;
    probe = base::earlier(rto, now + c.rto.probe_timeout() +
                                   (delayed ? config_.tlp_max_ack_delay : base::Duration(0)));
  }
  c.deadlines.rto = rto;
  c.deadlines.probe = probe;
  wake_by(c, base::earlier(rto, probe));
}

[[gnu::always_inline]] inline void Engine::take_predicted_ack(Connection& c, uint32_t acked,
                                                              uint32_t window, const uint8_t* p,
                                                              base::Now now) {
  Tcb& t = c.tcb;
  base::Now sent_at{};
  uint64_t end = 0;
  if (acked != 0) {
    // advance_una() for records that were sent once, in this order, and carry no marks.
    const uint64_t ack = t.snd_una + acked;
    do {
      const Record& r = c.records.front();
      const uint64_t this_end = r.end();
      if (this_end > ack) break;
      end = this_end;
      sent_at = r.sent_at;
      const llp::RecordTag tag = r.tag;
      c.records.pop_front();
      c.user->released(tag, end);
      if (c.doomed) return;
    } while (!c.records.empty());
    t.snd_una = ack;
  }
  if (const uint32_t octets = window << t.snd_wind_shift; octets != t.snd_wnd) {
    t.snd_wnd = octets;
    t.snd_max_wnd = std::max(t.snd_max_wnd, octets);
  }
  t.snd_wl1 = static_cast<int64_t>(t.rcv_nxt);
  t.snd_wl2 = static_cast<int64_t>(t.snd_una);
  if (c.user_ready || c.has_waiting()) make_ready(c);
  if (acked == 0) {
    if (rack_overtaken(c)) settle_predicted(c, 0, base::Duration(-1), now);
    return;
  }
  base::Duration rtt = now - sent_at;
  // RFC 8985 s.6.2 steps 1 and 2, for the newest alone.
  const bool newest = sent_at > c.rack.xmit_at || (sent_at == c.rack.xmit_at && end > c.rack.end);
  if (newest) [[likely]] {
    c.rack.rtt = rtt;
    c.rack.xmit_at = sent_at;
    c.rack.end = end;
  }
  if (rtt > kStampTick && t.ts_ok) {  // RFC 7323 s.4.1, see measure()
    const uint32_t echo = base::load_be32(p + wire::tcp_offset::kOptions + 8);
    const auto ticks = static_cast<int32_t>(timestamp_of(c, now) - echo);
    if (ticks >= 0) rtt = std::min(rtt, (int64_t{ticks} + 1) * kStampTick);
  }
  c.rto.offer(rtt, now);
  c.progress_at = now;
  if (c.ecn.on) {
    c.cc.count_marks(sample_of(c, acked, rtt, now), false);
    c.ecn.holds = 0;
  }
  if (!newest && rack_overtaken(c)) {
    settle_predicted(c, acked, rtt, now);
    return;
  }
  grow_window(c, acked, rtt, now);
  c.recovery.tlp_count = 0;
  restart_calm(c, now);
}

[[gnu::always_inline]] inline void Engine::take_predicted_text(Connection& c, base::Range range,
                                                               base::ByteView text, bool push,
                                                               base::Now now) {
  c.tcb.rcv_nxt = range.end;
  counters_.octets_in += text.size();
  c.user->place(range, text, true, now);
  AckState& ack = c.ack;
  const auto size = static_cast<uint32_t>(text.size());
  ack.rcv_mss = std::max(ack.rcv_mss, size);
  ack.octets += size;
  if (ack.octets >= 2 * ack.rcv_mss || push) {  // RFC 9293 s.3.8.6.3
    ack.now = true;
    make_ready(c);
  } else if (c.deadlines.delayed_ack == base::kNever) {
    c.deadlines.delayed_ack = now + config_.delayed_ack;
    wake_by(c, c.deadlines.delayed_ack);
  }
  if (!c.doomed) c.user->ordered(range.end, now);
}

}  // namespace rnic::tcp
