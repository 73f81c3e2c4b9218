#include "tcp/prediction.hpp"

#include <cstring>

#include "tcp/engine.hpp"

namespace rnic::tcp {

// Header prediction (RFC 7323 s.5.6, after Van Jacobson): what nearly every segment of a calm
// connection is, the next one in order or the acknowledgment of what was sent once, is recognized
// by a few comparisons. All others go the whole way of input.cpp, with the same result: what is
// done here is what is left of it when nothing out of the ordinary is under way.

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kTimestampsHead = 0x0101080a;  // NOP NOP TSopt (RFC 7323 appendix A)
constexpr base::Duration kStampTick = std::chrono::milliseconds(1);

/// The window as it stands on the wire: to compare.
uint32_t window_field(const uint8_t* p) {
  uint16_t field;
  std::memcpy(&field, p + wire::kTcpWindowAt, sizeof field);
  return field;
}

}  // namespace

void Prediction::begin(uint16_t from_port, uint16_t to_port, base::Seq32 sequence,
                       uint32_t header_octets, uint32_t window, uint8_t shift) {
  base::OctetPattern::Octets header{};
  base::store_be16(&header[wire::kTcpSourcePortAt], from_port);
  base::store_be16(&header[wire::kTcpDestinationPortAt], to_port);
  base::store_be32(&header[wire::kTcpSequenceAt], sequence.value);
  header[wire::kTcpDataOffsetAt] = static_cast<uint8_t>(header_octets << 2);
  header[wire::kTcpFlagsAt] = flag::kAck;
  header_.set(header);
  header_octets_ = header_octets;
  const uint32_t unscaled = window >> shift;
  const bool whole = unscaled << shift == window && unscaled <= 0xffff;
  window_field_ = whole ? __builtin_bswap16(static_cast<uint16_t>(unscaled)) : UINT32_MAX;
  on_ = true;
}

bool Engine::calm(const Connection& c) {
  const bool no_end = c.state == State::Established && !c.doomed && !c.fin_seen && !c.fin_wanted;
  const bool no_loss = c.recovery.open() && c.tail_probe.quiet() && !c.spurious.adapts() &&
                       c.board.plain() && !c.timers.runs(Timer::Reorder);
  const bool no_hole = c.committed.empty() && c.tcb.snd_wl1 <= static_cast<int64_t>(c.tcb.rcv_nxt);
  return no_end && no_loss && no_hole && !c.path.probing() && c.tcb.snd_wnd != 0 &&
         !c.timers.runs(Timer::Persist) && !c.ecn.echoes();
}

void Engine::predict(Connection& c) const {
  if (!predicting_ || !calm(c)) {
    c.prediction.end();
    return;
  }
  c.prediction.begin(c.remote_end.port, c.local_end.port, c.tcb.rcv_seq(c.tcb.rcv_nxt),
                     header_length(c), c.tcb.snd_wnd, c.tcb.snd_wind_shift);
}

bool Engine::find_flow(const SegmentIn& in, Connection*& c) {
  using base::OctetPattern;
  const uint8_t* p = in.tcp.data();
  c = connections_.last_found();
  if (c != nullptr) [[likely]] {
    const auto same = [](const IpAddress& a, const IpAddress& b) {
      return _mm_cmpeq_epi8(OctetPattern::load(&a), OctetPattern::load(&b));
    };
    const __m128i addresses = _mm_and_si128(same(in.source, c->remote_end.address),
                                            same(in.destination, c->local_end.address));
    const __m128i header = c->prediction.compare(p);
    if (OctetPattern::all(_mm_and_si128(addresses, header))) [[likely]]
      return true;
  }
  c = connections_.find({in.destination, base::load_be16(p + 2)}, {in.source, base::load_be16(p)});
  return c != nullptr && OctetPattern::all(c->prediction.compare(p));
}

inline bool Engine::stamp_good(const Connection& c, const uint8_t* p, uint32_t& stamp) {
  if (c.prediction.header_octets() == wire::kTcpHeaderMin) return true;
  p += wire::kTcpOptionsAt;
  stamp = base::load_be32(p + 4);
  return base::load_be32(p) == kTimestampsHead &&
         static_cast<int32_t>(stamp - c.tcb.ts_recent) >= 0;
}

inline void Engine::note_predicted(Connection& c, uint32_t stamp, base::Now now) {
  ++counters_.segments_in;
  ++counters_.predicted_in;
  c.keep_alive.heard(now);
  if (c.tcb.rcv_nxt <= c.ack.last_ack_sent()) {
    c.tcb.ts_recent = stamp;  // RFC 7323 s.4.3 (2); nobody's without timestamps
    c.tcb.ts_recent_at = now;
  }
}

inline bool Engine::window_stays_open(Connection& c, const uint8_t* p) {
  const uint32_t field = window_field(p);
  if (field == c.prediction.window_field()) [[likely]]
    return true;
  if (field == 0) return false;
  Tcb& t = c.tcb;
  c.prediction.set_window_field(field);
  t.snd_wnd = uint32_t{base::load_be16(p + wire::kTcpWindowAt)} << t.snd_wind_shift;
  t.snd_max_wnd = std::max(t.snd_max_wnd, t.snd_wnd);
  return true;
}

inline uint32_t Engine::plain_ack(Connection& c, const uint8_t* p) {
  const Tcb& t = c.tcb;
  const uint32_t acked =
      base::load_be32(p + wire::kTcpAcknowledgmentAt) - t.snd_seq(t.snd_una).value;
  const bool moves = uint64_t{acked} - 1 < t.flight();
  return moves && c.board.front().end() <= t.snd_una + acked ? acked : 0;
}

inline void Engine::take_predicted_window(Connection& c) {
  Tcb& t = c.tcb;
  t.snd_wl1 = static_cast<int64_t>(t.rcv_nxt);
  t.snd_wl2 = static_cast<int64_t>(t.snd_una);
  if (c.user_ready || c.board.has_waiting()) make_ready(c);
}

inline void Engine::restart_calm(Connection& c, bool restarted, base::Now now) {
  // restart_timers(), calm as it is; a timer that is armed too early stays so.
  const uint64_t flight = c.tcb.flight();
  if (restarted && flight > c.effective_mss) return;  // a burst of ACKs: all alike
  if (flight == 0) {
    c.timers.clear(Timer::Rto);
    c.timers.clear(Timer::Probe);
    return;
  }
  const base::Now rto = now + c.rto.base();
  c.timers.set(Timer::Rto, rto);
  c.tail_probe.arm_quiet(c.effective_mss, now, rto);
}

[[gnu::always_inline]] inline base::Duration Engine::advance_calm(Connection& c, uint32_t acked,
                                                                  base::Now sent_at,
                                                                  const uint8_t* p, base::Now now,
                                                                  bool& restarted) {
  c.tcb.snd_una += acked;
  take_predicted_window(c);
  base::Duration rtt = now - sent_at;
  if (rtt > kStampTick && c.tcb.ts_ok) {  // RFC 7323 s.4.1, see measure()
    const uint32_t echo = base::load_be32(p + wire::kTcpOptionsAt + 8);
    const auto ticks = static_cast<int32_t>(c.tcb.timestamp(now) - echo);
    if (ticks >= 0) rtt = std::min(rtt, (int64_t{ticks} + 1) * kStampTick);
  }
  const bool sampled = c.rto.offer(rtt, now);
  restarted = c.progress_at == now && !sampled;
  c.progress_at = now;
  if (c.ecn.on()) {
    c.cc.count_marks(sample_of(c, acked, rtt, now), false);
    c.ecn.end_holds();
  }
  return rtt;
}

[[gnu::always_inline]] inline void Engine::take_predicted_ack(Connection& c, uint32_t acked,
                                                              const uint8_t* p, base::Now now) {
  // advance_una() for records that were sent once, in this order, and carry no marks.
  const uint64_t ack = c.tcb.snd_una + acked;
  const Scoreboard& q = c.board;
  const Record* r = &q.front();
  const Record* row_end = q.row_end();
  uint64_t end = r->end();
  uint32_t count = 1;
  bool one_row = true;
  // While octets are left to acknowledge, they are a record's.
  for (; end < ack; ++count) {
    const Record* next = r + 1;
    if (next == row_end) [[unlikely]] {
      next = &q.at(q.first() + count);
      row_end = next + RecordPool::kChunkRecords;
      one_row = false;
    }
    if (next->end() > ack) break;
    r = next;
    end = r->end();
  }
  const base::Now sent_at = r->sent_at;
  // Of the newest alone.
  if (!c.rack.delivered(sent_at, end, now)) [[unlikely]] {
    take_late_ack(c, count, acked, p, now);
    return;
  }
  bool restarted = false;
  const base::Duration rtt = advance_calm(c, acked, sent_at, p, now, restarted);
  grow_window(c, acked, rtt, now);
  restart_calm(c, restarted, now);
  // Last, so that nothing has to be kept over the call.
  if (one_row) [[likely]] {
    release(c, count);
  } else {
    release_rows(c, count);
  }
}

inline void Engine::release(Connection& c, uint32_t count) {
  c.user->released_run({c.board.front(), count, sizeof(Record)});
  c.board.pop_plain(count);
}

[[gnu::noinline, gnu::cold]] void Engine::release_rows(Connection& c, uint32_t count) {
  while (count != 0 && !c.doomed) {
    const auto row = static_cast<uint32_t>(c.board.row_end() - &c.board.front());
    const uint32_t some = std::min(count, row);
    release(c, some);
    count -= some;
  }
}

// What was sent later has arrived before.
[[gnu::noinline, gnu::cold]] void Engine::take_late_ack(Connection& c, uint32_t count,
                                                        uint32_t acked, const uint8_t* p,
                                                        base::Now now) {
  const base::Now sent_at = c.board.at(c.board.first() + count - 1).sent_at;
  bool restarted = false;
  const base::Duration rtt = advance_calm(c, acked, sent_at, p, now, restarted);
  release_rows(c, count);
  if (c.doomed) return;
  if (c.rack.overtaken()) {
    settle_predicted(c, acked, rtt, now);
    return;
  }
  grow_window(c, acked, rtt, now);
  restart_calm(c, restarted, now);
}

bool Engine::take_predicted(Connection& c, const SegmentIn& in, base::Now now) {
  const uint8_t* p = in.tcp.data();
  if (in.tcp.size() != c.prediction.header_octets()) {
    return take_predicted_data(c, {in.source, in.destination, in.tcp, in.checksum_verified, in.ecn},
                               now);
  }
  const uint32_t acked = plain_ack(c, p);
  uint32_t stamp = 0;
  if (acked == 0 || !stamp_good(c, p, stamp)) return false;
  if (!in.checksum_verified &&
      !checksum_good({in.source, in.destination, in.tcp, in.checksum_verified, in.ecn}))
    return false;
  if (!window_stays_open(c, p)) return false;
  note_predicted(c, stamp, now);
  ++counters_.acks_in;
  take_predicted_ack(c, acked, p, now);
  return true;
}

// Apart, so that text without news of ours does not pay for its registers.
[[gnu::noinline]] void Engine::take_carried_ack(Connection& c, uint32_t acked, const uint8_t* p,
                                                base::Now now) {
  take_predicted_ack(c, acked, p, now);
}

[[gnu::noinline]] bool Engine::take_predicted_data(Connection& c, SegmentIn in, base::Now now) {
  Tcb& t = c.tcb;
  const uint32_t header = c.prediction.header_octets();
  uint32_t stamp = 0;
  const uint8_t* p = in.tcp.data();
  const size_t size = in.tcp.size();
  const base::Range range{t.rcv_nxt, t.rcv_nxt + size - header};
  if (size < header || size > 0xffff || range.end > t.rcv_edge || !stamp_good(c, p, stamp)) {
    return false;
  }
  if (in.ecn == ecn_codepoint::kCe && c.ecn.on()) return false;
  const bool old = base::load_be32(p + wire::kTcpAcknowledgmentAt) == t.snd_seq(t.snd_una).value;
  const uint32_t acked = old ? 0 : plain_ack(c, p);
  if (!old && acked == 0) return false;
  if (!in.checksum_verified && !checksum_good(in)) return false;
  if (window_field(p) == 0) return false;
  note_predicted(c, stamp, now);
  const base::ByteView text{p + header, size - header};
  if (c.user->inspect(range, text, now) != llp::InspectVerdict::Accept) {
    ++counters_.inspect_drops;
    return true;
  }
  if (c.doomed) return true;
  (void)window_stays_open(c, p);  // a segment that inspect() drops changes nothing
  if (acked != 0) {
    take_carried_ack(c, acked, p, now);
    if (c.doomed) return true;
  } else {
    take_predicted_window(c);
    if (c.rack.overtaken()) settle_predicted(c, 0, base::Duration(-1), now);
  }
  take_predicted_text(c, range, text, (p[wire::kTcpFlagsAt] & flag::kPsh) != 0, now);
  return true;
}

void Engine::settle_predicted(Connection& c, uint64_t acked, base::Duration rtt, base::Now now) {
  AckYield yield;
  yield.acked = yield.delivered = acked;
  yield.rtt = rtt;
  settle(c, yield, now);
  predict(c);  // there may be a loss now
}

inline void Engine::take_predicted_text(Connection& c, base::Range range, base::ByteView text,
                                        bool push, base::Now now) {
  c.tcb.rcv_nxt = range.end;
  c.prediction.expect(c.tcb.rcv_seq(range.end));
  counters_.octets_in += text.size();
  c.user->place(range, text, true, now);
  if (c.ack.note_in_order(static_cast<uint32_t>(text.size()), push, now)) make_ready(c);
  if (!c.doomed) c.user->ordered(range.end, now);
}

}  // namespace rnic::tcp
