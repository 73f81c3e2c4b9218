#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint8_t kEcnFlags = flag::kEce | flag::kCwr;
constexpr uint32_t kMaxHoldShift = 6;

bool uses_dctcp(const Connection& c) { return c.cc.kind() == CongestionControl::Dctcp; }

}  // namespace

uint8_t Engine::syn_ecn(Connection& c, bool with_ack, TxSlot& slot) {
  // RFC 3168 s.6.1.1: ECE and CWR ask, ECE alone agrees. RFC 8257 s.3.6: under DCTCP these are
  // ECN-capable themselves.
  EcnState& e = c.ecn;
  if (with_ack) {
    if (!e.on) return 0;
    if (uses_dctcp(c)) slot.traffic_class |= ecn_codepoint::kEct0;
    return flag::kEce;
  }
  if (c.options.ecn == Ecn::Off || (c.options.ecn != Ecn::Offer && !uses_dctcp(c))) return 0;
  if (c.syn_tries >= config_.ecn_syn_attempts) {
    // s.6.1.1.1: a middlebox may swallow SYNs that ask.
    if (!e.fell_back) ++counters_.ecn_fallbacks;
    e.fell_back = true;
    return 0;
  }
  e.offered = true;
  if (uses_dctcp(c)) slot.traffic_class |= ecn_codepoint::kEct0;
  return kEcnFlags;
}

bool Engine::is_ecn_setup(const Arrival& a) {
  // RFC 3168 s.6.1.1 and s.6.1.1.2: a SYN asks with both flags or not at all; a SYN-ACK with both
  // only reflects ours.
  return (a.flags & kEcnFlags) == (a.has(flag::kAck) ? flag::kEce : kEcnFlags);
}

void Engine::take_syn_ecn(Connection& c, const Arrival& a) {
  const bool ours = a.has(flag::kAck) || c.state == State::SynSent;  // who asked first
  c.ecn.on = is_ecn_setup(a) && (ours ? c.ecn.offered : c.options.ecn != Ecn::Off);
}

void Engine::take_late_syn_ecn(Connection& c, const Arrival& a) {
  // RFC 3168 s.6.1.1: who has received a SYN or SYN-ACK that does not ask should not set ECT, also
  // when it comes behind the handshake that another one has made. What was agreed to, to answer
  // marks, stays.
  if (a.seq == c.tcb.irs && !is_ecn_setup(a)) c.ecn.fell_back = true;
}

void Engine::ecn_arrived(Connection& c, const Arrival& a) {
  // In-window data. RFC 3168 s.6.1.3; RFC 8257 s.3.2: CWR first, then CE.
  EcnState& e = c.ecn;
  const bool ce = a.ecn == ecn_codepoint::kCe;
  const bool cwr = a.has(flag::kCwr);
  if (ce) ++counters_.ce_in;
  if (cwr) ++counters_.cwr_in;
  if (uses_dctcp(c)) {
    if (ce == e.echo) return;
    // What came before, and is not acknowledged yet, is reported as it was marked.
    if (c.ack.octets != 0) {
      if (e.owed_count < EcnState::kMaxOwed) {
        e.owed[e.owed_count++] = c.tcb.ack_seq();
      } else {
        --e.owed_count;
        ++counters_.ce_changes_merged;
      }
    }
    e.echo = ce;
  } else {
    const bool echoed = e.echo;
    if (cwr) e.echo = false;
    if (ce) e.echo = true;
    // The sender learns at once of the first mark; one that has just reduced may have so small a
    // window that a delayed ACK would stall it.
    if (!cwr && e.echo == echoed) return;
  }
  c.ack.now = true;
  make_ready(c);
}

bool Engine::send_owed_acks(Connection& c, base::Now now) {
  EcnState& e = c.ecn;
  while (e.owed_count != 0) {
    TxSlot slot;
    if (!open_slot(c, slot)) return false;
    const base::Seq32 ack = e.owed[0];
    const bool ece = e.echo != ((e.owed_count & 1) != 0);  // they alternate
    std::copy(e.owed.begin() + 1, e.owed.begin() + e.owed_count, e.owed.begin());
    --e.owed_count;
    wire::TcpOptionWriter options(slot.tcp + wire::kTcpHeaderMin);
    if (c.tcb.ts_ok) {
      options.nop();
      options.nop();
      options.timestamps({timestamp_of(c, now), c.tcb.ts_recent});
    }
    const uint32_t header = wire::kTcpHeaderMin + options.finish();
    // The right edge stays where it is: it counts from the older octet.
    const auto room =
        static_cast<uint64_t>(static_cast<int64_t>(c.tcb.rcv_edge) - c.tcb.rcv_offset(ack));
    wire::write_tcp(
        slot.tcp,
        {.source_port = c.local_end.port,
         .destination_port = c.remote_end.port,
         .sequence = c.tcb.snd_seq(c.tcb.snd_nxt),
         .acknowledgment = ack,
         .flags = static_cast<uint8_t>(flag::kAck | (ece ? flag::kEce : 0)),
         .window = static_cast<uint16_t>(std::min<uint64_t>(room >> c.tcb.rcv_wind_shift, 0xffff)),
         .header_length = header});
    ++counters_.acks_out;
    ++counters_.ce_change_acks;
    complete(slot, c.local_end, c.remote_end, header, now);
  }
  return true;
}

uint8_t Engine::ecn_flags(const Connection& c, TxSlot& slot) const {
  // RFC 3168 s.6.1.4-6.1.6: not ECN-capable, unless DCTCP's knob says so (RFC 8257 s.4.1).
  if (config_.dctcp_ect_on_control && uses_dctcp(c) && c.ecn.sends_ect()) {
    slot.traffic_class |= ecn_codepoint::kEct0;
  }
  return c.ecn.echo ? flag::kEce : 0;
}

uint8_t Engine::mark_new_data(Connection& c, TxSlot& slot) {
  // RFC 3168 s.6.1.2: ECT(0), and CWR on the first new data after a reduction.
  EcnState& e = c.ecn;
  if (e.sends_ect()) slot.traffic_class |= ecn_codepoint::kEct0;
  if (!e.cwr_due) return 0;
  e.cwr_due = false;
  ++counters_.cwr_out;
  return flag::kCwr;
}

void Engine::note_reduction(Connection& c) {
  // For whatever reason the window was reduced: marks on what is in flight are answered with it.
  if (!c.ecn.on) return;
  // CWR tells that a mark was obeyed; nothing of a sender that may not set ECT is marked.
  c.ecn.cwr_due = c.ecn.sends_ect();
  c.ecn.reduced = true;
  c.ecn.reduced_until = c.tcb.snd_nxt;
}

void Engine::ecn_feedback(Connection& c, const Arrival& a, AckYield& yield, base::Now now) {
  EcnState& e = c.ecn;
  const bool ece = a.has(flag::kEce);
  if (yield.acked != 0) c.cc.count_marks(sample_of(c, yield.acked, yield.rtt, now), ece);
  if (!ece) {
    if (yield.acked != 0) e.holds = 0;
    return;
  }
  ++counters_.ece_in;
  yield.ece = true;
  yield.keep_window = true;  // RFC 3168 s.6.1.2: no growth by an ACK with ECN-Echo
  if (c.recovery.phase != RecoveryPhase::Open) return;  // reduced already in this window
  if (e.reduced && c.tcb.snd_una <= e.reduced_until) return;
  const bool one_segment = c.cc.cwnd() <= c.cc.smss();
  c.cc.on_ecn();
  note_reduction(c);
  e.cwr_due = true;  // the commitment of RFC 3168 s.6.1.1, whoever marked what
  ++counters_.ecn_reductions;
  if (!one_segment) {
    e.holds = 0;
    return;
  }
  // No window is smaller: the rate goes on falling by the retransmission timer.
  const uint32_t shift = std::min<uint32_t>(e.holds, kMaxHoldShift);
  c.pacing.release_at = now + c.rto.rto() * (int64_t{1} << shift);
  c.pacing.gated = true;
  c.pacing.waiting = false;
  if (shift < kMaxHoldShift) ++e.holds;
  ++counters_.ecn_holds;
}

}  // namespace rnic::tcp
