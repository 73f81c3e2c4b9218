#include "tcp/engine.hpp"

namespace rnic::tcp {

// Header prediction (RFC 7323 s.5.6, after Van Jacobson): what nearly every segment of a calm
// connection is, the next one in order or the acknowledgment of what was sent once, is recognized
// by a few comparisons. All others go the whole way of input.cpp, with the same result: what is
// done here is what is left of it when nothing out of the ordinary is under way.

namespace flag = wire::tcp_flag;

namespace {

// Of a header's first sixteen octets: ports, sequence number, data offset and all flags but PSH.
// Reserved bits are not looked at (RFC 9293 s.3.1).
constexpr base::OctetPattern::Octets kPredictedMask{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0,    0,    0,    0,    0xf0, 0xf7, 0,    0};
constexpr uint32_t kTimestampsHead = 0x0101080a;  // NOP NOP TSopt (RFC 7323 appendix A)
constexpr base::Duration kStampTick = std::chrono::milliseconds(1);

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
  if (!predicting_ || !calm(c) || base::sabotaged(base::Defect::SkipAckedRecord)) {
    unpredict(c);
    return;
  }
  base::OctetPattern::Octets header{};
  base::store_be16(&header[wire::tcp_offset::kSourcePort], c.remote_end.port);
  base::store_be16(&header[wire::tcp_offset::kDestinationPort], c.local_end.port);
  base::store_be32(&header[wire::tcp_offset::kSequence], c.tcb.rcv_seq(c.tcb.rcv_nxt).value);
  header[wire::tcp_offset::kDataOffset] = static_cast<uint8_t>(header_length(c) << 2);
  header[wire::tcp_offset::kFlags] = flag::kAck;
  c.prediction.set(header);
  c.predicted = true;
}

bool Engine::find_flow(const SegmentIn& in, Connection*& c) {
  using base::OctetPattern;
  const uint8_t* p = in.tcp.data();
  c = last_flow_;
  if (c != nullptr) [[likely]] {
    const auto same = [](const llp::IpAddress& a, const llp::IpAddress& b) {
      return _mm_cmpeq_epi8(OctetPattern::load(&a), OctetPattern::load(&b));
    };
    const __m128i addresses = _mm_and_si128(same(in.source, c->remote_end.address),
                                            same(in.destination, c->local_end.address));
    const __m128i header = c->prediction.compare(p, kPredictedMask);
    if (OctetPattern::all(_mm_and_si128(addresses, header))) [[likely]]
      return true;
  }
  const uint32_t slot =
      flows_.find({in.destination, base::load_be16(p + 2)}, {in.source, base::load_be16(p)});
  c = slot != FlowTable::kNone ? by_slot_[slot] : nullptr;
  if (c == nullptr) return false;
  last_flow_ = c;
  return OctetPattern::all(c->prediction.compare(p, kPredictedMask));
}

inline bool Engine::stamp_good(const Connection& c, const uint8_t* p, uint32_t header) {
  if (header == wire::kTcpHeaderMin) return true;
  p += wire::tcp_offset::kOptions;
  return base::load_be32(p) == kTimestampsHead &&
         static_cast<int32_t>(base::load_be32(p + 4) - c.tcb.ts_recent) >= 0;
}

inline void Engine::note_predicted(Connection& c, const uint8_t* p, uint32_t header,
                                   base::Now now) {
  ++counters_.segments_in;
  ++counters_.predicted_in;
  c.heard_at = now;
  if (header != wire::kTcpHeaderMin && c.tcb.rcv_nxt <= c.tcb.last_ack_sent) {
    c.tcb.ts_recent = base::load_be32(p + wire::tcp_offset::kOptions + 4);  // RFC 7323 s.4.3 (2)
    c.tcb.ts_recent_at = now;
  }
}

inline uint32_t Engine::plain_ack(Connection& c, const uint8_t* p) {
  const Tcb& t = c.tcb;
  const uint32_t acked =
      base::load_be32(p + wire::tcp_offset::kAcknowledgment) - t.snd_seq(t.snd_una).value;
  const bool moves = uint64_t{acked} - 1 < t.flight();
  return moves && c.records.front().end() <= t.snd_una + acked ? acked : 0;
}

inline void Engine::take_predicted_window(Connection& c, const uint8_t* p) {
  Tcb& t = c.tcb;
  const uint32_t window = uint32_t{base::load_be16(p + wire::tcp_offset::kWindow)}
                          << t.snd_wind_shift;
  if (window != t.snd_wnd) {
    t.snd_wnd = window;
    t.snd_max_wnd = std::max(t.snd_max_wnd, window);
  }
  t.snd_wl1 = static_cast<int64_t>(t.rcv_nxt);
  t.snd_wl2 = static_cast<int64_t>(t.snd_una);
  if (c.user_ready || c.has_waiting()) make_ready(c);
}

inline void Engine::restart_calm(Connection& c, base::Now now) {
  // restart_timers() and arm_probe(), calm as it is; a timer that is armed too early stays so.
  const uint64_t flight = c.tcb.flight();
  Deadlines& d = c.deadlines;
  if (flight == 0) {
    d.rto = d.probe = base::kNever;
    return;
  }
  base::Now first = now + c.rto.base();
  d.rto = first;
  if (c.tcb.sack_ok && config_.tail_loss_probe) {
    base::Now probe = now + c.rto.probe_timeout();
    if (flight <= c.effective_mss) probe += config_.tlp_max_ack_delay;
    if (probe < first) first = probe;
    d.probe = first;
  } else {
    d.probe = base::kNever;
  }
  wake_by(c, first);
}

[[gnu::always_inline]] inline void Engine::take_predicted_ack(Connection& c, uint32_t acked,
                                                              const uint8_t* p, base::Now now) {
  Tcb& t = c.tcb;
  // advance_una() for records that were sent once, in this order, and carry no marks.
  const uint64_t ack = t.snd_una + acked;
  base::Now sent_at{};
  uint64_t end = 0;
  const Record* r = &c.records.front();
  uint64_t this_end = r->end();
  do {
    end = this_end;
    sent_at = r->sent_at;
    c.user->released(r->tag, end);
    c.records.pop_front();
    if (c.doomed) return;
    if (c.records.empty()) break;
    r = &c.records.front();
    this_end = r->end();
  } while (this_end <= ack);
  t.snd_una = ack;
  take_predicted_window(c, p);
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
  if (!newest && rack_overtaken(c)) [[unlikely]] {
    settle_predicted(c, acked, rtt, now);
    return;
  }
  grow_window(c, acked, rtt, now);
  c.recovery.tlp_count = 0;
  restart_calm(c, now);
}

bool Engine::take_predicted(Connection& c, const SegmentIn& in, base::Now now) {
  const uint8_t* p = in.tcp.data();
  const uint32_t header = header_length(c);
  if (in.tcp.size() != header) return take_predicted_data(c, in, header, now);
  const uint32_t acked = plain_ack(c, p);
  const uint32_t window = base::load_be16(p + wire::tcp_offset::kWindow);
  if (acked == 0 || window == 0 || !stamp_good(c, p, header)) return false;
  if (!in.checksum_verified && !checksum_good(in)) return false;
  note_predicted(c, p, header, now);
  ++counters_.acks_in;
  take_predicted_ack(c, acked, p, now);
  return true;
}

// Apart, so that text without news of ours does not pay for its registers.
[[gnu::noinline]] void Engine::take_carried_ack(Connection& c, uint32_t acked, const uint8_t* p,
                                                base::Now now) {
  take_predicted_ack(c, acked, p, now);
}

[[gnu::noinline]] bool Engine::take_predicted_data(Connection& c, const SegmentIn& in,
                                                   uint32_t header, base::Now now) {
  Tcb& t = c.tcb;
  const uint8_t* p = in.tcp.data();
  const size_t size = in.tcp.size();
  const base::Range range{t.rcv_nxt, t.rcv_nxt + size - header};
  if (size < header || size > 0xffff || range.end > t.rcv_edge || !stamp_good(c, p, header)) {
    return false;
  }
  if (in.ecn == ecn_codepoint::kCe && c.ecn.on) return false;
  if (base::load_be16(p + wire::tcp_offset::kWindow) == 0) return false;
  const bool old =
      base::load_be32(p + wire::tcp_offset::kAcknowledgment) == t.snd_seq(t.snd_una).value;
  const uint32_t acked = old ? 0 : plain_ack(c, p);
  if (!old && acked == 0) return false;
  if (!in.checksum_verified && !checksum_good(in)) return false;
  note_predicted(c, p, header, now);
  const base::ByteView text{p + header, size - header};
  if (c.user->inspect(range, text, now) == llp::InspectVerdict::Drop) {
    ++counters_.inspect_drops;
    return true;
  }
  if (c.doomed) return true;
  if (acked != 0) {
    take_carried_ack(c, acked, p, now);
    if (c.doomed) return true;
  } else {
    take_predicted_window(c, p);
    if (rack_overtaken(c)) settle_predicted(c, 0, base::Duration(-1), now);
  }
  take_predicted_text(c, range, text, (p[wire::tcp_offset::kFlags] & flag::kPsh) != 0, now);
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

inline void Engine::take_predicted_text(Connection& c, base::Range range, base::ByteView text,
                                        bool push, base::Now now) {
  c.tcb.rcv_nxt = range.end;
  if (c.predicted) {
    c.prediction.set_be32(wire::tcp_offset::kSequence, c.tcb.rcv_seq(range.end).value);
  }
  counters_.octets_in += text.size();
  c.user->place(range, text, true, now);
  AckState& ack = c.ack;
  const auto size = static_cast<uint32_t>(text.size());
  ack.note_size(size, push);
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
