#include "tcp/receiver.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

// RFC 7323 s.5.5: a TS.Recent older than 24 days is not valid.
constexpr base::Duration kTimestampLife = std::chrono::hours(24 * 24);

}  // namespace

void Receiver::begin(const Segment& syn, uint8_t shift, base::Now now) {
  Tcb& tcb = core_.tcb;
  tcb.irs = syn.seq;
  tcb.rcv_nxt = 0;
  tcb.rcv_wind_shift = shift;
  if (!tcb.ts_ok) return;
  tcb.ts_recent = syn.options.timestamps->value;
  tcb.ts_recent_at = now;
}

void Receiver::note_duplicate(const Segment& segment) {
  const int64_t begin = core_.tcb.rcv_offset(segment.seq);
  ack_.note_duplicate(begin, begin + static_cast<int64_t>(segment.payload.size()));
}

bool Receiver::survives_paws(const Segment& segment, base::Now now) {
  if (!core_.tcb.ts_ok || segment.has(flag::kRst)) return true;  // RST is exempt (RFC 7323 s.5.2)
  if (!segment.options.timestamps) {                             // s.3.2: drop, do not abort
    ++counters().paws_rejected;
    return false;
  }
  const auto behind = static_cast<int32_t>(segment.options.timestamps->value - core_.tcb.ts_recent);
  if (behind < 0 && now - core_.tcb.ts_recent_at < kTimestampLife) {
    ++counters().paws_rejected;
    note_duplicate(segment);  // it is most often the late original of a retransmission
    ask_ack();
    return false;
  }
  return true;
}

bool Receiver::acceptable(const Segment& segment) {
  const int64_t begin = core_.tcb.rcv_offset(segment.seq);
  const int64_t end = begin + segment.length();
  const auto nxt = static_cast<int64_t>(core_.tcb.ack_offset());
  const auto window = static_cast<int64_t>(core_.tcb.rcv_wnd());
  if (in_window(begin - nxt, segment.length(), window)) return true;
  if (segment.has(flag::kRst)) return false;
  // A peer that has filled our window gives its ACKs the sequence number of the window's end, as
  // with a zero window (MUST-66). If a hole keeps RCV.NXT back, such an ACK is outside the window.
  // Our answer would meet the same condition at the peer, and both ends would exchange ACKs until a
  // time-out.
  if (begin - nxt == window && segment.payload.empty() && !segment.has(flag::kSyn)) return true;
  ++counters().unacceptable;
  if (!segment.payload.empty() && end <= nxt) {
    counters().duplicate_octets_in += segment.payload.size();
    note_duplicate(segment);
  }
  ask_ack_alone();
  return false;
}

void Receiver::take_timestamp(const Segment& segment, base::Now now) {
  // RFC 7323 s.4.3 (2): only a segment that covers Last.ACK.sent sets TS.Recent. The ACK field was
  // checked before, so that an attacker who only guesses the sequence number cannot make PAWS
  // reject the peer.
  if (!core_.tcb.ts_ok || !segment.options.timestamps) return;
  if (core_.tcb.rcv_offset(segment.seq) > static_cast<int64_t>(ack_.last_ack_sent())) return;
  core_.tcb.ts_recent = segment.options.timestamps->value;
  core_.tcb.ts_recent_at = now;
}

void Receiver::take_urgent(const Segment& segment, base::Now now) {
  // RCV.UP only advances. Urgent octets are read at their place in the stream.
  if (!receives(core_.life.state()) || segment.urgent == 0) return;
  const int64_t end = core_.tcb.rcv_offset(segment.seq) + segment.urgent;
  if (end <= static_cast<int64_t>(std::max(urgent_end_, core_.tcb.rcv_nxt))) return;
  urgent_end_ = static_cast<uint64_t>(end);
  ++counters().urgent_in;
  binding().user->urgent(urgent_end_, now);
}

void Receiver::take_ecn(const Segment& segment) {
  const bool ce = segment.ecn == ecn_codepoint::kCe;
  const bool cwr = segment.has(flag::kCwr);
  if (ce) ++counters().ce_in;
  if (cwr) ++counters().cwr_in;
  if (binding().dctcp()) {
    using Change = EcnState::Change;
    const Change change = core_.ecn.arrived_dctcp(ce, ack_.unacknowledged() != 0,
                                                  core_.tcb.ack_seq(), core_.prediction);
    if (change == Change::None) return;
    if (change == Change::Merged) ++counters().ce_changes_merged;
  } else if (!core_.ecn.arrived(ce, cwr, core_.prediction)) {
    return;
  }
  ask_ack();
}

// --- Text ---

bool Receiver::inspect_text(const Text& arrived, NewText& text, base::Now now) {
  // Clips the text to what may be taken: nothing below the delivery point, beyond the window or
  // behind the FIN.
  Gaps& gaps = core_.shared.gaps;
  Counters& counters = core_.shared.counters;
  const auto nxt = static_cast<int64_t>(core_.tcb.rcv_nxt);
  auto limit = static_cast<int64_t>(std::max(core_.tcb.rcv_edge, core_.tcb.rcv_nxt));
  if (fin_seen()) limit = std::min(limit, static_cast<int64_t>(fin_offset_));
  if (!receives(core_.life.state())) limit = nxt;  // the FIN was received: no more text follows
  const int64_t from = std::clamp(arrived.begin, nxt, limit);
  const int64_t to = std::clamp(arrived.end(), from, limit);
  text.whole = {static_cast<uint64_t>(from), static_cast<uint64_t>(to)};
  if (!text.whole.empty()) {
    text.octets =
        arrived.octets.subspan(static_cast<size_t>(from - arrived.begin), text.whole.size());
    if (committed_.empty()) [[likely]] {
      gaps[text.gaps++] = text.whole;
    } else {
      // The first commit of an octet wins: only octets that no earlier segment brought are new.
      for (base::Range rest = text.whole; !rest.empty();) {
        const base::Range gap = committed_.first_gap(rest);
        if (gap.empty()) break;
        gaps[text.gaps++] = gap;
        rest.begin = gap.end;
      }
    }
  }
  if (text.gaps != 0 && text.whole.begin != core_.tcb.rcv_nxt &&
      !committed_.can_insert(text.whole)) {
    ++(committed_.empty() ? counters.range_sets_exhausted : counters.commit_full);
    return false;
  }
  if (text.gaps != 0 && gaps[0].size() != arrived.octets.size())
    binding().user->clipped(text.whole);
  for (uint32_t i = 0; i < text.gaps; ++i) {
    const base::Range gap = gaps[i];
    const auto octets = text.octets.subspan(gap.begin - text.whole.begin, gap.size());
    const llp::InspectVerdict verdict = binding().user->inspect(gap, octets, now);
    if (verdict == llp::InspectVerdict::Accept) continue;
    ++counters.inspect_drops;
    if (verdict == llp::InspectVerdict::Drop || i == 0) return false;
    // The user has room for the octets at the delivery point. If the whole segment were dropped
    // because it has none for octets behind an island, the peer would retransmit the same segment
    // for ever.
    end_text_at(text, i);
    binding().user->clipped(text.whole);
  }
  return !core_.life.over();
}

void Receiver::end_text_at(NewText& text, uint32_t gap) {
  text.whole.end = core_.shared.gaps[gap].begin;
  text.octets = text.octets.first(text.whole.size());
  text.gaps = gap;
}

bool Receiver::inspect_beyond(const Text& arrived, base::Now now) {
  const llp::InspectVerdict verdict = binding().user->inspect(arrived.range(), arrived.octets, now);
  if (verdict != llp::InspectVerdict::Accept) ++counters().inspect_drops;
  return verdict == llp::InspectVerdict::Accept && !core_.life.over();
}

void Receiver::take_beyond(const Text& arrived, base::Now now) {
  const base::Range range = arrived.range();
  Counters& counters = core_.shared.counters;
  commit(range);
  counters.octets_in += range.size();
  counters.out_of_order_octets_in += range.size();
  binding().user->place(range, arrived.octets, false, now);
  ack_.note_beyond(static_cast<uint32_t>(range.size()), arrived.push, range.begin);
  core_.ask_turn();
}

void Receiver::commit(base::Range range) {
  core_.prediction.end_order();
  if (range.begin != core_.tcb.rcv_nxt) {
    const bool inserted = committed_.insert(range);
    RNIC_CHECK(inserted);  // inspect_text() made sure
    return;
  }
  core_.tcb.rcv_nxt = range.end;
  // A segment may cover whole islands and end inside or right at a later one.
  while (!committed_.empty() && committed_.ranges().front().begin <= core_.tcb.rcv_nxt) {
    core_.tcb.rcv_nxt = std::max(core_.tcb.rcv_nxt, committed_.ranges().front().end);
    committed_.erase_below(core_.tcb.rcv_nxt);
  }
}

[[gnu::noinline, gnu::cold]] void Receiver::set_peers_fin(PeersFin next) {
  RNIC_CHECK(kPeersFinTransitions.allows(core_.tcb.peers_fin, next));
  core_.tcb.peers_fin = next;
}

void Receiver::note_fin(const Text& arrived) {
  if (!arrived.fin) return;
  const int64_t end = arrived.end();
  // A FIN beyond the window is not taken yet. A FIN that contradicts an earlier one, or octets that
  // were received behind it, is ignored.
  if (!fin_seen() && receives(core_.life.state()) && end >= static_cast<int64_t>(taken_to()) &&
      end <= static_cast<int64_t>(core_.tcb.rcv_edge)) {
    set_peers_fin(PeersFin::Seen);
    fin_offset_ = static_cast<uint64_t>(end);
    core_.prediction.end();
  }
  ask_ack();
}

void Receiver::take_text(const Text& arrived, const NewText& text, base::Now now) {
  note_fin(arrived);
  const size_t size = arrived.octets.size();
  if (size == 0) return;
  Counters& counters = core_.shared.counters;
  const uint64_t delivery_point = core_.tcb.rcv_nxt;
  const bool had_holes = !committed_.empty();
  uint64_t committed = 0;
  for (uint32_t i = 0; i < text.gaps; ++i) committed += core_.shared.gaps[i].size();
  if (text.gaps != 0) commit(text.whole);
  counters.octets_in += committed;
  counters.duplicate_octets_in += size - committed;
  for (uint32_t i = 0; i < text.gaps && !core_.life.over(); ++i) {
    const base::Range gap = core_.shared.gaps[i];
    const bool in_order = gap.begin == delivery_point;
    if (!in_order) counters.out_of_order_octets_in += gap.size();
    binding().user->place(gap, text.octets.subspan(gap.begin - text.whole.begin, gap.size()),
                          in_order, now);
  }
  const bool advanced = core_.tcb.rcv_nxt != delivery_point;
  if (committed != size && text.gaps != 0) {
    note_partial_duplicate(arrived.begin, text, delivery_point);
  }
  const bool ack_due = ack_.note_text({.size = static_cast<uint32_t>(size),
                                       .push = arrived.push,
                                       .fresh = text.gaps != 0,
                                       .advanced = advanced,
                                       .had_holes = had_holes,
                                       .whole = text.whole},
                                      now);
  if (ack_due) core_.ask_turn();
  if (advanced && !core_.life.over()) binding().user->ordered(core_.tcb.rcv_nxt, now);
  if (committed != 0) core_.life.progressed(now);
}

void Receiver::note_partial_duplicate(int64_t begin, const NewText& text, uint64_t delivery_point) {
  // RFC 2883 s.4.2: reports the first part of the segment that was received before.
  const Gaps& gaps = core_.shared.gaps;
  base::Range old{text.whole.begin, text.whole.end};
  if (begin < static_cast<int64_t>(delivery_point)) {
    old = {static_cast<uint64_t>(std::max<int64_t>(begin, 0)), delivery_point};
  } else if (gaps[0].begin != old.begin) {
    old.end = gaps[0].begin;
  } else {
    old.begin = gaps[0].end;
    if (text.gaps > 1) old.end = gaps[1].begin;
  }
  // `old` is empty where the part that is missing lies beyond the window.
  if (ack_.note_partial_duplicate(old)) core_.ask_turn();
}

bool Receiver::process_fin(base::Now now) {
  if (core_.tcb.rcv_nxt != fin_offset_) return false;
  if (!receives(core_.life.state())) return false;
  set_peers_fin(PeersFin::Reached);
  ask_ack();
  const bool time_wait = core_.life.fin_received();
  binding().user->peer_finished(now);
  return time_wait && !core_.life.over();
}

// --- The window ---

uint64_t Receiver::room_to_offer() {
  const uint64_t most = uint64_t{0xffff} << core_.tcb.rcv_wind_shift;
  uint64_t room = std::min({uint64_t{core_.shared.config.receive_window},
                            uint64_t{binding().user->receive_room()}, most});
  room = room >> core_.tcb.rcv_wind_shift << core_.tcb.rcv_wind_shift;
  rcv_buff_ = std::max(rcv_buff_, static_cast<uint32_t>(room));
  return room;
}

uint16_t Receiver::advertise() {
  if (binding().user != nullptr && receives(core_.life.state())) {
    // RFC 9293 s.3.8.6.2.2: the right edge moves only by worthwhile steps, and never back.
    const uint64_t edge = core_.tcb.rcv_nxt + room_to_offer();
    const uint64_t step = std::min<uint64_t>(ack_.rcv_mss(), rcv_buff_ / 2 + 1);
    if (edge >= core_.tcb.rcv_edge + step) core_.tcb.rcv_edge = edge;
  }
  return static_cast<uint16_t>(
      std::min<uint64_t>(core_.tcb.rcv_wnd() >> core_.tcb.rcv_wind_shift, 0xffff));
}

void Receiver::room_grew() {
  if (binding().user == nullptr || !receives(core_.life.state())) return;
  // Receiver silly window avoidance (RFC 9293 s.3.8.6.2.2).
  const uint64_t edge = core_.tcb.rcv_nxt + room_to_offer();
  const uint64_t step = std::min(2ull * ack_.rcv_mss(), rcv_buff_ / 2 + 1ull);
  if (edge >= core_.tcb.rcv_edge + step) ask_ack();
}

void Receiver::describe(ConnectionInfo& info) const {
  const Tcb& tcb = core_.tcb;
  info.rcv_wind_shift = tcb.rcv_wind_shift;
  info.rcv_mss = ack_.rcv_mss();
  info.rcv_nxt = tcb.rcv_nxt;
  info.rcv_wnd = static_cast<uint32_t>(tcb.rcv_wnd());
  info.out_of_order_ranges = static_cast<uint32_t>(committed_.ranges().size());
}

void Receiver::validate() const {
  ack_.validate();
  uint64_t past = core_.tcb.rcv_nxt;
  for (const base::Range& range : committed_.ranges()) {
    RNIC_CHECK(range.begin > past && !range.empty());
    past = range.end;
  }
  RNIC_CHECK(committed_.empty() || past <= core_.tcb.rcv_edge);
  RNIC_CHECK(!fin_seen() || past <= fin_offset_);
  RNIC_CHECK(core_.tcb.peers_fin != PeersFin::Reached || fin_offset_ == core_.tcb.rcv_nxt);
}

}  // namespace rnic::tcp
