#include <cstring>

#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void Engine::output(base::Now now) {
  if (!doomed_.empty()) reap(now);
  if (!send_replies(now)) return;
  // Round robin, a quantum each; what a limit of the stack holds back goes to the end and ends the
  // turn.
  Connection* first_starved = nullptr;
  const uint64_t sent_before = counters_.octets_out + counters_.retransmitted_octets;
  bool quantum_up = false;
  while (Connection* c = ready_.front()) {
    if (c == first_starved) break;
    // One turn sends a quantum in all: what is sent is received while it is still in the cache, and
    // arrivals are not kept waiting. The order of the list is the fairness.
    if (counters_.octets_out + counters_.retransmitted_octets - sent_before >= kQuantum) {
      quantum_up = true;
      break;
    }
    const Served served = serve(*c, now);
    // A call-up may have ended any connection. What is doomed lives until reap().
    if (first_starved != nullptr && first_starved->doomed) first_starved = nullptr;
    if (c->doomed) continue;  // doom() took it off the list
    if (served == Served::PortFull) break;
    ready_.erase(*c);
    if (served == Served::Idle) continue;
    ready_.push_back(*c);
    if (served == Served::Starved && first_starved == nullptr) first_starved = c;
  }
  if (!doomed_.empty()) {
    reap(now);
    send_replies(now);
  }
  output_pending_ = quantum_up;
}

Engine::Served Engine::serve(Connection& c, base::Now now) {
  if (c.handshake.due() && !send_syn(c, now)) return Served::PortFull;
  if (!synchronized(c.state)) return Served::Idle;
  if (c.ecn.owes_acks() && !send_owed_acks(c, now)) return Served::PortFull;
  // What must not wait for data goes first: SACK blocks never steal room from a record.
  while (c.ack.due_alone()) {
    if (!send_ack(c, now)) return Served::PortFull;
  }
  if (c.window_probe_due && !send_window_probe(c, now)) return Served::PortFull;
  if (c.keep_alive.probe_due() && !send_keep_alive(c, now)) return Served::PortFull;
  Served served = Served::Idle;
  if (!in_any(c.state, State::SynReceived, State::FinWait2)) {
    update_emss(c, true);
    uint64_t budget = kQuantum;
    for (Sent sent = Sent::Yes; sent == Sent::Yes && !c.doomed;) {
      if (budget == 0) {
        served = Served::More;
        break;
      }
      sent = send_next(c, now);
      budget -= std::min<uint64_t>(budget, c.effective_mss);
      if (sent == Sent::Starved) served = Served::Starved;
      if (sent == Sent::PortFull) return Served::PortFull;
    }
  }
  if (!c.doomed && c.ack.due() && !send_ack(c, now)) return Served::PortFull;
  return served;
}

Engine::Sent Engine::send_next(Connection& c, base::Now now) {
  if (c.tail_probe.due()) return send_tail_probe(c, now);
  if (c.pacing.gated() && gate_closed(c, now)) return Sent::Nothing;
  // A record can be far smaller than the loss window (RFC 5681 s.3.1), and a burst of such ones is
  // the likeliest to be lost again, its head, too.
  if (c.recovery.alone()) return c.recovery.forced() ? send_lost(c, now) : Sent::Nothing;
  if (c.spurious.frto()) return send_during_frto(c, now);
  if (c.board.owes_retransmission()) {
    const Sent sent = send_lost(c, now);
    if (sent != Sent::Nothing) return sent;
  }
  return send_new(c, now);
}

bool Engine::gate_closed(Connection& c, base::Now now) {
  const Pacing::Gate gate = c.pacing.ask(c.timers, now);
  if (gate == Pacing::Gate::Closes) ++counters_.pacing_waits;
  return gate != Pacing::Gate::Open;
}

void Engine::pace(Connection& c, uint64_t octets, base::Now now) {
  // Rate: a share above one of cwnd / SRTT, so that the window, not the pace, is what limits.
  if (!c.rto.measured()) return;
  const uint64_t percent =
      c.cc.in_slow_start() ? config_.pacing_slow_start_percent : config_.pacing_percent;
  c.pacing.sent(octets, uint64_t{c.cc.cwnd()} * percent / 100, c.rto.srtt(), now);
}

Engine::Sent Engine::send_during_frto(Connection& c, base::Now now) {
  // RFC 5682 s.3.1: nothing but the first segment until its ACK (step 2), then new data.
  if (!c.spurious.frto_sends()) return Sent::Nothing;
  const Sent sent = send_new(c, now);
  if (sent == Sent::Yes) c.spurious.frto_sent();
  if (sent != Sent::Nothing || c.doomed || c.tcb.snd_nxt != c.recovery.point()) return sent;
  c.spurious.frto_over();
  return send_lost(c, now);
}

Engine::Sent Engine::send_new(Connection& c, base::Now now) {
  if (c.board.has_waiting()) return send_waiting(c, now);
  // cwnd holds back octets; a FIN behind the last of them goes.
  if (c.fin_wanted && c.user_ready && c.user->pending() == 0) c.user_ready = false;
  if (c.user_ready && in_any(c.state, State::Established, State::CloseWait)) {
    if (c.options.nagle && held_by_nagle(c)) return Sent::Nothing;
    const uint64_t usable = c.tcb.usable_window();
    if (usable < c.effective_mss) {
      // RFC 9293 s.3.8.6.2.1 (2). Nagle's rule, whose bracket it has, has let it pass above.
      if (usable != 0 && c.user->all_fits(static_cast<uint32_t>(usable)))
        return pull_into_saved(c, now);
      if (c.tcb.flight() != 0 || usable == 0) return wait_for_window(c, now);
      // (3), (4): half the largest window, or the override timer.
      if (usable < c.tcb.snd_max_wnd / 2 && !c.sws_override) return wait_for_window(c, now);
      return pull_into_saved(c, now);
    }
    if (c.board.pipe() != 0 && c.board.pipe() + c.effective_mss > c.cc.cwnd()) {
      c.cwnd_full_to = c.tcb.snd_nxt;
      return Sent::Nothing;
    }
    const uint32_t larger = c.path.searching() ? probe_due(c, now) : 0;
    const Sent sent = larger != 0 ? send_mtu_probe(c, larger, now) : send_pulled(c, now, false);
    if (sent != Sent::Nothing || c.user_ready || c.doomed) return sent;
  }
  if (c.fin_wanted && !c.fin_queued && !c.user_ready) return send_fin(c, now);
  return Sent::Nothing;
}

bool Engine::held_by_nagle(const Connection& c) {
  // RFC 9293 s.3.7.4, as changed by appendix A.3: only a short segment in flight holds back
  // another.
  return c.small_end > c.tcb.snd_una && !c.fin_wanted && !c.user->fills_segment(c.effective_mss);
}

Engine::Sent Engine::wait_for_window(Connection& c, base::Now now) {
  // With octets in flight their ACK, or the RTO, brings the news.
  if (c.tcb.flight() == 0 && !c.timers.runs(Timer::Persist)) {
    c.timers.set(Timer::Persist, now + c.rto.rto());
    c.progress_at = now;
  }
  return Sent::Nothing;
}

void Engine::push_record(Connection& c, const llp::Pulled& pulled, uint16_t flags, base::Now now) {
  Record record;
  record.length = pulled.length;
  record.tag = pulled.tag;
  record.sent_at = now;
  record.flags = static_cast<uint16_t>(flags | (pulled.push ? record_flag::kPush : 0));
  c.board.push(record);
  ++counters_.records_out;
}

void Engine::note_sent(Connection& c, uint64_t octets, base::Now now) {
  if (c.tcb.flight() == 0) c.progress_at = now;
  c.tcb.snd_nxt += octets;
  if (c.tcb.flight() > c.flight_peak || c.tcb.snd_una >= c.flight_peak_to) {
    c.flight_peak = c.tcb.flight();
    c.flight_peak_to = c.tcb.snd_nxt;
  }
  c.last_sent_at = now;
  c.sws_override = false;
  if (c.pacing.on()) pace(c, octets, now);
  c.recovery.sent(octets);
  c.timers.clear(Timer::Persist);
  if (!c.timers.runs(Timer::Rto)) {  // RFC 6298 s.5.1: started, not restarted
    restart_timers(c, now);
  } else if (c.recovery.open() && !c.tail_probe.due()) {
    c.tail_probe.arm(c.recovery.phase(), c.effective_mss, now,
                     now + c.rto.rto());  // (behind a probe the next one is armed apart)
  }
}

Engine::Sent Engine::send_pulled(Connection& c, base::Now now, bool probe) {
  if (c.board.full()) {
    ++counters_.record_limit_waits;
    return c.board.size() >= config_.max_records_per_connection ? Sent::Nothing : Sent::Starved;
  }
  TxSlot slot;
  if (!begin(c, slot)) return Sent::PortFull;
  if (c.tcb.flight() == 0 && now - c.last_sent_at > c.rto.rto()) restart_after_idle(c);
  uint8_t* payload = slot.tcp + header_length(c);
  const uint32_t emss = c.effective_mss;
  const uint64_t offset = c.tcb.snd_nxt;
  uint32_t packed = 0;
  // A probe asks for an answer: PSH spares it the delayed-ACK timer of a peer like us.
  uint8_t flags = probe ? flag::kAck | flag::kPsh : flag::kAck;
  do {
    const uint32_t n = emss - packed;
    llp::Frame frame(payload + packed, n);
    if (packed == 0) c.user_ready = false;  // ready() during the call sets it again
    const llp::Pulled pulled = c.user->pull(n, offset + packed, frame, now);
    if (c.doomed) break;
    if (pulled.length == 0) break;
    RNIC_CHECK(pulled.length == frame.length());
    c.user_ready = true;
    push_record(c, pulled, packed == 0 ? record_flag::kSegmentStart : 0, now);
    packed += pulled.length;
    if (pulled.push) flags |= flag::kPsh;
  } while (c.options.pack_records && !probe && emss - packed >= kPackRoomMin && !c.board.full());
  if (c.doomed || packed == 0) {
    egress_.cancel(slot);
    return Sent::Nothing;
  }
  if (c.options.nagle && packed < emss) c.small_end = offset + packed;
  c.last_octet = payload[packed - 1];
  if (c.ecn.on()) flags |= mark_new_data(c, slot);
  const bool end = ends_here(c);
  if (end) flags |= flag::kFin;
  finish(c, slot, offset, packed, flags, now);
  ++counters_.data_segments_out;
  ++counters_.aligned_segments_out;
  counters_.octets_out += packed;
  note_sent(c, packed, now);
  if (end) queue_fin(c, 0, now);
  if (c.trace_sink != nullptr) {
    c.trace_sink->record(TraceKind::Sent, {offset, offset + packed}, now);
  }
  return Sent::Yes;
}

Engine::Sent Engine::pull_into_saved(Connection& c, base::Now now) {
  // The window is smaller than a record: pull one into a copy and send it in pieces. Half of the
  // store is for what has to be sent again: peers with tiny windows cannot take it from others.
  if (c.board.full() || !saved_.fits_half(c.effective_mss)) {
    ++counters_.record_limit_waits;
    return Sent::Starved;
  }
  llp::Frame frame(scratch_.data(), std::min(c.effective_mss, kMaxRecordOctets));
  c.user_ready = false;
  const llp::Pulled pulled = c.user->pull(frame.room_left(), c.board.queue_end(), frame, now);
  if (c.doomed) return Sent::Nothing;
  if (pulled.length == 0) return c.fin_wanted && !c.fin_queued ? send_fin(c, now) : Sent::Nothing;
  RNIC_CHECK(pulled.length == frame.length());
  c.user_ready = true;
  push_record(c, pulled, record_flag::kSegmentStart, now);
  c.board.keep(c.board.past_last() - 1, saved_.save(frame.written()));
  return send_waiting(c, now);
}

Engine::Sent Engine::send_waiting(Connection& c, base::Now now) {
  const Record& r = c.board.back();
  const uint64_t usable = c.tcb.usable_window();
  const uint64_t rest = r.end() - c.tcb.snd_nxt;
  const uint64_t piece = std::min({rest, usable, uint64_t{c.effective_mss}});
  const bool worth = piece == rest || piece >= c.effective_mss ||
                     (c.tcb.flight() == 0 && (piece >= c.tcb.snd_max_wnd / 2 || c.sws_override));
  if (piece == 0 || !worth) return wait_for_window(c, now);
  if (c.board.pipe() != 0 && c.board.pipe() + piece > c.cc.cwnd()) {
    c.cwnd_full_to = c.tcb.snd_nxt;
    return Sent::Nothing;
  }
  TxSlot slot;
  if (!begin(c, slot)) return Sent::PortFull;
  const uint64_t offset = c.tcb.snd_nxt;
  auto length = static_cast<uint32_t>(piece);
  uint8_t* payload = slot.tcp + header_length(c);
  saved_.copy(r.saved, static_cast<uint32_t>(offset - r.offset), length, payload);
  if (length != r.length) length = c.user->cut({payload, length});
  const bool last = length == rest;
  if (length != r.length && c.board.cut(c.board.past_last() - 1)) ++counters_.resegmented_records;
  c.last_octet = payload[length - 1];
  if (c.options.nagle && length < c.effective_mss) c.small_end = offset + length;
  uint8_t flags = last && r.is(record_flag::kPush) ? flag::kAck | flag::kPsh : flag::kAck;
  const bool end = last && ends_here(c);
  if (end) flags |= flag::kFin;
  if (c.ecn.on()) flags |= mark_new_data(c, slot);
  finish(c, slot, offset, length, flags, now);
  ++counters_.data_segments_out;
  if (length == r.length) ++counters_.aligned_segments_out;
  counters_.octets_out += length;
  c.board.sent_piece(length, now);
  note_sent(c, length, now);
  if (end) queue_fin(c, 0, now);
  if (c.trace_sink != nullptr) {
    c.trace_sink->record(TraceKind::Sent, {offset, offset + length}, now);
  }
  return Sent::Yes;
}

bool Engine::ends_here(Connection& c) {
  return c.fin_wanted && !c.fin_queued && !c.board.full() && c.user->all_fits(0);
}

void Engine::queue_fin(Connection& c, uint16_t flags, base::Now now) {
  Record fin;
  fin.length = 1;
  fin.sent_at = now;
  fin.flags = static_cast<uint16_t>(record_flag::kFin | flags);
  c.board.push(fin);
  note_sent(c, 1, now);
  c.fin_queued = true;
  c.user_ready = false;
  c.state = c.state == State::CloseWait ? State::LastAck : State::FinWait1;
  push_life(c, now);
}

Engine::Sent Engine::send_fin(Connection& c, base::Now now) {
  if (c.board.full()) {
    ++counters_.record_limit_waits;
    return Sent::Starved;
  }
  TxSlot slot;
  if (!begin(c, slot)) return Sent::PortFull;
  finish(c, slot, c.board.queue_end(), 0, flag::kAck | flag::kFin, now);
  queue_fin(c, record_flag::kSegmentStart, now);
  return Sent::Yes;
}

}  // namespace rnic::tcp
