/// \file
/// Finds the PDUs of a framed stream in arriving segments (s.5.4, s.6), under DDP.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "framing/receiver.hpp"
#include "tuf/alignment_watch.hpp"
#include "tuf/config.hpp"
#include "tuf/counters.hpp"
#include "tuf/parser.hpp"
#include "tuf/session_events.hpp"

namespace rnic::tuf {

class PduLocator final : public framing::LocatorDefaults {
 public:
  /// \param session_events may be nullptr
  PduLocator(const Config& config, framing::HoldStore& store, Counters& counters,
             SessionEvents* session_events)
      : config_(config),
        store_(store),
        session_events_(session_events),
        watch_(config.middlebox_limit, counters) {}

  /// Framing begins at `offset` of the stream. \param skip octets at the front of each PDU that are
  /// not handed up
  void start(uint64_t offset, const ReceiveLayout& layout, uint32_t skip) {
    layout_ = layout;
    skip_ = skip;
    frame_end_ = offset;
  }

  void arriving(const framing::Arrivals& arrivals, base::Range range, base::ByteView octets,
                base::Now now);
  void locate(const framing::Arrivals& arrivals, base::ByteView octets,
              framing::LocatedSegment& out);
  [[nodiscard]] uint64_t first_in(const framing::Arrivals& arrivals, base::Range held) const;
  [[nodiscard]] framing::Extent extent(const framing::Arrivals& arrivals, uint64_t at,
                                       framing::PduSpan& span, framing::PduError& error) const;
  [[nodiscard]] framing::PduError verify(const framing::PduSpan& span, const uint8_t* data) const;
  [[nodiscard]] llp::UlpduView view(const framing::PduSpan& span, const uint8_t* data);
  void passed(uint64_t end, uint64_t unit_end) {
    static_cast<void>(end);
    frame_end_ = unit_end;
  }
  [[nodiscard]] bool at_unit_end(uint64_t offset) const {
    return !aligned() || frame_end_ == offset;
  }
  [[nodiscard]] framing::PduError overlap() const { return framing::PduError::BadLength; }
  /// Checks that no framing PDU ends before the next PDU in order begins.
  void validate(const framing::Arrivals& arrivals) const {
    layout_.grid.validate();
    RNIC_CHECK(frame_end_ >= arrivals.place_next());
  }

 private:
  [[nodiscard]] bool aligned() const { return layout_.mode == FramedReceiveMode::Align; }
  [[nodiscard]] framing::PduSpan span_of(const Unit& unit) const;
  [[nodiscard]] bool locate_front(const framing::Arrivals& arrivals, base::ByteView octets,
                                  framing::LocatedSegment& out, uint64_t& frame_end) const;
  void locate_in_order(const framing::Arrivals& arrivals, base::ByteView octets,
                       framing::LocatedSegment& out) const;
  void locate_frame(const framing::Arrivals& arrivals, base::ByteView octets,
                    framing::LocatedSegment& out) const;
  [[nodiscard]] uint64_t next_boundary(const framing::Arrivals& arrivals, base::Range range) const;

  const Config& config_;
  framing::HoldStore& store_;
  SessionEvents* session_events_;
  AlignmentWatch watch_;
  ReceiveLayout layout_;
  uint32_t skip_ = 0;
  uint64_t frame_end_ = 0;  // end of the framing PDU at the delivery point, or begin of the next
};

using PduReceiver = framing::Receiver<PduLocator>;

}  // namespace rnic::tuf
