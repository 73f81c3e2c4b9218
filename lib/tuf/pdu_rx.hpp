/// \file
/// The receiving half under DDP: finds PDUs (s.5.4, s.6), hands them up for placement on arrival
/// and for delivery in order, holds what cannot be placed yet.
///
/// Cursors: octets below `ordered_` are complete; PDUs below `deliver_next_` are delivered; PDUs
/// below `place_next_` that the order has reached are placed. deliver_next_ <= place_next_ <=
/// ordered_ between calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framing/hold_store.hpp"
#include "framing/placed_list.hpp"
#include "framing/segment_parts.hpp"
#include "llp/llp.hpp"
#include "tuf/alignment_watch.hpp"
#include "tuf/parser.hpp"
#include "tuf/session.hpp"

namespace rnic::tuf {

/// Told by the receiver.
class PduSink {
 public:
  virtual ~PduSink() = default;
  /// As llp::FramingUser's.
  virtual llp::PlaceVerdict place_pdu(const llp::UlpduView& pdu, bool in_order, base::Now now) = 0;
  virtual void deliver_pdu(base::ByteView header, uint32_t length, base::Now now) = 0;
  /// At the delivery point: nothing more will be passed up.
  virtual void stream_broken(Error error, base::Now now) = 0;
  virtual void middlebox_suspected(base::Now now) = 0;
};

class PduReceiver {
 public:
  PduReceiver(const Config& config, framing::HoldStore& store, Counters& counters, PduSink& sink)
      : config_(config),
        store_(store),
        counters_(counters),
        sink_(sink),
        held_(store, config.hold_limit),
        placed_(store, config.early_limit),
        watch_(config.middlebox_limit, counters) {}

  /// nullptr: the stream is gone.
  void attach(llp::Stream* stream);
  /// Framing begins at `offset` of the stream. \param skip octets in front of each PDU that are not
  /// handed up
  void start(uint64_t offset, const ReceiveLayout& layout, uint32_t skip);
  /// Throws away what is held and all that comes.
  void discard();

  void clipped(base::Range range) {
    clipped_ = range;
    parts_.begin(range);
  }
  [[nodiscard]] llp::InspectVerdict inspect(base::Range range, base::ByteView octets);
  // Over a transport that cannot drop: as llp::StreamUser's.
  [[nodiscard]] uint32_t sure_room() const { return stopped_ ? UINT32_MAX : held_.sure_room(); }
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets) const;
  void place(base::Range range, base::ByteView octets, base::Now now);
  void ordered(uint64_t offset, base::Now now);

  // During the start-up: octets out of order are only kept.
  void keep(base::Range range, base::ByteView octets, base::Now now) {
    hold(range, octets, in_order(range), framing::kUnlocated, now);
  }
  /// Moves up to n held octets from `offset` on to dst. \return how many there were.
  uint32_t take_back(uint64_t offset, uint8_t* dst, uint32_t n);
  void arrived(uint64_t offset) { arrived_ = std::max(arrived_, offset); }
  [[nodiscard]] uint64_t arrived() const { return arrived_; }

  [[nodiscard]] uint64_t held() const { return held_.octets(); }
  /// Of these, in order: the PDU at the delivery point, still incomplete.
  [[nodiscard]] uint64_t held_in_order() const {
    return std::min(held_.octets(), ordered_ - std::min(place_next_, ordered_));
  }
  [[nodiscard]] bool in_order(base::Range range) const { return range.begin == arrived_; }
  /// The order stands between two PDUs, and two framing PDUs.
  [[nodiscard]] bool at_boundary() const {
    return stopped_ || (place_next_ == ordered_ &&
                        (layout_.mode != FramedReceiveMode::Align || frame_end_ == place_next_));
  }

 private:
  enum class Head : uint8_t { Placed, Incomplete, Bad };

  [[nodiscard]] bool fetch_held(uint64_t offset, uint8_t* dst, uint32_t n) const;
  [[nodiscard]] bool fetch_in_order(base::Range range, base::ByteView octets, uint64_t offset,
                                    uint8_t* dst, uint32_t n) const;
  [[nodiscard]] bool fits_at_once(base::Range range, base::ByteView octets) const;
  [[nodiscard]] uint64_t next_boundary(base::Range range) const;
  void note_alignment(base::Range range, base::ByteView octets, base::Now now);
  void place_in_order(base::Range range, base::ByteView octets, base::Now now);
  [[nodiscard]] bool place_from_segment(const Unit& unit, base::Range range, base::ByteView octets,
                                        base::Now now);
  void place_frame_early(base::Range range, base::ByteView octets, base::Now now);
  bool place_unit(const Unit& unit, const uint8_t* data, bool in_order, base::Now now);
  [[nodiscard]] llp::UlpduView view(const Unit& unit, const uint8_t* data);
  uint32_t hold(base::Range range, base::ByteView octets, bool in_order, uint64_t next,
                base::Now now);
  void scan(uint32_t node, base::Now now);
  [[nodiscard]] uint64_t locate_held(base::Range range) const;
  Head place_held_head(base::Now now);
  void deliver(framing::PlacedPdu& entry, base::Now now);
  void drain(uint64_t offset, base::Now now);
  void raise(Error error, base::Now now);
  void trace(TraceKind kind, base::Range range, base::Now now);

  const Config& config_;
  framing::HoldStore& store_;
  Counters& counters_;
  PduSink& sink_;
  llp::Stream* stream_ = nullptr;

  ReceiveLayout layout_;
  uint32_t skip_ = 0;
  uint64_t arrived_ = 0;  // ordered_ and the in-order octets placed since
  uint64_t ordered_ = 0;
  uint64_t place_next_ = 0;
  uint64_t frame_end_ = 0;  // of the framing PDU at place_next_; place_next_ in front of the next
  uint64_t deliver_next_ = 0;
  // HeldRange::next_pdu: marker mode: where a PDU begins in or behind the range. Alignment mode:
  // the range begins inside a framing PDU that ends there.
  framing::HeldOctets held_;
  uint64_t held_told_ = 0;  // most that was held since the transport last looked
  framing::PlacedList placed_;
  AlignmentWatch watch_;
  base::Range clipped_;
  framing::SegmentParts parts_;
  bool can_drop_ = false;
  bool stopped_ = false;
  Error error_at_next_ = Error::None;  // of the PDU at place_next_
};

}  // namespace rnic::tuf
