#include "framing/placed_list.hpp"

#include "base/check.hpp"

namespace rnic::framing {

[[gnu::noinline]] void PlacedList::link(uint32_t i) {
  PlacedPdu& entry = pool_[i];
  entry.prev = last_before(entry.begin);
  entry.next = entry.prev == kNone ? head_ : pool_[entry.prev].next;
  (entry.prev == kNone ? head_ : pool_[entry.prev].next) = i;
  (entry.next == kNone ? tail_ : pool_[entry.next].prev) = i;
  if (entry.next != kNone) hint_ = i;
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

/// The last entry that begins before `offset`. Most arrivals go to the end of the list. Where one
/// fills a hole, the search starts where the last such one ended, since these are near each other.
uint32_t PlacedList::last_before(uint64_t offset) const {
  if (tail_ != kNone && pool_[tail_].begin < offset) [[likely]]
    return tail_;
  if (head_ == kNone || pool_[head_].begin >= offset) return kNone;
  uint32_t i = hint_ != kNone ? hint_ : tail_;
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

void PlacedList::validate() const {
  uint32_t early = 0;
  uint32_t before = kNone;
  bool hint_found = hint_ == kNone;
  for (uint32_t i = head_; i != kNone; before = i, i = pool_[i].next) {
    const PlacedPdu& pdu = pool_[i];
    RNIC_CHECK(pdu.begin < pdu.end && pdu.prev == before);
    RNIC_CHECK(before == kNone || pool_[before].end <= pdu.begin);
    early += pdu.early ? 1 : 0;
    hint_found = hint_found || i == hint_;
  }
  RNIC_CHECK(before == tail_ && hint_found);
  RNIC_CHECK(early == early_ && early <= limit_);
}

}  // namespace rnic::framing
