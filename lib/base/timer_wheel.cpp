#include "base/timer_wheel.hpp"

#include <algorithm>
#include <bit>

namespace rnic::base {

void TimerWheel::arm(TimerNode& node, Now deadline) {
  if (node.armed()) unlink(node);
  node.deadline = deadline;
  if (deadline == kNever) return;
  insert(node);
}

void TimerWheel::cancel(TimerNode& node) {
  if (node.armed()) unlink(node);
  node.deadline = kNever;
}

void TimerWheel::insert(TimerNode& node) {
  const uint64_t tick = std::max(firing_tick(node.deadline), current_tick_);
  const uint64_t delta = tick - current_tick_;
  int level = 0;
  while (level < kLevels - 1 && delta >> (kLevelBits * (level + 1)) != 0) ++level;
  uint64_t slot_tick = tick >> (kLevelBits * level);
  // Beyond the horizon: park in the farthest bucket of the last level, to be sorted in again.
  const uint64_t horizon = (current_tick_ >> (kLevelBits * level)) + kBuckets - 1;
  if (slot_tick > horizon) slot_tick = horizon;
  const int slot = static_cast<int>(slot_tick & (kBuckets - 1));
  node.bucket = static_cast<uint16_t>(level * kBuckets + slot);
  TimerNode& head = heads_[node.bucket];
  node.prev = head.prev;
  node.next = &head;
  head.prev->next = &node;
  head.prev = &node;
  occupied_[level] |= 1ull << slot;
  ++armed_;
  not_before_ = std::min(not_before_, time_of(slot_tick << (kLevelBits * level)));
}

void TimerWheel::unlink(TimerNode& node) {
  node.prev->next = node.next;
  node.next->prev = node.prev;
  if (node.bucket != kDueBucket) {
    const TimerNode& head = heads_[node.bucket];
    if (head.next == &head) {
      occupied_[node.bucket / kBuckets] &= ~(1ull << (node.bucket % kBuckets));
    }
  }
  node.next = node.prev = nullptr;
  node.bucket = UINT16_MAX;
  --armed_;
}

void TimerWheel::validate() const {
  uint32_t armed = 0;
  for (uint32_t bucket = 0; bucket < heads_.size(); ++bucket) {
    const TimerNode& head = heads_[bucket];
    const uint32_t slot = bucket % kBuckets;
    const int level = static_cast<int>(bucket / kBuckets);
    RNIC_CHECK((occupied_[level] >> slot & 1) == (head.next != &head ? 1 : 0));
    if (head.next == &head && head.prev == &head) continue;  // nearly all of them
    const uint64_t base = current_tick_ >> (kLevelBits * level);
    const uint64_t due = (base + ((slot - base) & (kBuckets - 1))) << (kLevelBits * level);
    const TimerNode* before = &head;
    for (const TimerNode* node = head.next; node != &head; before = node, node = node->next) {
      RNIC_CHECK(node->prev == before && node->bucket == bucket);
      RNIC_CHECK(due <= std::max(firing_tick(node->deadline), current_tick_));
      ++armed;
    }
    RNIC_CHECK(head.prev == before);
  }
  RNIC_CHECK(armed == armed_);
  RNIC_CHECK(not_before_ <= next_deadline());
}

Now TimerWheel::next_deadline() const {
  if (armed_ == 0) return kNever;
  return time_of(next_busy_tick());
}

bool TimerWheel::is_due(Now now) {
  not_before_ = next_deadline();
  return not_before_ <= now;
}

// A bucket of a coarse level is due at its first tick, to be sorted into the finer levels.
uint64_t TimerWheel::next_busy_tick() const {
  uint64_t best = UINT64_MAX;
  for (int level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    const uint64_t base = current_tick_ >> (kLevelBits * level);
    const int slot = static_cast<int>(base & (kBuckets - 1));
    const int distance = std::countr_zero(std::rotr(occupied_[level], slot));
    const uint64_t tick = (base + static_cast<uint64_t>(distance)) << (kLevelBits * level);
    best = tick < best ? tick : best;
  }
  return best < current_tick_ ? current_tick_ : best;
}

void TimerWheel::collect(Now now, TimerNode& due) {
  const uint64_t target = tick_of(now);
  while (current_tick_ <= target) {
    // Ticks with nothing to fire and nothing to sort are jumped over, however many they are.
    const uint64_t next = next_busy_tick();
    if (next > target) {
      current_tick_ = target + 1;
      return;
    }
    current_tick_ = next;
    advance_one_tick(due);
  }
}

void TimerWheel::advance_one_tick(TimerNode& due) {
  // Cascade: a coarse bucket whose time has come is sorted into the finer levels.
  for (int level = kLevels - 1; level > 0; --level) {
    if ((current_tick_ & ((1ull << (kLevelBits * level)) - 1)) != 0) continue;
    const int slot = static_cast<int>((current_tick_ >> (kLevelBits * level)) & (kBuckets - 1));
    TimerNode& head = heads_[level * kBuckets + slot];
    TimerNode* parked_at = &head;
    // Nodes that sort back into this same bucket go to its end: stop at the old end.
    TimerNode* last = head.prev;
    while (head.next != parked_at) {
      TimerNode& node = *head.next;
      const bool was_last = &node == last;
      unlink(node);
      insert(node);
      if (was_last) break;
    }
  }
  const int slot = static_cast<int>(current_tick_ & (kBuckets - 1));
  TimerNode& head = heads_[slot];
  while (head.next != &head) {
    TimerNode& node = *head.next;
    unlink(node);
    node.prev = due.prev;
    node.next = &due;
    due.prev->next = &node;
    due.prev = &node;
    node.bucket = kDueBucket;
    ++armed_;
  }
  ++current_tick_;
}

}  // namespace rnic::base
