#include <algorithm>
#include <array>

#include "ddp/ddp.hpp"

namespace rnic::ddp {

namespace {

SegmentReport report(base::ByteView prefix, uint32_t length) {
  SegmentReport segment;
  segment.length = length;
  if (prefix.empty()) return segment;
  const uint32_t size = wire::ddp_header_size(prefix[0]);
  if (prefix.size() < size) return segment;
  segment.header_size = static_cast<uint8_t>(size);
  std::copy_n(prefix.begin(), size, segment.header.begin());
  return segment;
}

bool same(const SegmentReport& a, const SegmentReport& b) {
  return a.length == b.length && std::ranges::equal(a.view(), b.view());
}

}  // namespace

void Stream::put(const llp::UlpduView& ulpdu, uint32_t skip,
                 std::span<const base::ByteSpan> target) {
  place(ulpdu, skip, target);
  ++tally_.segments_placed;
  tally_.octets_placed += ulpdu.length - skip;
}

/// Places a segment whose octets follow each other in memory.
inline void Stream::put_run(const llp::UlpduView& ulpdu, uint32_t skip, uint8_t* to) {
  ddp::place_run(ulpdu, skip, {to, ulpdu.length - skip});
  ++tally_.segments_placed;
  tally_.octets_placed += ulpdu.length - skip;
}

/// Places the rest of a segment whose target has more pieces than a list takes, list by list. The
/// access to all of it was allowed with the first list. The call `find(placed, target)` finds the
/// pieces behind the first `placed` octets of payload.
template <typename Find>
void Stream::put_rest(const llp::UlpduView& ulpdu, uint32_t skip, Pieces& target,
                      const Find& find) {
  uint32_t placed = 0;
  while (target.is_cut()) {
    placed += target.octets();
    find(placed, target);
    place(ulpdu, skip + placed, target.view());
  }
}

/// \return whether the segment was placed, as it is tagged and lies in the run
inline bool Stream::place_run(const llp::UlpduView& ulpdu) {
  if (ulpdu.pieces.empty() || ulpdu.pieces[0].size() < wire::kDdpTaggedSize) return false;
  const uint32_t payload = ulpdu.length - wire::kDdpTaggedSize;
  uint8_t* const to = run_.find_tagged(ulpdu.pieces[0].data(), payload, memory_);
  if (to == nullptr) return false;
  run_.fetch_behind(to, payload);
  put_run(ulpdu, wire::kDdpTaggedSize, to);
  return true;
}

/// \return whether the segment was placed, as it is untagged and lies in the run
inline bool Stream::place_untagged_run(const llp::UlpduView& ulpdu) {
  if (ulpdu.pieces.empty() || ulpdu.pieces[0].size() < wire::kDdpUntaggedSize) return false;
  const uint32_t payload = ulpdu.length - wire::kDdpUntaggedSize;
  uint8_t* const to = run_.find_untagged(ulpdu.pieces[0].data(), payload, memory_);
  if (to == nullptr) return false;
  put_run(ulpdu, wire::kDdpUntaggedSize, to);
  return true;
}

/// Places a tagged segment. \param quiet set: see TaggedTarget
[[gnu::noinline]] Fault Stream::place_tagged(const llp::UlpduView& ulpdu, base::ByteView prefix,
                                             const wire::DdpTaggedHeader& header, bool& quiet) {
  if (header.version != user_.version()) return kTaggedVersion;
  const uint32_t payload = ulpdu.length - wire::kDdpTaggedSize;
  TaggedTarget buffer;
  Fault fault = user_.tagged_target(header, payload, buffer);
  if (fault.failed()) return fault;
  Pieces target;
  fault = check_tagged(memory_, config_.who, header, payload, buffer, target);
  if (fault.failed()) return fault;
  put(ulpdu, wire::kDdpTaggedSize, target.view());
  if (target.is_cut()) [[unlikely]]
    place_tagged_rest(ulpdu, header, buffer, target);
  quiet = buffer.quiet;
  if (payload != 0 && !buffer.same.empty()) {
    const mem::AccessRun run = part_of(memory_.run_of(mem::Stag{header.stag}), buffer.same);
    run_.begin_tagged(prefix.data(), run, buffer, memory_);
  }
  return kNoFault;
}

[[gnu::noinline]] void Stream::place_tagged_rest(const llp::UlpduView& ulpdu,
                                                 const wire::DdpTaggedHeader& header,
                                                 const TaggedTarget& buffer, Pieces& target) {
  const uint32_t payload = ulpdu.length - wire::kDdpTaggedSize;
  put_rest(ulpdu, wire::kDdpTaggedSize, target, [&](uint32_t placed, Pieces& rest) {
    wire::DdpTaggedHeader later = header;
    later.to += placed;
    TaggedTarget behind = buffer;
    behind.offset += placed;
    static_cast<void>(check_tagged(memory_, config_.who, later, payload - placed, behind, rest));
  });
}

[[gnu::noinline]] Fault Stream::place_untagged(const llp::UlpduView& ulpdu, base::ByteView prefix,
                                               const wire::DdpUntaggedHeader& header) {
  if (header.version != user_.version()) return kUntaggedVersion;
  const uint32_t payload = ulpdu.length - wire::kDdpUntaggedSize;
  // RFC 5041 s.7.1 holds for segments without payload, too: they consume a buffer as the others do.
  if (header.qn >= config_.queues) return kUntaggedQn;
  Fault fault = queues_[header.qn].check(header.msn);
  if (fault.failed()) return fault;
  UntaggedTarget buffer;
  fault = user_.untagged_target(header, buffer);
  if (fault.failed()) return fault;
  fault = check_offset(header.mo, payload, buffer.length);
  if (fault.failed()) return fault;
  Pieces target;
  if (!buffer.internal.empty()) {
    target.add(buffer.internal.data() + header.mo, payload);
  } else if (locate(memory_, config_.who, buffer.sges, header.mo, payload, Access::LocalWrite,
                    target) != mem::AccessFault::None) {
    // The fault is in our own user's buffer, not in the peer: a local catastrophic error (RFC 5041
    // s.7.2).
    return kCatastrophic;
  }
  put(ulpdu, wire::kDdpUntaggedSize, target.view());
  if (!header.last) note_run(prefix, header, buffer.sges);
  if (!target.is_cut()) return kNoFault;
  put_rest(ulpdu, wire::kDdpUntaggedSize, target, [&](uint32_t placed, Pieces& rest) {
    static_cast<void>(locate(memory_, config_.who, buffer.sges, uint64_t{header.mo} + placed,
                             payload - placed, Access::LocalWrite, rest));
  });
  return kNoFault;
}

/// The first segment of a message that is delivered next was placed in a buffer of one piece: those
/// behind it go to the same region.
void Stream::note_run(base::ByteView prefix, const wire::DdpUntaggedHeader& header,
                      std::span<const Sge> buffer) {
  if (header.mo != 0 || buffer.size() != 1) return;
  if (header.msn != queues_[header.qn].deliver_msn()) return;
  const uint64_t begin = buffer[0].address;
  const uint64_t end = begin + buffer[0].length;  // a buffer that wraps has no run
  mem::AccessRun run = part_of(memory_.run_of(mem::Stag{buffer[0].stag}), {begin, end});
  if (run.offsets.begin != begin) return;  // nothing of the segment has shown that it may be there
  run.offsets = {0, run.offsets.size()};
  run_.begin_untagged(prefix.data(), run, memory_);
}

Fault Stream::check_and_place(const llp::UlpduView& ulpdu, base::ByteView prefix) {
  if (finished_) return kAfterFinish;
  if (const auto tagged = wire::parse_ddp_tagged(prefix)) {
    bool quiet = false;
    return place_tagged(ulpdu, prefix, *tagged, quiet);
  }
  if (const auto untagged = wire::parse_ddp_untagged(prefix)) {
    return place_untagged(ulpdu, prefix, *untagged);
  }
  return kShortHeader;
}

/// Asks the user for a buffer if the segment was refused for want of one.
bool Stream::find_buffer(const Fault& fault, base::ByteView prefix, bool in_order) {
  const bool lacks = fault.layer == FaultLayer::Ddp && fault.type == kUntaggedBuffer &&
                     (fault.code == kUntaggedNoBuffer.code || fault.code == kUntaggedMsnRange.code);
  if (!lacks) return false;
  const auto header = wire::parse_ddp_untagged(prefix);
  return header && user_.find_buffer(*header, queues_[header->qn].missing(header->msn), in_order);
}

/// RFC 5041 s.7.1: instead of raising an error the stream may wait for a buffer.
bool Stream::waits(const Fault& fault, base::ByteView prefix, base::Now now) {
  const bool lacks = fault.layer == FaultLayer::Ddp && fault.type == kUntaggedBuffer &&
                     fault.code == kUntaggedNoBuffer.code;
  if (!lacks) return false;
  const auto header = wire::parse_ddp_untagged(prefix);
  return header && user_.waits_for_buffer(*header, now);
}

bool Stream::may_wait(const llp::UlpduView& ulpdu) const {
  std::array<uint8_t, wire::kDdpHeaderMax> copied;
  const auto header = wire::parse_ddp_untagged(ulpdu.prefix(copied.data(), wire::kDdpHeaderMax));
  return header && user_.may_wait(*header);
}

llp::PlaceVerdict Stream::place_ulpdu(const llp::UlpduView& ulpdu, bool in_order, base::Now now) {
  if (place_run(ulpdu)) [[likely]]
    return llp::PlaceVerdict::Placed;
  return place_any(ulpdu, in_order, now);
}

[[gnu::noinline]] llp::PlaceVerdict Stream::place_any(const llp::UlpduView& ulpdu, bool in_order,
                                                      base::Now now) {
  // DDP-7.1-11: after an error all later segments are silently dropped.
  if (stopped_ || fault_.failed()) return llp::PlaceVerdict::Placed;
  std::array<uint8_t, wire::kDdpHeaderMax> copied;
  const base::ByteView prefix = ulpdu.prefix(copied.data(), wire::kDdpHeaderMax);
  Fault fault = check_and_place(ulpdu, prefix);
  if (!fault.failed()) return llp::PlaceVerdict::Placed;
  if (find_buffer(fault, prefix, in_order)) fault = check_and_place(ulpdu, prefix);
  if (!fault.failed()) return llp::PlaceVerdict::Placed;
  if (!in_order) {
    ++tally_.placements_postponed;
    return llp::PlaceVerdict::Hold;
  }
  if (waits(fault, prefix, now)) return llp::PlaceVerdict::Wait;
  fault_ = fault;
  run_.end();
  faulty_ = report(prefix, ulpdu.length);
  return llp::PlaceVerdict::Fault;
}

Fault Stream::deliver(base::ByteView prefix, uint32_t length, base::Now now) {
  if (wire::has_ddp_tagged(prefix)) {
    return deliver_tagged(wire::read_ddp_tagged(prefix.data()), length);
  }
  if (!wire::has_ddp_untagged(prefix)) return kShortHeader;
  return deliver_untagged(prefix, wire::read_ddp_untagged(prefix.data()), length, now);
}

inline Fault Stream::deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t length) {
  const Fault fault = user_.deliver_tagged(header, length - wire::kDdpTaggedSize);
  if (header.last) run_.end_message();
  return fault;
}

[[gnu::noinline]] Fault Stream::deliver_untagged(base::ByteView prefix,
                                                 const wire::DdpUntaggedHeader& header,
                                                 uint32_t length, base::Now now) {
  if (header.qn >= config_.queues) return kUntaggedQn;
  UntaggedQueue& queue = queues_[header.qn];
  // The segment was placed ahead of the order because its buffer existed; at its delivery it shows
  // that an MSN was left out.
  if (header.msn != queue.deliver_msn()) return kUntaggedMsnRange;
  const uint32_t payload = length - wire::kDdpUntaggedSize;
  queue.reached(header, payload, config_.secret);
  if (!header.last) return kNoFault;
  // DDP-4.1-04: the last segment has the highest MO, so it tells the message's length.
  const uint64_t message = uint64_t{header.mo} + payload;
  if (!queue.whole(message, config_.secret)) return kUntaggedGap;
  const bool uniform = queue.uniform();
  queue.consume();
  run_.end_message();
  return user_.deliver_untagged(header, message, uniform, report(prefix, length), now);
}

void Stream::deliver_ulpdu(base::ByteView header, uint32_t ulpdu_length, base::Now now) {
  if (header.size() >= wire::kDdpTaggedSize && run_.is_quiet_part(header.data())) {
    return run_.add_quiet(ulpdu_length - wire::kDdpTaggedSize);
  }
  if (stopped_) return;
  // Segments before the faulty one may still wait for their delivery. The faulty one is recognised
  // by its header.
  if (fault_.failed()) [[unlikely]] {
    if (same(report(header, ulpdu_length), faulty_)) return fail(fault_, header, ulpdu_length, now);
  }
  const Fault fault = deliver(header, ulpdu_length, now);
  if (fault.failed()) [[unlikely]]
    fail(fault, header, ulpdu_length, now);
}

[[gnu::noinline, gnu::cold]] void Stream::fail(const Fault& fault, base::ByteView header,
                                               uint32_t ulpdu_length, base::Now now) {
  run_.end();
  stopped_ = true;
  user_.fault(fault, report(header, ulpdu_length), now);
}

/// What place_ulpdu() and deliver_ulpdu() do to a segment without a fault, with one look at its
/// header. All else is left to the two: a check that fails has had no effect, and fails again.
llp::PlaceVerdict Stream::take_ulpdu(const llp::UlpduView& ulpdu, bool more, base::Now now) {
  if (place_run(ulpdu)) [[likely]] {
    const uint8_t* header = ulpdu.pieces[0].data();
    const uint32_t payload = ulpdu.length - wire::kDdpTaggedSize;
    if (run_.deliver(header, payload, config_.secret)) [[likely]]
      return llp::PlaceVerdict::Delivered;
    return end_tagged(ulpdu, run_.is_quiet(), more, now);
  }
  if (place_untagged_run(ulpdu)) {
    const uint8_t* header = ulpdu.pieces[0].data();
    if (wire::is_ddp_last(header[wire::kDdpControlAt])) return end_untagged(ulpdu, more, now);
    queues_[base::load_be32(header + wire::kDdpQnAt)].reached_more(
        base::load_be32(header + wire::kDdpMoAt), ulpdu.length - wire::kDdpUntaggedSize,
        config_.secret);
    return llp::PlaceVerdict::Delivered;
  }
  if (is_open() && !ulpdu.pieces.empty()) {
    if (wire::has_ddp_tagged(ulpdu.pieces[0])) return take_tagged(ulpdu, more, now);
    if (wire::has_ddp_untagged(ulpdu.pieces[0])) return take_untagged(ulpdu, more, now);
  }
  return take_in_steps(ulpdu, more, now);
}

[[gnu::noinline]] llp::PlaceVerdict Stream::take_tagged(const llp::UlpduView& ulpdu, bool more,
                                                        base::Now now) {
  const base::ByteView prefix = ulpdu.pieces[0];
  const wire::DdpTaggedHeader header = wire::read_ddp_tagged(prefix.data());
  bool quiet = false;
  if (place_tagged(ulpdu, prefix, header, quiet).failed()) return take_in_steps(ulpdu, more, now);
  if (quiet && !header.last) {
    run_.add_quiet(ulpdu.length - wire::kDdpTaggedSize);
    return llp::PlaceVerdict::Delivered;
  }
  return end_tagged(ulpdu, quiet, more, now);
}

/// Delivers a tagged segment that was placed, unless that might affect those of which there are
/// `more`.
[[gnu::noinline]] llp::PlaceVerdict Stream::end_tagged(const llp::UlpduView& ulpdu, bool quiet,
                                                       bool more, base::Now now) {
  if (more && !quiet) return llp::PlaceVerdict::Placed;
  const base::ByteView prefix = ulpdu.pieces[0].first(wire::kDdpTaggedSize);
  const Fault fault = deliver_tagged(wire::read_ddp_tagged(prefix.data()), ulpdu.length);
  if (fault.failed()) [[unlikely]]
    fail(fault, prefix, ulpdu.length, now);
  return llp::PlaceVerdict::Delivered;
}

[[gnu::noinline]] llp::PlaceVerdict Stream::take_untagged(const llp::UlpduView& ulpdu, bool more,
                                                          base::Now now) {
  const base::ByteView prefix = ulpdu.pieces[0].first(wire::kDdpUntaggedSize);
  if (place_untagged(ulpdu, prefix, wire::read_ddp_untagged(prefix.data())).failed()) {
    return take_in_steps(ulpdu, more, now);
  }
  return end_untagged(ulpdu, more, now);
}

/// Delivers an untagged segment that was placed, unless there are `more`, which may depend on it.
[[gnu::noinline]] llp::PlaceVerdict Stream::end_untagged(const llp::UlpduView& ulpdu, bool more,
                                                         base::Now now) {
  if (more) return llp::PlaceVerdict::Placed;
  const base::ByteView prefix = ulpdu.pieces[0].first(wire::kDdpUntaggedSize);
  const Fault fault =
      deliver_untagged(prefix, wire::read_ddp_untagged(prefix.data()), ulpdu.length, now);
  if (fault.failed()) [[unlikely]]
    fail(fault, prefix, ulpdu.length, now);
  return llp::PlaceVerdict::Delivered;
}

[[gnu::noinline]] llp::PlaceVerdict Stream::take_in_steps(const llp::UlpduView& ulpdu, bool more,
                                                          base::Now now) {
  return llp::FramingUser::take_ulpdu(ulpdu, more, now);
}

}  // namespace rnic::ddp
