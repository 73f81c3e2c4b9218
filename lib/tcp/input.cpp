#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

// RFC 7323 s.5.5: a TS.Recent older than 24 days says nothing.
constexpr base::Duration kTimestampLife = std::chrono::hours(24 * 24);

/// By its parts: only where it is taken along does a segment have to be in memory.
inline SegmentIn same(const SegmentIn& s) {
  return {s.source, s.destination, s.tcp, s.checksum_verified, s.ecn};
}

}  // namespace

void Engine::input(const SegmentIn& segment, base::Now now) {
  Connection* c = nullptr;
  const bool expected = segment.tcp.size() >= wire::kTcpHeaderMin && find_flow(segment, c);
  if (!expected || !take_predicted(*c, segment, now)) input_any(c, same(segment), now);
  if (!doomed_.empty()) reap(now);
}

[[gnu::noinline]] void Engine::input_any(Connection* c, SegmentIn segment, base::Now now) {
  ++counters_.segments_in;
  Arrival a;
  if (const FormError wrong = parse(segment, a); wrong != FormError::None) {
    ++(wrong == FormError::Checksum ? counters_.checksum_errors : counters_.malformed);
    return;
  }
  if (a.payload.empty()) ++counters_.acks_in;
  if (c == nullptr || c->doomed) {
    input_no_connection(a, now);
  } else if (c->state == State::SynSent) {
    input_syn_sent(*c, a, now);
  } else {
    input_synchronized(*c, a, now);
    predict(*c);
  }
}

void Engine::input_no_connection(const Arrival& a, base::Now now) {
  if (!egress_.lands_here(a.local, a.remote)) {  // its connection, if there is one, is not ours
    ++counters_.not_at_home;
    return;
  }
  const uint32_t listener = listeners_.find(a.local);
  const bool listening = listener != ListenerTable::kNone;
  std::optional<base::Seq32> old_snd_nxt;
  switch (time_wait_.input(a, listening, now)) {
    case TimeWait::Verdict::Done: return;
    case TimeWait::Verdict::Reopen: old_snd_nxt = time_wait_.end(a.local, a.remote); break;
    case TimeWait::Verdict::Elsewhere: break;
  }
  if (listening) {
    input_listen(listeners_.at(listener), a, old_snd_nxt, now);
    return;
  }
  if (!a.has(flag::kRst)) reset_reply(a);  // RFC 9293 s.3.10.7.1
}

void Engine::reset_reply(const Arrival& a) {
  // RFC 9293 s.3.5.2, groups 1 and 2.
  ++counters_.no_connection;
  Reply* reply = replies_.push();
  if (reply == nullptr) return;
  reply->local = a.local;
  reply->remote = a.remote;
  if (a.has(flag::kAck)) {
    reply->seq = a.ack;
    reply->flags = flag::kRst;
  } else {
    reply->ack = a.seq + a.length();
    reply->flags = flag::kRst | flag::kAck;
  }
}

void Engine::challenge_ack(Connection& c, base::Now now) {
  if (!challenge_acks_.allow(now)) return;
  c.ack.ask_alone();
  make_ready(c);
}

void Engine::note_duplicate(Connection& c, const Arrival& a) {
  const int64_t begin = c.tcb.rcv_offset(a.seq);
  c.ack.note_duplicate(begin, begin + static_cast<int64_t>(a.payload.size()));
}

bool Engine::survives_paws(Connection& c, const Arrival& a, base::Now now) {
  if (!c.tcb.ts_ok || a.has(flag::kRst)) return true;  // RST is exempt (RFC 7323 s.5.2)
  if (!a.options.timestamps) {                         // s.3.2: drop, do not abort
    ++counters_.paws_rejected;
    return false;
  }
  const auto behind = static_cast<int32_t>(a.options.timestamps->value - c.tcb.ts_recent);
  if (behind < 0 && now - c.tcb.ts_recent_at < kTimestampLife) {
    ++counters_.paws_rejected;
    note_duplicate(c, a);  // most often the late first copy of what was sent again
    c.ack.ask();
    make_ready(c);
    return false;
  }
  return true;
}

bool Engine::acceptable(Connection& c, const Arrival& a) {
  // RFC 9293 s.3.10.7.4, first
  const int64_t begin = c.tcb.rcv_offset(a.seq);
  const int64_t end = begin + a.length();
  const auto nxt = static_cast<int64_t>(c.tcb.rcv_nxt) + (c.tcb.fin_reached ? 1 : 0);
  const auto window = static_cast<int64_t>(c.tcb.rcv_wnd());
  if (in_window(begin - nxt, a.length(), window)) return true;
  if (a.has(flag::kRst)) return false;
  // Who has filled the window has nowhere else to put the number of its ACK, as behind a window of
  // zero (MUST-66). Dropped for a hole in what we have, it would draw one of ours, and that the
  // same at its end: a war of ACKs, of which none counts, until a time-out.
  if (begin - nxt == window && a.payload.empty() && !a.has(flag::kSyn)) return true;
  ++counters_.unacceptable;
  if (!a.payload.empty() && end <= nxt) {
    counters_.duplicate_octets_in += a.payload.size();
    note_duplicate(c, a);
  }
  c.ack.ask_alone();
  make_ready(c);
  return false;
}

bool Engine::survives_rst(Connection& c, const Arrival& a, base::Now now) {
  // Second: RST. RFC 5961 s.3.2: exactly RCV.NXT resets, elsewhere in the window is challenged.
  if (!a.has(flag::kRst)) return true;
  if (a.seq != c.tcb.ack_seq()) {
    // One with text may begin before the window: its number is outside.
    if (base::after(a.seq, c.tcb.ack_seq())) challenge_ack(c, now);
    return false;
  }
  ++counters_.resets_in;
  const bool refused = c.state == State::SynReceived && c.acceptor == nullptr;
  doom(c, refused ? StreamEnd::Refused : StreamEnd::PeerReset, false);
  return false;
}

bool Engine::survives_ack_check(Connection& c, const Arrival& a, base::Now now) {
  // Fifth: the ACK field. RFC 5961 s.5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
  if (!a.has(flag::kAck)) return false;
  if (c.state == State::SynReceived) {
    if (a.ack != c.tcb.iss + 1) {
      reset_reply(a);
      return false;
    }
    return true;
  }
  const int64_t ack = c.tcb.snd_offset(a.ack);
  const auto una = static_cast<int64_t>(c.tcb.snd_una);
  if (ack > static_cast<int64_t>(c.tcb.snd_nxt) ||
      ack < una - static_cast<int64_t>(c.tcb.snd_max_wnd)) {
    challenge_ack(c, now);
    return false;
  }
  return true;
}

void Engine::take_urgent(Connection& c, const Arrival& a, base::Now now) {
  // RFC 9293 s.3.10.7.4, sixth: RCV.UP goes forward only. The octets are read in their place.
  if (!receives(c.state) || a.urgent == 0) return;
  const int64_t end = c.tcb.rcv_offset(a.seq) + a.urgent;
  if (end <= static_cast<int64_t>(std::max(c.urgent_end, c.tcb.rcv_nxt))) return;
  c.urgent_end = static_cast<uint64_t>(end);
  ++counters_.urgent_in;
  c.user->urgent(c.urgent_end, now);
}

bool Engine::closed_reader(Connection& c, const Arrival& a) {
  // RFC 9293 s.3.6.1 (MAY-1, SHLD-3): new octets for somebody who does not read any more.
  const int64_t end = c.tcb.rcv_offset(a.seq) + static_cast<int64_t>(a.payload.size());
  if (a.payload.empty() || end <= static_cast<int64_t>(c.tcb.rcv_nxt)) return false;
  ++counters_.half_duplex_resets;
  // The peer takes a RST at once only where it expects the next octet (RFC 5961 s.3.2), and octets
  // of ours, or the FIN, may be missing there: as for a connection that is no more (s.3.5.2, group
  // 1).
  if (Reply* reply = queue_rst(c)) {
    reply->seq = a.ack;
    reply->ack = {};
    reply->flags = flag::kRst;
  }
  doom(c, StreamEnd::Aborted, false);
  return true;
}

void Engine::input_synchronized(Connection& c, Arrival& a, base::Now now) {
  // RFC 9293 s.3.10.7.4, with the text inspected before the ACK field is used: a segment that the
  // upper layer drops counts as lost, all of it.
  if (c.state == State::SynReceived && a.has(flag::kSyn) && !a.has(flag::kRst) &&
      a.seq == c.tcb.irs) {
    if (!a.has(flag::kAck)) {  // the SYN again: our SYN-ACK was lost
      // RFC 3168 s.6.1.1: the peer has fallen back, or never asked.
      if (c.acceptor != nullptr && c.ecn.on()) take_syn_ecn(c, a);
      c.handshake.ask();
      make_ready(c);
      return;
    }
    if (c.acceptor == nullptr) {
      // Simultaneous open: the peer's SYN-ACK completes it. Its SYN is known; go on behind it.
      if (c.ecn.on()) take_syn_ecn(c, a);
      a.flags &= static_cast<uint8_t>(~flag::kSyn);
      a.seq += 1;
      a.window = static_cast<uint16_t>(a.window >> c.tcb.snd_wind_shift);
    }
  }
  if (a.has(flag::kSyn) && c.ecn.on()) take_late_syn_ecn(c, a);
  if (!survives_paws(c, a, now) || !acceptable(c, a)) return;  // First
  if (!survives_rst(c, a, now)) return;                        // Second
  if (a.has(flag::kSyn)) {                                     // Fourth (RFC 5961 s.4.2)
    if (c.state == State::SynReceived && c.acceptor != nullptr) {
      doom(c, StreamEnd::Aborted, false);  // a passive open goes back to LISTEN
    } else {
      challenge_ack(c, now);
    }
    return;
  }
  if (!survives_ack_check(c, a, now)) return;
  c.keep_alive.heard(now);  // not before: anybody can send what the tests above drop
  if (c.tcb.ts_ok && a.options.timestamps &&
      c.tcb.rcv_offset(a.seq) <= static_cast<int64_t>(c.ack.last_ack_sent())) {
    // RFC 7323 s.4.3 (2): only a segment that covers Last.ACK.sent sets TS.Recent. Behind the check
    // of the ACK: a blind guess of the sequence number alone must not end in PAWS for the peer.
    c.tcb.ts_recent = a.options.timestamps->value;
    c.tcb.ts_recent_at = now;
  }
  if (c.state == State::SynReceived) {
    measure_handshake(c, now);
    if (!establish(c, a, now)) return;
  }
  if (c.fin_wanted && c.options.half_duplex_close && closed_reader(c, a)) return;
  if (a.payload.empty() && !a.has(flag::kFin)) {
    process_ack(c, a, now);  // Fifth
    if (a.has(flag::kUrg) && !c.doomed) take_urgent(c, a, now);
    return;
  }
  NewText text;
  if (!inspect_text(c, a, text, now)) return;
  process_ack(c, a, now);                                      // Fifth
  if (a.has(flag::kUrg) && !c.doomed) take_urgent(c, a, now);  // Sixth
  if (c.ecn.on() && !a.payload.empty() && !c.doomed) ecn_arrived(c, a);
  if (!c.doomed) take_text(c, a, text, now);      // Seventh
  if (!c.doomed && c.fin_seen) take_fin(c, now);  // Eighth
}

}  // namespace rnic::tcp
