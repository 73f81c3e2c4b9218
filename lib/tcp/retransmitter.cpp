#include "tcp/retransmitter.hpp"

#include <algorithm>

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void Retransmitter::count(uint32_t octets) {
  ++core_.shared.counters.retransmitted_segments;
  core_.shared.counters.retransmitted_octets += octets;
  flight_.note_resent();
}

Attempt Retransmitter::send(uint64_t number, uint32_t emss, base::Now now) {
  const Record& first = flight_.board().at(number);
  const bool too_long = first.length > emss && !first.is(record_flag::kFin);
  const bool in_part = first.saved != kNoSaved || first.offset < core_.tcb.snd_una;
  return too_long || in_part ? send_cut(number, emss, now) : send_whole(number, emss, now);
}

Attempt Retransmitter::send_whole(uint64_t number, uint32_t emss, base::Now now) {
  const Scoreboard& board = flight_.board();
  constexpr uint16_t kMarks = record_flag::kLost | record_flag::kRetransmitted;
  const Record& first = board.at(number);
  const uint16_t marks = first.flags & kMarks;
  TxSlot slot;
  if (!writer_.begin(emss, slot, now)) return Attempt::PortFull;
  uint8_t* payload = writer_.payload_of(slot);
  const uint64_t offset = first.offset;
  uint32_t packed = 0;
  uint8_t flags = flag::kAck;
  uint64_t n = number;
  for (; n < board.past_last(); ++n) {
    const Record& record = board.at(n);
    // The segment keeps its first boundaries: whole records up to the start of the next segment.
    if (n != number && (record.is(record_flag::kSegmentStart) || record.is(record_flag::kSacked) ||
                        record.saved != kNoSaved || (record.flags & kMarks) != marks ||
                        (record.length > emss - packed && !record.is(record_flag::kFin)))) {
      break;
    }
    if (record.is(record_flag::kFin)) {
      flags |= flag::kFin;
      ++n;
      break;
    }
    llp::Frame frame(payload + packed, record.length);
    const bool there =
        core_.binding().user->rebuild(record.tag, record.offset, record.length, frame);
    if (core_.life.over() || !there) {
      writer_.cancel(slot);
      return Attempt::Broken;
    }
    RNIC_CHECK(frame.length() == record.length);
    packed += record.length;
    if (record.is(record_flag::kPush)) flags |= flag::kPsh;
  }
  writer_.finish(slot, offset, packed, flags, now);
  for (uint64_t k = number; k < n; ++k) flight_.resent(k, now);
  count(packed);
  return Attempt::Sent;
}

Attempt Retransmitter::keep_copy(uint64_t number) {
  const Record& record = flight_.board().at(number);
  if (record.saved != kNoSaved) return Attempt::Sent;
  RNIC_CHECK(record.length <= core_.shared.scratch.size());
  if (!core_.shared.saved.fits(record.length)) {
    ++core_.shared.counters.record_limit_waits;
    return Attempt::Starved;
  }
  llp::Frame frame(core_.shared.scratch.data(), record.length);
  const bool there = core_.binding().user->rebuild(record.tag, record.offset, record.length, frame);
  if (core_.life.over() || !there) return Attempt::Broken;
  RNIC_CHECK(frame.length() == record.length);
  flight_.keep(number, core_.shared.saved.save(frame.written()));
  return Attempt::Sent;
}

Attempt Retransmitter::send_cut(uint64_t number, uint32_t emss, base::Now now) {
  if (const Attempt kept = keep_copy(number); kept != Attempt::Sent) return kept;
  const Record& record = flight_.board().at(number);
  const uint64_t begin_at = std::max(record.offset, core_.tcb.snd_una);
  const uint64_t end = std::min(record.end(), core_.tcb.snd_nxt);
  uint64_t next = progress_.resume({begin_at, end});
  flight_.cut(number);
  while (next < end) {
    const base::Range gap = flight_.board().sacked().first_gap({next, end});
    if (gap.empty()) break;
    TxSlot slot;
    if (!writer_.begin(emss, slot, now)) return Attempt::PortFull;
    auto length = static_cast<uint32_t>(std::min<uint64_t>(gap.size(), emss));
    uint8_t* payload = writer_.payload_of(slot);
    core_.shared.saved.copy(record.saved, static_cast<uint32_t>(gap.begin - record.offset), length,
                            payload);
    if (length != record.length) length = core_.binding().user->cut({payload, length});
    const bool push = record.is(record_flag::kPush) && gap.begin + length == record.end();
    const auto flags = static_cast<uint8_t>(flag::kAck | (push ? flag::kPsh : 0));
    writer_.finish(slot, gap.begin, length, flags, now);
    count(length);
    next = gap.begin + length;
    progress_.sent_to(next);
  }
  progress_.forget();
  flight_.resent(number, now);
  return Attempt::Sent;
}

}  // namespace rnic::tcp
