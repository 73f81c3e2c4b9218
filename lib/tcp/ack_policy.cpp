#include "tcp/ack_policy.hpp"

#include <algorithm>
#include <span>

namespace rnic::tcp {

/// RCV.MSS follows the received segments. It grows at once; it shrinks only after several segments
/// of one smaller size with more behind them, when the path or the peer's records have become
/// smaller.
void AckPolicy::note_other_size(uint32_t size, bool push) {
  if (size > rcv_mss_) {
    rcv_mss_ = size;
    return;
  }
  if (push || size < kLeastFull) return;
  if (size != short_size_) short_count_ = 0;
  ++short_count_;
  short_size_ = size;
  if (short_count_ < kShortRun) return;
  rcv_mss_ = size;
  short_count_ = 0;
}

/// A segment is missing at RCV.NXT.
void AckPolicy::note_hole() {
  if (config_.loss_acks == 0 || lossy_until_ == tcb_.rcv_nxt + kLossy) return;  // it is known
  if (tcb_.rcv_nxt + kLossy < lossy_until_ + kNear) parts_until_ = tcb_.rcv_nxt + kNear;
  // The first hole for long is told of as usual.
  said_again_ = tcb_.rcv_nxt < lossy_until_ ? 0 : kHoleRepeats;
  lossy_until_ = tcb_.rcv_nxt + kLossy;
}

[[gnu::noinline, gnu::cold]] void AckPolicy::note_part(uint32_t behind) {
  // A part is worth a segment at least: of a flight of two, too, one ACK may be lost. Octets that
  // come again are in octets_, too, but no ACK of them would say anything new.
  const uint64_t worth = std::min<uint64_t>(octets_, tcb_.rcv_nxt - last_ack_sent_);
  if (worth < uint64_t{behind} + rcv_mss_) return;
  if (parts_count_ == most_parts()) take_part();
  parts_[parts_count_++] = tcb_.rcv_seq(tcb_.rcv_nxt - behind);
}

base::Seq32 AckPolicy::take_part() {
  const base::Seq32 oldest = parts_[0];
  std::copy(parts_.begin() + 1, parts_.begin() + parts_count_, parts_.begin());
  --parts_count_;
  return oldest;
}

void AckPolicy::note_range(uint64_t offset) {
  // RFC 2018 s.4: the block that holds the newest segment goes first.
  const std::span<const base::Range> ranges = committed_.ranges();
  for (size_t i = fresh_ != 0 ? ranges.size() : 0; i != 0; --i) {
    if (ranges[i - 1].begin > offset) continue;
    if (ranges[i - 1].contains(offset) && holds(ranges[i - 1], recent_[0])) return;  // listed
    break;
  }
  std::copy_backward(recent_.begin(), recent_.end() - 1, recent_.end());
  recent_[0] = tcb_.rcv_seq(offset);
  if (recent_count_ < kMaxRecent) ++recent_count_;
  if (fresh_ < kMaxRecent) ++fresh_;
}

bool AckPolicy::note_dsack(base::Range old) {
  if (!tcb_.sack_ok || old.empty() || dsack_count_ >= kMaxDsacks) return false;
  dsacks_[dsack_count_++] = {tcb_.rcv_seq(old.begin), tcb_.rcv_seq(old.end)};
  return true;
}

void AckPolicy::note_duplicate(int64_t begin, int64_t end) {
  if (begin < 0 || end > static_cast<int64_t>(tcb_.rcv_nxt)) return;
  if (note_dsack({static_cast<uint64_t>(begin), static_cast<uint64_t>(end)})) alone_ = true;
}

bool AckPolicy::note_partial_duplicate(base::Range old) {
  if (!note_dsack(old)) return false;
  ask_alone();
  return true;
}

void AckPolicy::note_beyond(uint32_t size, bool push, uint64_t begin) {
  note_hole();
  note_range(begin);
  // If an ACK of earlier text in order is being delayed, it goes out now and serves as the ACK of
  // this segment, too.
  const bool delayed = moves() && !due();
  if (!tcb_.sack_ok && !delayed && duplicates_ < kMaxDuplicates) ++duplicates_;
  note_size(size, push);
  octets_ += size;
  ask_alone();  // RFC 5681 s.4.2: at once
  if (tcb_.sack_ok && beyond_ < 2) ++beyond_;
}

bool AckPolicy::note_text(const Text& text, base::Now now) {
  // Segments behind a hole were owed an ACK of the old RCV.NXT. The ACK that is due now covers
  // more, and a duplicate of that ACK would tell the peer that a segment behind the next hole
  // arrived (RFC 5681 s.2).
  if (text.advanced) duplicates_ = 0;
  if (!text.advanced && text.fresh) {
    note_beyond(text.size, text.push, text.whole.begin);
    return true;
  }
  if (!text.fresh) note_dsack(text.whole);  // RFC 2883 s.4
  if (text.advanced && !text.had_holes) return note_in_order(text.size, text.push, now);
  // RFC 5681 s.4.2: text that fills a hole, or was received before, is acknowledged at once.
  note_size(text.size, text.push);
  octets_ += text.size;
  due_ = Due::Now;
  if (!text.advanced || !committed_.empty()) alone_ = true;
  return true;
}

uint32_t AckPolicy::fill_sack(SackBlocks& blocks) {
  if (committed_.empty() || !tcb_.sack_ok) recent_count_ = fresh_ = 0;
  if (!tcb_.sack_ok || (committed_.empty() && dsack_count_ == 0)) return 0;
  const uint32_t limit = tcb_.ts_ok ? 3 : 4;
  uint32_t count = 0;
  std::array<base::Range, 4> chosen{};
  uint32_t ranges = 0;
  const auto add = [&](base::Seq32 seq) {
    for (const base::Range& range : committed_.ranges()) {
      if (!holds(range, seq)) continue;
      const auto end = chosen.begin() + ranges;
      if (std::find(chosen.begin(), end, range) == end) chosen[ranges++] = range;
    }
  };
  if (dsack_count_ != 0) {  // RFC 2883: the D-SACK block is the first, whatever follows
    const wire::SackBlock dup = dsacks_[--dsack_count_];
    blocks[count++] = dup;
    add(dup.left);  // s.4 (4): the block around the D-SACK follows, or it is not recognized
  }
  // Ranges that were never reported are chosen oldest first; within one ACK the newest of them
  // comes first.
  const uint32_t holder = ranges;
  const uint32_t reported = fresh_;
  while (fresh_ != 0 && count + ranges < limit) add(recent_[--fresh_]);
  std::reverse(chosen.begin() + holder, chosen.begin() + ranges);
  // RFC 2018 s.4: the other blocks repeat the ranges that were reported most recently.
  for (uint32_t i = reported; i < recent_count_ && count + ranges < limit; ++i) add(recent_[i]);
  for (const base::Range& range : committed_.ranges()) {
    if (count + ranges >= limit) break;
    add(tcb_.rcv_seq(range.begin));
  }
  for (uint32_t i = 0; i < ranges; ++i) {
    blocks[count++] = {tcb_.rcv_seq(chosen[i].begin), tcb_.rcv_seq(chosen[i].end)};
  }
  return count;
}

void AckPolicy::sent() {
  due_ = Due::No;
  rode_ = true;
  octets_ = 0;
  parts_count_ = 0;
  beyond_ = 0;
  timers_.clear(Timer::DelayedAck);
  if (moves() && committed_.empty()) said_again_ = 0;
  last_ack_sent_ = tcb_.ack_offset();
}

void AckPolicy::sent_alone(base::Now now) {
  const bool moved = moves();
  // With a hole it may have been all that tells of it.
  const bool worth_repeating =
      !committed_.empty() || (moved ? octets_ >= 2 * rcv_mss_ : said_again_ != 0);
  // RFC 5681 s.4.2 has an ACK for each segment behind a hole. One for all of them is enough, and
  // another one where the path may have lost it.
  const bool repeat = beyond_ > 1 && config_.loss_acks != 0;
  // Without SACK each out-of-order segment is owed an ACK of its own. An ACK that also covers text
  // received in order before is no duplicate (RFC 5681 s.2) and does not count as one. D-SACKs and
  // new ranges that one ACK cannot name need further ACKs: the peer would retransmit octets whose
  // arrival it is not told of.
  if (duplicates_ != 0 && !moved) --duplicates_;
  alone_ = duplicates_ != 0 || dsack_count_ != 0 || fresh_ != 0 || repeat;
  // Behind the question, which GCC 12 asks of all these octets at once: it would wait for one of
  // them that has just been written.
  sent();
  rode_ = false;
  if (alone_) {
    due_ = Due::Now;
  } else if (worth_repeating && may_repeat()) [[unlikely]] {
    timers_.set(Timer::DelayedAck, now + kRepeatAfter * (1 << said_again_));
  }
}

void AckPolicy::validate() const {
  RNIC_CHECK(last_ack_sent_ <= tcb_.ack_offset());
  RNIC_CHECK(dsack_count_ <= kMaxDsacks && fresh_ <= recent_count_ && recent_count_ <= kMaxRecent);
  RNIC_CHECK(parts_count_ <= most_parts() && beyond_ <= 2 && said_again_ <= kRepeats);
  RNIC_CHECK(octets_ != 0 || (parts_count_ == 0 && beyond_ == 0));
  RNIC_CHECK(tcb_.sack_ok ? duplicates_ == 0 : dsack_count_ == 0);
  // Received text is always acknowledged: an ACK is due, or the delayed-ACK timer runs (RFC 9293
  // s.3.8.6.3, MUST-58).
  RNIC_CHECK(octets_ == 0 || due() || timers_.runs(Timer::DelayedAck));
}

}  // namespace rnic::tcp
