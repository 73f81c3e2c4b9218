#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

/// RFC 8985 s.6.1: was (t1, end1) sent after (t2, end2)?
bool sent_after(base::Now t1, uint64_t end1, base::Now t2, uint64_t end2) {
  return t1 > t2 || (t1 == t2 && end1 > end2);
}

constexpr uint32_t kMaxWindowMultiplier = 32;
constexpr uint32_t kWindowPersist = 16;  // RFC 8985 s.6.2: recoveries that keep a widened window

}  // namespace

void Engine::subtract_marks(Connection& c, const Record& r, uint64_t octets) {
  if (r.is(record_flag::kSacked)) c.board.sacked_octets -= octets;
  if (r.is(record_flag::kLost)) c.board.lost_octets -= octets;
  if (r.is(record_flag::kRetransmitted)) c.board.retransmitted_octets -= octets;
}

void Engine::take_sack_block(Connection& c, base::Range block, uint64_t ack, uint64_t old_fack,
                             AckYield& yield, base::Now now) {
  // Only records that what is new of the block touches are looked at: however many ACKs name the
  // same ranges again, the work is bounded by the octets that they add.
  std::array<base::Range, kMaxRanges + 1> news;
  uint32_t count = 0;
  for (base::Range rest = block; !rest.empty();) {
    const base::Range gap = c.board.sacked.first_gap(rest);
    if (gap.empty()) break;
    news[count++] = gap;
    rest.begin = gap.end;
  }
  if (count == 0) return;
  if (!c.board.sacked.insert(block)) return;  // too many ranges: SACK is only advice
  for (uint32_t i = 0; i < count; ++i) {
    for (uint64_t n = c.records.find(news[i].begin); n < c.records.past_last(); ++n) {
      Record& r = c.records.at(n);
      if (r.offset >= news[i].end) break;
      if (r.is(record_flag::kSacked)) continue;
      if (c.board.sacked.contains({std::max(r.offset, ack), r.end()})) {
        mark_sacked(c, r, old_fack, yield, now);
      }
    }
  }
}

void Engine::take_sack(Connection& c, const Arrival& a, uint64_t ack, AckYield& yield,
                       base::Now now) {
  const uint64_t old_fack = c.board.fack;
  const auto una = static_cast<int64_t>(ack);
  for (uint32_t i = 0; i < a.options.sack_count; ++i) {
    int64_t left = c.tcb.snd_offset(a.options.sack[i].left);
    const int64_t right = c.tcb.snd_offset(a.options.sack[i].right);
    if (left >= right || right > static_cast<int64_t>(c.tcb.snd_nxt)) continue;
    if (i == 0) {  // RFC 2883 s.4: below the ACK, or inside the second block
      const bool nested = a.options.sack_count > 1 &&
                          left >= c.tcb.snd_offset(a.options.sack[1].left) &&
                          right <= c.tcb.snd_offset(a.options.sack[1].right);
      if (right <= una || nested) {
        yield.dsack = true;
        yield.dsack_octets = static_cast<uint64_t>(right - left);
        continue;
      }
    }
    left = std::max(left, una);
    if (left >= right) continue;
    const base::Range block{static_cast<uint64_t>(left), static_cast<uint64_t>(right)};
    take_sack_block(c, block, ack, old_fack, yield, now);
  }
  if (yield.dsack && ack >= c.rack.dsack_round) {  // RFC 8985 s.6.2 step 4, once a round trip
    c.rack.dsack_round = c.tcb.snd_nxt;
    c.rack.window_multiplier = std::min(c.rack.window_multiplier + 1, kMaxWindowMultiplier);
    c.rack.window_persist = kWindowPersist;
    c.rack.reordering_seen = true;
  }
}

void Engine::mark_sacked(Connection& c, Record& r, uint64_t old_fack, AckYield& yield,
                         base::Now now) {
  const uint64_t live = c.live(r);
  if (!base::sabotaged(base::Defect::SumsDrift)) subtract_marks(c, r, live);
  r.flags &= static_cast<uint16_t>(~(record_flag::kLost | record_flag::kRetransmitted));
  r.flags |= record_flag::kSacked;
  c.board.sacked_octets += live;
  if (r.is(record_flag::kSegmentStart)) ++c.board.sacked_segments;
  yield.delivered += live;
  yield.new_sack = true;
  // What arrived ahead of order does not set the timestamp that the peer echoes.
  rack_update(c, r, std::nullopt, now);
  if (!r.is(record_flag::kResent)) {
    yield.rtt = now - r.sent_at;
    if (r.end() < old_fack) c.rack.reordering_seen = true;  // late, not lost
  }
  c.board.fack = std::max(c.board.fack, r.end());
}

void Engine::rack_update(Connection& c, const Record& r, std::optional<uint32_t> echo,
                         base::Now now) const {
  // RFC 8985 s.6.2 steps 1 and 2.
  const base::Duration rtt = now - r.sent_at;
  if (r.is(record_flag::kResent)) {  // for an earlier transmission?
    if (rtt < c.rto.min_rtt()) return;
    if (echo && static_cast<int32_t>(*echo - timestamp_of(c, r.sent_at)) < 0) return;
  }
  if (sent_after(r.sent_at, r.end(), c.rack.xmit_at, c.rack.end)) {
    c.rack.rtt = rtt;
    c.rack.xmit_at = r.sent_at;
    c.rack.end = r.end();
  }
}

void Engine::mark_lost(Connection& c, uint64_t number) {
  Record& r = c.records.at(number);
  const uint64_t live = c.live(r);
  if (r.is(record_flag::kRetransmitted)) {  // the retransmission was lost as well
    c.board.retransmitted_octets -= live;
    r.flags &= static_cast<uint16_t>(~record_flag::kRetransmitted);
  }
  if (!r.is(record_flag::kLost)) {
    c.board.lost_octets += live;
    r.flags |= record_flag::kLost;
  }
  c.retransmit_hint = std::min(c.retransmit_hint, number);
}

base::Duration Engine::reorder_window(const Connection& c) const {
  // RFC 8985 s.6.2 step 4. Without reordering DupThresh of RFC 6675 holds.
  if (!c.rack.reordering_seen) {
    if (c.recovery.phase != RecoveryPhase::Open || c.board.sacked_segments >= kDupThresh) {
      return base::Duration(0);
    }
  }
  return std::min(c.rto.min_rtt() / 4 * c.rack.window_multiplier, c.rto.srtt());
}

bool Engine::rack_detect(Connection& c, base::Now now) {
  // RFC 8985 s.6.2 step 5.
  c.timers.clear(Timer::Reorder);
  const base::Duration window = reorder_window(c);
  base::Duration wait{0};
  bool lost = false;
  for (uint64_t n = c.records.first(); n < c.records.past_last();) {
    const Record& r = c.records.at(n);
    if (r.offset >= c.tcb.snd_nxt) break;
    if (r.is(record_flag::kSacked)) {  // skip the whole run
      uint64_t end = r.end();
      for (const base::Range& range : c.board.sacked.ranges()) {
        if (range.contains(r.offset)) end = std::max(end, range.end);
      }
      n = std::max(n + 1, c.records.find(end));
      continue;
    }
    const bool waits = r.is(record_flag::kLost) && !r.is(record_flag::kRetransmitted);
    if (!waits) {
      if (!sent_after(c.rack.xmit_at, c.rack.end, r.sent_at, r.end())) {
        if (!r.is(record_flag::kResent)) break;  // and so was everything behind it
      } else {
        const base::Duration remaining = r.sent_at + c.rack.rtt + window - now;
        if (remaining <= base::Duration(0)) {
          mark_lost(c, n);
          lost = true;
        } else {
          wait = std::max(wait, remaining);
        }
      }
    }
    ++n;
  }
  if (wait > base::Duration(0)) c.timers.set(Timer::Reorder, now + wait);
  return lost;
}

}  // namespace rnic::tcp
