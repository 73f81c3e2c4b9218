/// \file
/// A sorted list of the PDUs that are placed and wait until the order reaches them, with what their
/// delivery needs.
#pragma once

#include <cstdint>

#include "framing/hold_store.hpp"

namespace rnic::framing {

/// The list of one session, whose nodes come from the store's pool. At most `limit` PDUs in the
/// list were placed out of order; those placed in order are of one segment at a time.
class PlacedList {
 public:
  PlacedList(HoldStore& store, uint32_t limit) : pool_(store.placed()), limit_(limit) {}
  ~PlacedList() { clear(); }
  PlacedList(const PlacedList&) = delete;
  PlacedList& operator=(const PlacedList&) = delete;

  [[nodiscard]] bool has_room(bool early) const {
    if (!early) return pool_.free() != 0;
    return early_ < limit_ && pool_.free() > HoldStore::kReserveNodes;
  }
  /// Adds an entry at its place in the order; has_room() must be true. The caller fills in the
  /// header.
  PlacedPdu& insert(const PduSpan& span, bool early) {
    const uint32_t i = pool_.take();
    PlacedPdu& entry = pool_[i];
    entry.begin = span.begin;
    entry.end = span.end;
    entry.unit_end = span.unit_end;
    entry.ulpdu_length = span.ulpdu_length;
    entry.early = early;
    early_ += early ? 1 : 0;
    if (tail_ == kNone || pool_[tail_].begin >= span.begin) [[unlikely]] {
      link(i);
      return entry;
    }
    entry.prev = tail_;
    entry.next = kNone;
    pool_[tail_].next = i;
    tail_ = i;
    return entry;
  }
  void pop_front();
  void clear();

  [[nodiscard]] PlacedPdu* front() { return head_ == kNone ? nullptr : &pool_[head_]; }
  [[nodiscard]] bool empty() const { return head_ == kNone; }
  /// The last PDU in the list ends exactly at `offset`: most segments behind a hole begin there.
  [[nodiscard]] bool last_ends_at(uint64_t offset) const {
    return tail_ != kNone && pool_[tail_].end == offset;
  }
  /// A PDU in the list ends exactly at `offset`.
  [[nodiscard]] bool ends_at(uint64_t offset) const;
  /// Start of the first PDU in the list that begins at or behind `offset`; UINT64_MAX when none
  /// does.
  [[nodiscard]] uint64_t first_begin_from(uint64_t offset) const;
  /// Checks that the PDUs are sorted, apart from each other and linked both ways, and recounts the
  /// early ones.
  void validate() const;

 private:
  /// Links a new entry at its place in the order.
  void link(uint32_t i);
  [[nodiscard]] uint32_t last_before(uint64_t offset) const;

  Pool<PlacedPdu>& pool_;
  uint32_t head_ = kNone;
  uint32_t tail_ = kNone;
  mutable uint32_t hint_ = kNone;  // an entry of the list near the one found last
  uint32_t early_ = 0;
  uint32_t limit_;
};

}  // namespace rnic::framing
