/// \file
/// What a framing protocol brings along to receive: where a PDU begins and ends, and what proves
/// it.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "framing/arrivals.hpp"
#include "framing/pdu_span.hpp"
#include "llp/framing.hpp"

namespace rnic::framing {

/// Whether an arriving segment is refused, so that the transport does not commit it.
enum class Refusal : uint8_t {
  None,
  Wrong,      ///< an octet of it is damaged
  Suspected,  ///< nothing can prove it, and it may be damaged
};

/// What is known of the place of a PDU.
enum class Extent : uint8_t {
  Known,    ///< its octets need not all be there
  Unknown,  ///< octets that tell it are not there yet
  Bad,      ///< no PDU can begin so
};

class Locator {
 public:
  virtual ~Locator() = default;

  /// A segment or a new part of one is about to be placed.
  virtual void arriving(const Arrivals& arrivals, base::Range range, base::ByteView octets,
                        base::Now now) {
    static_cast<void>(arrivals), static_cast<void>(range);
    static_cast<void>(octets), static_cast<void>(now);
  }
  /// Finds PDUs in a segment and proves them. `out` says so far that none is known.
  virtual void locate(const Arrivals& arrivals, base::ByteView octets, LocatedSegment& out) = 0;
  /// Of a segment that was located, over a transport that can drop it.
  [[nodiscard]] virtual Refusal refuses(const Arrivals& arrivals, const LocatedSegment& segment,
                                        base::ByteView octets) {
    static_cast<void>(arrivals), static_cast<void>(segment), static_cast<void>(octets);
    return Refusal::None;
  }
  /// Where the first PDU begins that begins in a held range which the order has not reached;
  /// kUnlocated, kNotLocatable.
  [[nodiscard]] virtual uint64_t first_in(const Arrivals& arrivals, base::Range held) const = 0;
  /// The PDU that begins at `at`, by octets that are held. \param error set where it is Bad
  [[nodiscard]] virtual Extent extent(const Arrivals& arrivals, uint64_t at, PduSpan& span,
                                      PduError& error) const = 0;
  /// Proves a PDU whose octets lie at `data` in one piece.
  [[nodiscard]] virtual PduError verify(const PduSpan& span, const uint8_t* data) const = 0;
  /// Its ULPDU. The pieces live in the hold store until the next view.
  [[nodiscard]] virtual llp::UlpduView view(const PduSpan& span, const uint8_t* data) = 0;

  /// A proven PDU was handed up for placement.
  virtual void placed(const PduSpan& span, const uint8_t* data) {
    static_cast<void>(span), static_cast<void>(data);
  }
  /// The next PDU in order begins at `end`. \param unit_end of the PDU before it
  virtual void passed(uint64_t end, uint64_t unit_end) {
    static_cast<void>(end), static_cast<void>(unit_end);
  }
  /// Nothing is begun at `offset`, where the next PDU in order begins.
  [[nodiscard]] virtual bool at_unit_end(uint64_t offset) const {
    static_cast<void>(offset);
    return true;
  }
  /// Of a PDU that would reach over one that is proven.
  [[nodiscard]] virtual PduError overlap() const = 0;
};

}  // namespace rnic::framing
