#include <algorithm>

#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

Engine::Sent Engine::send_lost(Connection& c, base::Now now) {
  const uint64_t n = c.board.next_lost();  // RFC 6675 s.4, NextSeg (1)
  if (n == c.board.past_last()) return Sent::Nothing;
  const uint64_t length = std::min<uint64_t>(c.board.live(c.board.at(n)), c.effective_mss);
  if (!c.recovery.forced() && c.board.pipe() != 0 && c.board.pipe() + length > c.cc.cwnd()) {
    c.cwnd_full_to = c.tcb.snd_nxt;
    return Sent::Nothing;
  }
  const Sent sent = retransmit_from(c, n, now);
  if (sent == Sent::Yes) c.recovery.retransmitted();
  return sent;
}

Engine::Sent Engine::retransmit_from(Connection& c, uint64_t number, base::Now now) {
  const Record& first = c.board.at(number);
  constexpr uint16_t kMarks = record_flag::kLost | record_flag::kRetransmitted;
  const uint16_t marks = first.flags & kMarks;
  if (first.saved != kNoSaved || first.offset < c.tcb.snd_una ||
      (first.length > c.effective_mss && !first.is(record_flag::kFin))) {
    return retransmit_cut(c, number, now);
  }
  TxSlot slot;
  if (!begin(c, slot)) return Sent::PortFull;
  uint8_t* payload = slot.tcp + header_length(c);
  const uint64_t offset = first.offset;
  uint32_t packed = 0;
  uint8_t flags = flag::kAck;
  uint64_t n = number;
  for (; n < c.board.past_last(); ++n) {
    const Record& r = c.board.at(n);
    // The segment keeps its first boundaries: whole records up to where the next one began.
    if (n != number && (r.is(record_flag::kSegmentStart) || r.is(record_flag::kSacked) ||
                        r.saved != kNoSaved || (r.flags & kMarks) != marks ||
                        (r.length > c.effective_mss - packed && !r.is(record_flag::kFin)))) {
      break;
    }
    if (r.is(record_flag::kFin)) {
      flags |= flag::kFin;
      ++n;
      break;
    }
    llp::Frame frame(payload + packed, r.length);
    const bool there = c.user->rebuild(r.tag, r.offset, r.length, frame);
    if (c.doomed || !there) {
      egress_.cancel(slot);
      doom(c, StreamEnd::Aborted, true);
      return Sent::Nothing;
    }
    RNIC_CHECK(frame.length() == r.length);
    packed += r.length;
    if (r.is(record_flag::kPush)) flags |= flag::kPsh;
  }
  finish(c, slot, offset, packed, flags, now);
  for (uint64_t k = number; k < n; ++k) note_retransmitted(c, k, now);
  ++counters_.retransmitted_segments;
  counters_.retransmitted_octets += packed;
  return Sent::Yes;
}

bool Engine::keep_copy(Connection& c, uint64_t number) {
  const Record& r = c.board.at(number);
  if (r.saved != kNoSaved) return true;
  RNIC_CHECK(r.length <= kMaxRecordOctets);
  if (!saved_.fits(r.length)) return false;
  llp::Frame frame(scratch_.data(), r.length);
  const bool there = c.user->rebuild(r.tag, r.offset, r.length, frame);
  if (c.doomed || !there) {
    doom(c, StreamEnd::Aborted, true);
    return false;
  }
  RNIC_CHECK(frame.length() == r.length);
  c.board.keep(number, saved_.save(frame.written()));
  return true;
}

Engine::Sent Engine::retransmit_cut(Connection& c, uint64_t number, base::Now now) {
  const Record& r = c.board.at(number);
  if (!keep_copy(c, number)) {
    if (!c.doomed) ++counters_.record_limit_waits;
    return c.doomed ? Sent::Nothing : Sent::Starved;
  }
  const uint64_t begin_at = std::max(r.offset, c.tcb.snd_una);
  const uint64_t end = std::min(r.end(), c.tcb.snd_nxt);
  if (c.piece_next < begin_at || c.piece_next >= end) c.piece_next = begin_at;
  if (c.board.cut(number)) ++counters_.resegmented_records;
  while (c.piece_next < end) {
    const base::Range gap = c.board.sacked().first_gap({c.piece_next, end});
    if (gap.empty()) break;
    TxSlot slot;
    if (!begin(c, slot)) return Sent::PortFull;
    auto length = static_cast<uint32_t>(std::min<uint64_t>(gap.size(), c.effective_mss));
    uint8_t* payload = slot.tcp + header_length(c);
    saved_.copy(r.saved, static_cast<uint32_t>(gap.begin - r.offset), length, payload);
    if (length != r.length) length = c.user->cut({payload, length});
    const bool push = r.is(record_flag::kPush) && gap.begin + length == r.end();
    finish(c, slot, gap.begin, length, static_cast<uint8_t>(flag::kAck | (push ? flag::kPsh : 0)),
           now);
    ++counters_.retransmitted_segments;
    counters_.retransmitted_octets += length;
    c.piece_next = gap.begin + length;
  }
  c.piece_next = 0;
  note_retransmitted(c, number, now);
  return Sent::Yes;
}

void Engine::note_retransmitted(Connection& c, uint64_t number, base::Now now) {
  const Record& r = c.board.at(number);
  const uint64_t live = c.board.live(r);
  // What is sent again goes in smaller pieces: its ACK proves nothing for the larger size.
  if (c.path.probing() && r.offset == c.path.probe_begin()) probe_failed(c, now);
  c.board.resent(number, now);
  c.last_sent_at = now;
  if (c.pacing.on()) pace(c, live, now);
  c.recovery.sent(live);
  if (!c.recovery.open()) c.spurious.retransmitted(live);
  if (!c.timers.runs(Timer::Rto)) c.timers.set(Timer::Rto, now + c.rto.rto());
  if (c.recovery.phase() == RecoveryPhase::Recovery && !c.tail_probe.due()) {
    c.tail_probe.arm(c.recovery.phase(), c.effective_mss, now, c.timers.at(Timer::Rto));
  }
  if (c.trace_sink != nullptr) {
    c.trace_sink->record(TraceKind::Retransmitted, {r.offset, r.end()}, now);
  }
}

Engine::Sent Engine::send_tail_probe(Connection& c, base::Now now) {
  // RFC 8985 s.7.3: new data when the window lets it, otherwise the last segment again.
  const RecoveryPhase phase = c.recovery.phase();
  if (c.tcb.flight() == 0 || phase == RecoveryPhase::Loss) {
    c.tail_probe.drop();
    return Sent::Yes;  // go on with what there is
  }
  const bool recovering = phase == RecoveryPhase::Recovery;
  bool resend = true;
  if (!recovering && c.user_ready && !c.board.has_waiting() &&
      in_any(c.state, State::Established, State::CloseWait) &&
      c.tcb.usable_window() >= c.effective_mss) {
    const Sent sent = send_pulled(c, now, true);
    if (sent == Sent::PortFull) return sent;
    resend = sent != Sent::Yes;
  }
  if (c.doomed) return Sent::Nothing;
  if (resend) {
    uint64_t n = recovering ? c.board.first() : c.board.find(c.tcb.snd_nxt - 1);
    while (n > c.board.first() && !c.board.at(n).is(record_flag::kSegmentStart)) --n;
    const Sent sent = retransmit_from(c, n, now);
    if (sent != Sent::Yes) return sent;
  }
  c.tail_probe.sent(phase, resend, c.effective_mss, now);
  return Sent::Yes;
}

}  // namespace rnic::tcp
