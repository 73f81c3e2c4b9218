#include "framing/placed_list.hpp"

namespace rnic::framing {

PlacedPdu& PlacedList::insert(const PduSpan& span, bool early) {
  const uint32_t i = pool_.take();
  PlacedPdu& entry = pool_[i];
  entry.begin = span.begin;
  entry.end = span.end;
  entry.unit_end = span.unit_end;
  entry.ulpdu_length = span.ulpdu_length;
  entry.early = early;
  entry.prev = last_before(span.begin);
  entry.next = entry.prev == kNone ? head_ : pool_[entry.prev].next;
  (entry.prev == kNone ? head_ : pool_[entry.prev].next) = i;
  (entry.next == kNone ? tail_ : pool_[entry.next].prev) = i;
  hint_ = i;
  early_ += early ? 1 : 0;
  return entry;
}

void PlacedList::pop_front() {
  const uint32_t i = head_;
  early_ -= pool_[i].early ? 1 : 0;
  head_ = pool_[i].next;
  (head_ == kNone ? tail_ : pool_[head_].prev) = kNone;
  if (hint_ == i) hint_ = head_;
  pool_.give(i);
}

void PlacedList::clear() {
  while (head_ != kNone) pop_front();
}

/// The last entry that begins before `offset`. The search starts at the front of the list or where
/// the last one ended, for arrivals are near each other.
uint32_t PlacedList::last_before(uint64_t offset) const {
  if (head_ == kNone || pool_[head_].begin >= offset) return kNone;
  uint32_t i = hint_ != kNone ? hint_ : head_;
  while (pool_[i].begin >= offset) i = pool_[i].prev;
  while (pool_[i].next != kNone && pool_[pool_[i].next].begin < offset) i = pool_[i].next;
  hint_ = i;
  return i;
}

bool PlacedList::ends_at(uint64_t offset) const {
  const uint32_t i = last_before(offset);
  return i != kNone && pool_[i].end == offset;
}

uint64_t PlacedList::first_begin_from(uint64_t offset) const {
  const uint32_t before = last_before(offset);
  const uint32_t i = before == kNone ? head_ : pool_[before].next;
  return i == kNone ? UINT64_MAX : pool_[i].begin;
}

}  // namespace rnic::framing
