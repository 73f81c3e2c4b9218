#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

bool Engine::inspect_text(Connection& c, const Arrival& a, NewText& text, base::Now now) {
  // Clip to what may be taken: nothing below the delivery point, beyond the window, or after the
  // FIN.
  const int64_t begin = c.tcb.rcv_offset(a.seq);
  const auto size = static_cast<int64_t>(a.payload.size());
  const auto nxt = static_cast<int64_t>(c.tcb.rcv_nxt);
  auto limit = static_cast<int64_t>(std::max(c.tcb.rcv_edge, c.tcb.rcv_nxt));
  if (c.fin_seen) limit = std::min(limit, static_cast<int64_t>(c.fin_offset));
  if (!receives(c.state)) limit = nxt;  // a known FIN leaves nothing to come
  const int64_t from = std::clamp(begin, nxt, limit);
  const int64_t to = std::clamp(begin + size, from, limit);
  text.whole = {static_cast<uint64_t>(from), static_cast<uint64_t>(to)};
  if (!text.whole.empty()) {
    text.octets = a.payload.subspan(static_cast<size_t>(from - begin), text.whole.size());
    if (c.committed.empty()) [[likely]] {
      gap_[text.gaps++] = text.whole;
    } else {
      // First commit wins: only what no earlier segment brought is new.
      for (base::Range rest = text.whole; !rest.empty();) {
        const base::Range gap = c.committed.first_gap(rest);
        if (gap.empty()) break;
        gap_[text.gaps++] = gap;
        rest.begin = gap.end;
      }
    }
  }
  if (text.gaps != 0 && text.whole.begin != c.tcb.rcv_nxt && !c.committed.can_insert(text.whole)) {
    ++(c.committed.empty() ? counters_.range_sets_exhausted : counters_.commit_full);
    return false;
  }
  if (text.gaps != 0 && gap_[0].size() != a.payload.size()) c.user->clipped(text.whole);
  for (uint32_t i = 0; i < text.gaps; ++i) {
    const base::Range gap = gap_[i];
    const auto octets = text.octets.subspan(gap.begin - text.whole.begin, gap.size());
    const llp::InspectVerdict verdict = c.user->inspect(gap, octets, now);
    if (verdict == llp::InspectVerdict::Accept) continue;
    ++counters_.inspect_drops;
    if (verdict == llp::InspectVerdict::Drop || i == 0) return false;
    // Room is kept for what is missing at the delivery point. Were it lost with what lies behind an
    // island, the peer would send the same segment for ever.
    end_text_at(text, i);
    c.user->clipped(text.whole);
  }
  return !c.doomed;
}

void Engine::end_text_at(NewText& text, uint32_t gap) {
  text.whole.end = gap_[gap].begin;
  text.octets = text.octets.first(text.whole.size());
  text.gaps = gap;
}

void Engine::commit_range(Connection& c, base::Range range) {
  if (range.begin != c.tcb.rcv_nxt) {
    const bool inserted = c.committed.insert(range);
    RNIC_CHECK(inserted);  // inspect_text() made sure
    return;
  }
  c.tcb.rcv_nxt = range.end;
  // A segment may swallow whole islands and end inside, or right at, a later one.
  while (!c.committed.empty() && c.committed.ranges().front().begin <= c.tcb.rcv_nxt) {
    c.tcb.rcv_nxt = std::max(c.tcb.rcv_nxt, c.committed.ranges().front().end);
    c.committed.erase_below(c.tcb.rcv_nxt);
  }
}

void Engine::take_text(Connection& c, const Arrival& a, const NewText& text, base::Now now) {
  // A FIN beyond the window is not seen yet; one that contradicts the first, or octets taken from
  // behind it, is ignored.
  const int64_t end = c.tcb.rcv_offset(a.seq) + static_cast<int64_t>(a.payload.size());
  if (a.has(flag::kFin) && !c.fin_seen && receives(c.state) &&
      end >= static_cast<int64_t>(c.taken_to()) && end <= static_cast<int64_t>(c.tcb.rcv_edge)) {
    c.fin_seen = true;
    c.fin_offset = static_cast<uint64_t>(end);
  }
  if (a.has(flag::kFin)) {
    c.ack.ask();
    make_ready(c);
  }
  if (a.payload.empty()) return;
  const uint64_t delivery_point = c.tcb.rcv_nxt;
  const bool had_holes = !c.committed.empty();
  uint64_t committed = 0;
  for (uint32_t i = 0; i < text.gaps; ++i) committed += gap_[i].size();
  if (text.gaps != 0) commit_range(c, text.whole);
  counters_.octets_in += committed;
  counters_.duplicate_octets_in += a.payload.size() - committed;
  for (uint32_t i = 0; i < text.gaps && !c.doomed; ++i) {
    const base::Range gap = gap_[i];
    const bool in_order = gap.begin == delivery_point;
    if (!in_order) counters_.out_of_order_octets_in += gap.size();
    c.user->place(gap, text.octets.subspan(gap.begin - text.whole.begin, gap.size()), in_order,
                  now);
  }
  const bool advanced = c.tcb.rcv_nxt != delivery_point;
  if (committed != a.payload.size() && text.gaps != 0) {
    note_partial_duplicate(c, end - static_cast<int64_t>(a.payload.size()), text, delivery_point);
  }
  const bool ack_due = c.ack.note_text({.size = static_cast<uint32_t>(a.payload.size()),
                                        .push = a.has(flag::kPsh),
                                        .fresh = text.gaps != 0,
                                        .advanced = advanced,
                                        .had_holes = had_holes,
                                        .whole = text.whole},
                                       now);
  if (ack_due) make_ready(c);
  if (advanced && !c.doomed) c.user->ordered(c.tcb.rcv_nxt, now);
  if (committed != 0) push_life(c, now);
}

void Engine::note_partial_duplicate(Connection& c, int64_t begin, const NewText& text,
                                    uint64_t delivery_point) {
  // RFC 2883 s.4.2: the first sub-segment that was there already.
  base::Range old{text.whole.begin, text.whole.end};
  if (begin < static_cast<int64_t>(delivery_point)) {
    old = {static_cast<uint64_t>(std::max<int64_t>(begin, 0)), delivery_point};
  } else if (gap_[0].begin != old.begin) {
    old.end = gap_[0].begin;
  } else {
    old.begin = gap_[0].end;
    if (text.gaps > 1) old.end = gap_[1].begin;
  }
  // Empty where what is missing of the segment lies beyond the window.
  if (c.ack.note_partial_duplicate(old)) make_ready(c);
}

void Engine::take_fin(Connection& c, base::Now now) {
  // RFC 9293 s.3.10.7.4, eighth. The FIN counts when the order has reached it.
  if (c.tcb.fin_reached || c.tcb.rcv_nxt != c.fin_offset || !receives(c.state)) return;
  c.tcb.fin_reached = true;
  c.ack.ask();
  make_ready(c);
  switch (c.state) {
    case State::Established: c.state = State::CloseWait; break;
    case State::FinWait1: c.state = State::Closing; break;  // our FIN is not acknowledged yet
    case State::FinWait2: break;
    default: return;
  }
  const bool time_wait = c.state == State::FinWait2;
  c.user->peer_finished(now);
  if (time_wait && !c.doomed) enter_time_wait(c, now);
}

}  // namespace rnic::tcp
