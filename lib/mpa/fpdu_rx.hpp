/// \file
/// The receiving half in full operation: locate FPDUs (RFC 5044 s.6), verify them, hand them up for
/// placement on arrival and for delivery in order, hold what cannot be placed yet.
///
/// Cursors: octets below `ordered_` are complete; FPDUs below `deliver_next_` are delivered; FPDUs
/// below `place_next_` that the order has reached are placed. deliver_next_ <= place_next_ <=
/// ordered_ between calls.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "framing/hold_store.hpp"
#include "framing/placed_list.hpp"
#include "framing/segment_parts.hpp"
#include "llp/llp.hpp"
#include "mpa/markers.hpp"
#include "mpa/mpa.hpp"
#include "mpa/suspicions.hpp"

namespace rnic::mpa {

/// Told by the receiver, besides the FramingUser.
class FirstFpduListener {
 public:
  virtual ~FirstFpduListener() = default;
  /// The first FPDU was validated and is about to be delivered (RFC 5044 s.7.1.2 rule 4).
  virtual void first_fpdu() = 0;
  /// The user was told a framing error.
  virtual void error_told() = 0;
};

class FpduReceiver {
 public:
  FpduReceiver(const Config& config, framing::HoldStore& store, Counters& counters,
               FirstFpduListener& owner);

  /// nullptr: the stream is gone.
  void attach(llp::Stream* stream);
  void bind(llp::FramingUser& user) { user_ = &user; }
  /// Full operation begins at `offset` of the stream.
  void start(uint64_t offset, const framing::Negotiated& agreed);
  /// Throws away what is held and all that comes.
  void discard();

  void clipped(base::Range range) { parts_.begin(range); }
  [[nodiscard]] llp::InspectVerdict inspect(base::Range range, base::ByteView octets,
                                            base::Now now);
  // Over a transport that cannot drop: as llp::StreamUser's.
  [[nodiscard]] uint32_t sure_room() const { return stopped_ ? UINT32_MAX : held_.sure_room(); }
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets);
  void place(base::Range range, base::ByteView octets, base::Now now);
  void ordered(uint64_t offset, base::Now now);

  // During the start-up: octets out of order are only kept.
  void keep(base::Range range, base::ByteView octets, base::Now now) {
    hold(range, octets, range.begin == arrived_, framing::kUnlocated, now);
  }
  [[nodiscard]] bool can_keep(base::Range range) {
    const framing::SegmentParts::Room room = parts_.with(range, in_order(range));
    return !can_drop_ || held_.has_room(room.range, in_order(range), room.parts);
  }
  /// Moves up to n held octets from `offset` on to dst. \return how many there were.
  uint32_t take_back(uint64_t offset, uint8_t* dst, uint32_t n);
  /// The lowest octets that are kept; empty: none are.
  [[nodiscard]] base::Range first_kept() const {
    return held_.empty() ? base::Range{} : held_.first();
  }
  void arrived(uint64_t offset) { arrived_ = std::max(arrived_, offset); }
  [[nodiscard]] uint64_t arrived() const { return arrived_; }

  [[nodiscard]] uint64_t held() const { return held_.octets(); }
  /// Of these, in order: the FPDU at the delivery point, still incomplete.
  [[nodiscard]] uint64_t held_in_order() const {
    return std::min(held_.octets(), ordered_ - std::min(place_next_, ordered_));
  }
  [[nodiscard]] bool in_order(base::Range range) const { return range.begin == arrived_; }
  /// The order stands at an FPDU boundary.
  [[nodiscard]] bool at_boundary() const { return stopped_ || place_next_ == ordered_; }

 private:
  // locate.cpp
  void locate(base::Range range, base::ByteView octets, framing::LocatedSegment& out);
  [[nodiscard]] bool find_first(framing::LocatedSegment& out, base::ByteView octets,
                                uint64_t& first);
  [[nodiscard]] bool find_by_neighbour(framing::LocatedSegment& out, base::ByteView octets,
                                       uint64_t& first, bool& inside);
  [[nodiscard]] uint64_t find_by_marker(base::Range range, base::ByteView octets) const;
  [[nodiscard]] uint64_t marker_target(uint64_t marker, const uint8_t* octets) const;
  [[nodiscard]] bool started_span(uint64_t begin, base::Range range, base::ByteView octets,
                                  framing::PduSpan& span) const;
  [[nodiscard]] bool end_of_started(uint64_t begin, base::Range range, base::ByteView octets,
                                    uint64_t& end) const;
  [[nodiscard]] llp::FramingError verify(const framing::PduSpan& span, const uint8_t* data) const;
  [[nodiscard]] llp::UlpduView view(const framing::PduSpan& span, const uint8_t* data);
  [[nodiscard]] bool proven(const framing::PduSpan& span) const {
    return proven_ == base::Range{span.begin, span.end};
  }

  // inspect.cpp
  struct DropCount {
    uint64_t begin = UINT64_MAX;
    uint32_t drops = 0;
    uint32_t print = 0;  // of what was dropped last
  };
  enum class Judgement : uint8_t {
    Sound,     // every octet was proven
    Bad,       // an FPDU that begins in the segment has a wrong CRC
    BadPiece,  // a wrong CRC, and what is held or where it begins may be to blame as well
    Doubtful,  // nothing can prove it
  };
  /// FPDUs from one place of a segment on, each by its own length.
  struct Walk {
    uint64_t at = 0;  // how far it came
    uint32_t good = 0;
    uint32_t bad = 0;    // CRC wrong
    bool tiles = false;  // the last one ends where the walk was to end
  };
  [[nodiscard]] bool drops(const framing::LocatedSegment& segment, base::ByteView octets,
                           base::Now now);
  [[nodiscard]] Judgement judge(const framing::LocatedSegment& segment, base::ByteView octets);
  [[nodiscard]] Judgement judge_front(const framing::LocatedSegment& segment,
                                      base::ByteView octets);
  [[nodiscard]] Judgement judge_unlocated(const framing::LocatedSegment& segment,
                                          base::ByteView octets);
  [[nodiscard]] Judgement judge_started(uint64_t begin, base::Range range, base::ByteView octets);
  [[nodiscard]] uint64_t started_before(base::Range range) const;
  [[nodiscard]] bool may_begin(uint64_t offset) const;
  [[nodiscard]] Walk walk(base::Range part, base::Range range, base::ByteView octets) const;
  [[nodiscard]] DropCount& drops_of(uint64_t begin);
  [[nodiscard]] bool drop_bad(base::Range range, base::ByteView octets, bool piece, base::Now now);

  // fpdu_rx.cpp
  [[nodiscard]] bool has_room(const framing::LocatedSegment& segment);
  void place_in_order(const framing::LocatedSegment& segment, base::ByteView octets, base::Now now);
  void place_early(const framing::LocatedSegment& segment, base::ByteView octets, base::Now now);
  bool place_whole(const framing::PduSpan& span, const uint8_t* data, bool in_order, base::Now now,
                   bool& limited);
  uint32_t hold(base::Range range, base::ByteView octets, bool in_order, uint64_t next_pdu,
                base::Now now);
  [[nodiscard]] uint64_t locate_held(base::Range range) const;
  [[nodiscard]] framing::PduSpan held_span(uint64_t begin) const;
  void scan(uint32_t node, base::Now now);
  void continue_behind(uint64_t offset, base::Now now);
  enum class Head : uint8_t { Placed, Incomplete, Bad };
  Head place_held_head(base::Now now);
  void deliver(framing::PlacedPdu& entry, base::Now now);
  void drain(uint64_t offset, base::Now now);
  void raise(llp::FramingError error, base::Now now);
  void trace(TraceKind kind, base::Range range, base::Now now);

  const Config& config_;
  framing::HoldStore& store_;
  Counters& counters_;
  FirstFpduListener& owner_;
  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;

  MarkerGrid grid_;
  uint64_t arrived_ = 0;  // ordered_ and the in-order octets placed since
  uint64_t ordered_ = 0;
  uint64_t place_next_ = 0;
  uint64_t deliver_next_ = 0;
  framing::HeldOctets held_;
  uint64_t held_told_ = 0;  // most that was held since the transport last looked
  framing::PlacedList placed_;
  bool crc_ = true;
  bool can_drop_ = false;  // the transport can
  bool first_seen_ = false;
  bool stopped_ = false;
  llp::FramingError error_at_next_ = llp::FramingError::None;  // of the FPDU at place_next_
  Suspicions suspicions_;
  framing::SegmentParts parts_;
  base::Range proven_{framing::kUnlocated,
                      framing::kUnlocated};  // a cut FPDU that inspect() has proven
  std::array<DropCount, 8> drop_counts_{};
};

}  // namespace rnic::mpa
