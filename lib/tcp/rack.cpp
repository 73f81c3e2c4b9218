#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

/// RFC 8985 s.6.1: was (t1, end1) sent after (t2, end2)?
bool sent_after(base::Now t1, uint64_t end1, base::Now t2, uint64_t end2) {
  return t1 > t2 || (t1 == t2 && end1 > end2);
}

}  // namespace

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

base::Duration Engine::reorder_window(const Connection& c) const {
  // RFC 8985 s.6.2 step 4. Without reordering DupThresh of RFC 6675 holds.
  if (!c.rack.reordering_seen) {
    if (c.recovery.phase != RecoveryPhase::Open || c.board.sacked_segments() >= kDupThresh) {
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
  for (uint64_t n = c.board.first(); n < c.board.past_last();) {
    const Record& r = c.board.at(n);
    if (r.offset >= c.tcb.snd_nxt) break;
    if (r.is(record_flag::kSacked)) {  // skip the whole run
      uint64_t end = r.end();
      for (const base::Range& range : c.board.sacked().ranges()) {
        if (range.contains(r.offset)) end = std::max(end, range.end);
      }
      n = std::max(n + 1, c.board.find(end));
      continue;
    }
    const bool waits = r.is(record_flag::kLost) && !r.is(record_flag::kRetransmitted);
    if (!waits) {
      if (!sent_after(c.rack.xmit_at, c.rack.end, r.sent_at, r.end())) {
        if (!r.is(record_flag::kResent)) break;  // and so was everything behind it
      } else {
        const base::Duration remaining = r.sent_at + c.rack.rtt + window - now;
        if (remaining <= base::Duration(0)) {
          c.board.lose(n);
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
