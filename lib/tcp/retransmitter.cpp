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
    const Record& r = board.at(n);
    // The segment keeps its first boundaries: whole records up to the start of the next segment.
    if (n != number &&
        (r.is(record_flag::kSegmentStart) || r.is(record_flag::kSacked) || r.saved != kNoSaved ||
         (r.flags & kMarks) != marks || (r.length > emss - packed && !r.is(record_flag::kFin)))) {
      break;
    }
    if (r.is(record_flag::kFin)) {
      flags |= flag::kFin;
      ++n;
      break;
    }
    llp::Frame frame(payload + packed, r.length);
    const bool there = core_.binding().user->rebuild(r.tag, r.offset, r.length, frame);
    if (core_.life.over() || !there) {
      writer_.cancel(slot);
      return Attempt::Broken;
    }
    RNIC_CHECK(frame.length() == r.length);
    packed += r.length;
    if (r.is(record_flag::kPush)) flags |= flag::kPsh;
  }
  writer_.finish(slot, offset, packed, flags, now);
  for (uint64_t k = number; k < n; ++k) flight_.resent(k, now);
  count(packed);
  return Attempt::Sent;
}

Attempt Retransmitter::keep_copy(uint64_t number) {
  const Record& r = flight_.board().at(number);
  if (r.saved != kNoSaved) return Attempt::Sent;
  RNIC_CHECK(r.length <= core_.shared.scratch.size());
  if (!core_.shared.saved.fits(r.length)) {
    ++core_.shared.counters.record_limit_waits;
    return Attempt::Starved;
  }
  llp::Frame frame(core_.shared.scratch.data(), r.length);
  const bool there = core_.binding().user->rebuild(r.tag, r.offset, r.length, frame);
  if (core_.life.over() || !there) return Attempt::Broken;
  RNIC_CHECK(frame.length() == r.length);
  flight_.keep(number, core_.shared.saved.save(frame.written()));
  return Attempt::Sent;
}

Attempt Retransmitter::send_cut(uint64_t number, uint32_t emss, base::Now now) {
  if (const Attempt kept = keep_copy(number); kept != Attempt::Sent) return kept;
  const Record& r = flight_.board().at(number);
  const uint64_t begin_at = std::max(r.offset, core_.tcb.snd_una);
  const uint64_t end = std::min(r.end(), core_.tcb.snd_nxt);
  uint64_t next = progress_.resume({begin_at, end});
  flight_.cut(number);
  while (next < end) {
    const base::Range gap = flight_.board().sacked().first_gap({next, end});
    if (gap.empty()) break;
    TxSlot slot;
    if (!writer_.begin(emss, slot, now)) return Attempt::PortFull;
    auto length = static_cast<uint32_t>(std::min<uint64_t>(gap.size(), emss));
    uint8_t* payload = writer_.payload_of(slot);
    core_.shared.saved.copy(r.saved, static_cast<uint32_t>(gap.begin - r.offset), length, payload);
    if (length != r.length) length = core_.binding().user->cut({payload, length});
    const bool push = r.is(record_flag::kPush) && gap.begin + length == r.end();
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
