#include "tcp/connection.hpp"

#include <algorithm>

#include "tcp/time_wait.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

// --- Opening ---

void Connection::name(base::Handle handle, const Endpoint& local, const Endpoint& remote) {
  handle_ = handle;
  core_.binding_.local = local;
  core_.binding_.remote = remote;
}

void Connection::begin(base::Seq32 iss, uint32_t ts_offset, const ConnectionOptions& options,
                       base::Now now) {
  core_.binding_.options = options;
  sender_.apply(options);
  opening().begin(iss, ts_offset, now);
  keep_alive_.heard(now);
}

void Connection::open_active(llp::StreamUser& user, base::Now now) {
  core_.binding_.user = &user;
  opening().connect(now);
}

void Connection::open_passive(llp::Acceptor& acceptor, const Segment& syn, base::Now now) {
  acceptor_ = &acceptor;
  opening().accept(syn, now);
}

void Connection::open_by_cookie(llp::Acceptor& acceptor, const Segment& syn, base::Seq32 iss,
                                base::Now now) {
  acceptor_ = &acceptor;
  opening().accept_by_cookie(syn, iss, now);
}

void Connection::take_seat(HalfOpenPlaces& listener) {
  core_.shared.half_open.enter(seat_, listener, core_.binding_.remote.address, handle_);
}

void Connection::set_options(const ConnectionOptions& options, base::Now now) {
  if (over()) return;
  core_.binding_.options = options;
  sender_.apply(options);
  core_.life.forget_orphan();
  core_.life.progressed(now);  // half_close may have changed
  arm_keep_alive(now);
  if (synchronized(state())) {
    sender_.update_emss(true, now);
    core_.ask_turn();
  }
}

void Connection::input_syn_sent(const Segment& segment, base::Now now) {
  // RFC 9293 s.3.10.7.3. First: the ACK bit.
  const bool ack_ok =
      segment.has(flag::kAck) && segment.ack == core_.tcb.iss + 1 && handshake_.was_sent();
  if (segment.has(flag::kAck) && !ack_ok) {
    if (!segment.has(flag::kRst)) core_.shared.reset_reply(segment);
    return;
  }
  if (segment.has(flag::kRst)) {  // Second: valid only with an acceptable ACK
    if (!ack_ok) return;
    ++core_.shared.counters.resets_in;
    if (!opening().take_refusal(now)) end(StreamEnd::Refused, false);
    return;
  }
  if (!segment.has(flag::kSyn)) return;  // Fourth, fifth
  opening().take_answer(segment, ack_ok, now);
  if (!ack_ok) {  // simultaneous open
    opening().cross();
    return;
  }
  opening().measure(now);
  if (!establish(segment, now)) return;
  receiver_.ask_ack();
  if (segment.length() > 1) take_text_of_syn(segment, now);
}

void Connection::take_text_of_syn(const Segment& syn, base::Now now) {
  // RFC 9293 s.3.10.7.3, fourth: the rest of the SYN segment is processed from the sixth step on.
  Segment rest = syn;
  rest.flags &= static_cast<uint8_t>(~flag::kSyn);
  rest.seq += 1;
  Receiver::NewText text;
  const Receiver::Text arrived = receiver_.text_of(rest);
  if (!receiver_.inspect_text(arrived, text, now)) return;
  receiver_.take_text(arrived, text, now);
  if (!over() && receiver_.take_fin(now)) end_in_time_wait(now);
}

bool Connection::establish(const Segment& segment, base::Now now) {
  core_.shared.half_open.leave(seat_);
  opening().done(segment, now);
  keep_alive_.heard(now);
  Binding& binding = core_.binding_;
  if (binding.user == nullptr) {
    binding.user = acceptor_->accept(*this, binding.local, binding.remote, now);
    if (binding.user == nullptr) {
      end(StreamEnd::Aborted, true);
      return false;
    }
  }
  ++core_.shared.counters.connections_opened;
  sender_.start_path_search(now);
  if (binding.options.keep_alive) arm_keep_alive(now);
  if (!over()) binding.user->established(sender_.emss(), now);
  if (core_.life.fin_wanted() || sender_.user_is_ready()) core_.ask_turn();
  return !over();
}

// --- A segment ---

void Connection::input(Segment& segment, bool predicting, base::Now now) {
  if (state() == State::SynSent) {
    input_syn_sent(segment, now);
    return;
  }
  input_synchronized(segment, now);
  if (predicting) predict();
}

[[gnu::noinline]] void Connection::predict() { fast_path::predict(core_, sender_, receiver_); }

// The parts of a segment are handed over in registers: a SegmentIn would be copied.
[[gnu::noinline]] fast_path::Taken Connection::take_predicted_text(base::ByteView tcp,
                                                                   bool checksum_verified,
                                                                   uint8_t ecn, base::Now now) {
  const auto taken =
      fast_path::take_text(core_, sender_, receiver_, {tcp, checksum_verified, ecn}, now);
  if (taken != fast_path::Taken::No) keep_alive_.heard(now);
  return taken;
}

bool Connection::syn_again(Segment& segment) {
  if (!segment.has(flag::kAck)) {  // the SYN was retransmitted: our SYN-ACK was lost
    if (passive()) opening().take_syn_again(segment);
    opening().ask();
    return true;
  }
  if (!passive()) {
    // Simultaneous open: the peer's SYN-ACK completes it. The peer's SYN was taken before, so
    // processing goes on with what follows the SYN.
    opening().take_syn_again(segment);
    segment.flags &= static_cast<uint8_t>(~flag::kSyn);
    segment.seq += 1;
    segment.window = static_cast<uint16_t>(segment.window >> core_.tcb.snd_wind_shift);
  }
  return false;
}

void Connection::input_synchronized(Segment& segment, base::Now now) {
  // RFC 9293 s.3.10.7.4, but the text is inspected before the ACK field is used: a segment that the
  // upper layer drops counts as lost in whole.
  const bool known_syn = state() == State::SynReceived && segment.has(flag::kSyn) &&
                         !segment.has(flag::kRst) && segment.seq == core_.tcb.irs;
  if (known_syn && syn_again(segment)) return;
  if (segment.has(flag::kSyn)) opening().take_late_syn(segment);
  if (!receiver_.survives_paws(segment, now) || !receiver_.acceptable(segment)) return;  // First
  if (!survives_rst(segment, now)) return;                                               // Second
  if (segment.has(flag::kSyn)) {                                                         // Fourth
    take_syn_in_window(now);
    return;
  }
  if (!survives_ack_check(segment, now)) return;
  keep_alive_.heard(now);  // only now: anybody can send segments that the tests above drop
  receiver_.take_timestamp(segment, now);
  if (state() == State::SynReceived) {
    opening().measure(now);
    if (!establish(segment, now)) return;
  }
  const ConnectionOptions& options = core_.binding_.options;
  if (core_.life.fin_wanted() && options.half_duplex_close && closed_reader(segment)) return;
  if (segment.payload.empty() && !segment.has(flag::kFin)) {
    process_ack(segment, now);  // Fifth
    if (segment.has(flag::kUrg) && !over()) receiver_.take_urgent(segment, now);
    return;
  }
  Receiver::NewText text;
  const Receiver::Text arrived = receiver_.text_of(segment);
  if (!receiver_.inspect_text(arrived, text, now)) return;
  process_ack(segment, now);                                                    // Fifth
  if (segment.has(flag::kUrg) && !over()) receiver_.take_urgent(segment, now);  // Sixth
  if (core_.ecn.on() && !segment.payload.empty() && !over()) receiver_.take_ecn(segment);
  if (!over()) receiver_.take_text(arrived, text, now);           // Seventh
  if (!over() && receiver_.take_fin(now)) end_in_time_wait(now);  // Eighth
}

bool Connection::survives_rst(const Segment& segment, base::Now now) {
  // Second: RST. RFC 5961 s.3.2: a RST at exactly RCV.NXT resets; elsewhere in the window it draws
  // a challenge ACK.
  if (!segment.has(flag::kRst)) return true;
  if (segment.seq != core_.tcb.ack_seq()) {
    // A RST with text may begin before the window. Its sequence number is then outside, and it
    // draws no challenge ACK.
    if (base::after(segment.seq, core_.tcb.ack_seq())) challenge_ack(now);
    return false;
  }
  ++core_.shared.counters.resets_in;
  const bool refused = state() == State::SynReceived && !passive();
  end(refused ? StreamEnd::Refused : StreamEnd::PeerReset, false);
  return false;
}

void Connection::take_syn_in_window(base::Now now) {
  // RFC 5961 s.4.2. A passive open goes back to LISTEN.
  if (state() == State::SynReceived && passive()) {
    end(StreamEnd::Aborted, false);
  } else {
    challenge_ack(now);
  }
}

bool Connection::survives_ack_check(const Segment& segment, base::Now now) {
  // Fifth: the ACK field. RFC 5961 s.5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
  const Tcb& tcb = core_.tcb;
  if (!segment.has(flag::kAck)) return false;
  if (state() == State::SynReceived) {
    // While our SYN-ACK has not left, an ACK of it can only be a guess.
    if (segment.ack == tcb.iss + 1 && handshake_.was_sent()) return true;
    core_.shared.reset_reply(segment);
    return false;
  }
  const int64_t ack = tcb.snd_offset(segment.ack);
  const int64_t oldest = static_cast<int64_t>(tcb.snd_una) - static_cast<int64_t>(tcb.snd_max_wnd);
  if (ack <= static_cast<int64_t>(tcb.snd_nxt) && ack >= oldest) return true;
  challenge_ack(now);
  return false;
}

void Connection::challenge_ack(base::Now now) {
  if (core_.shared.challenges.allow(now)) receiver_.ask_ack_alone();
}

bool Connection::closed_reader(const Segment& segment) {
  // RFC 9293 s.3.6.1 (MAY-1, SHLD-3): new octets arrived, but the user reads no more.
  if (!receiver_.has_new_text(segment)) return false;
  ++core_.shared.counters.half_duplex_resets;
  // The peer accepts a RST at once only at its RCV.NXT (RFC 5961 s.3.2), which is below our SND.NXT
  // when octets of ours or our FIN were lost. So the RST takes its number from the ACK field, as
  // for a connection that does not exist (s.3.5.2, group 1).
  if (Reply* reply = queue_rst()) {
    reply->seq = segment.ack;
    reply->ack = {};
    reply->flags = flag::kRst;
  }
  end(StreamEnd::Aborted, false);
  return true;
}

void Connection::process_ack(const Segment& segment, base::Now now) {
  switch (sender_.take_ack(segment, now)) {
    case Life::Next::Same: break;
    case Life::Next::TimeWait: end_in_time_wait(now); break;
    case Life::Next::Closed: end(StreamEnd::Closed, false); break;
  }
}

void Connection::icmp(const llp::IcmpError& error, base::Seq32 seq, base::Now now) {
  // RFC 5927 s.4.1: only a message that quotes a sequence number in flight can be about this
  // connection.
  const Tcb& tcb = core_.tcb;
  Counters& counters = core_.shared.counters;
  const bool opening = in_any(state(), State::SynSent, State::SynReceived);
  const int64_t offset = tcb.snd_offset(seq);
  const bool in_flight =
      offset >= static_cast<int64_t>(tcb.snd_una) && offset < static_cast<int64_t>(tcb.snd_nxt);
  const bool outstanding = opening ? handshake_.was_sent() && seq == tcb.iss : in_flight;
  if (error.kind == llp::IcmpError::Kind::PacketTooBig) {
    sender_.packet_too_big(error, outstanding, now);
    return;
  }
  if (!outstanding) {
    ++counters.icmp_unverified;
    return;
  }
  // A soft error does not end a connection: RFC 9293 s.3.9.2.2 (MUST-56). In synchronized states a
  // hard error is treated as soft (RFC 5927 s.5.2): octets have gone both ways, and an attacker who
  // sees them could forge the message.
  if (error.kind == llp::IcmpError::Kind::Soft || !opening) {
    ++counters.icmp_soft;
    soft_error_ = true;
    return;
  }
  ++counters.icmp_hard;
  const bool accepting = state() == State::SynReceived && passive();
  end(accepting ? StreamEnd::Unreachable : StreamEnd::Refused, false);
}

// --- Timers ---

void Connection::on_timers(base::Now now) {
  if (over()) return;
  const Timers& timers = core_.timers();
  // The node stays where it is when a timer moves later or is stopped. Nothing has happened then
  // that a prediction has to end for; behind a close there is none, and orphaned() is asked.
  if (timers.earliest() > now && !core_.life.fin_wanted()) return core_.timers_.wait();
  core_.timers_.fired();
  if (core_.life.orphaned(now)) {
    ++core_.shared.counters.orphans_aborted;
    end(StreamEnd::TimedOut, synchronized(state()));
    return;
  }
  if (timers.due(Timer::Life, now)) {
    life_over(now);
    if (over()) return;
  }
  if (timers.due(Timer::DelayedAck, now)) receiver_.delay_over();
  if (!in_any(state(), State::SynSent, State::SynReceived)) {
    if (!sender_.on_timers(now)) {
      // R2 (RFC 9293 s.3.8.3). The USER TIMEOUT event of s.3.10.8 deletes the connection without a
      // RST: the peer has not answered for long, and whatever it sends later draws one.
      time_out();
    }
  } else if (timers.due(Timer::Rto, now) && !opening().time_out(now)) {
    time_out();
  }
  if (!over()) core_.timers_.wait();
}

void Connection::time_out() {
  ++core_.shared.counters.connections_timed_out;
  const bool opening = in_any(state(), State::SynSent, State::SynReceived);
  end(opening && soft_error_ ? StreamEnd::Unreachable : StreamEnd::TimedOut, false);
}

void Connection::life_over(base::Now now) {
  core_.life.timer_fired();
  if (sends(state())) {
    if (core_.binding_.options.keep_alive) keep_alive_due(now);
    return;
  }
  // Data before our FIN is still unacknowledged, or the peer's zero window holds the FIN back
  // (MUST-37). R2 limits how long this may last, so the close time-out starts anew.
  if (in_any(state(), State::LastAck, State::FinWait1, State::Closing) &&
      (sender_.flight().board().size() > 1 || core_.tcb.snd_wnd == 0)) {
    core_.life.progressed(now);
    return;
  }
  ++core_.shared.counters.connections_timed_out;
  const bool unreachable = soft_error_ && state() == State::SynSent;
  end(unreachable ? StreamEnd::Unreachable : StreamEnd::TimedOut, synchronized(state()));
}

void Connection::arm_keep_alive(base::Now now) {
  if (sends(state())) keep_alive_.arm(core_.binding_.options, core_.timers_, now);
}

void Connection::keep_alive_due(base::Now now) {
  // Octets in flight and window probes have timers of their own.
  const bool watched = core_.tcb.flight() != 0 || core_.timers().runs(Timer::Persist);
  switch (keep_alive_.due(core_.binding_.options, core_.timers_, watched, now)) {
    case KeepAlive::Verdict::Wait: break;
    case KeepAlive::Verdict::Probe: core_.ask_turn(); break;
    case KeepAlive::Verdict::Dead:
      ++core_.shared.counters.keep_alive_timeouts;
      ++core_.shared.counters.connections_timed_out;
      end(StreamEnd::TimedOut, true);
      break;
  }
}

// --- Output ---

bool Connection::send_keep_alive(base::Now now) {
  if (!sender_.send_keep_alive(now)) return false;
  keep_alive_.probe_done();
  return true;
}

/// Sends the ACKs that must not wait for data. They go first and alone, so that SACK blocks never
/// take room from a record.
bool Connection::send_owed(base::Now now) {
  if (receiver_.ack().owes_parts()) {
    // Parts of a burst are told apart by their marks rather than by their size.
    if (core_.ecn.owes_acks()) {
      receiver_.forget_ack_parts();
    } else if (!sender_.send_part_acks(now)) {
      return false;
    }
  }
  if (core_.ecn.owes_acks() && !sender_.send_owed_acks(now)) return false;
  while (receiver_.ack().due_alone()) {
    if (!sender_.send_ack(now)) return false;
  }
  if (sender_.persist().probe_due() && !sender_.send_window_probe(now)) return false;
  return !keep_alive_.probe_due() || send_keep_alive(now);
}

Connection::Served Connection::serve(uint64_t quantum, base::Now now) {
  if (handshake_.due() && !opening().send(now)) return Served::PortFull;
  if (!synchronized(state())) return Served::Idle;
  if (!send_owed(now)) return Served::PortFull;
  Served served = Served::Idle;
  if (!sender_.is_quiet() && !in_any(state(), State::SynReceived, State::FinWait2)) {
    sender_.update_emss(true, now);
    for (Attempt sent = Attempt::Sent; sent == Attempt::Sent && !over() && !sender_.is_quiet();) {
      if (quantum == 0) {
        served = Served::More;
        break;
      }
      sent = sender_.send_next(quantum, now);
      quantum -= std::min<uint64_t>(quantum, sender_.emss());
      if (sent == Attempt::Starved) served = Served::Starved;
      if (sent == Attempt::PortFull) return Served::PortFull;
      if (sent == Attempt::Broken) end(StreamEnd::Aborted, true);
    }
  }
  if (over() || !receiver_.ack().due()) return served;
  if (served == Served::Idle && receiver_.ack().may_wait() && put_off_ack(now)) {
    return Served::Waits;
  }
  return sender_.send_ack(now) ? served : Served::PortFull;
}

/// The ACK then rides on what the user sends in the next turn, if it sends anything.
bool Connection::put_off_ack(base::Now now) {
  // A mark of congestion is told at once (RFC 3168 s.6.1.3).
  if (!sends(state()) || core_.ecn.echoes() || !core_.shared.round.lets_wait(now)) return false;
  receiver_.put_off_ack();
  return true;
}

void Connection::turn_over(Served served, base::Now now) {
  if (served == Served::Waits) {
    core_.put_off(now);
  } else {
    core_.turn_over(served != Served::Idle);
  }
}

// --- The end ---

void Connection::close() {
  // RFC 9293 s.3.10.4
  if (over()) return;
  if (state() == State::SynSent) {
    end(StreamEnd::Aborted, false);
    return;
  }
  // RFC 9293 s.3.6.1 (MAY-1); it also applies when the reader goes after a half close.
  const Binding& binding = core_.binding_;
  if (binding.options.half_duplex_close && binding.user != nullptr && binding.user->unread() != 0) {
    ++core_.shared.counters.half_duplex_resets;
    end(StreamEnd::Aborted, synchronized(state()));
    return;
  }
  if (core_.life.fin_wanted()) return;
  core_.life.want_fin();
  core_.ask_turn();  // everything that pull() still gives goes out before the FIN
}

void Connection::abort() {
  // RFC 9293 s.3.10.5
  end(StreamEnd::Aborted, synchronized(state()));
}

void Connection::end_in_time_wait(base::Now now) {
  // TIME-WAIT needs no connection: its memory becomes free, while its 4-tuple stays taken.
  const Tcb& tcb = core_.tcb;
  const Binding& binding = core_.binding_;
  TimeWaitEntry entry;
  entry.snd_nxt = tcb.snd_seq(tcb.snd_nxt);
  entry.rcv_nxt = tcb.ack_seq();
  entry.ts_recent = tcb.ts_recent;
  entry.ts_ok = tcb.ts_ok;
  entry.window = receiver_.advertise();
  entry.wind_shift = tcb.rcv_wind_shift;
  entry.traffic_class = static_cast<uint8_t>(binding.options.dscp << 2);
  core_.shared.time_wait.enter(binding.local, binding.remote, entry, receiver_.ack().due(), now);
  end(StreamEnd::Closed, false);
}

void Connection::end(StreamEnd how, bool rst) {
  if (over()) return;
  how_ended_ = how;
  tell_end_ = core_.binding_.user != nullptr;
  // The ACK that text still waits for goes before the RST, whose ACK field the peer does not take
  // (RFC 9293 s.3.10.7.4): what the user has been given counts as received at the sender, too.
  if (rst && receiver_.ack().unacknowledged() != 0) {
    if (Reply* const ack = queue_reply(flag::kAck)) ack->window = receiver_.advertise();
  }
  if (rst) static_cast<void>(queue_rst());
  core_.shared.half_open.leave(seat_);
  core_.end();
}

Reply* Connection::queue_reply(uint8_t flags) {
  Reply* reply = core_.shared.replies.push();
  if (reply == nullptr) return nullptr;  // the peer's next segment will draw a RST
  const Tcb& tcb = core_.tcb;
  reply->local = core_.binding_.local;
  reply->remote = core_.binding_.remote;
  reply->seq = tcb.snd_seq(tcb.snd_nxt);
  reply->ack = tcb.ack_seq();
  reply->flags = flags;
  reply->stamped = tcb.ts_ok;
  reply->ts_offset = tcb.ts_offset;
  reply->ts_recent = tcb.ts_recent;
  // RFC 8257 s.3.6
  if (core_.binding_.dctcp() && core_.ecn.sends_ect()) reply->traffic_class = ecn_codepoint::kEct0;
  return reply;
}

void Connection::finish(base::Now now) {
  core_.leave_closed();
  if (tell_end_) {
    tell_end_ = false;
    llp::StreamUser* user = core_.binding_.user;
    core_.binding_.user = nullptr;
    ++core_.shared.counters.connections_closed;
    user->ended(how_ended_, now);
  }
  sender_.clear();
  core_.timers_.stop();
}

// --- Inspection ---

ConnectionInfo Connection::info(base::Now now) const {
  ConnectionInfo info;
  info.state = state();
  info.window_scaling = handshake_.offered().scale;
  sender_.describe(info, now);
  receiver_.describe(info);
  info.idle = now - keep_alive_.heard_at();
  return info;
}

void Connection::add_to(Holdings& sum) const {
  const Scoreboard& board = sender_.flight().board();
  sum.records += board.size();
  sum.chunks += board.chunks();
  sum.directories += board.is_wide() ? 1 : 0;
  sum.range_sets += (board.sacked().empty() ? 0 : 1) + (receiver_.committed().empty() ? 0 : 1);
  for (uint64_t n = board.first(); n < board.past_last(); ++n) {
    sum.saved_blocks += core_.shared.saved.blocks_of(board.at(n).saved);
  }
  sum.half_open += half_open() ? 1 : 0;
  sum.in_round += core_.in_round() ? 1 : 0;
  sum.over += over() ? 1 : 0;
}

void Connection::validate() const {
  core_.validate();
  handshake_.validate();
  sender_.validate();
  receiver_.validate();
  if (sends(state())) keep_alive_.validate(core_.binding().options, core_.timers());
  const Tcb& tcb = core_.tcb;
  core_.prediction.validate(remote().port, local().port, tcb.rcv_seq(tcb.rcv_nxt),
                            tcb.header_length(), tcb.snd_wnd, tcb.snd_wind_shift);
  RNIC_CHECK(!core_.prediction.beside() ||
             fast_path::predictable_beside(core_, sender_, receiver_));
  RNIC_CHECK(!core_.prediction.on() || fast_path::predictable(core_, sender_, receiver_));
  RNIC_CHECK(!sender_.is_quiet() || !(handshake_.due() || sender_.persist().probe_due()));
  RNIC_CHECK(!half_open() || (state() == State::SynReceived && passive()));
  const bool opening = in_any(state(), State::SynSent, State::SynReceived);
  RNIC_CHECK(state() == State::Closed || handshake_.is_done() != opening);
}

}  // namespace rnic::tcp
