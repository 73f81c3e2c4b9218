#include "tcp/opening.hpp"

#include <algorithm>

#include "tcp/mss.hpp"
#include "tcp/syn_terms.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

// Between a RST and our next SYN: short beside what somebody waits for who waits for a connection,
// and seldom enough for a port at which nobody listens.
constexpr base::Duration kRefusalPause = std::chrono::milliseconds(10);

constexpr uint8_t kEcnFlags = flag::kEce | flag::kCwr;

bool is_ecn_setup(const Segment& segment) {
  // RFC 3168 s.6.1.1 and s.6.1.1.2: a SYN asks for ECN only if it has both flags; a SYN-ACK with
  // both only reflects the flags of our SYN.
  return (segment.flags & kEcnFlags) == (segment.has(flag::kAck) ? flag::kEce : kEcnFlags);
}

}  // namespace

void Opening::begin(base::Seq32 iss, uint32_t ts_offset, base::Now now) {
  const Config& config = core_.shared.config;
  core_.tcb.iss = iss;
  core_.tcb.ts_offset = ts_offset;
  sender_.begin(default_mss(core_.binding().remote.address), now);
  handshake_.offer(
      {.sack = config.sack, .timestamps = config.timestamps, .scale = config.window_scaling});
}

void Opening::begin_beyond(base::Seq32 old_snd_nxt) {
  constexpr uint32_t kGap = 0x10000;
  base::Seq32& iss = core_.tcb.iss;
  if (!base::after(iss, old_snd_nxt + (kGap - 1))) iss = old_snd_nxt + kGap;
}

void Opening::connect(base::Now now) {
  core_.life.open(State::SynSent, now + core_.shared.config.connect_timeout);
  ask();
}

void Opening::take_peer(const Segment& syn, base::Now now) {
  core_.life.open(State::SynReceived, now + core_.shared.config.connect_timeout);
  take_syn(syn, false, now);
  take_syn_ecn(syn);
}

void Opening::take_answer(const Segment& syn, bool answers, base::Now now) {
  const uint64_t offered = core_.tcb.rcv_edge;
  // If the SYNs cross, our SYN-ACK carries only the options that the peer offered.
  take_syn(syn, answers, now);
  take_syn_ecn(syn);
  receiver_.offer(offered);
}

bool Opening::take_refusal(base::Now now) {
  // RFC 9293 s.3.10.7.3 enters CLOSED at once. The RST says no more than that nobody listens at
  // this moment: a server that listens for one connection after the other is back soon.
  const Config& config = core_.shared.config;
  const base::Now began = core_.timers().at(Timer::Life) - config.connect_timeout;
  if (now - began >= config.refused_time) return false;
  handshake_.refuse();
  sender_.ask_syn_at(now + kRefusalPause);
  return true;
}

void Opening::cross() {
  core_.life.cross();
  ask();
}

uint16_t Opening::window() const {
  return core_.shared.syn_terms.window(acceptor_, core_.binding().user, core_.binding().remote);
}

void Opening::take_syn(const Segment& syn, bool ours_offered, base::Now now) {
  // A passive open offers the options that the peer offered; an active open offered first (RFC 7323
  // s.2.2, s.3.2).
  const wire::TcpOptions& options = syn.options;
  Tcb& tcb = core_.tcb;
  if (options.mss)
    sender_.set_peer_mss(
        std::max(*options.mss, kSmallestMss));  // the option is taken from SYNs only (MUST-14)
  tcb.ts_ok = handshake_.offered().timestamps && options.timestamps.has_value();
  tcb.sack_ok = handshake_.offered().sack && options.sack_permitted;
  const bool scale = handshake_.offered().scale && options.window_scale.has_value();
  const uint8_t ours = core_.shared.syn_terms.window_shift();
  if (!ours_offered)
    handshake_.offer({.sack = tcb.sack_ok, .timestamps = tcb.ts_ok, .scale = scale});
  receiver_.begin(syn, scale ? ours : 0, now);
  // The window of a SYN is never scaled (RFC 7323 s.2.2).
  sender_.take_first_window(syn.window, scale ? std::min(*options.window_scale, kMaxShift) : 0);
  receiver_.offer(window());
  sender_.update_emss(false, now);
}

void Opening::take_syn_ecn(const Segment& syn) {
  const bool ours = syn.has(flag::kAck) ||
                    core_.life.state() == State::SynSent;  // whose SYN the ECN flags answer
  core_.ecn.take_syn(is_ecn_setup(syn), ours, core_.binding().options.ecn != Ecn::Off);
}

void Opening::take_late_syn(const Segment& syn) {
  if (core_.ecn.on() && syn.seq == core_.tcb.irs) {
    core_.ecn.take_late_syn(is_ecn_setup(syn));
  }
}

uint8_t Opening::offer_ecn(bool with_ack, TxSlot& slot) {
  // RFC 3168 s.6.1.1: a SYN asks with ECE and CWR, a SYN-ACK agrees with ECE alone. RFC 8257 s.3.6:
  // under DCTCP both are sent as ECN-capable.
  EcnState& ecn = core_.ecn;
  const Ecn wanted = core_.binding().options.ecn;
  if (with_ack) {
    if (!ecn.on()) return 0;
    if (core_.binding().dctcp()) slot.traffic_class |= ecn_codepoint::kEct0;
    return flag::kEce;
  }
  if (wanted == Ecn::Off || (wanted != Ecn::Offer && !core_.binding().dctcp())) return 0;
  if (handshake_.tries() >= core_.shared.config.ecn_syn_attempts) {
    // s.6.1.1.1: a middlebox may drop SYNs that ask for ECN.
    if (ecn.fall_back()) ++core_.shared.counters.ecn_fallbacks;
    return 0;
  }
  ecn.offer();
  if (core_.binding().dctcp()) slot.traffic_class |= ecn_codepoint::kEct0;
  return kEcnFlags;
}

bool Opening::send(base::Now now) {
  TxSlot slot;
  const Binding& binding = core_.binding();
  if (!sender_.open(slot, now)) return false;
  const Tcb& tcb = core_.tcb;
  const bool with_ack = core_.life.state() == State::SynReceived;
  const SynOffer& offer = handshake_.offered();
  const SynTerms& terms = core_.shared.syn_terms;
  SynOptions options{.mss = terms.mss(binding.remote.address, binding.options), .sack = offer.sack};
  if (offer.timestamps) options.timestamps = {tcb.timestamp(now), with_ack ? tcb.ts_recent : 0};
  if (offer.scale) options.window_scale = core_.shared.syn_terms.window_shift();
  const uint32_t header =
      wire::kTcpHeaderMin + write_syn_options(slot.tcp + wire::kTcpHeaderMin, options);
  uint64_t offered = window();
  if (with_ack) offered = std::max(offered, tcb.rcv_edge);
  const auto flags =
      static_cast<uint8_t>(flag::kSyn | (with_ack ? flag::kAck : 0) | offer_ecn(with_ack, slot));
  wire::write_tcp(slot.tcp, {.source_port = binding.local.port,
                             .destination_port = binding.remote.port,
                             .sequence = tcb.iss,
                             .acknowledgment = with_ack ? tcb.ack_seq() : base::Seq32(0),
                             .flags = flags,
                             .window = static_cast<uint16_t>(offered),
                             .header_length = header});
  receiver_.offer(offered);
  core_.shared.out.complete(slot, binding.local, binding.remote, header, now);
  sender_.syn_sent(handshake_.sent(), now);
  return true;
}

bool Opening::time_out(base::Now now) {
  if (handshake_.state() == HandshakeState::Refused) {
    sender_.syn_asked();
    ask();
    return true;
  }
  ++core_.shared.counters.timeouts;
  sender_.syn_timed_out();
  const uint32_t tries = handshake_.time_out();
  if (tries > core_.shared.config.syn_retries) return false;
  if (tries == kNoticeTimeouts) {
    core_.shared.out.doubt_path(core_.binding().remote.address, now);
  }
  core_.ask_turn();
  return true;
}

void Opening::done(const Segment& first, base::Now now) {
  core_.life.establish();
  sender_.establish(first, handshake_.tries(), handshake_.timed_out(), now);
  handshake_.done();
  if (core_.ecn.on()) ++core_.shared.counters.ecn_connections;
}

}  // namespace rnic::tcp
