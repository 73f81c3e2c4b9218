#include "tcp/scoreboard.hpp"

namespace rnic::tcp {

uint64_t Scoreboard::segment_end(uint64_t number) const {
  do {
    ++number;
  } while (number < past_last() && !at(number).is(record_flag::kSegmentStart));
  return number;
}

uint32_t Scoreboard::segment_at(uint64_t offset, uint32_t emss) const {
  const uint64_t last = std::min(offset + emss, tcb_.snd_nxt);
  uint64_t n = find(offset);
  uint64_t end = offset;
  while (n < past_last() && end < last) {
    end = at(n++).end();
    if (n == past_last() || at(n).is(record_flag::kSegmentStart)) break;
  }
  return static_cast<uint32_t>(std::min(end, last) - std::min(offset, last));
}

uint64_t Scoreboard::next_lost() {
  uint64_t n = std::max(retransmit_hint_, first());
  while (n < past_last()) {
    const Record& record = at(n);
    if (record.is(record_flag::kLost) && !record.is(record_flag::kRetransmitted) &&
        live(record) != 0)
      break;
    ++n;
  }
  retransmit_hint_ = n;
  return n;
}

void Scoreboard::keep(uint64_t number, uint32_t saved) {
  Record& record = records_.at(number);
  record.saved = saved;
  note_altered(record.end());
}

bool Scoreboard::cut(uint64_t number) {
  Record& record = records_.at(number);
  if (record.is(record_flag::kCut)) return false;
  record.flags |= record_flag::kCut;
  return true;
}

void Scoreboard::sent_piece(uint32_t octets, base::Now now) {
  Record& record = records_.back();
  record.sent_at = now;
  if (record.is(record_flag::kLost)) lost_octets_ += octets;
  if (record.is(record_flag::kRetransmitted)) retransmitted_octets_ += octets;
}

void Scoreboard::resent(uint64_t number, base::Now now) {
  Record& record = records_.at(number);
  if (record.is(record_flag::kLost) && !record.is(record_flag::kRetransmitted)) {
    record.flags |= record_flag::kRetransmitted;
    retransmitted_octets_ += live(record);
  }
  record.flags |= record_flag::kResent;
  record.sent_at = now;
  note_altered(record.end());
}

void Scoreboard::subtract_marks(const Record& record, uint64_t octets) {
  if (record.is(record_flag::kSacked)) sacked_octets_ -= octets;
  if (record.is(record_flag::kLost)) lost_octets_ -= octets;
  if (record.is(record_flag::kRetransmitted)) retransmitted_octets_ -= octets;
}

void Scoreboard::pop_marked() {
  const Record& record = front();
  if (record.is(record_flag::kSacked) && record.is(record_flag::kSegmentStart)) --sacked_segments_;
  subtract_marks(record, live(record));
  records_.pop_front();
}

void Scoreboard::pop_sacked(uint32_t count) {
  const Record* const record = &front();
  for (uint32_t i = 0; i < count; ++i) {
    RNIC_DCHECK(record[i].is(record_flag::kSacked));
    if (record[i].is(record_flag::kSegmentStart)) --sacked_segments_;
  }
  // A SACKed record was sent as a whole, and has no other mark; SND.UNA may lie in the first one.
  sacked_octets_ -= record[count - 1].end() - std::max(record->offset, tcb_.snd_una);
  records_.pop_front(count);
}

uint64_t Scoreboard::advance(uint64_t ack) {
  uint64_t delivered = 0;
  if (!empty() && front().offset < ack) {
    const Record& record = front();
    const uint64_t gone = ack - std::max(record.offset, tcb_.snd_una);
    if (!record.is(record_flag::kSacked)) delivered = gone;
    subtract_marks(record, gone);
  }
  sacked_.erase_below(ack);
  fack_ = std::max(fack_, ack);
  retransmit_hint_ = std::max(retransmit_hint_, first());
  return delivered;
}

uint64_t Scoreboard::mark_sacked(Record& record) {
  const uint64_t octets = live(record);
  subtract_marks(record, octets);
  record.flags &= static_cast<uint16_t>(~(record_flag::kLost | record_flag::kRetransmitted));
  record.flags |= record_flag::kSacked;
  sacked_octets_ += octets;
  if (record.is(record_flag::kSegmentStart)) ++sacked_segments_;
  return octets;
}

void Scoreboard::lose(uint64_t number) {
  prediction_.end();
  Record& record = records_.at(number);
  const uint64_t octets = live(record);
  if (record.is(record_flag::kRetransmitted)) {  // the retransmission was lost as well
    retransmitted_octets_ -= octets;
    record.flags &= static_cast<uint16_t>(~record_flag::kRetransmitted);
  }
  if (!record.is(record_flag::kLost)) {
    lost_octets_ += octets;
    record.flags |= record_flag::kLost;
  }
  retransmit_hint_ = std::min(retransmit_hint_, number);
}

void Scoreboard::lose_first_segment() {
  uint64_t n = first();
  do {
    lose(n++);
  } while (n < past_last() && at(n).offset < tcb_.snd_nxt && !at(n).is(record_flag::kSegmentStart));
}

void Scoreboard::lose_all() {
  sacked_.clear();
  fack_ = tcb_.snd_una;
  sacked_octets_ = lost_octets_ = retransmitted_octets_ = reno_sacked_ = lost_again_to_ = 0;
  sacked_segments_ = duplicate_acks_ = hole_ = 0;
  for (uint64_t n = first(); n < past_last(); ++n) {
    Record& record = records_.at(n);
    record.flags &= static_cast<uint16_t>(
        ~(record_flag::kSacked | record_flag::kLost | record_flag::kRetransmitted));
    const uint64_t octets = live(record);
    if (octets == 0) continue;
    // kResent also prevents that a record which was SACKed long ago gives a sample of the RTT.
    record.flags |= record_flag::kLost | record_flag::kResent;
    lost_octets_ += octets;
  }
  retransmit_hint_ = first();
  note_altered(tcb_.snd_nxt);
}

void Scoreboard::undo_losses() {
  for (uint64_t n = first(); n < past_last(); ++n) {
    Record& record = records_.at(n);
    if (!record.is(record_flag::kLost)) continue;
    subtract_marks(record, live(record));
    record.flags &= static_cast<uint16_t>(~(record_flag::kLost | record_flag::kRetransmitted));
  }
}

uint64_t Scoreboard::reno_acked(uint64_t acked, bool partial, uint32_t emss) {
  // A partial ACK covers the retransmitted segment and the data that had arrived behind it.
  const uint64_t covered = acked > hole_ ? acked - hole_ : 0;
  const uint64_t told = std::min(reno_sacked_, partial ? covered : reno_sacked_);
  reno_sacked_ -= told;
  duplicate_acks_ = 0;
  reno_advance_ = static_cast<uint32_t>(acked);
  hole_ = partial ? segment_at(tcb_.snd_una, emss) : 0;
  return told;
}

uint64_t Scoreboard::reno_duplicate(bool counts, uint32_t emss) {
  // A duplicate ACK means that the next segment behind the hole has arrived. Limited transmit (RFC
  // 3042) follows from the smaller pipe. Records can be far smaller than SMSS, and the ACK of one
  // small segment must not allow SMSS octets of other records.
  prediction_.end();
  ++duplicate_acks_;
  if (hole_ == 0) hole_ = segment_at(tcb_.snd_una, emss);
  if (!counts) return 0;
  const uint64_t before = reno_sacked_;
  const uint64_t left = tcb_.flight() - hole_;
  const uint64_t next = segment_at(tcb_.snd_una + hole_ + before, emss);
  reno_sacked_ = std::max(before, std::min(before + next, left));
  return reno_sacked_ - before;
}

void Scoreboard::check_records() const {
  // Only the last record may be unsent.
  RNIC_CHECK(queue_end_ >= tcb_.snd_nxt);
  if (empty()) {
    RNIC_CHECK(queue_end_ == tcb_.snd_una);
    return;
  }
  RNIC_CHECK(front().offset <= tcb_.snd_una);
  RNIC_CHECK(front().end() > tcb_.snd_una);
  uint64_t end = front().offset;
  for (uint64_t n = first(); n < past_last(); ++n) {
    const Record& record = at(n);
    RNIC_CHECK(record.offset == end && record.length != 0);
    end = record.end();
    RNIC_CHECK(end <= tcb_.snd_nxt || n + 1 == past_last());
    // Records with any other flag lie below altered_until_.
    constexpr uint16_t kClean = record_flag::kPush | record_flag::kSegmentStart | record_flag::kFin;
    const bool clean =
        (record.flags & ~(kClean | record_flag::kSacked | record_flag::kLost)) == 0 &&
        record.saved == kNoSaved;
    RNIC_CHECK(clean || end <= altered_until_);
  }
  RNIC_CHECK(end == queue_end_);
}

void Scoreboard::check_sums() const {
  uint64_t sacked = 0;
  uint64_t lost = 0;
  uint64_t retransmitted = 0;
  uint32_t segments = 0;
  for (uint64_t n = first(); n < past_last(); ++n) {
    const Record& record = at(n);
    const uint64_t octets = live(record);
    if (record.is(record_flag::kSacked)) {
      RNIC_CHECK(!record.is(record_flag::kLost | record_flag::kRetransmitted));
      sacked += octets;
      if (record.is(record_flag::kSegmentStart)) ++segments;
    }
    if (record.is(record_flag::kLost)) lost += octets;
    if (record.is(record_flag::kRetransmitted)) {
      RNIC_CHECK(record.is(record_flag::kLost));
      retransmitted += octets;
    }
    const bool waits = record.is(record_flag::kLost) && !record.is(record_flag::kRetransmitted);
    RNIC_CHECK(!waits || octets == 0 || n >= retransmit_hint_);
  }
  RNIC_CHECK(sacked == sacked_octets_);
  RNIC_CHECK(lost == lost_octets_);
  RNIC_CHECK(retransmitted == retransmitted_octets_);
  RNIC_CHECK(segments == sacked_segments_);
  RNIC_CHECK(retransmit_hint_ <= past_last() && altered_until_ <= queue_end_);
}

void Scoreboard::check_sacked() const {
  sacked_.validate();
  const std::span<const base::Range> blocks = sacked_.ranges();
  for (const base::Range& range : blocks) {
    RNIC_CHECK(range.begin >= tcb_.snd_una && range.end <= tcb_.snd_nxt);
  }
  uint64_t fack = tcb_.snd_una;
  auto block = blocks.begin();  // Both lists are in order: one pass goes through both.
  for (uint64_t n = first(); n < past_last(); ++n) {
    const Record& record = at(n);
    const uint64_t from = std::max(record.offset, tcb_.snd_una);
    while (block != blocks.end() && block->end <= from) ++block;
    const bool covered =
        block != blocks.end() && block->begin <= from && record.end() <= block->end;
    // The first record may be acknowledged in part, and the rest of it covered by a SACKed range
    // without the record being flagged.
    RNIC_CHECK(record.is(record_flag::kSacked) ? covered : !covered || n == first());
    if (record.is(record_flag::kSacked)) fack = record.end();
  }
  RNIC_CHECK(std::max(fack_, tcb_.snd_una) == fack);
}

void Scoreboard::check_duplicates() const {
  // With SACK, duplicate ACKs are not counted.
  RNIC_CHECK(!tcb_.sack_ok || (duplicate_acks_ == 0 && reno_sacked_ == 0 && hole_ == 0));
  // The octets that duplicate ACKs stand for are a guess, which may exceed the octets in flight if
  // the network has copied segments. So reno_sacked_ has no bound here.
  RNIC_CHECK(hole_ <= tcb_.flight());
  RNIC_CHECK(reno_advance_ <= tcb_.snd_una && lost_again_to_ <= queue_end_);
}

void Scoreboard::validate() const {
  records_.validate();
  check_records();
  check_sums();
  check_sacked();
  check_duplicates();
}

}  // namespace rnic::tcp
