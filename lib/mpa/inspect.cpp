// Step 1: what may be committed. RFC 5044 s.8, silent drop: an octet is committed when its FPDU's
// CRC has proven it, or when there is no way to prove it before.
#include <algorithm>

#include "base/endian.hpp"
#include "base/sabotage.hpp"
#include "mpa/fpdu_rx.hpp"

namespace rnic::mpa {

using llp::FramingError;

namespace {

/// A segment that only its own lengths say to be aligned, and that is shorter, may be a piece whose
/// octets happen to look like a length.
constexpr uint64_t kConvincing = 64;

}  // namespace

llp::InspectVerdict FpduReceiver::inspect(base::Range range, base::ByteView octets, base::Now now) {
  if (stopped_) return llp::InspectVerdict::Accept;
  framing::LocatedSegment& segment = store_.segment();
  locate(range, octets, segment);
  proven_ = {framing::kUnlocated, framing::kUnlocated};
  if (!can_drop_) return llp::InspectVerdict::Accept;
  const bool drop = drops(segment, octets, now);
  if (!drop && has_room(segment)) return llp::InspectVerdict::Accept;
  segment.owner = nullptr;
  if (drop) return llp::InspectVerdict::Drop;
  ++counters_.hold_refused;
  return llp::InspectVerdict::NoRoom;
}

bool FpduReceiver::drops(const framing::LocatedSegment& segment, base::ByteView octets,
                         base::Now now) {
  if (!config_.silent_drop) return false;
  if (segment.bad != FramingError::None) {
    return segment.droppable && drop_bad(segment.range, octets, false, now);
  }
  if (!crc_) return false;
  switch (judge(segment, octets)) {
    case Judgement::Sound: return false;
    case Judgement::Bad: return drop_bad(segment.range, octets, false, now);
    case Judgement::BadPiece: return drop_bad(segment.range, octets, true, now);
    case Judgement::Doubtful: break;
  }
  const bool dropped = suspicions_.drop(segment.range, octets);
  if (!dropped && !base::sabotaged(base::Defect::CutsNeverBelieved)) return false;
  ++counters_.suspicious_drops;
  trace(TraceKind::Suspected, segment.range, now);
  return true;
}

/// What locate() has not proven: octets before the first FPDU that is known to begin in the
/// segment, FPDUs beyond those that it lists, and one that runs past the end.
FpduReceiver::Judgement FpduReceiver::judge(const framing::LocatedSegment& segment,
                                            base::ByteView octets) {
  const base::Range range = segment.range;
  if (range.begin < segment.front_end) {
    const Judgement front = judge_front(segment, octets);
    if (front != Judgement::Sound) return front;
  }
  if (segment.next == framing::kUnlocated || segment.next == range.end) return Judgement::Sound;
  if (segment.cut) return judge_started(segment.next, range, octets);
  const Walk rest = walk({segment.next, range.end}, range, octets);
  if (rest.bad != 0) return Judgement::Bad;
  if (rest.tiles) return Judgement::Sound;
  return judge_started(rest.at, range, octets);
}

FpduReceiver::Judgement FpduReceiver::judge_front(const framing::LocatedSegment& segment,
                                                  base::ByteView octets) {
  const uint64_t started = started_before(segment.range);
  if (started == framing::kUnlocated) return judge_unlocated(segment, octets);
  return judge_started(started, segment.range, octets);
}

/// Where the FPDU began that is held up to the segment and goes on in it; kUnlocated: there is
/// none, or nobody knows.
uint64_t FpduReceiver::started_before(base::Range range) const {
  uint64_t started = framing::kUnlocated;
  if (in_order(range)) {
    started = place_next_;
  } else if (const uint32_t left = held_.ending_at(range.begin); left != framing::kNone) {
    started = held_.node(left).next_pdu;
  }
  // What could not be placed for want of room is held whole before it.
  for (uint32_t i = 0; i < framing::kLocatedMax && started < framing::kNotLocatable; ++i) {
    uint64_t end = 0;
    if (!end_of_started(started, {}, {}, end) || end > range.begin) return started;
    if (end == range.begin) return framing::kUnlocated;
    started = end;
  }
  return framing::kUnlocated;
}

/// An FPDU may begin there: all of them are multiples of four octets long, and a marker that stands
/// before ULPDU_Length belongs to the FPDU (RFC 5044 s.4.1, s.4.3).
bool FpduReceiver::may_begin(uint64_t offset) const {
  if ((offset - grid_.start()) % 4 != 0) return false;
  return offset == grid_.start() || !grid_.at(offset - wire::kMpaMarkerSize);
}

/// Nothing tells where an FPDU begins in the front. As an aligned sender makes segments, one begins
/// at the first octet, and the last ends with the segment or where a located one begins.
FpduReceiver::Judgement FpduReceiver::judge_unlocated(const framing::LocatedSegment& segment,
                                                      base::ByteView octets) {
  const base::Range range = segment.range;
  const base::Range front{range.begin, segment.front_end};
  if (base::sabotaged(base::Defect::FrontUnproven)) return Judgement::Sound;
  Walk aligned = walk(front, range, octets);
  if (aligned.tiles && aligned.bad == 0) return Judgement::Sound;
  if (front.end != range.end) aligned = walk(range, range, octets);
  if (aligned.tiles && aligned.bad == 1 && may_begin(range.begin)) {
    // All lengths fit and one CRC does not. A piece of an FPDU looks so by chance only.
    const bool convincing = range.size() >= kConvincing && !suspicions_.exhausted();
    if (aligned.good != 0 || convincing) return Judgement::BadPiece;
  }
  if (!aligned.tiles && aligned.bad == 0) {
    const Judgement last = judge_started(aligned.at, range, octets);
    if (last == Judgement::Sound || aligned.good != 0) return last;
  }
  return Judgement::Doubtful;
}

/// An FPDU that begins in the segment or is held before it, and of which other octets may be held
/// behind it. With all of them there its CRC tells.
FpduReceiver::Judgement FpduReceiver::judge_started(uint64_t begin, base::Range range,
                                                    base::ByteView octets) {
  framing::PduSpan span;
  if (!started_span(begin, range, octets, span)) return Judgement::Doubtful;
  const uint64_t from = std::max(begin, range.begin);
  const uint64_t to = std::min(span.end, range.end);
  if (span.end > range.end) {
    const uint32_t right = held_.containing(range.end);
    if (right == framing::kNone || held_.node(right).range.end < span.end)
      return Judgement::Doubtful;
  }
  uint8_t* whole = store_.scratch();
  if (begin < from) held_.copy({begin, from}, whole);
  std::copy_n(octets.begin() + static_cast<ptrdiff_t>(from - range.begin), to - from,
              whole + (from - begin));
  if (to < span.end) held_.copy({to, span.end}, whole + (to - begin));
  if (verify(span, whole) != FramingError::None) return Judgement::BadPiece;
  proven_ = {span.begin, span.end};
  return Judgement::Sound;
}

FpduReceiver::Walk FpduReceiver::walk(base::Range part, base::Range range,
                                      base::ByteView octets) const {
  Walk result{.at = part.begin};
  while (result.at != part.end) {
    const uint64_t header = fpdu_header(grid_, result.at);
    if (header + wire::kMpaLengthSize > part.end) return result;
    const framing::PduSpan span =
        fpdu_span(grid_, result.at, base::load_be16(octets.data() + (header - range.begin)));
    if (span.end > part.end) return result;
    const uint8_t* data = octets.data() + (span.begin - range.begin);
    ++(verify(span, data) == FramingError::None ? result.good : result.bad);
    result.at = span.end;
  }
  result.tiles = true;
  return result;
}

/// The count of what is next in order is never given up for another: it has to come to its end.
FpduReceiver::DropCount& FpduReceiver::drops_of(uint64_t begin) {
  DropCount* unused = &drop_counts_[0];
  for (DropCount& entry : drop_counts_) {
    if (entry.begin == begin) return entry;
    if (entry.begin < ordered_) entry = {};
    if (entry.begin > unused->begin) unused = &entry;
  }
  *unused = {begin};
  return *unused;
}

/// \param piece the segment may be right and something else wrong: it is, when the same octets come
/// again.
bool FpduReceiver::drop_bad(base::Range range, base::ByteView octets, bool piece, base::Now now) {
  DropCount& count = drops_of(range.begin);
  const uint32_t print = piece ? print_of(octets) : 0;
  if (count.drops >= config_.drop_limit) return false;
  if (piece && count.drops != 0 && count.print == print) return false;
  ++count.drops;
  count.print = print;
  ++counters_.crc_drops;
  trace(TraceKind::CrcDropped, range, now);
  return true;
}

}  // namespace rnic::mpa
