#include "tcp/ecn.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint8_t kEcnFlags = flag::kEce | flag::kCwr;

bool uses_dctcp(const Connection& c) { return c.cc.kind() == CongestionControl::Dctcp; }

}  // namespace

bool EcnState::fall_back() {
  const bool first = !fell_back_;
  fell_back_ = true;
  return first;
}

bool EcnState::arrived(bool ce, bool cwr) {
  // CWR first, then CE.
  const bool echoed = echo_;
  if (cwr) echo_ = false;
  if (ce) echo_ = true;
  // The sender learns at once of the first mark; one that has just reduced may have so small a
  // window that a delayed ACK would stall it.
  return cwr || echo_ != echoed;
}

EcnState::Change EcnState::arrived_dctcp(bool ce, bool unacknowledged, base::Seq32 ack) {
  if (ce == echo_) return Change::None;
  echo_ = ce;
  if (!unacknowledged) return Change::Changed;
  if (owed_count_ < kMaxOwed) {
    owed_[owed_count_++] = ack;
    return Change::Changed;
  }
  --owed_count_;
  return Change::Merged;
}

EcnState::Owed EcnState::take_owed() {
  const Owed oldest{owed_[0], echo_ != ((owed_count_ & 1) != 0)};  // they alternate
  std::copy(owed_.begin() + 1, owed_.begin() + owed_count_, owed_.begin());
  --owed_count_;
  return oldest;
}

bool EcnState::take_cwr() {
  const bool due = cwr_due_;
  cwr_due_ = false;
  return due;
}

void EcnState::note_reduction(uint64_t snd_nxt) {
  if (!on_) return;
  // CWR tells that a mark was obeyed; nothing of a sender that may not set ECT is marked.
  cwr_due_ = sends_ect();
  reduced_ = true;
  reduced_until_ = snd_nxt;
}

uint32_t EcnState::hold() {
  const uint8_t before = holds_;
  if (holds_ < kMaxHolds) ++holds_;
  return before;
}

void EcnState::validate() const {
  RNIC_CHECK(owed_count_ <= kMaxOwed && holds_ <= kMaxHolds);
  RNIC_CHECK(on_ || (!echo_ && !cwr_due_ && !reduced_ && owed_count_ == 0));
}

uint8_t Engine::syn_ecn(Connection& c, bool with_ack, TxSlot& slot) {
  // RFC 3168 s.6.1.1: ECE and CWR ask, ECE alone agrees. RFC 8257 s.3.6: under DCTCP these are
  // ECN-capable themselves.
  EcnState& e = c.ecn;
  if (with_ack) {
    if (!e.on()) return 0;
    if (uses_dctcp(c)) slot.traffic_class |= ecn_codepoint::kEct0;
    return flag::kEce;
  }
  if (c.options.ecn == Ecn::Off || (c.options.ecn != Ecn::Offer && !uses_dctcp(c))) return 0;
  if (c.handshake.tries() >= config_.ecn_syn_attempts) {
    // s.6.1.1.1: a middlebox may swallow SYNs that ask.
    if (e.fall_back()) ++counters_.ecn_fallbacks;
    return 0;
  }
  e.offer();
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
  c.ecn.take_syn(is_ecn_setup(a), ours, c.options.ecn != Ecn::Off);
}

void Engine::take_late_syn_ecn(Connection& c, const Arrival& a) {
  if (a.seq == c.tcb.irs) c.ecn.take_late_syn(is_ecn_setup(a));
}

void Engine::ecn_arrived(Connection& c, const Arrival& a) {
  const bool ce = a.ecn == ecn_codepoint::kCe;
  const bool cwr = a.has(flag::kCwr);
  if (ce) ++counters_.ce_in;
  if (cwr) ++counters_.cwr_in;
  if (uses_dctcp(c)) {
    using Change = EcnState::Change;
    const Change change = c.ecn.arrived_dctcp(ce, c.ack.unacknowledged() != 0, c.tcb.ack_seq());
    if (change == Change::None) return;
    if (change == Change::Merged) ++counters_.ce_changes_merged;
  } else if (!c.ecn.arrived(ce, cwr)) {
    return;
  }
  c.ack.ask();
  make_ready(c);
}

bool Engine::send_owed_acks(Connection& c, base::Now now) {
  while (c.ecn.owes_acks()) {
    TxSlot slot;
    if (!open_slot(c, slot)) return false;
    const auto [ack, ece] = c.ecn.take_owed();
    wire::TcpOptionWriter options(slot.tcp + wire::kTcpHeaderMin);
    if (c.tcb.ts_ok) {
      options.nop();
      options.nop();
      options.timestamps({c.tcb.timestamp(now), c.tcb.ts_recent});
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
  return c.ecn.echoes() ? flag::kEce : 0;
}

uint8_t Engine::mark_new_data(Connection& c, TxSlot& slot) {
  // RFC 3168 s.6.1.2: ECT(0), and CWR on the first new data after a reduction.
  if (c.ecn.sends_ect()) slot.traffic_class |= ecn_codepoint::kEct0;
  if (!c.ecn.take_cwr()) return 0;
  ++counters_.cwr_out;
  return flag::kCwr;
}

void Engine::ecn_feedback(Connection& c, const Arrival& a, AckYield& yield, base::Now now) {
  EcnState& e = c.ecn;
  const bool ece = a.has(flag::kEce);
  if (yield.acked != 0) c.cc.count_marks(sample_of(c, yield.acked, yield.rtt, now), ece);
  if (!ece) {
    if (yield.acked != 0) e.end_holds();
    return;
  }
  ++counters_.ece_in;
  yield.ece = true;
  yield.keep_window = true;        // RFC 3168 s.6.1.2: no growth by an ACK with ECN-Echo
  if (!c.recovery.open()) return;  // reduced already in this window
  if (e.answered(c.tcb.snd_una)) return;
  const bool one_segment = c.cc.cwnd() <= c.cc.smss();
  c.cc.on_ecn();
  e.note_reduction(c.tcb.snd_nxt);
  e.commit_cwr();
  ++counters_.ecn_reductions;
  if (!one_segment) {
    e.end_holds();
    return;
  }
  // No window is smaller: the rate goes on falling by the retransmission timer.
  const uint32_t shift = e.hold();
  c.pacing.hold(now + c.rto.rto() * (int64_t{1} << shift));
  ++counters_.ecn_holds;
}

}  // namespace rnic::tcp
