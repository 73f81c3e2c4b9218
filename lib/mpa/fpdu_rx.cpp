#include "mpa/fpdu_rx.hpp"

#include "base/check.hpp"
#include "base/endian.hpp"
#include "base/sabotage.hpp"

namespace rnic::mpa {

using llp::FramingError;

FpduReceiver::FpduReceiver(const Config& config, framing::HoldStore& store, Counters& counters,
                           FirstFpduListener& owner)
    : config_(config),
      store_(store),
      counters_(counters),
      owner_(owner),
      held_(store, config.hold_limit),
      placed_(store, config.early_limit) {}

void FpduReceiver::attach(llp::Stream* stream) {
  stream_ = stream;
  can_drop_ = stream != nullptr && stream->traits().can_drop;
}

void FpduReceiver::start(uint64_t offset, const framing::Negotiated& agreed) {
  grid_ = MarkerGrid(agreed.markers_receive, offset);
  crc_ = agreed.crc;
  arrived_ = std::max(arrived_, offset);
  ordered_ = place_next_ = deliver_next_ = offset;
}

void FpduReceiver::discard() {
  stopped_ = true;
  placed_.clear();
  held_.clear();
  if (held_told_ != 0 && stream_ != nullptr) stream_->room_grew();
  held_told_ = 0;
}

uint32_t FpduReceiver::take_back(uint64_t offset, uint8_t* dst, uint32_t n) {
  const uint32_t node = held_.containing(offset);
  if (node == framing::kNone) return 0;
  const uint64_t end = std::min<uint64_t>(held_.node(node).range.end, offset + n);
  held_.copy({offset, end}, dst);
  held_.erase(node, {offset, end}, framing::kUnlocated);
  return static_cast<uint32_t>(end - offset);
}

// --- room ---

/// In order the front is given back before the rest is held. Out of order everything may have to be
/// held: the user may say so, or the list of placed FPDUs may be full.
bool FpduReceiver::has_room(const framing::LocatedSegment& segment) {
  const base::Range range = segment.range;
  const framing::SegmentParts::Room room = parts_.with(range, in_order(range));
  if (!in_order(range)) return held_.has_room(room.range, false, room.parts);
  if (segment.front_end == range.begin && segment.next == range.end) return true;
  if (!held_.has_room({range.begin, segment.front_end}, true)) return false;
  if (segment.next == framing::kUnlocated || segment.bad != FramingError::None) return true;
  return held_.has_room({segment.next, range.end}, true);
}

/// The rest of a started FPDU, whole FPDUs, and what there is room for of the one behind. The
/// reserve is not for that one while the others can go on without it: so it comes back, and
/// another session has its turn.
uint32_t FpduReceiver::takes(base::Range range, base::ByteView octets) {
  const auto all = static_cast<uint32_t>(octets.size());
  if (stopped_ || error_at_next_ != FramingError::None) return all;
  framing::LocatedSegment& segment = store_.segment();
  locate(range, octets, segment);
  const base::Range front{range.begin, segment.front_end};
  const uint32_t front_room = held_.room_in(front, true);
  if (front_room < front.size()) return front_room;
  if (segment.next == framing::kUnlocated || segment.bad != FramingError::None) return all;
  const auto whole = static_cast<uint32_t>(segment.next - range.begin);
  return whole + held_.room_in({segment.next, range.end}, whole == 0);
}

// --- step 3: place ---

void FpduReceiver::place(base::Range range, base::ByteView octets, base::Now now) {
  const bool ordered_segment = in_order(range);
  framing::LocatedSegment& segment = store_.segment();
  if (stopped_ || (error_at_next_ != FramingError::None && ordered_segment)) {
    counters_.discarded_octets += range.size();
  } else {
    if (segment.owner != this || segment.range != range) locate(range, octets, segment);
    segment.owner = nullptr;
    if (ordered_segment) {
      place_in_order(segment, octets, now);
    } else {
      place_early(segment, octets, now);
    }
  }
  if (ordered_segment) arrived_ = range.end;
}

void FpduReceiver::place_in_order(const framing::LocatedSegment& segment, base::ByteView octets,
                                  base::Now now) {
  const base::Range range = segment.range;
  const auto cut = [&](uint64_t from, uint64_t to) {
    return octets.subspan(from - range.begin, to - from);
  };
  if (range.begin < segment.front_end) {
    hold({range.begin, segment.front_end}, cut(range.begin, segment.front_end), true,
         framing::kUnlocated, now);
    if (stopped_ || segment.next == framing::kUnlocated) return;
    if (place_held_head(now) != Head::Placed) {
      counters_.discarded_octets += range.end - segment.front_end;
      return;
    }
  }
  for (uint32_t i = 0; i < segment.count && !stopped_; ++i) {
    const framing::PduSpan& span = segment.whole[i];
    bool limited = false;
    if (!place_whole(span, octets.data() + (span.begin - range.begin), true, now, limited)) {
      hold({span.begin, range.end}, cut(span.begin, range.end), true, span.begin, now);
      return;
    }
    place_next_ = span.end;
    counters_.placed_in_order_octets += span.size();
  }
  if (stopped_) return;
  if (segment.count != 0) {
    trace(TraceKind::InOrder, {segment.front_end, segment.next}, now);
  }
  if (segment.bad != FramingError::None) {
    error_at_next_ = segment.bad;
    counters_.discarded_octets += range.end - segment.next;
  } else if (segment.next < range.end) {
    hold({segment.next, range.end}, cut(segment.next, range.end), true, segment.next, now);
  }
}

void FpduReceiver::place_early(const framing::LocatedSegment& segment, base::ByteView octets,
                               base::Now now) {
  const base::Range range = segment.range;
  const auto keep_part = [&](uint64_t from, uint64_t to, uint64_t next_pdu) {
    if (from >= to) return;
    const uint32_t node =
        hold({from, to}, octets.subspan(from - range.begin, to - from), false, next_pdu, now);
    scan(node, now);
  };
  keep_part(range.begin, segment.front_end, framing::kUnlocated);
  for (uint32_t i = 0; i < segment.count && !stopped_; ++i) {
    const framing::PduSpan& span = segment.whole[i];
    bool limited = false;
    if (!place_whole(span, octets.data() + (span.begin - range.begin), false, now, limited)) {
      keep_part(span.begin, range.end, limited ? framing::kNotLocatable : span.end);
      return;
    }
  }
  if (stopped_ || segment.next == framing::kUnlocated) return;
  if (segment.next < range.end) {
    keep_part(segment.next, range.end,
              segment.bad == FramingError::None ? segment.next : framing::kNotLocatable);
  } else {
    continue_behind(range.end, now);
  }
}

/// One proven FPDU to the user. False: it must be held (the user says so; `limited`: the list is
/// full).
bool FpduReceiver::place_whole(const framing::PduSpan& span, const uint8_t* data, bool in_order,
                               base::Now now, bool& limited) {
  limited = !placed_.has_room(!in_order);
  if (limited) return false;
  const llp::UlpduView ulpdu = view(span, data);
  const llp::PlaceVerdict verdict = user_->place_ulpdu(ulpdu, in_order, now);
  if (stopped_) return true;
  if (!in_order && verdict != llp::PlaceVerdict::Placed) return false;
  suspicions_.placed({span.begin, span.end}, data);
  framing::PlacedPdu& entry = placed_.insert(span, !in_order);
  [[maybe_unused]] const uint32_t kept =
      ulpdu.copy_prefix(entry.header.data(), llp::kUlpduHeaderMax);
  if (in_order) return true;
  counters_.placed_early_octets += span.size();
  trace(TraceKind::PlacedEarly, {span.begin, span.end}, now);
  if (base::sabotaged(base::Defect::DeliverEarly)) {
    entry.delivered = true;
    user_->deliver_ulpdu({entry.header.data(), kept}, span.ulpdu_length, now);
  }
  return true;
}

uint32_t FpduReceiver::hold(base::Range range, base::ByteView octets, bool in_order,
                            uint64_t next_pdu, base::Now now) {
  if (base::sabotaged(base::Defect::LostHold) && !held_.empty()) return framing::kNone;
  const uint32_t node = held_.add(range, octets, in_order, next_pdu);
  if (node == framing::kNone) {
    // Only over a transport that cannot drop: inspect() found room otherwise.
    ++counters_.hold_refused;
    discard();
    if (stream_ != nullptr) stream_->abort();
    return framing::kNone;
  }
  counters_.held_octets += range.size();
  held_told_ = std::max(held_told_, held_.octets());
  trace(TraceKind::Held, range, now);
  return node;
}

/// Places what a held range out of order has whole, from its first located FPDU on.
void FpduReceiver::scan(uint32_t node, base::Now now) {
  if (!config_.out_of_order) return;
  while (node != framing::kNone && !stopped_) {
    framing::HeldRange& held = held_.node(node);
    const base::Range range = held.range;
    if (held.next_pdu == framing::kUnlocated) held.next_pdu = locate_held(range);
    if (held.next_pdu >= framing::kNotLocatable) return;
    uint64_t end = 0;
    if (!end_of_started(held.next_pdu, {}, {}, end) || end > range.end) return;
    if (!held_.can_split() || !placed_.has_room(true)) return;
    const framing::PduSpan span = held_span(held.next_pdu);
    const uint8_t* data = held_.contiguous({span.begin, span.end});
    if (!proven(span) && verify(span, data) != FramingError::None) {
      held.next_pdu = framing::kNotLocatable;  // judged when the order reaches it
      return;
    }
    bool limited = false;
    if (!place_whole(span, data, false, now, limited)) {
      held.next_pdu = span.end;
    } else if (!stopped_) {
      node = held_.erase(node, {span.begin, span.end}, span.end);
    }
  }
}

/// First known FPDU start in a held range: behind a proven FPDU, or by a marker.
uint64_t FpduReceiver::locate_held(base::Range range) const {
  if (placed_.ends_at(range.begin)) return range.begin;
  if (!grid_.on()) return framing::kUnlocated;
  for (uint64_t marker = grid_.next(range.begin); marker + wire::kMpaMarkerSize <= range.end;
       marker += wire::kMpaMarkerInterval) {
    std::array<uint8_t, wire::kMpaMarkerSize> octets;
    held_.copy({marker, marker + octets.size()}, octets.data());
    const uint64_t begin = marker_target(marker, octets.data());
    if (begin == framing::kUnlocated) return framing::kNotLocatable;
    if (begin >= range.begin) return begin;
  }
  return framing::kUnlocated;
}

framing::PduSpan FpduReceiver::held_span(uint64_t begin) const {
  const uint64_t header = fpdu_header(grid_, begin);
  const uint32_t length = static_cast<uint32_t>(held_.octet(header)) << 8 | held_.octet(header + 1);
  return fpdu_span(grid_, begin, length);
}

/// A proven FPDU ends at `offset`: what is held behind it is located now.
void FpduReceiver::continue_behind(uint64_t offset, base::Now now) {
  const uint32_t node = held_.beginning_at(offset);
  if (node == framing::kNone) return;
  if (held_.node(node).next_pdu == framing::kUnlocated) held_.node(node).next_pdu = offset;
  scan(node, now);
}

// --- step 4: ordered ---

void FpduReceiver::ordered(uint64_t offset, base::Now now) {
  const uint64_t from = ordered_;
  arrived_ = std::max(arrived_, offset);
  ordered_ = offset;
  if (stopped_) return;
  drain(offset, now);
  if (stopped_) return;
  if (held_.octets() < held_told_ && stream_ != nullptr) stream_->room_grew();
  held_told_ = held_.octets();
  trace(TraceKind::Delivered, {from, offset}, now);
}

void FpduReceiver::drain(uint64_t offset, base::Now now) {
  while (!stopped_) {
    framing::PlacedPdu* front = placed_.front();
    if (front != nullptr && front->begin < deliver_next_) {
      return raise(FramingError::MarkerMismatch, now);  // MPA-8-04: the gap closed elsewhere
    }
    if (front != nullptr && front->begin == deliver_next_ && front->end <= offset) {
      deliver(*front, now);
      continue;
    }
    if (error_at_next_ != FramingError::None) return raise(error_at_next_, now);
    if (place_next_ >= offset) return;
    switch (place_held_head(now)) {
      case Head::Placed: break;
      case Head::Incomplete: return;
      case Head::Bad: return raise(error_at_next_, now);
    }
  }
}

/// The FPDU at the delivery point, from held octets.
FpduReceiver::Head FpduReceiver::place_held_head(base::Now now) {
  const uint32_t node = held_.containing(place_next_);
  uint64_t end = 0;
  if (node == framing::kNone || !end_of_started(place_next_, {}, {}, end)) return Head::Incomplete;
  if (placed_.first_begin_from(place_next_) < end) {
    error_at_next_ = FramingError::MarkerMismatch;  // it would reach over a proven FPDU
    return Head::Bad;
  }
  if (end > held_.node(node).range.end) return Head::Incomplete;
  const framing::PduSpan span = held_span(place_next_);
  const uint8_t* data = held_.contiguous({span.begin, span.end});
  if (!proven(span)) error_at_next_ = verify(span, data);
  if (error_at_next_ != FramingError::None) return Head::Bad;
  bool limited = false;
  if (!place_whole(span, data, true, now, limited)) return Head::Incomplete;
  if (stopped_) return Head::Placed;
  held_.erase(node, {span.begin, span.end}, span.end);
  place_next_ = span.end;
  return Head::Placed;
}

void FpduReceiver::deliver(framing::PlacedPdu& entry, base::Now now) {
  deliver_next_ = entry.end;
  place_next_ = std::max(place_next_, deliver_next_);
  ++counters_.fpdus_in;
  if (!first_seen_) {
    first_seen_ = true;
    owner_.first_fpdu();
  }
  const base::ByteView header(entry.header.data(),
                              std::min(entry.ulpdu_length, llp::kUlpduHeaderMax));
  if (!stopped_ && !entry.delivered) user_->deliver_ulpdu(header, entry.ulpdu_length, now);
  if (!stopped_ && entry.early && base::sabotaged(base::Defect::DuplicateDelivery)) {
    user_->deliver_ulpdu(header, entry.ulpdu_length, now);
  }
  if (!stopped_) placed_.pop_front();
}

/// RFC 5044 s.8: after an error nothing more goes up; TCP stays open.
void FpduReceiver::raise(FramingError error, base::Now now) {
  ++(error == FramingError::Crc ? counters_.crc_errors : counters_.marker_errors);
  discard();
  user_->framing_error(error, now);
  owner_.error_told();
}

void FpduReceiver::trace(TraceKind kind, base::Range range, base::Now now) {
  if (stream_ == nullptr) return;
  if (base::TraceSink* sink = stream_->trace()) [[unlikely]]
    sink->record(kind, range, now);
}

}  // namespace rnic::mpa
