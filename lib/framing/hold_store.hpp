/// \file
/// Held octets: octets that the transport has committed and nobody can place yet.
///
/// A HoldStore is the memory. Its pages mirror windows of 2048 octets of a stream and are found by
/// a hash of (session, window), so that neighbouring pieces meet without copying. A page is touched
/// only when it is first needed. A store belongs to one worker. HeldOctets is the view of one
/// session: sorted, disjoint ranges.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/zero_array.hpp"
#include "framing/hold_share.hpp"
#include "framing/pdu_error.hpp"
#include "framing/pdu_span.hpp"
#include "framing/pool.hpp"
#include "llp/llp.hpp"

namespace rnic::framing {

/// The longest PDU of any framing with its markers, in octets, rounded up: an FPDU of 65,542.
inline constexpr uint32_t kPduSizeMax = 66'112;
/// The least distance of two markers of any framing, in octets.
inline constexpr uint32_t kMarkerIntervalMin = 512;

/// Values of HeldRange::next_pdu other than an offset.
inline constexpr uint64_t kUnlocated = UINT64_MAX;         ///< no PDU is located in the range (yet)
inline constexpr uint64_t kNotLocatable = UINT64_MAX - 1;  ///< to be found only in order

/// One held range; part of a session's sorted list.
struct HeldRange {
  base::Range range;
  uint64_t next_pdu = kUnlocated;  ///< start of the first PDU in the range that was not judged yet
  uint32_t prev = kNone;
  uint32_t next = kNone;
};

/// One PDU that is placed and waits for its delivery; part of a session's sorted list.
struct PlacedPdu {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t unit_end = 0;
  uint32_t ulpdu_length = 0;
  uint32_t prev = kNone;
  uint32_t next = kNone;
  bool early = false;  ///< placed out of order
  std::array<uint8_t, llp::kUlpduHeaderMax> header;
};

/// The largest number of whole PDUs that are handled straight from a segment; further ones are
/// held.
inline constexpr uint32_t kLocatedMax = 128;

/// One segment with the PDUs in it: inspect() finds them, place() of the same range uses them.
struct LocatedSegment {
  const void* owner = nullptr;
  base::Range range;
  uint64_t front_end = 0;      ///< octets before this offset end an earlier PDU, or are not located
  uint64_t next = kUnlocated;  ///< begin of the PDU behind the whole ones; if it lies before the
                               ///< range, begin of the bad PDU at the delivery point
  uint32_t count = 0;
  PduError bad = PduError::None;  ///< error of the PDU at `next`
  bool droppable = false;         ///< a retransmission of the bad PDU may be right
  bool cut = false;               ///< the PDU at `next` runs past the segment
  bool plain = false;             ///< inspect() has found that it may take the fast path
  bool early = false;             ///< it has found one PDU, ahead of the order
  std::array<PduSpan, kLocatedMax> whole;
};

class HoldStore {
 public:
  static constexpr uint32_t kPageSize = 2048;
  /// Pages reserved for one PDU at a delivery point, wherever in a page it begins.
  static constexpr uint32_t kReservePages = kPduSizeMax / kPageSize + 2;
  /// Descriptors that only octets at a delivery point may take.
  static constexpr uint32_t kReserveNodes = 256;

  explicit HoldStore(uint64_t octets);
  /// The memory that a store of this size takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t octets);

  [[nodiscard]] uint32_t open_session() { return next_session_++; }

  /// The page of a window, or nullptr.
  [[nodiscard]] uint8_t* find(uint32_t session, uint64_t window);
  /// The page of a window, taken from the store if the session has none for it. `general` and
  /// `reserve` say which part may give a page; the general part is asked first. nullptr: neither
  /// has one left.
  uint8_t* take(uint32_t session, uint64_t window, bool general, bool reserve);
  /// Changes the number of octets in use of a window's page. \param octets the change; a page
  /// without octets in use becomes free
  void add_use(uint32_t session, uint64_t window, int32_t octets);
  /// Octets in use of a window's page; 0: there is no page.
  [[nodiscard]] uint32_t use(uint32_t session, uint64_t window) const;

  [[nodiscard]] uint32_t general_free() const { return general_pages_ - general_used_; }
  [[nodiscard]] uint32_t reserve_free(uint32_t session) const {
    return reserve_used_ == 0 || reserve_session_ == session ? kReservePages - reserve_used_ : 0;
  }
  [[nodiscard]] uint64_t octets() const { return octets_; }
  [[nodiscard]] uint64_t octets_peak() const { return octets_peak_; }
  [[nodiscard]] uint64_t memory_octets() const {
    return uint64_t{general_used_ + reserve_used_} * kPageSize;
  }

  Pool<HeldRange>& ranges() { return ranges_; }
  Pool<PlacedPdu>& placed() { return placed_; }

  // Scratch space, whose contents are valid within one call into a session.
  LocatedSegment& segment() { return segment_; }
  uint8_t* scratch() { return scratch_.get(); }
  base::ByteView* pieces() { return pieces_.data(); }

  /// Recounts the pages and the octets in use.
  void validate() const;

 private:
  struct Page {
    uint64_t window = 0;
    uint32_t session = 0;
    uint32_t next = 0;  // link in its bucket, or in the free list
    uint32_t used = 0;  // octets in use; 0: the page is free
    bool reserve = false;
  };

  // A link is the number of a page plus 1; 0 ends the chain.
  [[nodiscard]] uint32_t bucket(uint32_t session, uint64_t window) const;
  [[nodiscard]] uint32_t index_of(uint32_t session, uint64_t window) const;
  void free_page(uint32_t index);

  uint32_t general_pages_;
  uint32_t general_used_ = 0;
  uint32_t reserve_used_ = 0;
  uint32_t reserve_session_ = 0;
  uint32_t next_session_ = 1;
  // Links to the first and the last of the pages that came back, which are taken in that order: a
  // session gives its windows back in a row, and the pages that the next row gets are one, too.
  uint32_t free_ = 0;
  uint32_t free_last_ = 0;  // means something while free_ is not 0
  uint32_t fresh_ = 0;      // the lowest page that was never taken
  uint32_t bucket_mask_;
  uint64_t octets_ = 0;
  uint64_t octets_peak_ = 0;
  base::ZeroArray<Page> pages_;
  base::ZeroArray<uint32_t> buckets_;  // links
  base::ZeroArray<uint8_t> memory_;
  Pool<HeldRange> ranges_;
  Pool<PlacedPdu> placed_;
  LocatedSegment segment_;
  std::unique_ptr<uint8_t[]> scratch_;
  std::array<base::ByteView, kPduSizeMax / kMarkerIntervalMin + 3> pieces_;
};

/// The octets that one session holds.
class HeldOctets {
 public:
  HeldOctets(HoldStore& store, uint64_t limit)
      : store_(store), limit_(limit), id_(store.open_session()) {}
  ~HeldOctets() { clear(); }
  HeldOctets(const HeldOctets&) = delete;
  HeldOctets& operator=(const HeldOctets&) = delete;

  /// What is held now and later counts as part of `share`. \param share nullptr: of none
  void set_share(HoldSharePtr share);

  /// add() would find room for this range. `at_delivery_point`: the reserve may be used.
  /// \param parts number of calls of add() by which the range will be added
  [[nodiscard]] bool has_room(base::Range range, bool at_delivery_point, uint32_t parts = 1) const {
    if (range.empty()) return true;
    // Mostly there is room even if none of the pages are there.
    const uint64_t last = (range.end - 1) / HoldStore::kPageSize;
    const uint64_t most = last - range.begin / HoldStore::kPageSize + 1;
    if (is_within_limits(range, parts) && most <= store_.general_free()) [[likely]]
      return true;
    return has_pages(range, at_delivery_point, parts);
  }
  /// The number of octets at the begin of `range` for which add() would find room.
  [[nodiscard]] uint32_t room_in(base::Range range, bool at_delivery_point) const;
  /// Octets for which add() finds room, wherever in a page the delivery point is.
  [[nodiscard]] uint32_t sure_room() const;
  /// Copies octets that are not held yet. \return the node of the range that holds them now, merged
  /// with its neighbours; kNone when there is no room.
  uint32_t add(base::Range range, base::ByteView octets, bool at_delivery_point, uint64_t next_pdu);
  /// Forgets octets of one held range. The part before them keeps the node; `next_pdu` says where
  /// the first PDU of the part behind them begins. \return the node of the part behind, or kNone.
  uint32_t erase(uint32_t node, base::Range range, uint64_t next_pdu);
  void clear();

  /// The node whose range contains `offset`, or kNone.
  [[nodiscard]] uint32_t containing(uint64_t offset) const;
  [[nodiscard]] uint32_t ending_at(uint64_t offset) const;
  [[nodiscard]] uint32_t beginning_at(uint64_t offset) const;
  [[nodiscard]] HeldRange& node(uint32_t index) const { return store_.ranges()[index]; }
  [[nodiscard]] bool can_split() const { return store_.ranges().free() > HoldStore::kReserveNodes; }
  /// There are few enough ranges for another split: half of them are reserved for octets behind
  /// holes.
  [[nodiscard]] bool has_few_ranges() const { return can_split() && count_ < kRangesMax / 2; }

  /// One octet that is held.
  [[nodiscard]] uint8_t octet(uint64_t offset) const;
  /// Copies held octets.
  void copy(base::Range range, uint8_t* dst) const;
  /// Held octets in one piece, at most kPduSizeMax: where they are if their pages lie in a row,
  /// otherwise copied to the store's scratch.
  [[nodiscard]] const uint8_t* contiguous(base::Range range);

  [[nodiscard]] uint64_t octets() const { return octets_; }
  [[nodiscard]] bool empty() const { return head_ == kNone; }
  /// The lowest held range; only when not empty().
  [[nodiscard]] base::Range first() const { return store_.ranges()[head_].range; }
  /// Checks that the ranges are sorted, apart from each other and linked both ways, that the store
  /// has their octets, and that the sums are right.
  void validate() const;

 private:
  [[nodiscard]] uint32_t last_at_or_before(uint64_t offset) const;
  uint32_t link(base::Range range, uint64_t next_pdu, uint32_t after);
  void unlink(uint32_t index);
  bool write(base::Range range, const uint8_t* src, bool at_delivery_point);
  void release(base::Range range);
  /// Octets until the session, or all that have its share, hold as much as they may.
  [[nodiscard]] uint64_t left() const {
    const uint64_t own = limit_ - std::min(octets_, limit_);
    return share_ == nullptr ? own : std::min(own, share_->left());
  }
  /// There are octets and nodes for the range, without the reserve.
  [[nodiscard]] bool is_within_limits(base::Range range, uint32_t parts) const {
    const uint32_t nodes = 2 * parts;  // an added part takes one, and splitting it takes another
    return range.size() <= left() && count_ + nodes <= kRangesMax &&
           store_.ranges().free() > HoldStore::kReserveNodes + nodes;
  }
  /// has_room() where it counts which pages are there.
  [[nodiscard]] bool has_pages(base::Range range, bool at_delivery_point, uint32_t parts) const;
  void count(uint64_t octets);
  void uncount(uint64_t octets);

  static constexpr uint32_t kRangesMax = 256;

  HoldStore& store_;
  uint64_t limit_;
  HoldSharePtr share_;  // nullptr: none
  uint64_t octets_ = 0;
  uint32_t id_;
  uint32_t head_ = kNone;
  uint32_t tail_ = kNone;
  uint32_t count_ = 0;
};

}  // namespace rnic::framing
