#include "tcp/handshake.hpp"

#include "base/check.hpp"
#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

bool Handshake::sent() {
  const bool first = !sent_;
  due_ = false;
  resent_ = resent_ || sent_;
  sent_ = true;
  return first;
}

uint32_t Handshake::time_out() {
  timed_out_ = true;
  due_ = true;
  return ++tries_;
}

void Handshake::assume_sent() {
  sent_ = true;
  timed_out_ = true;
}

void Handshake::validate() const {
  RNIC_CHECK(!resent_ || sent_);
  RNIC_CHECK(tries_ == 0 || timed_out_);
}

void Engine::take_syn_options(Connection& c, const Arrival& a, bool ours_offered, base::Now now) {
  // A passive open offers what the peer offered; an active one offered first (RFC 7323 s.2.2,
  // s.3.2).
  const wire::TcpOptions& o = a.options;
  c.tcb.irs = a.seq;
  c.tcb.rcv_nxt = 0;
  if (o.mss) c.smss_peer = std::max(*o.mss, kSmallestMss);  // MSS is taken from SYNs only (MUST-14)
  c.tcb.ts_ok = c.handshake.offered().timestamps && o.timestamps.has_value();
  c.tcb.sack_ok = c.handshake.offered().sack && o.sack_permitted;
  const bool scale = c.handshake.offered().scale && o.window_scale.has_value();
  c.tcb.snd_wind_shift = scale ? std::min(*o.window_scale, kMaxShift) : 0;
  c.tcb.rcv_wind_shift = scale ? syn_terms_.window_shift() : 0;
  if (!ours_offered) {
    c.handshake.offer({.sack = c.tcb.sack_ok, .timestamps = c.tcb.ts_ok, .scale = scale});
  }
  if (c.tcb.ts_ok) {
    c.tcb.ts_recent = o.timestamps->value;
    c.tcb.ts_recent_at = now;
  }
  // The window of a SYN is never scaled (RFC 7323 s.2.2).
  c.tcb.snd_wnd = a.window;
  c.tcb.snd_max_wnd = a.window;
  c.tcb.snd_wl1 = -1;
  c.tcb.snd_wl2 = 0;
  c.tcb.rcv_edge = syn_terms_.window(c.acceptor, c.user, c.remote_end);
  update_emss(c, false);
}

void Engine::update_emss(Connection& c, bool tell) {
  // RFC 9293 s.3.7.1: EMSS counts the options that are on every segment.
  uint32_t mtu = egress_.path_mtu(c.remote_end.address);
  if (mtu == 0) return;  // the route is gone for now: keep what we had
  if (c.path.limit() != 0) mtu = std::min(mtu, c.path.limit());
  const uint32_t of_path = mss_of_path(mtu, c.remote_end.address);
  const uint32_t send_mss = std::min<uint32_t>(c.smss_peer, of_path);
  uint32_t emss = send_mss - (c.tcb.ts_ok ? wire::kTcpTimestampsPadded : 0);
  if (c.options.max_segment != 0) emss = std::min<uint32_t>(emss, c.options.max_segment);
  if (emss == c.effective_mss) return;
  c.effective_mss = emss;
  c.cc.set_smss(emss);
  if (tell && c.user != nullptr && !c.doomed) c.user->emss_changed(emss);
}

bool Engine::send_syn(Connection& c, base::Now now) {
  TxSlot slot;
  if (!open_slot(c, slot)) return false;
  const bool with_ack = c.state == State::SynReceived;
  const SynOffer& offer = c.handshake.offered();
  SynOptions options{.mss = syn_terms_.mss(c.remote_end.address, c.options), .sack = offer.sack};
  if (offer.timestamps) {
    options.timestamps = {c.tcb.timestamp(now), with_ack ? c.tcb.ts_recent : 0};
  }
  if (offer.scale) options.window_scale = syn_terms_.window_shift();
  const uint32_t header =
      wire::kTcpHeaderMin + write_syn_options(slot.tcp + wire::kTcpHeaderMin, options);
  uint64_t window = syn_terms_.window(c.acceptor, c.user, c.remote_end);
  if (with_ack) window = std::max(window, c.tcb.rcv_edge);
  wire::write_tcp(slot.tcp,
                  {.source_port = c.local_end.port,
                   .destination_port = c.remote_end.port,
                   .sequence = c.tcb.iss,
                   .acknowledgment = with_ack ? c.tcb.ack_seq() : base::Seq32(0),
                   .flags = static_cast<uint8_t>(flag::kSyn | (with_ack ? flag::kAck : 0) |
                                                 syn_ecn(c, with_ack, slot)),
                   .window = static_cast<uint16_t>(window),
                   .header_length = header});
  c.tcb.rcv_edge = window;
  complete(slot, c.local_end, c.remote_end, header, now);
  if (c.handshake.sent()) c.last_sent_at = now;
  c.timers.set(Timer::Rto, now + c.rto.rto());
  return true;
}

void Engine::syn_timeout(Connection& c, base::Now now) {
  ++counters_.timeouts;
  c.timers.clear(Timer::Rto);
  const uint32_t tries = c.handshake.time_out();
  if (tries > config_.syn_retries) {
    ++counters_.connections_timed_out;
    doom(c, c.soft_error ? StreamEnd::Unreachable : StreamEnd::TimedOut, false);
    return;
  }
  if (tries == kNoticeTimeouts) {
    ++counters_.path_doubts;
    egress_.doubt_path(c.remote_end.address, now);
  }
  c.rto.back_off();
  make_ready(c);
}

void Engine::input_syn_sent(Connection& c, const Arrival& a, base::Now now) {
  // RFC 9293 s.3.10.7.3. First: the ACK bit.
  const bool ack_ok = a.has(flag::kAck) && a.ack == c.tcb.iss + 1 && c.handshake.was_sent();
  if (a.has(flag::kAck) && !ack_ok) {
    if (!a.has(flag::kRst)) reset_reply(a);
    return;
  }
  if (a.has(flag::kRst)) {  // Second: valid only with an acceptable ACK
    if (!ack_ok) return;
    ++counters_.resets_in;
    doom(c, StreamEnd::Refused, false);
    return;
  }
  if (!a.has(flag::kSyn)) return;  // Fourth, fifth
  const uint64_t offered = c.tcb.rcv_edge;
  take_syn_options(c, a, ack_ok, now);  // our SYN-ACK, too, has only what the peer offered
  take_syn_ecn(c, a);
  c.tcb.rcv_edge = offered;
  if (!ack_ok) {  // simultaneous open
    c.state = State::SynReceived;
    c.acceptor = nullptr;
    c.handshake.ask();
    make_ready(c);
    return;
  }
  measure_handshake(c, now);
  if (!establish(c, a, now)) return;
  c.ack.ask();
  make_ready(c);
  if (a.length() > 1) take_text_of_syn(c, a, now);
}

void Engine::take_text_of_syn(Connection& c, const Arrival& syn, base::Now now) {
  // RFC 9293 s.3.10.7.3, fourth: what stands behind the SYN goes on at the sixth step.
  Arrival a = syn;
  a.flags &= static_cast<uint8_t>(~flag::kSyn);
  a.seq += 1;
  NewText text;
  if (!inspect_text(c, a, text, now)) return;
  take_text(c, a, text, now);
  if (!c.doomed && c.fin_seen) take_fin(c, now);
}

void Engine::measure_handshake(Connection& c, base::Now now) {
  // Karn's rule (RFC 6298 s.3), whether our timer or a SYN that came again made us repeat ours.
  if (c.handshake.measures()) c.rto.sample(now - c.last_sent_at, now);
}

bool Engine::establish(Connection& c, const Arrival& a, base::Now now) {
  half_open_.leave(c.half_open);
  c.state = State::Established;
  c.handshake.done();
  c.timers.clear(Timer::Rto);
  c.timers.clear(Timer::Life);
  c.progress_at = now;
  c.keep_alive.heard(now);
  // RFC 6298 s.5.7: data begins with 3 s when the SYN timed out.
  if (c.handshake.timed_out()) c.rto.restart_at(std::chrono::seconds(3));
  c.rto.clear_backoff();
  c.tcb.snd_wl1 = c.tcb.rcv_offset(a.seq);
  c.tcb.snd_wl2 = 0;
  c.cc.set_smss(c.effective_mss);
  c.cc.start(c.handshake.tries());
  if (c.ecn.on()) ++counters_.ecn_connections;
  if (c.user == nullptr) {
    c.user = c.acceptor->accept(c, c.local_end, c.remote_end, now);
    if (c.user == nullptr) {
      doom(c, StreamEnd::Aborted, true);
      return false;
    }
  }
  c.opened = true;
  ++counters_.connections_opened;
  start_path_search(c);
  if (c.options.keep_alive) arm_keep_alive(c, now);
  if (!c.doomed) c.user->established(c.effective_mss, now);
  if (c.fin_wanted || c.user_ready) make_ready(c);
  return !c.doomed;
}

}  // namespace rnic::tcp
