/// \file
/// The members of framing::Receiver.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/trace.hpp"
#include "framing/receiver.hpp"

namespace rnic::framing {

template <Locator L>
Receiver<L>::Receiver(HoldStore& store, const ReceiverLimits& limits,
                      const ReceiverCounters& counters, L& locator, ReceiverOwner& owner)
    : Arrivals(store, limits.hold, limits.early),
      store_(store),
      locator_(locator),
      owner_(owner),
      counters_(counters),
      out_of_order_(limits.out_of_order),
      fast_path_(limits.fast_path) {}

template <Locator L>
void Receiver<L>::attach(llp::Stream* stream) {
  steady_at_ = kUnlocated;
  stream_ = stream;
  can_drop_ = stream != nullptr && stream->traits().can_drop;
}

template <Locator L>
void Receiver<L>::start(uint64_t offset) {
  arrived(offset);
  ordered_ = place_next_ = deliver_next_ = offset;
}

template <Locator L>
void Receiver<L>::discard() {
  stopped_ = true;
  waits_ = false;
  steady_at_ = kUnlocated;
  placed_.clear();
  held_.clear();
  if (held_told_ != 0 && stream_ != nullptr) stream_->room_grew();
  held_told_ = 0;
}

template <Locator L>
void Receiver<L>::validate() const {
  Arrivals::validate();
  locator_.validate(arrivals());
  RNIC_CHECK(!stopped_ || (held_.empty() && placed().empty()));
  RNIC_CHECK(!can_drop_ || stream_ != nullptr);
  RNIC_CHECK(steady_at_ == kUnlocated || (is_steady() && steady_at_ == arrived_));
}

template <Locator L>
uint32_t Receiver<L>::extract_kept(uint64_t offset, uint8_t* dst, uint32_t n) {
  const uint32_t node = held_.containing(offset);
  if (node == kNone) return 0;
  const uint64_t end = std::min<uint64_t>(held_.node(node).range.end, offset + n);
  held_.copy({offset, end}, dst);
  held_.erase(node, {offset, end}, kUnlocated);
  return static_cast<uint32_t>(end - offset);
}

template <Locator L>
inline void Receiver<L>::reset(LocatedSegment& out, base::Range range) {
  out.owner = this;
  out.range = range;
  out.front_end = range.end;
  out.next = kUnlocated;
  out.count = 0;
  out.bad = PduError::None;
  out.droppable = out.cut = out.plain = out.early = false;
}

template <Locator L>
void Receiver<L>::locate(base::Range range, base::ByteView octets, LocatedSegment& out) {
  reset(out, range);
  locator_.locate(arrivals(), octets, out);
}

// --- step 2: inspect ---

/// Without loss most segments are one PDU each, and the segment before was plain as well.
template <Locator L>
llp::InspectVerdict Receiver<L>::inspect(base::Range range, base::ByteView octets, base::Now now) {
  LocatedSegment& segment = store_.segment();
  if (range.begin != steady_at_ || (ever_waits_ && user_->may_wait(2)) ||
      !locator_.is_one_pdu(range.begin, octets, segment.whole[0])) [[unlikely]] {
    return inspect_any(range, octets, now);
  }
  reset(segment, range);
  segment.next = range.end;
  segment.front_end = range.begin;
  segment.count = 1;
  segment.plain = true;
  return llp::InspectVerdict::Accept;
}

template <Locator L>
[[gnu::noinline]] llp::InspectVerdict Receiver<L>::inspect_any(base::Range range,
                                                               base::ByteView octets,
                                                               base::Now now) {
  if (stopped_) return llp::InspectVerdict::Accept;
  LocatedSegment& segment = store_.segment();
  reset(segment, range);
  if (is_early(segment, octets)) {
    // All of it may have to be held, as in has_room().
    const SegmentParts::Room room = parts_.with(range, false);
    return held_.has_room(room.range, false, room.parts) ? llp::InspectVerdict::Accept
                                                         : refuse_for_room(segment);
  }
  locator_.locate(arrivals(), octets, segment);
  if (!can_drop_) return llp::InspectVerdict::Accept;
  segment.plain = is_plain(segment);
  if (segment.plain) [[likely]]
    return llp::InspectVerdict::Accept;
  return judge(segment, octets, now);
}

/// Decides whether the transport is to drop a located segment that is not plain.
template <Locator L>
[[gnu::noinline]] llp::InspectVerdict Receiver<L>::judge(LocatedSegment& segment,
                                                         base::ByteView octets, base::Now now) {
  const base::Range range = segment.range;
  const Refusal refusal = locator_.refuses(arrivals(), segment, octets);
  if (refusal == Refusal::None && has_room(segment, octets)) return llp::InspectVerdict::Accept;
  if (refusal == Refusal::None) return refuse_for_room(segment);
  segment.owner = nullptr;
  ++(refusal == Refusal::Wrong ? stats_.dropped_damaged : stats_.dropped_suspected);
  trace(refusal == Refusal::Wrong ? TraceKind::CrcDropped : TraceKind::Suspected, range, now);
  return llp::InspectVerdict::Drop;
}

template <Locator L>
[[gnu::noinline, gnu::cold]] llp::InspectVerdict Receiver<L>::refuse_for_room(
    LocatedSegment& segment) {
  segment.owner = nullptr;
  ++counters_.hold_refused;
  ++stats_.dropped_no_room;
  parts_ = {};
  return llp::InspectVerdict::NoRoom;
}

/// The segment is ahead of the order and known to be one PDU, which is proven: what locate() would
/// find, and no refusal. Nothing else of the segment has to be looked at. \param segment reset; it
/// gets the PDU
template <Locator L>
inline bool Receiver<L>::is_early(LocatedSegment& segment, base::ByteView octets) {
  const base::Range range = segment.range;
  if (waits_ || range.begin == arrived_ || !can_drop_ || !fast_path_) return false;
  if (!locator_.begins_early(arrivals(), range, octets) ||
      !locator_.is_one_pdu(range.begin, octets, segment.whole[0])) {
    return false;
  }
  segment.next = range.end;
  segment.front_end = range.begin;
  segment.count = 1;
  segment.early = true;
  return true;
}

/// \return whether a PDU of a segment in order may have to wait. The answer has to be exact where
/// octets ahead of the order have taken the hold space: a segment whose PDUs all have buffers needs
/// none of it, and nothing else makes any of it free.
template <Locator L>
bool Receiver<L>::may_wait(const LocatedSegment& segment, base::ByteView octets) {
  if (!user_->may_wait(segment.count + 1)) return false;
  const base::Range range = segment.range;
  if (segment.front_end != range.begin && user_->may_wait(0)) return true;
  for (uint32_t i = 0; i < segment.count; ++i) {
    const PduSpan& span = segment.whole[i];
    const llp::UlpduView ulpdu = locator_.view(span, octets.data() + (span.begin - range.begin));
    if (user_->may_wait(ulpdu)) return true;
  }
  return false;
}

/// Finds out whether a segment has room. In order the rest of a started PDU completes it, and its
/// room comes back before the octets behind it are held. If a PDU may have to wait, or the segment
/// is out of order, all of the segment may have to be held: the user may refuse to place it, or the
/// list of placed PDUs may be full.
template <Locator L>
bool Receiver<L>::has_room(const LocatedSegment& segment, base::ByteView octets) {
  const base::Range range = segment.range;
  const SegmentParts::Room room = parts_.with(range, in_order(range));
  if (!in_order(range) || may_wait(segment, octets)) {
    return held_.has_room(room.range, false, room.parts);
  }
  if (segment.front_end == range.begin && segment.next == range.end) return true;
  if (!held_.has_room({range.begin, segment.front_end}, true)) return false;
  if (segment.next == kUnlocated || segment.bad != PduError::None) return true;
  return held_.has_room({segment.next, range.end}, true);
}

/// A transport that cannot drop gives the rest of a started PDU, the whole PDUs, and as much of the
/// PDU behind them as there is room for. The latter may use the reserve only if nothing precedes
/// it; otherwise this session would keep the reserve, and no other one would get it.
template <Locator L>
uint32_t Receiver<L>::takes(base::Range range, base::ByteView octets) {
  const auto all = static_cast<uint32_t>(octets.size());
  if (stopped_ || error_at_next_ != PduError::None) return all;
  if (waits_) return 0;
  LocatedSegment& segment = store_.segment();
  locate(range, octets, segment);
  const base::Range front{range.begin, segment.front_end};
  const uint32_t front_room = held_.room_in(front, true);
  if (front_room < front.size()) return front_room;
  if (segment.next == kUnlocated || segment.bad != PduError::None) return all;
  if (user_->may_wait(segment.count + 1)) return held_.room_in(range, true);
  const auto whole = static_cast<uint32_t>(segment.next - range.begin);
  return whole + held_.room_in({segment.next, range.end}, whole == 0);
}

// --- the fast path: steps 3 and 4 of a plain segment ---

/// All that has come is in order, placed and delivered: no earlier PDU is started, held or found
/// bad, and none waits.
template <Locator L>
bool Receiver<L>::is_steady() const {
  return place_next_ == arrived_ && !waits_ && held_.empty() && placed_.empty() &&
         held_told_ == 0 && first_seen_ && fast_path_ && can_drop_ && !stopped_ &&
         error_at_next_ == PduError::None;
}

/// The one test at its entry, made by inspect() of a segment that was located. The segment is in
/// order behind a steady stream and consists of whole PDUs, which are all proven, and none of these
/// may have to wait. So the general way would refuse nothing, hold nothing, place every PDU, and
/// deliver all of them in ordered().
template <Locator L>
bool Receiver<L>::is_plain(const LocatedSegment& segment) const {
  const base::Range range = segment.range;
  return in_order(range) && is_steady() && segment.next == range.end &&
         !(ever_waits_ && user_->may_wait(segment.count + 1));
}

/// Nothing but discard() changes what is_plain() has found, before the segment is placed. The
/// stream is steady behind it, unless its delivery has ended it.
template <Locator L>
bool Receiver<L>::place_ordered(base::Range range, base::ByteView octets, base::Now now) {
  LocatedSegment& segment = store_.segment();
  if (!segment.plain || segment.owner != this || segment.range != range || stopped_) {
    place(range, octets, now);
    return false;
  }
  segment.owner = nullptr;
  locator_.arriving(arrivals(), range, octets, now);
  const bool taken = segment.count == 1 ? take_one(segment, range, octets, now)
                                        : take_all(segment, octets, now);
  if (taken && !stopped_) [[likely]]
    steady_at_ = range.end;
  return taken;
}

/// Takes the only PDU of a plain segment: its delivery follows its placement.
template <Locator L>
inline bool Receiver<L>::take_one(const LocatedSegment& segment, base::Range range,
                                  base::ByteView octets, base::Now now) {
  const PduSpan& span = segment.whole[0];
  const llp::UlpduView ulpdu = locator_.view(span, octets.data());
  if (user_->take_ulpdu(ulpdu, false, now) == llp::PlaceVerdict::Wait) [[unlikely]] {
    leave_fast_path(segment, octets, 0, 0, now);
    return false;
  }
  locator_.placed(span, octets.data());
  pass(range.end, span.unit_end);
  counters_.placed_in_order_octets += octets.size();
  arrived_ = ordered_ = deliver_next_ = range.end;
  ++counters_.pdus_in;
  if (is_traced()) [[unlikely]] {
    trace(TraceKind::InOrder, range, now);
    if (!stopped_) trace(TraceKind::Delivered, range, now);
  }
  return true;
}

/// Takes several PDUs: what place_in_order() does to each, and then what ordered() does.
template <Locator L>
[[gnu::noinline]] bool Receiver<L>::take_all(const LocatedSegment& segment, base::ByteView octets,
                                             base::Now now) {
  uint32_t taken = 0;
  if (!place_plain(segment, octets, taken, now)) return false;
  const bool all_placed = !stopped_ || taken == segment.count;
  arrived_ = ordered_ = segment.range.end;
  if (all_placed) trace(TraceKind::InOrder, segment.range, now);
  deliver_plain(segment, octets, taken, now);
  return true;
}

/// Places the PDUs. The list of placed PDUs stays empty, since no other PDU comes between these and
/// their delivery. False: the segment has left the fast path. \param taken set to how many of them
/// are delivered, too: the last one, and those that the user delivers before others are placed
template <Locator L>
inline bool Receiver<L>::place_plain(const LocatedSegment& segment, base::ByteView octets,
                                     uint32_t& taken, base::Now now) {
  const uint8_t* data = octets.data();
  uint32_t i = 0;
  for (; i < segment.count && !stopped_; ++i) {
    const PduSpan& span = segment.whole[i];
    const llp::UlpduView ulpdu = locator_.view(span, data);
    // Deliveries keep their order: behind a PDU that is not delivered yet, none is.
    const llp::PlaceVerdict verdict =
        taken == i ? user_->take_ulpdu(ulpdu, i + 1 != segment.count, now)
                   : user_->place_ulpdu(ulpdu, true, now);
    if (verdict == llp::PlaceVerdict::Wait) [[unlikely]] {
      note_placed(segment, i, taken);
      leave_fast_path(segment, octets, taken, i, now);
      return false;
    }
    if (verdict == llp::PlaceVerdict::Delivered) ++taken;
    if (taken > i || !stopped_) [[likely]]
      locator_.placed(span, data);
    data += span.size();
  }
  note_placed(segment, i, taken);
  return true;
}

/// The first PDUs of a segment are placed, and the first `taken` of them delivered.
template <Locator L>
inline void Receiver<L>::note_placed(const LocatedSegment& segment, uint32_t placed,
                                     uint32_t taken) {
  if (placed == 0) return;
  const PduSpan& last = segment.whole[placed - 1];
  pass(last.end, last.unit_end);
  counters_.placed_in_order_octets += last.end - segment.range.begin;
  if (taken == 0) return;
  deliver_next_ = segment.whole[taken - 1].end;
  counters_.pdus_in += taken;
}

/// Delivers the PDUs of a segment that are placed, from number `first` on.
template <Locator L>
inline void Receiver<L>::deliver_plain(const LocatedSegment& segment, base::ByteView octets,
                                       uint32_t first, base::Now now) {
  std::array<uint8_t, llp::kUlpduHeaderMax> copied;
  for (uint32_t i = first; i < segment.count && !stopped_; ++i) {
    const PduSpan& span = segment.whole[i];
    const uint8_t* data = octets.data() + (span.begin - segment.range.begin);
    deliver_next_ = span.end;
    ++counters_.pdus_in;
    user_->deliver_ulpdu(locator_.view(span, data).prefix(copied.data(), llp::kUlpduHeaderMax),
                         span.ulpdu_length, now);
  }
  if (!stopped_) trace(TraceKind::Delivered, segment.range, now);
}

/// The one exit: PDU `waiting` waits, although may_wait() has said that none would. The PDUs before
/// it are delivered up to number `taken`. The others are listed, as they would be now on the
/// general way, which goes on from here.
template <Locator L>
[[gnu::noinline, gnu::cold]] void Receiver<L>::leave_fast_path(const LocatedSegment& segment,
                                                               base::ByteView octets,
                                                               uint32_t taken, uint32_t waiting,
                                                               base::Now now) {
  steady_at_ = kUnlocated;
  for (uint32_t i = taken; i < waiting; ++i) {
    const PduSpan& span = segment.whole[i];
    list_placed(span, locator_.view(span, octets.data() + (span.begin - segment.range.begin)),
                false);
  }
  waits_ = true;
  keep_from(segment, octets, waiting, now);
  arrived_ = segment.range.end;
}

// --- step 3: place ---

template <Locator L>
void Receiver<L>::place(base::Range range, base::ByteView octets, base::Now now) {
  steady_at_ = kUnlocated;
  const bool contiguous = range.begin == arrived_;
  const bool ordered_segment = in_order(range);
  LocatedSegment& segment = store_.segment();
  if (stopped_ || (error_at_next_ != PduError::None && ordered_segment)) {
    counters_.discarded_octets += range.size();
  } else {
    if (segment.owner != this || segment.range != range) locate(range, octets, segment);
    segment.owner = nullptr;
    locator_.arriving(arrivals(), range, octets, now);
    if (ordered_segment) {
      place_in_order(segment, octets, now);
    } else {
      place_early(segment, octets, now);
    }
  }
  if (contiguous) arrived_ = range.end;
}

/// Places the rest of the PDU at the delivery point. False: nothing behind it can be looked at.
template <Locator L>
bool Receiver<L>::place_front(const LocatedSegment& segment, base::ByteView octets, base::Now now) {
  const base::Range range = segment.range;
  if (segment.next < range.begin) {
    error_at_next_ = segment.bad;
    counters_.discarded_octets += range.size();
    return false;
  }
  if (range.begin == segment.front_end) return true;
  hold({range.begin, segment.front_end}, octets.first(segment.front_end - range.begin), true,
       kUnlocated, now);
  if (stopped_ || segment.next == kUnlocated) return false;
  const Head head = place_held_head(now);
  if (head == Head::Placed) return true;
  if (head == Head::Waits) {
    hold_waiting({segment.front_end, range.end}, octets.subspan(segment.front_end - range.begin),
                 segment.front_end, now);
    return false;
  }
  counters_.discarded_octets += range.end - segment.front_end;
  return false;
}

template <Locator L>
void Receiver<L>::place_in_order(const LocatedSegment& segment, base::ByteView octets,
                                 base::Now now) {
  const base::Range range = segment.range;
  const auto behind = [&](uint64_t from) { return octets.subspan(from - range.begin); };
  if (!place_front(segment, octets, now)) return;
  for (uint32_t i = 0; i < segment.count && !stopped_; ++i) {
    const PduSpan& span = segment.whole[i];
    bool limited = false;
    if (!place_whole(span, octets.data() + (span.begin - range.begin), true, now, limited)) {
      return keep_from(segment, octets, i, now);
    }
    pass(span.end, span.unit_end);
    counters_.placed_in_order_octets += span.size();
  }
  if (stopped_) return;
  if (segment.count != 0) trace(TraceKind::InOrder, {segment.front_end, segment.next}, now);
  if (segment.bad != PduError::None) {
    error_at_next_ = segment.bad;
    counters_.discarded_octets += range.end - segment.next;
  } else if (segment.next < range.end) {
    hold({segment.next, range.end}, behind(segment.next), true, segment.next, now);
  }
}

/// Keeps a segment in order from its PDU `first` on, which was not placed.
template <Locator L>
void Receiver<L>::keep_from(const LocatedSegment& segment, base::ByteView octets, uint32_t first,
                            base::Now now) {
  const PduSpan& span = segment.whole[first];
  const base::Range rest{span.begin, segment.range.end};
  const base::ByteView behind = octets.subspan(rest.begin - segment.range.begin);
  if (first != 0) trace(TraceKind::InOrder, {segment.front_end, rest.begin}, now);
  if (waits_) return hold_waiting(rest, behind, span.end, now);
  hold(rest, behind, true, rest.begin, now);
}

/// Holds octets that contain or follow a PDU which waits, and places those PDUs of them that can be
/// placed ahead of the order.
template <Locator L>
void Receiver<L>::hold_waiting(base::Range range, base::ByteView octets, uint64_t next_pdu,
                               base::Now now) {
  if (range.empty()) return;
  scan(hold(range, octets, true, next_pdu, now), now);
}

template <Locator L>
void Receiver<L>::keep_early(base::Range range, base::ByteView octets, uint64_t next_pdu,
                             base::Now now) {
  scan(hold(range, octets, false, next_pdu, now), now);
}

/// Places an early segment.
template <Locator L>
inline void Receiver<L>::place_one_early(const LocatedSegment& segment, base::ByteView octets,
                                         base::Now now) {
  const PduSpan& span = segment.whole[0];
  bool limited = false;
  if (!place_whole(span, octets.data(), false, now, limited)) {
    keep_early(segment.range, octets, limited ? kNotLocatable : span.end, now);
  } else if (!stopped_) {
    continue_behind(span.end, now);
  }
}

template <Locator L>
void Receiver<L>::place_early(const LocatedSegment& segment, base::ByteView octets, base::Now now) {
  if (segment.early && !waits_) return place_one_early(segment, octets, now);
  const base::Range range = segment.range;
  // If some PDUs can be placed and others cannot, a long wait would leave a held range between any
  // two placed PDUs and use up the ranges. So the octets are only held when there are many ranges.
  if (waits_ && !held_.has_few_ranges()) {
    hold(range, octets, false, segment.next == kUnlocated ? kUnlocated : segment.front_end, now);
    return;
  }
  const auto keep_part = [&](uint64_t from, uint64_t to, uint64_t next_pdu) {
    if (from >= to) return;
    keep_early({from, to}, octets.subspan(from - range.begin, to - from), next_pdu, now);
  };
  keep_part(range.begin, segment.front_end, kUnlocated);
  for (uint32_t i = 0; i < segment.count && !stopped_; ++i) {
    const PduSpan& span = segment.whole[i];
    bool limited = false;
    if (!place_whole(span, octets.data() + (span.begin - range.begin), false, now, limited)) {
      keep_part(span.begin, range.end, limited ? kNotLocatable : span.end);
      return;
    }
  }
  if (stopped_ || segment.next == kUnlocated) return;
  if (segment.next < range.end) {
    keep_part(segment.next, range.end,
              segment.bad == PduError::None ? segment.next : kNotLocatable);
  } else {
    continue_behind(range.end, now);
  }
}

/// Hands one proven PDU to the user. False: it must be held, because the user cannot place it or,
/// with `limited`, because the list of placed PDUs is full.
template <Locator L>
bool Receiver<L>::place_whole(const PduSpan& span, const uint8_t* data, bool in_order,
                              base::Now now, bool& limited) {
  limited = !placed_.has_room(!in_order);
  if (limited) return false;
  const llp::UlpduView ulpdu = locator_.view(span, data);
  const llp::PlaceVerdict verdict = user_->place_ulpdu(ulpdu, in_order, now);
  if (stopped_) return true;
  if (!in_order && verdict != llp::PlaceVerdict::Placed) return false;
  if (verdict == llp::PlaceVerdict::Wait) {
    waits_ = true;
    return false;
  }
  locator_.placed(span, data);
  list_placed(span, ulpdu, !in_order);
  if (in_order) return true;
  counters_.placed_early_octets += span.size();
  stats_.placed_early += span.size();
  trace(TraceKind::PlacedEarly, {span.begin, span.end}, now);
  return true;
}

template <Locator L>
void Receiver<L>::list_placed(const PduSpan& span, const llp::UlpduView& ulpdu, bool early) {
  PlacedPdu& entry = placed_.insert(span, early);
  if (!ulpdu.pieces.empty() && ulpdu.pieces[0].size() >= llp::kUlpduHeaderMax) [[likely]] {
    std::memcpy(entry.header.data(), ulpdu.pieces[0].data(), llp::kUlpduHeaderMax);
  } else {
    ulpdu.copy_prefix(entry.header.data(), llp::kUlpduHeaderMax);
  }
}

template <Locator L>
uint32_t Receiver<L>::hold(base::Range range, base::ByteView octets, bool in_order,
                           uint64_t next_pdu, base::Now now) {
  const uint32_t node = held_.add(range, octets, in_order, next_pdu);
  if (node == kNone) {
    // This happens only over a transport that cannot drop; with others inspect() has found room.
    ++counters_.hold_refused;
    discard();
    if (stream_ != nullptr) stream_->abort();
    return kNone;
  }
  counters_.held_octets += range.size();
  stats_.held += range.size();
  held_told_ = std::max(held_told_, held_.octets());
  trace(TraceKind::Held, range, now);
  return node;
}

/// Places the whole PDUs of a held range out of order, from the first one that is located on.
template <Locator L>
void Receiver<L>::scan(uint32_t node, base::Now now) {
  if (!out_of_order_) return;
  while (node != kNone && !stopped_) {
    HeldRange& held = held_.node(node);
    const base::Range range = held.range;
    if (held.next_pdu == kUnlocated) held.next_pdu = locator_.first_in(arrivals(), range);
    if (held.next_pdu >= kNotLocatable || held.next_pdu >= range.end) return;
    PduSpan span;
    PduError error = PduError::None;
    const Extent extent = locator_.extent(arrivals(), held.next_pdu, span, error);
    if (extent == Extent::Unknown || (extent == Extent::Known && span.end > range.end)) return;
    if (extent == Extent::Known && (!held_.can_split() || !placed_.has_room(true))) return;
    if (waits_ && !held_.has_few_ranges()) return;
    const uint8_t* data =
        extent == Extent::Bad ? nullptr : held_.contiguous({span.begin, span.end});
    if (data == nullptr || locator_.verify(span, data) != PduError::None) {
      held.next_pdu = kNotLocatable;  // it is judged again when the order reaches it
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

/// A proven PDU ends at `offset`, so that the octets held behind it begin with a PDU.
template <Locator L>
void Receiver<L>::continue_behind(uint64_t offset, base::Now now) {
  if (held_.empty()) return;
  const uint32_t node = held_.beginning_at(offset);
  if (node == kNone) return;
  if (held_.node(node).next_pdu == kUnlocated) held_.node(node).next_pdu = offset;
  scan(node, now);
}

// --- step 4: ordered ---

template <Locator L>
void Receiver<L>::ordered(uint64_t offset, base::Now now) {
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

/// The window was closed during the wait, so room_grew() is called even if no hold space has come
/// back.
template <Locator L>
bool Receiver<L>::resume(base::Now now) {
  if (!waits_) return false;
  waits_ = false;
  drain(ordered_, now);
  if (stopped_) return false;
  held_told_ = held_.octets();
  if (!waits_ && stream_ != nullptr) stream_->room_grew();
  return waits_;
}

template <Locator L>
void Receiver<L>::drain(uint64_t offset, base::Now now) {
  while (!stopped_) {
    PlacedPdu* front = placed_.front();
    if (front != nullptr && front->begin < deliver_next_) {
      return raise(locator_.overlap(), now);  // MPA-8-04: the PDUs in order ended inside it
    }
    if (front != nullptr && front->begin == deliver_next_ && front->end <= offset) {
      deliver(*front, now);
      continue;
    }
    if (error_at_next_ != PduError::None) return raise(error_at_next_, now);
    if (place_next_ >= offset) return;
    if (waits_) return note_first(now);
    switch (place_held_head(now)) {
      case Head::Placed:
      case Head::Waits: break;
      case Head::Incomplete: return;
      case Head::Bad: return raise(error_at_next_, now);
    }
  }
}

/// Places the PDU at the delivery point from held octets.
template <Locator L>
typename Receiver<L>::Head Receiver<L>::place_held_head(base::Now now) {
  const uint32_t node = held_.containing(place_next_);
  if (node == kNone) return Head::Incomplete;
  PduSpan span;
  switch (locator_.extent(arrivals(), place_next_, span, error_at_next_)) {
    case Extent::Known: break;
    case Extent::Unknown: return Head::Incomplete;
    case Extent::Bad: return Head::Bad;
  }
  if (placed_.first_begin_from(place_next_) < span.end) {
    error_at_next_ = locator_.overlap();  // it would reach into a proven PDU
    return Head::Bad;
  }
  if (span.end > held_.node(node).range.end) return Head::Incomplete;
  const uint8_t* data = held_.contiguous({span.begin, span.end});
  error_at_next_ = locator_.verify(span, data);
  if (error_at_next_ != PduError::None) return Head::Bad;
  bool limited = false;
  if (!place_whole(span, data, true, now, limited)) {
    if (!waits_) return Head::Incomplete;
    HeldRange& held = held_.node(node);
    if (held.next_pdu == kUnlocated || held.next_pdu < span.end) held.next_pdu = span.end;
    scan(node, now);
    return Head::Waits;
  }
  if (stopped_) return Head::Placed;
  held_.erase(node, {span.begin, span.end}, span.end);
  pass(span.end, span.unit_end);
  return Head::Placed;
}

template <Locator L>
void Receiver<L>::pass(uint64_t end, uint64_t unit_end) {
  place_next_ = end;
  locator_.passed(end, unit_end);
}

/// Tells the owner of the first PDU. A PDU that waits counts like one that is delivered, since it
/// is proven.
template <Locator L>
void Receiver<L>::note_first(base::Now now) {
  if (first_seen_) return;
  first_seen_ = true;
  owner_.first_pdu(now);
}

template <Locator L>
void Receiver<L>::deliver(PlacedPdu& entry, base::Now now) {
  deliver_next_ = entry.end;
  if (place_next_ < entry.end) pass(entry.end, entry.unit_end);
  ++counters_.pdus_in;
  note_first(now);
  const base::ByteView header(entry.header.data(),
                              std::min(entry.ulpdu_length, llp::kUlpduHeaderMax));
  if (!stopped_) user_->deliver_ulpdu(header, entry.ulpdu_length, now);
  if (!stopped_) placed_.pop_front();
}

template <Locator L>
void Receiver<L>::raise(PduError error, base::Now now) {
  discard();
  owner_.broken(error, now);
}

template <Locator L>
[[gnu::noinline, gnu::cold]] void Receiver<L>::record(TraceKind kind, base::Range range,
                                                      base::Now now) {
  stream_->trace()->record(kind, range, now);
}

}  // namespace rnic::framing
