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

/// The reason to refuse an arriving segment, so that the transport does not commit it.
enum class Refusal : uint8_t {
  None,
  Wrong,      ///< an octet of the segment is damaged
  Suspected,  ///< nothing can prove the segment, and it may be damaged
};

/// The answer of extent(): how much is known of the place of a PDU.
enum class Extent : uint8_t {
  Known,    ///< begin and end are known; octets between them may be missing
  Unknown,  ///< the octets that tell the end have not come yet
  Bad,      ///< no PDU can begin with these octets
};

/// Default functions of a Locator, for those that it does not need.
class LocatorDefaults {
 public:
  /// A segment, or a new part of one, is about to be placed.
  void arriving(const Arrivals&, base::Range, base::ByteView, base::Now) {}
  /// A PDU begins at `begin`. \return the octets are known to be that one PDU, which is proven;
  /// `span` is set to its place. False: locate() finds out what they are
  [[nodiscard]] bool is_one_pdu(uint64_t begin, base::ByteView octets, PduSpan& span) {
    static_cast<void>(begin);
    static_cast<void>(octets);
    static_cast<void>(span);
    return false;
  }
  /// A PDU is known to begin with a range of octets that is ahead of the order, as locate() would
  /// find.
  [[nodiscard]] bool begins_early(const Arrivals&, base::Range, base::ByteView) { return false; }
  /// Decides whether the transport is to drop a located segment. Called only if the transport can
  /// drop one.
  [[nodiscard]] Refusal refuses(const Arrivals&, const LocatedSegment&, base::ByteView) {
    return Refusal::None;
  }
  /// A proven PDU was handed up for placement.
  void placed(const PduSpan&, const uint8_t*) {}
  /// The next PDU in order begins at `end`. \param unit_end the unit_end of the PDU before it
  void passed(uint64_t /*end*/, uint64_t /*unit_end*/) {}
  /// No framing unit reaches beyond `offset`, where the next PDU in order begins.
  [[nodiscard]] bool at_unit_end(uint64_t) const { return true; }
  /// Checks the invariants of the locator's own state; called between the receiver's calls.
  void validate(const Arrivals&) const {}
};

/// A framing protocol's part of the Receiver, which takes it as a template parameter: each PDU
/// passes through most of these functions, so none of them is virtual.
///  * locate() finds PDUs in a segment and proves them; the caller has reset `out`.
///  * first_in() returns the offset of the first PDU that begins in a held range which the order
///    has not reached, or kUnlocated or kNotLocatable.
///  * extent() finds the place of the PDU that begins at an offset from held octets; it sets
///    `error` when the answer is Bad.
///  * verify() proves a PDU whose octets are in one piece of memory.
///  * view() gives the ULPDU of a PDU; its pieces are valid in the hold store until the next
///  view().
///  * overlap() is the error of a PDU that would reach into one that is proven.
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
