/// \file
/// A framing protocol's part in receiving: it tells where a PDU begins and ends, and proves it.
#pragma once

#include <concepts>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "framing/arrivals.hpp"
#include "framing/pdu_error.hpp"
#include "framing/pdu_span.hpp"
#include "llp/framing.hpp"

namespace rnic::framing {

/// Whether an arriving segment is refused, so that the transport does not commit it.
enum class Refusal : uint8_t {
  None,
  Wrong,      ///< an octet of the segment is damaged
  Suspected,  ///< nothing can prove the segment, and it may be damaged
};

/// How much is known of the place of a PDU.
enum class Extent : uint8_t {
  Known,    ///< begin and end are known; the octets between need not all be there
  Unknown,  ///< octets that tell the end are not there yet
  Bad,      ///< no PDU can begin so
};

/// A Locator inherits these where it has nothing of its own to do.
class LocatorDefaults {
 public:
  /// A segment, or a new part of one, is about to be placed.
  void arriving(const Arrivals&, base::Range, base::ByteView, base::Now) {}
  /// Whether the transport is to drop a segment that was located; asked only where it can.
  [[nodiscard]] Refusal refuses(const Arrivals&, const LocatedSegment&, base::ByteView) {
    return Refusal::None;
  }
  /// A proven PDU was handed up for placement.
  void placed(const PduSpan&, const uint8_t*) {}
  /// The next PDU in order begins at `end`. \param unit_end of the PDU before it
  void passed(uint64_t /*end*/, uint64_t /*unit_end*/) {}
  /// No framing unit reaches beyond `offset`, where the next PDU in order begins.
  [[nodiscard]] bool at_unit_end(uint64_t) const { return true; }
  /// Checks the invariants of the locator's own state; called between the receiver's calls.
  void validate(const Arrivals&) const {}
};

/// A framing protocol's part of the Receiver, which takes it as a template parameter: each PDU
/// passes through most of these functions, so none of them is virtual.
///  * locate() finds PDUs in a segment and proves them; it is given an `out` that names none.
///  * first_in() tells where the first PDU begins that begins in a held range which the order has
///    not reached: an offset, kUnlocated or kNotLocatable.
///  * extent() tells the place of the PDU that begins at an offset, by octets that are held; it
///    sets `error` where the answer is Bad.
///  * verify() proves a PDU whose octets lie in one piece.
///  * view() gives its ULPDU; the pieces live in the hold store until the next view.
///  * overlap() is the error of a PDU that would reach over one that is proven.
template <typename T>
concept Locator = std::derived_from<T, LocatorDefaults> &&
    requires(T t, const T& c, const Arrivals& arrivals, base::Range range, base::ByteView octets,
             LocatedSegment& out, PduSpan& span, PduError& error, const uint8_t* data) {
  t.locate(arrivals, octets, out);
  { c.first_in(arrivals, range) } -> std::same_as<uint64_t>;
  { c.extent(arrivals, range.begin, span, error) } -> std::same_as<Extent>;
  { c.verify(span, data) } -> std::same_as<PduError>;
  { t.view(span, data) } -> std::same_as<llp::UlpduView>;
  { c.overlap() } -> std::same_as<PduError>;
};

}  // namespace rnic::framing
