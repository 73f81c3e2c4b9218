#include "tcp/rack.hpp"

#include <algorithm>
#include <span>

namespace rnic::tcp {

bool Rack::of_last_transmission(const Record& record, std::optional<uint32_t> echo,
                                base::Now now) const {
  if (now - record.sent_at < rto_.min_rtt()) return false;
  return !echo || static_cast<int32_t>(*echo - board_.tcb().timestamp(record.sent_at)) >= 0;
}

void Rack::dsack() {
  if (board_.tcb().snd_una < dsack_round_) return;
  dsack_round_ = board_.tcb().snd_nxt;
  if (window_multiplier_ < kMaxWindowMultiplier) ++window_multiplier_;
  window_persist_ = kWindowPersist;
  reordering_seen_ = true;
  learn(2 * extent_);
}

[[gnu::noinline]] void Rack::learn(base::Duration extent) {
  extent = std::min(extent, most_extent());
  if (extent <= base::Duration(0)) return;
  if (2 * extent >= extent_) window_persist_ = kWindowPersist;
  extent_ = std::max(extent_, extent);
}

void Rack::first_came_late(const Record& record, base::Now now) {
  // It had been waited for as long as the window says when it was sent again.
  learn(reorder_window(true) + (now - record.sent_at));
}

void Rack::recovered() {
  // s.6.2: a widened reordering window lasts for 16 recoveries.
  if (window_persist_ != 0) --window_persist_;
  if (window_persist_ != 0) return;
  window_multiplier_ = 1;
  extent_ = base::Duration(0);
}

bool Rack::overtaken() const {
  if (!board_.tcb().sack_ok || board_.tcb().flight() == 0) return false;
  const Record& record = board_.front();
  return sent_after(xmit_at_, end_, record.sent_at, record.end());
}

base::Duration Rack::reorder_window(bool recovering) const {
  // s.6.2 step 4. Without reordering DupThresh of RFC 6675 holds.
  if (!reordering_seen_ && (recovering || board_.sacked_segments() >= kDupThresh)) {
    return base::Duration(0);
  }
  const base::Duration window = std::min(rto_.min_rtt() / 4 * window_multiplier_, rto_.srtt());
  // Beyond RFC 8985, which has no window longer than SRTT: what came so late before comes so late
  // again, however short the round trip is.
  return std::max(window, std::min(extent_ + extent_ / 4, most_extent()));
}

bool Rack::detect(bool recovering, base::Now now) {
  stop();
  const base::Duration window = reorder_window(recovering);
  base::Duration wait{0};
  bool lost = false;
  const std::span<const base::Range> sacked = board_.sacked().ranges();
  size_t range = 0;
  for (uint64_t n = board_.first(); n < board_.past_last();) {
    const Record& record = board_.at(n);
    if (record.offset >= board_.tcb().snd_nxt) break;
    if (record.is(record_flag::kSacked)) {  // skips the whole SACKed range
      while (range != sacked.size() && sacked[range].end <= record.offset) ++range;
      const bool inside = range != sacked.size() && sacked[range].contains(record.offset);
      n = inside ? std::max(n + 1, board_.find(sacked[range].end)) : n + 1;
      continue;
    }
    const bool waits = record.is(record_flag::kLost) && !record.is(record_flag::kRetransmitted);
    if (!waits) {
      if (!sent_after(xmit_at_, end_, record.sent_at, record.end())) {
        if (!record.is(record_flag::kResent)) break;  // all records behind it were sent later, too
      } else {
        const base::Duration remaining = record.sent_at + rtt_ + window - now;
        if (remaining <= base::Duration(0)) {
          board_.lose(n);
          lost = true;
        } else {
          wait = std::max(wait, remaining);
        }
      }
    }
    ++n;
  }
  if (wait > base::Duration(0)) timers_.set(Timer::Reorder, now + wait);
  return lost;
}

void Rack::validate() const {
  RNIC_CHECK(window_multiplier_ >= 1 && window_multiplier_ <= kMaxWindowMultiplier);
  RNIC_CHECK(window_persist_ <= kWindowPersist);
  RNIC_CHECK(window_persist_ != 0 || (window_multiplier_ == 1 && extent_ == base::Duration(0)));
  RNIC_CHECK(extent_ >= base::Duration(0) && extent_ <= most_extent());
  RNIC_CHECK(end_ <= board_.tcb().snd_nxt && dsack_round_ <= board_.tcb().snd_nxt);
}

}  // namespace rnic::tcp
