/// \file
/// The receiving half of a framing protocol: PDUs are handed up for placement when they arrive and
/// for delivery in order, and what cannot be placed yet is held.
#pragma once

#include <cstdint>

#include "framing/arrivals.hpp"
#include "framing/hold_store.hpp"
#include "framing/locator.hpp"
#include "framing/receiver_stats.hpp"
#include "llp/llp.hpp"
#include "rnic/trace.hpp"

namespace rnic::framing {

/// The counters of the framing layer that a receiver increments.
struct ReceiverCounters {
  uint64_t& pdus_in;
  uint64_t& placed_in_order_octets;
  uint64_t& placed_early_octets;
  uint64_t& held_octets;
  uint64_t& hold_refused;
  uint64_t& discarded_octets;
};

struct ReceiverLimits {
  uint32_t hold = 0;          ///< octets of held data
  uint32_t early = 0;         ///< PDUs placed ahead of the order
  bool out_of_order = false;  ///< place PDUs that are found in held octets ahead of the order
  bool fast_path = true;      ///< plain segments take it (Receiver)
};

/// The session that owns a receiver: it hears of events that the FramingUser is not told of.
class ReceiverOwner {
 public:
  virtual ~ReceiverOwner() = default;
  /// The first PDU is proven and about to be delivered.
  virtual void first_pdu(base::Now now) { static_cast<void>(now); }
  /// The octets at the delivery point are no valid PDU. Nothing more goes up; the stream stays
  /// open.
  virtual void broken(PduError error, base::Now now) = 0;
};

/// The four steps of llp::StreamUser's receiving half: clipped, inspect, place, ordered. Its
/// members are in receiver_steps.hpp, for the source that makes the receiver of a protocol's
/// Locator.
///
/// Without loss nearly every segment is plain: is_plain() is true of it. Such a segment takes the
/// fast path, place_ordered(), which does what place() and ordered() would do to it, in the same
/// order of calls, and leaves out what has no effect then (decision 62). All others take the
/// general way.
///
/// Behind a hole nearly every segment is early: is_early() is true of it. It goes the general way,
/// but is neither searched for PDUs nor judged as one that nothing proves.
template <Locator L>
class Receiver final : private Arrivals {
 public:
  Receiver(HoldStore& store, const ReceiverLimits& limits, const ReceiverCounters& counters,
           L& locator, ReceiverOwner& owner);

  /// Sets the stream. nullptr: the stream is gone.
  void attach(llp::Stream* stream);
  void bind(llp::FramingUser* user) {
    user_ = user;
    ever_waits_ = user->ever_waits();
  }
  /// PDUs begin at `offset` of the stream.
  void start(uint64_t offset);
  /// Throws away all held octets, and from now on all that arrive.
  void discard();

  void clipped(base::Range range) { parts_.begin(range); }
  [[nodiscard]] llp::InspectVerdict inspect(base::Range range, base::ByteView octets,
                                            base::Now now);
  // Answers for llp::StreamUser to a transport that cannot drop segments.
  [[nodiscard]] uint32_t sure_room() const { return stopped_ ? UINT32_MAX : held_.sure_room(); }
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets);
  void place(base::Range range, base::ByteView octets, base::Now now);
  void ordered(uint64_t offset, base::Now now);
  /// As in llp::StreamUser.
  [[nodiscard]] bool place_ordered(base::Range range, base::ByteView octets, base::Now now);
  /// See llp::Framing.
  bool resume(base::Now now);

  // During the start-up octets out of order are only kept.
  void keep(base::Range range, base::ByteView octets, base::Now now) {
    steady_at_ = kUnlocated;
    hold(range, octets, in_order(range), kUnlocated, now);
  }
  [[nodiscard]] bool can_keep(base::Range range) {
    const SegmentParts::Room room = parts_.with(range, in_order(range));
    return !can_drop_ || held_.has_room(room.range, in_order(range), room.parts);
  }
  /// Moves up to n held octets from `offset` on to `dst`. \return how many were moved
  uint32_t extract_kept(uint64_t offset, uint8_t* dst, uint32_t n);
  /// The lowest range that is kept; empty when none is.
  [[nodiscard]] base::Range first_kept() const {
    return held_.empty() ? base::Range{} : held_.first();
  }
  void arrived(uint64_t offset) {
    steady_at_ = kUnlocated;
    arrived_ = std::max(arrived_, offset);
  }

  using Arrivals::arrived;
  using Arrivals::in_order;
  using Arrivals::waits;
  /// Checks the invariants; they hold between calls.
  void validate() const;
  [[nodiscard]] uint64_t held() const { return held_.octets(); }
  /// See StartSession::share_hold().
  void share_hold(HoldSharePtr share) { held_.set_share(std::move(share)); }
  [[nodiscard]] const ReceiverStats& stats() const { return stats_; }
  /// The octets of held() that are in order: the first part of the PDU at the delivery point.
  [[nodiscard]] uint64_t held_in_order() const {
    return std::min(held_.octets(), ordered_ - std::min(place_next_, ordered_));
  }
  /// The octets at the delivery point were no valid PDU, or discard() was called.
  [[nodiscard]] bool is_broken() const { return stopped_; }
  /// The octets in order end between two PDUs, and not inside a framing unit.
  [[nodiscard]] bool at_boundary() const {
    return stopped_ || (place_next_ == ordered_ && locator_.at_unit_end(place_next_));
  }

 private:
  enum class Head : uint8_t { Placed, Incomplete, Bad, Waits };

  [[nodiscard]] const Arrivals& arrivals() const { return *this; }
  void reset(LocatedSegment& out, base::Range range);
  void locate(base::Range range, base::ByteView octets, LocatedSegment& out);
  [[nodiscard]] llp::InspectVerdict inspect_any(base::Range range, base::ByteView octets,
                                                base::Now now);
  [[nodiscard]] llp::InspectVerdict judge(LocatedSegment& segment, base::ByteView octets,
                                          base::Now now);
  [[nodiscard]] bool is_early(LocatedSegment& segment, base::ByteView octets);
  [[nodiscard]] llp::InspectVerdict refuse_for_room(LocatedSegment& segment);
  [[nodiscard]] bool has_room(const LocatedSegment& segment, base::ByteView octets);
  [[nodiscard]] bool may_wait(const LocatedSegment& segment, base::ByteView octets);
  [[nodiscard]] bool is_steady() const;
  [[nodiscard]] bool is_plain(const LocatedSegment& segment) const;
  [[nodiscard]] bool take_one(const LocatedSegment& segment, base::Range range,
                              base::ByteView octets, base::Now now);
  [[nodiscard]] bool take_all(const LocatedSegment& segment, base::ByteView octets,
                              base::Now now);
  [[nodiscard]] bool place_plain(const LocatedSegment& segment, base::ByteView octets,
                                 uint32_t& taken, base::Now now);
  void note_placed(const LocatedSegment& segment, uint32_t placed, uint32_t taken);
  void deliver_plain(const LocatedSegment& segment, base::ByteView octets, uint32_t first,
                     base::Now now);
  void leave_fast_path(const LocatedSegment& segment, base::ByteView octets, uint32_t taken,
                       uint32_t waiting, base::Now now);
  void place_in_order(const LocatedSegment& segment, base::ByteView octets, base::Now now);
  void keep_from(const LocatedSegment& segment, base::ByteView octets, uint32_t first,
                 base::Now now);
  void place_early(const LocatedSegment& segment, base::ByteView octets, base::Now now);
  void keep_early(base::Range range, base::ByteView octets, uint64_t next_pdu, base::Now now);
  void place_one_early(const LocatedSegment& segment, base::ByteView octets, base::Now now);
  [[nodiscard]] bool place_front(const LocatedSegment& segment, base::ByteView octets,
                                 base::Now now);
  void hold_waiting(base::Range range, base::ByteView octets, uint64_t next_pdu, base::Now now);
  bool place_whole(const PduSpan& span, const uint8_t* data, bool in_order, base::Now now,
                   bool& limited);
  void list_placed(const PduSpan& span, const llp::UlpduView& ulpdu, bool early);
  uint32_t hold(base::Range range, base::ByteView octets, bool in_order, uint64_t next_pdu,
                base::Now now);
  void scan(uint32_t node, base::Now now);
  void continue_behind(uint64_t offset, base::Now now);
  Head place_held_head(base::Now now);
  void pass(uint64_t end, uint64_t unit_end);
  void note_first(base::Now now);
  void deliver(PlacedPdu& entry, base::Now now);
  void drain(uint64_t offset, base::Now now);
  void raise(PduError error, base::Now now);
  [[nodiscard]] bool is_traced() const { return stream_ != nullptr && stream_->trace() != nullptr; }
  void trace(TraceKind kind, base::Range range, base::Now now) {
    if (is_traced()) [[unlikely]]
      record(kind, range, now);
  }
  void record(TraceKind kind, base::Range range, base::Now now);

  HoldStore& store_;
  L& locator_;
  ReceiverOwner& owner_;
  ReceiverCounters counters_;
  ReceiverStats stats_;
  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;

  // Where the next plain segment begins, while nothing but plain segments has come: is_steady() is
  // true then. Set by place_ordered(), and ended by every other call that changes the arrivals.
  uint64_t steady_at_ = kUnlocated;
  uint64_t held_told_ = 0;  // the most octets held since ordered() last told of room
  bool out_of_order_;
  bool fast_path_;
  bool can_drop_ = false;  // the transport can drop a segment (llp::StreamTraits)
  bool first_seen_ = false;
  bool ever_waits_ = true;  // the user's answer
  bool stopped_ = false;
  PduError error_at_next_ = PduError::None;  // error of the PDU at place_next_
};

}  // namespace rnic::framing
