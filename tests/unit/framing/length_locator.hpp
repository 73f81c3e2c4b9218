/// \file
/// A framing of nothing but lengths.
#pragma once

#include <cstdint>

#include "framing/locator.hpp"

namespace rnic::framing {

inline constexpr PduError kBadLength = PduError::BadLength;
inline constexpr PduError kOverlap = PduError::BadMarker;

/// A PDU is one octet that tells its length, and as many octets; the length 0 is an error. Nothing
/// tells where one begins but the end of the one before, or, with `marks`, '#' as its first octet
/// at the begin of a segment.
class LengthLocator final : public LocatorDefaults {
 public:
  explicit LengthLocator(HoldStore& store) : store_(store) {}

  void locate(const Arrivals& arrivals, base::ByteView octets, LocatedSegment& out) {
    const base::Range range = out.range;
    const bool in_order = arrivals.in_order(range);
    if (!in_order && !begins_early(arrivals, range, octets)) return;
    uint64_t at = range.begin;
    if (in_order && arrivals.place_next() < at) {
      PduSpan span;
      PduError error = PduError::None;
      if (extent(arrivals, arrivals.place_next(), span, error) != Extent::Known) return;
      if (span.end > range.end) return;
      at = span.end;
    }
    out.front_end = out.next = at;
    while (out.next < range.end && out.count < kLocatedMax) {
      const uint8_t length = octets[out.next - range.begin];
      if (length == 0) out.bad = kBadLength;
      if (length == 0 || out.next + 1 + length > range.end) return;
      out.whole[out.count++] = span_at(out.next, length);
      out.next = out.whole[out.count - 1].end;
    }
  }
  [[nodiscard]] bool is_one_pdu(uint64_t begin, base::ByteView octets, PduSpan& span) {
    if (octets[0] == 0 || octets.size() != 1u + octets[0]) return false;
    span = span_at(begin, octets[0]);
    ++one_count;
    return true;
  }
  [[nodiscard]] bool begins_early(const Arrivals& arrivals, base::Range range,
                                  base::ByteView octets) {
    const bool marked = marks && octets.size() > 1 && octets[0] != '#' && octets[1] == '#';
    return marked || arrivals.placed().ends_at(range.begin);
  }
  [[nodiscard]] uint64_t first_in(const Arrivals& arrivals, base::Range held) const {
    return arrivals.placed().ends_at(held.begin) ? held.begin : kUnlocated;
  }
  [[nodiscard]] Extent extent(const Arrivals& arrivals, uint64_t at, PduSpan& span,
                              PduError& error) const {
    if (arrivals.held().containing(at) == kNone) return Extent::Unknown;
    const uint8_t length = arrivals.held().octet(at);
    if (length == 0) error = kBadLength;
    if (length == 0) return Extent::Bad;
    span = span_at(at, length);
    return Extent::Known;
  }
  [[nodiscard]] PduError verify(const PduSpan&, const uint8_t*) const { return PduError::None; }
  [[nodiscard]] llp::UlpduView view(const PduSpan& span, const uint8_t* data) {
    store_.pieces()[0] = {data + 1, span.ulpdu_length};
    return {{store_.pieces(), 1}, span.ulpdu_length};
  }
  void placed(const PduSpan&, const uint8_t*) { ++placed_count; }
  void passed(uint64_t end, uint64_t) { passed_to = end; }
  [[nodiscard]] PduError overlap() const { return kOverlap; }

  bool marks = false;
  uint32_t one_count = 0;  ///< segments of one PDU that were not located
  uint32_t placed_count = 0;
  uint64_t passed_to = 0;

 private:
  static PduSpan span_at(uint64_t at, uint8_t length) {
    return {.begin = at, .header = at + 1, .end = at + 1 + length, .ulpdu_length = length};
  }

  HoldStore& store_;
};

}  // namespace rnic::framing
