#include "tcp/sender.hpp"

#include <algorithm>
#include <span>

#include "tcp/mss.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kBlackHoleTimeouts = 3;  // consecutive time-outs of one segment

}  // namespace

Sender::Sender(ConnectionCore& core, Timers& timers, Receiver& receiver)
    : core_(core),
      flight_(core, timers),
      path_(core.tcb, core.prediction),
      emss_(core),
      persist_(core.tcb, timers),
      writer_(core, receiver) {}

// --- Before, and at, ESTABLISHED ---

void Sender::take_first_window(uint16_t window, uint8_t shift) {
  core_.tcb.snd_wind_shift = shift;
  core_.tcb.snd_wnd = window;
  core_.tcb.snd_max_wnd = window;
  core_.tcb.snd_wl1 = -1;
  core_.tcb.snd_wl2 = 0;
}

void Sender::establish(const Segment& first, uint32_t syn_tries, bool timed_out, base::Now now) {
  core_.tcb.snd_wl1 = core_.tcb.rcv_offset(first.seq);
  core_.tcb.snd_wl2 = 0;
  flight_.set_smss(emss());
  flight_.establish(syn_tries, timed_out, now);
}

void Sender::update_emss(bool tell, base::Now now) {
  if (!emss_.follow(path_.limit(), now)) return;
  flight_.set_smss(emss());
  const bool there = binding().user != nullptr && !core_.life.over();
  if (tell && there) binding().user->emss_changed(emss());
}

// --- Output ---

Attempt Sender::send_next(uint64_t& quantum, base::Now now) {
  if (flight_.tail_probe().due()) return send_tail_probe(now);
  if (flight_.gate_closed(now)) return Attempt::Nothing;
  const Recovery& recovery = flight_.recovery();
  // RFC 5681 s.3.1: the loss window is one segment. If records are far smaller, it would admit a
  // burst of them, which is likely to be lost again together with the first record. So only the
  // first segment is sent.
  if (recovery.alone()) return recovery.forced() ? send_lost(now) : Attempt::Nothing;
  if (flight_.spurious().frto()) return send_during_frto(now);
  if (flight_.board().owes_retransmission()) {
    const Attempt sent = send_lost(now);
    if (sent != Attempt::Nothing) return sent;
  }
  return send_new(quantum, now);
}

Attempt Sender::send_tail_probe(base::Now now) {
  // RFC 8985 s.7.3: sends new data if the window allows it, otherwise the last segment again.
  const RecoveryPhase phase = flight_.recovery().phase();
  const Scoreboard& board = flight_.board();
  if (core_.tcb.flight() == 0 || follows_timeout(phase)) {
    flight_.drop_tail_probe();
    return Attempt::Sent;  // the caller goes on with the next segment
  }
  const bool recovering = phase == RecoveryPhase::Recovery;
  bool again = true;
  if (!recovering && user_ready_ && !board.has_waiting() && sends(core_.life.state()) &&
      core_.tcb.usable_window() >= emss()) {
    const Attempt sent = send_pulled(now, true);
    if (sent == Attempt::PortFull) return sent;
    again = sent != Attempt::Sent;
  }
  if (core_.life.over()) return Attempt::Nothing;
  if (again) {
    uint64_t n = recovering ? board.first() : board.find(core_.tcb.snd_nxt - 1);
    while (n > board.first() && !board.at(n).is(record_flag::kSegmentStart)) --n;
    const Attempt sent = send_again(n, now);
    if (sent != Attempt::Sent) return sent;
  }
  flight_.tail_probe_sent(again, emss(), now);
  return Attempt::Sent;
}

Attempt Sender::send_lost(base::Now now) {
  const Scoreboard& board = flight_.board();
  const uint64_t n = flight_.next_lost();
  if (n == board.past_last()) return Attempt::Nothing;
  const uint64_t length = std::min<uint64_t>(board.live(board.at(n)), emss());
  if (!flight_.recovery().forced() && flight_.holds_back(length)) return Attempt::Nothing;
  const Attempt sent = send_again(n, now);
  if (sent == Attempt::Sent) flight_.retransmitted_lost();
  return sent;
}

Attempt Sender::send_again(uint64_t number, base::Now now) {
  const uint64_t offset = flight_.board().at(number).offset;
  const Attempt sent = Retransmitter(core_, flight_, writer_, cut_).send(number, emss(), now);
  // The data of an MTU probe is retransmitted in smaller segments, whose ACKs prove nothing about
  // the probed size.
  if (sent == Attempt::Sent && path_.probing() && offset == path_.probe_begin()) probe_failed(now);
  return sent;
}

Attempt Sender::send_during_frto(base::Now now) {
  // RFC 5682 s.3.1: only the first segment is sent until its ACK (step 2), then new data.
  if (!flight_.spurious().frto_sends()) return Attempt::Nothing;
  uint64_t one_segment = 1;
  const Attempt sent = send_new(one_segment, now);
  if (sent == Attempt::Sent) flight_.frto_sent();
  if (sent != Attempt::Nothing || core_.life.over()) return sent;
  if (core_.tcb.snd_nxt != flight_.recovery().point()) return sent;
  flight_.frto_over();
  return send_lost(now);
}

Attempt Sender::send_new(uint64_t& quantum, base::Now now) {
  if (flight_.board().has_waiting()) return send_waiting(now);
  // cwnd limits only data. A FIN after the last octet may be sent.
  if (core_.life.fin_wanted() && user_ready_ && binding().user->pending() == 0) user_ready_ = false;
  if (user_ready_ && sends(core_.life.state())) {
    if (binding().options.nagle && held_by_nagle()) return Attempt::Nothing;
    const uint64_t usable = core_.tcb.usable_window();
    if (usable < emss()) {
      // RFC 9293 s.3.8.6.2.1 (2): all queued octets fit the usable window. The condition in
      // brackets, Nagle's rule, was checked above.
      if (usable != 0 && binding().user->all_fits(static_cast<uint32_t>(usable)))
        return pull_into_saved(now);
      if (core_.tcb.flight() != 0 || usable == 0) return wait_for_window(now);
      // (3), (4): half of the largest window offered is usable, or the override timer has fired.
      if (usable < core_.tcb.snd_max_wnd / 2 && !persist_.overrides()) return wait_for_window(now);
      return pull_into_saved(now);
    }
    if (flight_.holds_back(emss())) return Attempt::Nothing;
    const uint32_t larger = path_.enabled() ? probe_due(now) : 0;
    const Attempt sent = larger != 0
                             ? send_mtu_probe(larger, now)
                             : send_burst(burst_room(usable, quantum, now), quantum, false, now);
    if (sent != Attempt::Nothing || user_ready_ || core_.life.over()) return sent;
  }
  return core_.life.owes_fin() && !user_ready_ ? send_fin(now) : Attempt::Nothing;
}

bool Sender::held_by_nagle() const {
  // RFC 9293 s.3.7.4, as changed by appendix A.3: only a short segment in flight holds back
  // another.
  return small_end_ > core_.tcb.snd_una && !core_.life.fin_wanted() &&
         !binding().user->fills_segment(emss());
}

Attempt Sender::wait_for_window(base::Now now) {
  // No timer is needed while data is in flight: its ACK will bring the window, or the RTO will ask
  // for it.
  if (core_.tcb.flight() == 0 && persist_.wait(now + flight_.rto().rto())) flight_.progressed(now);
  return Attempt::Nothing;
}

[[gnu::always_inline]] inline void Sender::push_record(const llp::Pulled& pulled, uint16_t flags,
                                                        base::Now now) {
  Record record;
  record.length = pulled.length;
  record.tag = pulled.tag;
  record.sent_at = now;
  record.flags = static_cast<uint16_t>(flags | (pulled.push ? record_flag::kPush : 0));
  flight_.push(record);
}

void Sender::count_sent(base::Range range, bool aligned, base::Now now) {
  if (binding().options.nagle && range.size() < emss()) small_end_ = range.end;
  Counters& counters = core_.shared.counters;
  ++counters.data_segments_out;
  if (aligned) ++counters.aligned_segments_out;
  counters.octets_out += range.size();
  if (binding().trace != nullptr) binding().trace->record(TraceKind::Sent, range, now);
}

uint64_t Sender::burst_room(uint64_t usable, uint64_t quantum, base::Now now) const {
  // Nagle's rule, an MTU probe and pacing look at each segment.
  if (binding().options.nagle || path_.enabled() || flight_.pacing().on()) return 0;
  if (!core_.shared.bursts) return 0;
  if (flight_.was_idle(now)) return 0;  // the first segment reduces cwnd
  // In a conversation one segment goes at a time, and room for several is asked for in vain.
  if (core_.tcb.flight() == 0 && !sent_several_) return 0;
  // The quantum ends with the segment that uses it up.
  return std::min({usable, flight_.window_left(), quantum + emss() - 1});
}

Attempt Sender::send_burst(uint64_t room, uint64_t& quantum, bool probe, base::Now now) {
  const uint32_t emss = emss_.octets();
  const uint64_t begin = core_.tcb.snd_nxt;
  const auto most = static_cast<uint32_t>(std::max<uint64_t>(room / emss, 1));
  SegmentRun run(most);
  Attempt sent = send_segments(run, probe, now);
  // The user may have closed, whose FIN is for send_new() to see.
  while (sent == Attempt::Sent && run.goes_on() && user_ready_ && !core_.life.fin_wanted()) {
    sent = send_segments(run, probe, now);
  }
  sent_several_ = run.segments() > 1;
  if (sent_several_) quantum -= uint64_t{run.segments() - 1} * emss;
  writer_.send(run, now);
  if (core_.life.over() || core_.tcb.snd_nxt == begin) return sent;
  // Nothing goes out behind these segments, so that they need not wait for what is noted of them.
  if (!user_ready_ && core_.shared.round.is_last()) core_.shared.out.hand_over(now);
  flight_.note_sent(core_.tcb.snd_nxt - begin, now);
  persist_.sent();
  const bool end = ends_here() && sent == Attempt::Sent;
  if (end) queue_fin(0, now);
  // cwnd counts as used (RFC 9438 s.5.8) if it has no room for a further segment, even if none
  // waits.
  if (!user_ready_ && core_.tcb.usable_window() >= emss) {
    static_cast<void>(flight_.holds_back(emss));
  }
  return sent;
}

/// Completes a segment of new data, which is in place with its records.
[[gnu::always_inline]] inline void Sender::complete_segment(SegmentRun& run, uint32_t octets,
                                                             uint8_t flags, base::Now now) {
  const uint64_t offset = core_.tcb.snd_nxt;
  last_octet_ = writer_.payload_of(run.slot())[octets - 1];
  if (core_.ecn.on()) flags |= writer_.mark_new_data(core_.ecn, run.slot());
  writer_.finish(run, offset, octets, flags, now);
  flight_.advance_nxt(octets, now);
  count_sent({offset, offset + octets}, true, now);
}

Attempt Sender::send_segments(SegmentRun& run, bool probe, base::Now now) {
  const Scoreboard& board = flight_.board();
  if (board.full()) {
    ++counters().record_limit_waits;
    const bool own_limit = board.size() >= config().max_records_per_connection;
    return own_limit ? Attempt::Nothing : Attempt::Starved;
  }
  const uint32_t emss = emss_.octets();
  if (!writer_.begin(run, emss, now)) return Attempt::PortFull;
  core_.shared.ahead.step();
  flight_.restart_after_idle(now);
  // A tail loss probe asks for a prompt ACK by PSH: a peer of this implementation does not delay
  // the ACK of such a segment.
  uint8_t flags = probe ? flag::kAck | flag::kPsh : flag::kAck;
  uint32_t packed = 0;
  do {
    const uint32_t n = emss - packed;
    llp::FrameRow row(run.headers(packed == 0 ? TxRun::kMost : 1), core_.tcb.header_length(),
                      binding().options.pack_records ? kPackRoomMin : UINT32_MAX,
                      board.places(llp::FrameRow::kMost));
    llp::Frame frame(writer_.payload_of(run.slot()) + packed, n, probe ? nullptr : &row);
    user_ready_ = false;  // ready() sets it again, even during the call
    const llp::Pulled pulled = binding().user->pull(n, core_.tcb.snd_nxt + packed, frame, now);
    if (core_.life.over()) return Attempt::Nothing;
    packed = take_passed(run, row, packed, flags, now);
    if (pulled.length == 0) {
      if (packed != 0) user_ready_ = true;  // an empty segment may have room for what waits
      break;
    }
    RNIC_CHECK(pulled.length == frame.length());
    // A paced sender asks once more when its gate opens: cwnd counts as used if it is full then.
    if (pulled.more || flight_.pacing().gated()) user_ready_ = true;
    push_record(pulled, packed == 0 ? record_flag::kSegmentStart : 0, now);
    ++counters().records_out;
    packed += pulled.length;
    if (pulled.push) flags |= flag::kPsh;
  } while (user_ready_ && !probe && has_place_behind(emss - packed));
  if (packed == 0) return Attempt::Nothing;
  if (ends_here()) flags |= flag::kFin;
  complete_segment(run, packed, flags, now);
  return Attempt::Sent;
}

/// Takes the records of one call of pull() but the last one. \param packed octets that the segment
/// had before the call \param flags gets PSH for a record that stays in that segment \return octets
/// that it has now
uint32_t Sender::take_passed(SegmentRun& run, const llp::FrameRow& row, uint32_t packed,
                             uint8_t& flags, base::Now now) {
  counters().records_out += row.passed().size();
  if (row.fills_segments()) {
    take_segments(run, row.passed(), flags, now);
    return packed;
  }
  for (const llp::Pulled& record : row.passed()) {
    push_record(record, packed == 0 ? record_flag::kSegmentStart : 0, now);
    packed += record.length;
    if (record.push) flags |= flag::kPsh;
  }
  return packed;
}

/// Takes records that fill a segment each. They are alike behind the burst's first one, whose
/// header is the template, unless something is asked of each segment by itself.
void Sender::take_segments(SegmentRun& run, std::span<const llp::Pulled> records, uint8_t flags,
                           base::Now now) {
  flight_.push_segments(records, now);
  const bool alike = !core_.ecn.on() && run.slot().checksum_open && binding().trace == nullptr;
  const size_t single = !alike ? records.size() : run.knows_header() ? 0 : 1;
  for (const llp::Pulled& record : records.first(single)) {
    complete_segment(run, record.length, flags, now);
  }
  records = records.subspan(single);
  if (records.empty()) return;
  const uint32_t octets = run.repeat(records, core_.tcb.snd_seq(core_.tcb.snd_nxt), flags);
  flight_.advance_nxt(octets, now);
  last_octet_ = run.last_octet();
  counters().data_segments_out += records.size();
  counters().aligned_segments_out += records.size();
  counters().octets_out += octets;
}

Attempt Sender::pull_into_saved(base::Now now) {
  // The window is smaller than a record, so the record is pulled into a copy and sent in pieces.
  // Half of the store is reserved for retransmissions, so that peers with tiny windows cannot
  // exhaust it.
  const Scoreboard& board = flight_.board();
  SavedRecords& saved = core_.shared.saved;
  if (board.full() || !saved.fits_half(emss())) {
    ++counters().record_limit_waits;
    return Attempt::Starved;
  }
  const auto room = static_cast<uint32_t>(std::min<size_t>(emss(), core_.shared.scratch.size()));
  llp::Frame frame(core_.shared.scratch.data(), room);
  user_ready_ = false;
  const llp::Pulled pulled = binding().user->pull(room, board.queue_end(), frame, now);
  if (core_.life.over()) return Attempt::Nothing;
  if (pulled.length == 0) return core_.life.owes_fin() ? send_fin(now) : Attempt::Nothing;
  RNIC_CHECK(pulled.length == frame.length());
  if (pulled.more) user_ready_ = true;
  push_record(pulled, record_flag::kSegmentStart, now);
  ++counters().records_out;
  flight_.keep(board.past_last() - 1, saved.save(frame.written()));
  return send_waiting(now);
}

Attempt Sender::send_waiting(base::Now now) {
  const Scoreboard& board = flight_.board();
  const Record& record = board.back();
  const uint64_t usable = core_.tcb.usable_window();
  const uint64_t rest = record.end() - core_.tcb.snd_nxt;
  const uint64_t piece = std::min({rest, usable, uint64_t{emss()}});
  const bool worth =
      piece == rest || piece >= emss() ||
      (core_.tcb.flight() == 0 && (piece >= core_.tcb.snd_max_wnd / 2 || persist_.overrides()));
  if (piece == 0 || !worth) return wait_for_window(now);
  if (flight_.holds_back(piece)) return Attempt::Nothing;
  TxSlot slot;
  if (!begin(slot, now)) return Attempt::PortFull;
  const uint64_t offset = core_.tcb.snd_nxt;
  auto length = static_cast<uint32_t>(piece);
  uint8_t* payload = writer_.payload_of(slot);
  core_.shared.saved.copy(record.saved, static_cast<uint32_t>(offset - record.offset), length,
                          payload);
  if (length != record.length) length = binding().user->cut({payload, length});
  const bool last = length == rest;
  if (length != record.length) flight_.cut(board.past_last() - 1);
  last_octet_ = payload[length - 1];
  uint8_t flags = last && record.is(record_flag::kPush) ? flag::kAck | flag::kPsh : flag::kAck;
  const bool end = last && ends_here();
  if (end) flags |= flag::kFin;
  if (core_.ecn.on()) flags |= writer_.mark_new_data(core_.ecn, slot);
  writer_.finish(slot, offset, length, flags, now);
  flight_.sent_piece(length, now);
  flight_.sent(length, now);
  persist_.sent();
  count_sent({offset, offset + length}, length == record.length, now);
  if (end) queue_fin(0, now);
  return Attempt::Sent;
}

bool Sender::ends_here() const {
  return core_.life.owes_fin() && !flight_.board().full() && binding().user->all_fits(0);
}

void Sender::queue_fin(uint16_t flags, base::Now now) {
  Record fin;
  fin.length = 1;
  fin.sent_at = now;
  fin.flags = static_cast<uint16_t>(record_flag::kFin | flags);
  flight_.push(fin);
  flight_.sent(1, now);
  persist_.sent();
  user_ready_ = false;
  core_.life.fin_sent(now);
}

Attempt Sender::send_fin(base::Now now) {
  if (flight_.board().full()) {
    ++counters().record_limit_waits;
    return Attempt::Starved;
  }
  TxSlot slot;
  if (!begin(slot, now)) return Attempt::PortFull;
  writer_.finish(slot, flight_.board().queue_end(), 0, flag::kAck | flag::kFin, now);
  queue_fin(record_flag::kSegmentStart, now);
  return Attempt::Sent;
}

bool Sender::send_window_probe(base::Now now) {
  // RFC 9293 s.3.8.6.1. The probe repeats the last octet that was acknowledged: the peer must
  // answer a segment before its window, and no record has to be cut. If no octet was sent yet, the
  // probe is empty.
  if (core_.tcb.flight() != 0) {
    persist_.drop_probe();
    return true;
  }
  TxSlot slot;
  if (!begin(slot, now)) return false;
  const uint64_t una = core_.tcb.snd_una;
  const uint32_t length = una != 0 ? 1 : 0;
  if (length != 0) *writer_.payload_of(slot) = last_octet_;
  writer_.finish(slot, una - 1, length, flag::kAck, now);
  persist_.probe_sent();
  ++counters().window_probes;
  return true;
}

bool Sender::send_keep_alive(base::Now now) {
  if (core_.tcb.flight() != 0) return true;
  TxSlot slot;
  if (!begin(slot, now)) return false;
  // SEG.SEQ = SND.NXT - 1: the peer must answer a segment before its window. It carries no octet
  // (SHLD-12).
  writer_.finish(slot, core_.tcb.snd_nxt - 1, 0, flag::kAck, now);
  ++counters().keep_alive_probes;
  return true;
}

// --- Input ---

Life::Next Sender::take_ack(const Segment& segment, base::Now now) {
  const int64_t ack = core_.tcb.snd_offset(segment.ack);
  const auto una = static_cast<int64_t>(core_.tcb.snd_una);
  const bool outstanding = core_.tcb.flight() != 0;
  AckResult result;
  if (core_.tcb.ts_ok && segment.options.timestamps) result.echo = segment.options.timestamps->echo;
  if (ack > una) flight_.advance_una(static_cast<uint64_t>(ack), result, now);
  if (core_.life.over()) return Life::Next::Same;
  if (segment.options.sack_count != 0 && core_.tcb.sack_ok)
    flight_.take_sack(segment.options, result, now);
  const uint32_t old_window = core_.tcb.snd_wnd;
  take_window(segment, ack, ack > una, now);
  // RFC 5681 s.2: the five conditions of a duplicate ACK.
  const bool repeats = ack == una && segment.payload.empty() && !segment.has(flag::kFin) &&
                       core_.tcb.snd_wnd == old_window;
  result.duplicate = outstanding && repeats;
  if (!outstanding) {
    // A D-SACK for the last flight may arrive when all of it is acknowledged (RFC 3708 s.3).
    result.ece = core_.ecn.on() && segment.has(flag::kEce);
    if (result.dsack) flight_.try_undo(result);
    result.duplicate = repeats;
    flight_.tail_probe_acked(result);
    return Life::Next::Same;
  }
  flight_.measure(result, now);
  // An answer to a window probe counts as progress, too.
  if (result.acked != 0 || core_.tcb.snd_wnd == 0) flight_.progressed(now);
  if (result.acked != 0) {
    core_.life.forget_orphan();
    core_.life.progressed(now);
  }
  if (core_.ecn.on()) flight_.take_ecn_echo(segment.has(flag::kEce), result, now);
  if (!flight_.recovery().open()) {
    const bool more = user_ready_ || flight_.board().has_waiting() || core_.life.owes_fin();
    flight_.detect_spurious(result, more && core_.tcb.usable_window() >= emss());
  }
  settle(result, now);
  const bool all = core_.life.fin_queued() && flight_.board().empty();
  return all ? core_.life.fin_acked(now) : Life::Next::Same;
}

/// Detects losses after an ACK and updates recovery, cwnd and timers.
void Sender::settle(AckResult& result, base::Now now) {
  bool lost = flight_.detect_losses(result, now);
  if (path_.probing()) [[unlikely]] {
    probe_acked(now);
    if (lost && path_.probing()) lost = lost_beside_probe(now);
  }
  flight_.recover(result, lost, now);
  flight_.tail_probe_acked(result);
  if (result.acked != 0) flight_.restart_timers(now);
  const Scoreboard& board = flight_.board();
  if (lost || user_ready_ || core_.life.fin_wanted() || board.has_waiting() ||
      board.lost_octets() != 0) {
    core_.ask_turn();
  }
}

[[gnu::noinline, gnu::cold]] bool Sender::take_reordered_ack(uint32_t acked, uint32_t echo,
                                                             base::Now now) {
  Flight::PlainAck ack = flight_.plain_records(acked);
  flight_.take_plain_ack(ack, echo, now);
  note_window();
  flight_.release(ack);
  if (core_.life.over()) return true;
  if (flight_.rack().overtaken()) {
    settle_plain(ack.octets, ack.rtt, now);
    return false;
  }
  flight_.settle_plain_ack(ack, now);
  return true;
}

void Sender::settle_plain(uint64_t acked, base::Duration rtt, base::Now now) {
  AckResult result;
  result.acked = result.delivered = acked;
  result.rtt = rtt;
  settle(result, now);
}

void Sender::take_beside_text(int64_t seq, base::Now now) {
  if (core_.tcb.snd_wl1 <= seq) {
    core_.tcb.snd_wl1 = seq;
    core_.tcb.snd_wl2 = static_cast<int64_t>(core_.tcb.snd_una);
    if (user_ready_ || flight_.board().has_waiting()) core_.ask_turn();
  }
  if (core_.tcb.flight() != 0) settle_plain(0, base::Duration(-1), now);
}

void Sender::take_window(const Segment& segment, int64_t ack, bool advanced, base::Now now) {
  // RFC 9293 s.3.10.7.4, fifth: an old segment does not change the window. A segment that has just
  // advanced SND.UNA is not old, whatever its SEG.SEQ is: SND.WND counts from SND.UNA, so keeping
  // the old SND.WND would move the right edge beyond the one that the peer has offered.
  const int64_t seq = core_.tcb.rcv_offset(segment.seq);
  if (ack < static_cast<int64_t>(core_.tcb.snd_una)) return;
  const bool old = core_.tcb.snd_wl1 > seq || (core_.tcb.snd_wl1 == seq && core_.tcb.snd_wl2 > ack);
  if (old && !advanced) return;
  core_.prediction.end();  // the expected header holds the old window
  const bool was_shut = core_.tcb.snd_wnd == 0;
  core_.tcb.snd_wnd = static_cast<uint32_t>(segment.window) << core_.tcb.snd_wind_shift;
  if (was_shut && core_.tcb.snd_wnd != 0) [[unlikely]] {
    flight_.window_opened(now);
    core_.life.progressed(now);
  }
  core_.tcb.snd_max_wnd = std::max(core_.tcb.snd_max_wnd, core_.tcb.snd_wnd);
  core_.tcb.snd_wl1 = seq;
  core_.tcb.snd_wl2 = ack;
  if (core_.timers().runs(Timer::Persist)) {
    flight_.progressed(now);  // s.3.8.6.1: the connection stays open as long as probes are answered
    persist_.answered(emss());
  }
  if (user_ready_ || flight_.board().has_waiting()) core_.ask_turn();
}

// --- Timers ---

bool Sender::on_timers(base::Now now) {
  if (core_.timers().due(Timer::Probe, now)) {
    flight_.tail_probe_fired(now);
    core_.ask_turn();
  }
  if (core_.timers().due(Timer::Rto, now)) {
    if (!time_out(now)) return false;
    if (core_.life.over()) return true;
  }
  if (core_.timers().due(Timer::Reorder, now)) reorder_due(now);
  if (core_.timers().due(Timer::Pacing, now)) {
    flight_.pacing_fired();
    core_.ask_turn();
  }
  return !core_.timers().due(Timer::Persist, now) || persist_due(now);
}

bool Sender::time_out(base::Now now) {
  // RFC 6298 s.5.4-5.7, RFC 5681 s.3.1 (4).
  ++counters().timeouts;
  if (flight_.stalled(now)) return false;
  const bool again = flight_.time_out(now);
  if (const auto mtu = path_.take_unverified(emss_.packet_octets())) lower_path_mtu(*mtu, now);
  suspect_black_hole(now);
  if (core_.life.over()) return true;
  flight_.lose_all(again, now);
  cut_.forget();
  core_.ask_turn();
  return true;
}

void Sender::reorder_due(base::Now now) {
  bool lost = flight_.detect_losses(now);
  if (lost && path_.probing()) lost = lost_beside_probe(now);
  if (!lost) return;
  AckResult none;
  flight_.recover(none, true, now);
  core_.ask_turn();
}

bool Sender::persist_due(base::Now now) {
  core_.ask_turn();
  if (core_.tcb.usable_window() != 0) {
    persist_.override_silly_window();
    return true;
  }
  // A single unanswered probe does not end the connection: it may have been lost, and the time
  // between two probes may be longer than the user time-out.
  if (persist_.unanswered() >= 2 && flight_.stalled(now)) return false;
  flight_.back_off();
  const base::Now next = now + flight_.rto().rto();
  persist_.probe(persist_.unanswered() != 0 ? flight_.before_give_up(next, now) : next);
  return true;
}

// --- The path's MTU ---

void Sender::packet_too_big(const llp::IcmpError& error, bool outstanding, base::Now now) {
  using Verdict = PathMtuDiscovery::Verdict;
  uint32_t mtu = 0;
  switch (path_.judge(error, binding().remote.address, emss_.packet_octets(), outstanding, mtu)) {
    case Verdict::Ignored: ++counters().icmp_ignored; break;
    case Verdict::Unverified: ++counters().icmp_unverified; break;
    case Verdict::Believed: lower_path_mtu(mtu, now); break;
  }
}

void Sender::lower_path_mtu(uint32_t mtu, base::Now now) {
  ++counters().path_mtu_reductions;
  mtu = std::max(mtu, least_link_mtu(binding().remote.address));  // EMSS has this minimum
  core_.shared.out.reduce_path_mtu(binding().remote.address, mtu, now);
  const uint32_t old = emss();
  update_emss(true, now);
  if (emss() >= old) return;
  path_.lowered();
  // RFC 1191 s.6.4: the segments that are too large are retransmitted at once. Their loss is no
  // sign of congestion, so cwnd stays. Segments that were small enough are still on their way.
  flight_.lose_larger_than(emss());
  if (flight_.board().owes_retransmission()) core_.ask_turn();
}

void Sender::start_path_search(base::Now now) {
  const Config& config = core_.shared.config;
  if (!config.mtu_probing || !config.mtu_probe_from_base) return;
  const uint32_t base = PathMtuDiscovery::base_mtu(binding().remote.address);
  if (core_.shared.out.path_mtu(binding().remote.address, now) <= base) return;
  path_.start_search(base);
  update_emss(false, now);
}

void Sender::suspect_black_hole(base::Now now) {
  // RFC 4821 s.7.7, RFC 2923: full segments are lost without an ICMP message.
  const Scoreboard& board = flight_.board();
  if (path_.probing() && core_.tcb.snd_una <= path_.probe_begin()) probe_failed(now);
  if (!config().mtu_probing || flight_.rto().backoff() < kBlackHoleTimeouts) return;
  if (board.empty()) return;
  const Record& last = board.at(board.segment_end(board.first()) - 1);
  const uint64_t octets = emss_.packet_octets() - emss() + last.end() - board.front().offset;
  // This is the size of the lost packet, which may be smaller than a full one.
  const auto packet = static_cast<uint32_t>(std::min<uint64_t>(octets, emss_.packet_octets()));
  if (!path_.suspect_black_hole(packet, binding().remote, now)) return;
  ++counters().black_holes;
  update_emss(true, now);
}

[[gnu::noinline, gnu::cold]] uint32_t Sender::probe_due(base::Now now) {
  if (!path_.may_probe(now) || !flight_.recovery().open()) return 0;
  if (flight_.board().lost_octets() != 0) return 0;
  const uint32_t mtu = core_.shared.out.path_mtu(binding().remote.address, now);
  const uint32_t size = path_.next_size(std::min(mtu, emss_.packet_limit_of_peer()));
  if (size == 0) {
    path_.rest(now + config().mtu_probe_interval);
    return 0;
  }
  // A probe is sent only if segments will follow it, since these reveal its loss.
  const uint32_t larger = emss() + size - emss_.packet_octets();
  const uint32_t need = larger + 3 * emss();
  const bool fits = flight_.congestion().cwnd() >= need && binding().user->pending() >= need &&
                    core_.tcb.usable_window() >= larger;
  return fits ? larger : 0;
}

Attempt Sender::send_mtu_probe(uint32_t larger, base::Now now) {
  if (flight_.exceeds_window(larger))
    return Attempt::Nothing;  // new data waits until there is room for the probe
  // TUF draft s.5.1: the larger EMSS is valid for one record.
  const uint64_t begin_at = core_.tcb.snd_nxt;
  const uint32_t emss = emss_.replace(larger);
  binding().user->emss_changed(larger);
  const Attempt sent = core_.life.over() ? Attempt::Nothing : send_pulled(now, true);
  emss_.replace(emss);
  if (core_.life.over()) return Attempt::Nothing;
  binding().user->emss_changed(emss);
  if (sent == Attempt::Sent && core_.tcb.snd_nxt - begin_at > emss) {
    ++counters().mtu_probes;
    // The record may be smaller than the larger EMSS, so the probed size is that of the packet that
    // was sent.
    path_.probe_sent(
        emss_.packet_octets() - emss + static_cast<uint32_t>(core_.tcb.snd_nxt - begin_at),
        begin_at);
  }
  return core_.life.over() ? Attempt::Nothing : sent;
}

void Sender::probe_acked(base::Now now) {
  if (!path_.probe_arrived()) return;
  ++counters().mtu_probes_confirmed;
  path_.probe_confirmed(core_.shared.out.path_mtu(binding().remote.address, now), now);
  update_emss(true, now);
  core_.ask_turn();
}

void Sender::probe_failed(base::Now now) {
  ++counters().mtu_probes_lost;
  path_.probe_lost(now + flight_.rto().srtt());
}

bool Sender::lost_beside_probe(base::Now now) {
  // RFC 4821 s.7.3: the loss of a probe alone says nothing about congestion.
  const Scoreboard& board = flight_.board();
  const Record& record = board.at(board.find(path_.probe_begin()));
  if (!record.is(record_flag::kLost)) return true;
  const bool alone = board.lost_octets() - board.retransmitted_octets() == board.live(record);
  probe_failed(now);
  core_.ask_turn();
  return !alone;
}

void Sender::describe(ConnectionInfo& info, base::Now now) const {
  info.emss = emss();
  info.path_mtu = core_.shared.out.path_mtu(binding().remote.address, now);
  info.window_probes = persist_.backoff();
  flight_.describe(info);
}

void Sender::validate() const {
  flight_.validate();
  path_.validate();
  emss_.validate();
  persist_.validate();
  // Timer::Rto runs while data is in flight: RFC 6298 s.5.1.
  if (synchronized(core_.life.state())) {
    RNIC_CHECK(core_.tcb.flight() == 0 || core_.timers().runs(Timer::Rto));
  }
}

}  // namespace rnic::tcp
