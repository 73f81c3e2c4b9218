#include "mpa/drop_policy.hpp"

#include <algorithm>

#include "base/endian.hpp"

namespace rnic::mpa {

using framing::PduError;

namespace {

/// A segment may be a piece of an FPDU whose octets happen to look like lengths that fit. In
/// segments of fewer octets such lengths prove nothing.
constexpr uint64_t kConvincing = 64;

}  // namespace

framing::Refusal DropPolicy::refuses(const framing::Arrivals& arrivals,
                                     const framing::LocatedSegment& segment,
                                     base::ByteView octets) {
  if (!enabled_) return framing::Refusal::None;
  const Case c{arrivals, segment, segment.range, octets};
  if (segment.bad != framing::PduError::None) {
    return segment.droppable ? drop_bad(c, false) : framing::Refusal::None;
  }
  if (!reader_.crc()) return framing::Refusal::None;
  switch (judge(c)) {
    case Judgement::Sound: return framing::Refusal::None;
    case Judgement::Bad: return drop_bad(c, false);
    case Judgement::BadPiece: return drop_bad(c, true);
    case Judgement::Doubtful: break;
  }
  const bool dropped = suspicions_.drop(segment.range, octets);
  if (!dropped) return framing::Refusal::None;
  ++counters_.suspicious_drops;
  return framing::Refusal::Suspected;
}

/// Judges the octets that locate() has not proven: those before the first FPDU that is known to
/// begin in the segment, FPDUs beyond those that it lists, and an FPDU that runs past the end.
DropPolicy::Judgement DropPolicy::judge(const Case& c) {
  if (c.range.begin < c.segment.front_end) {
    const Judgement front = judge_front(c);
    if (front != Judgement::Sound) return front;
  }
  const uint64_t next = c.segment.next;
  if (next == framing::kUnlocated || next == c.range.end) return Judgement::Sound;
  if (c.segment.cut) return judge_started(c, next);
  const Walk rest = walk(c, {next, c.range.end});
  if (rest.bad != 0) return Judgement::Bad;
  if (rest.tiles) return Judgement::Sound;
  return judge_started(c, rest.at);
}

DropPolicy::Judgement DropPolicy::judge_front(const Case& c) {
  const uint64_t started = started_before(c);
  return started == framing::kUnlocated ? judge_unlocated(c) : judge_started(c, started);
}

/// The begin of the FPDU whose first octets are held in front of the segment; kUnlocated when there
/// is none, or its begin is not known.
uint64_t DropPolicy::started_before(const Case& c) const {
  const framing::HeldOctets& held = c.arrivals.held();
  uint64_t started = framing::kUnlocated;
  if (c.arrivals.in_order(c.range)) {
    started = c.arrivals.place_next();
  } else if (const uint32_t left = held.ending_at(c.range.begin); left != framing::kNone) {
    started = held.node(left).next_pdu;
  }
  // Whole FPDUs that could not be placed may be held in front of that FPDU.
  for (uint32_t i = 0; i < framing::kLocatedMax && started < framing::kNotLocatable; ++i) {
    framing::PduSpan span;
    if (!reader_.find(held, started, span) || span.end > c.range.begin) return started;
    if (span.end == c.range.begin) return framing::kUnlocated;
    started = span.end;
  }
  return framing::kUnlocated;
}

/// An FPDU may begin at `offset`: each one is a multiple of four octets long, and a marker in front
/// of ULPDU_Length belongs to the FPDU (RFC 5044 s.4.1, s.4.3).
bool DropPolicy::may_begin(uint64_t offset) const {
  const MarkerGrid& grid = reader_.grid();
  if ((offset - grid.start()) % 4 != 0) return false;
  return offset == grid.start() || !grid.at(offset - wire::kMpaMarkerSize);
}

/// Judges the front of a segment in which no FPDU is located. If the sender is aligned, the first
/// FPDU begins at the first octet, and the last one ends with the segment or where a located one
/// begins.
DropPolicy::Judgement DropPolicy::judge_unlocated(const Case& c) {
  const base::Range front{c.range.begin, c.segment.front_end};
  Walk aligned = walk(c, front);
  if (aligned.tiles && aligned.bad == 0) return Judgement::Sound;
  if (front.end != c.range.end) aligned = walk(c, c.range);
  if (aligned.tiles && aligned.bad == 1 && may_begin(c.range.begin)) {
    // All lengths fit and one CRC is wrong: a piece of an FPDU would look like this only by chance.
    const bool convincing = c.range.size() >= kConvincing && !suspicions_.exhausted();
    if (aligned.good != 0 || convincing) return Judgement::BadPiece;
  }
  if (!aligned.tiles && aligned.bad == 0) {
    const Judgement last = judge_started(c, aligned.at);
    if (last == Judgement::Sound || aligned.good != 0) return last;
  }
  return Judgement::Doubtful;
}

/// Judges an FPDU that begins in the segment or in front of it and may end behind the segment. When
/// all its other octets are held, its CRC decides.
DropPolicy::Judgement DropPolicy::judge_started(const Case& c, uint64_t begin) {
  const framing::HeldOctets& held = c.arrivals.held();
  framing::PduSpan span;
  if (!reader_.find(held, begin, c.range, c.octets, span)) return Judgement::Doubtful;
  const uint64_t from = std::max(begin, c.range.begin);
  const uint64_t to = std::min(span.end, c.range.end);
  if (span.end > c.range.end) {
    const uint32_t right = held.containing(c.range.end);
    if (right == framing::kNone || held.node(right).range.end < span.end) {
      return Judgement::Doubtful;
    }
  }
  uint8_t* whole = store_.scratch();
  if (begin < from) held.copy({begin, from}, whole);
  std::copy_n(c.octets.begin() + static_cast<ptrdiff_t>(from - c.range.begin), to - from,
              whole + (from - begin));
  if (to < span.end) held.copy({to, span.end}, whole + (to - begin));
  if (reader_.verify(span, whole) != PduError::None) return Judgement::BadPiece;
  proven_ = {span.begin, span.end};
  return Judgement::Sound;
}

DropPolicy::Walk DropPolicy::walk(const Case& c, base::Range part) const {
  const MarkerGrid& grid = reader_.grid();
  Walk result{.at = part.begin};
  while (result.at != part.end) {
    const uint64_t header = fpdu_header(grid, result.at);
    if (header + wire::kMpaLengthSize > part.end) return result;
    const uint8_t* length = c.octets.data() + (header - c.range.begin);
    const framing::PduSpan span = fpdu_span(grid, result.at, base::load_be16(length));
    if (span.end > part.end) return result;
    const uint8_t* data = c.octets.data() + (span.begin - c.range.begin);
    ++(reader_.verify(span, data) == PduError::None ? result.good : result.bad);
    result.at = span.end;
  }
  result.tiles = true;
  return result;
}

/// Finds the entry of a segment, or takes an unused one or the one farthest ahead. The entry of the
/// segment that is next in order is never given to another segment: its count has to reach the
/// limit, or the stream would never go on.
DropPolicy::DropCount& DropPolicy::drops_of(uint64_t begin, uint64_t ordered) {
  DropCount* unused = &drop_counts_[0];
  for (DropCount& entry : drop_counts_) {
    if (entry.begin == begin) return entry;
    if (entry.begin < ordered) entry = {};
    if (entry.begin > unused->begin) unused = &entry;
  }
  *unused = {begin};
  return *unused;
}

/// Drops a segment with a wrong CRC, within the limit. \param piece the CRC may be wrong although
/// this segment is right. This is assumed when the same octets come again, since damage does not
/// hit the same bit twice.
framing::Refusal DropPolicy::drop_bad(const Case& c, bool piece) {
  DropCount& count = drops_of(c.range.begin, c.arrivals.ordered());
  const uint32_t checksum = piece ? checksum_of(c.octets) : 0;
  if (count.drops >= limit_) return framing::Refusal::None;
  if (piece && count.drops != 0 && count.checksum == checksum) return framing::Refusal::None;
  ++count.drops;
  count.checksum = checksum;
  ++counters_.crc_drops;
  return framing::Refusal::Wrong;
}

}  // namespace rnic::mpa
