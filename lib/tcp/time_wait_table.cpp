#include "tcp/time_wait_table.hpp"

#include <algorithm>
#include <bit>

#include "base/bucket_heads.hpp"
#include "base/check.hpp"
#include "tcp/flow_table.hpp"

namespace rnic::tcp {

static_assert(sizeof(TimeWaitEntry) == 60, "with its share of the buckets 64 octets");

TimeWaitTable::TimeWaitTable(uint32_t capacity, base::Duration time, const Secret& secret)
    : entries_(std::max(capacity, 1u)),
      buckets_(std::bit_floor(std::max(capacity, 1u))),
      secret_(secret),
      time_ms_(static_cast<uint32_t>((time.count() + 999'999) / 1'000'000)) {}

uint32_t& TimeWaitTable::head(const Endpoint& local, const Endpoint& remote) {
  return buckets_[bucket(local, remote)];
}

size_t TimeWaitTable::bucket(const Endpoint& local, const Endpoint& remote) const {
  return FlowTable::hash(secret_, local, remote) & (buckets_.size() - 1);
}

void TimeWaitTable::link(uint32_t index) {
  TimeWaitEntry& entry = entries_[index];
  uint32_t& first = head(entry.local(), entry.remote());
  entry.next_ = (entry.next_ & kRestarted) | first;
  first = index + 1;
}

void TimeWaitTable::unlink(uint32_t index) {
  const TimeWaitEntry& entry = entries_[index];
  uint32_t& first = head(entry.local(), entry.remote());
  const uint32_t behind = entry.next_ & ~kRestarted;
  if (first == index + 1) {
    first = behind;
    return;
  }
  uint32_t before = first - 1;
  while ((entries_[before].next_ & ~kRestarted) != index + 1) {
    before = (entries_[before].next_ & ~kRestarted) - 1;
  }
  entries_[before].next_ = (entries_[before].next_ & kRestarted) | behind;
}

void TimeWaitTable::pop() {
  if (!entries_[first_].gone()) {
    unlink(first_);
    --live_;
  }
  first_ = (first_ + 1) % capacity();
  --used_;
}

bool TimeWaitTable::add(const Endpoint& local, const Endpoint& remote, const TimeWaitEntry& entry,
                        base::Now now) {
  bool displaced = false;
  if (used_ == capacity()) {
    displaced = !entries_[first_].gone();
    pop();
  }
  const uint32_t index = (first_ + used_) % capacity();
  ++used_;
  ++live_;
  TimeWaitEntry& place = entries_[index];
  place = entry;
  place.name(local, remote);
  place.expires_ms_ = milliseconds_of(now) + time_ms_;
  place.next_ = 0;
  link(index);
  return displaced;
}

TimeWaitEntry* TimeWaitTable::find(const Endpoint& local, const Endpoint& remote) {
  if (live_ == 0) return nullptr;
  for (uint32_t i = head(local, remote); i != 0; i = entries_[i - 1].next_ & ~kRestarted) {
    if (entries_[i - 1].is(local, remote)) return &entries_[i - 1];
  }
  return nullptr;
}

void TimeWaitTable::restart(TimeWaitEntry& entry, base::Now now) {
  entry.expires_ms_ = milliseconds_of(now) + time_ms_;
  entry.next_ |= kRestarted;
}

void TimeWaitTable::erase(TimeWaitEntry& entry) {
  unlink(static_cast<uint32_t>(&entry - entries_.data()));
  entry.remote_port_ = 0;
  --live_;
  while (used_ != 0 && entries_[first_].gone()) pop();
}

void TimeWaitTable::expire(base::Now now) {
  while (used_ != 0) {
    TimeWaitEntry& entry = entries_[first_];
    const bool due = static_cast<int32_t>(milliseconds_of(now) - entry.expires_ms_) >= 0;
    if (!entry.gone() && !due) {
      if ((entry.next_ & kRestarted) == 0) return;
      // The time of the entry was restarted, so it moves to the end of the ring.
      const TimeWaitEntry copy = entry;
      pop();
      const uint32_t index = (first_ + used_) % capacity();
      entries_[index] = copy;
      entries_[index].next_ = 0;
      ++used_;
      ++live_;
      link(index);
      continue;
    }
    pop();
  }
}

void TimeWaitTable::validate() const {
  RNIC_CHECK(used_ <= capacity() && first_ < capacity());
  RNIC_CHECK(used_ == 0 || !entries_[first_].gone());
  uint32_t live = 0;
  for (uint32_t i = 0; i < used_; ++i) {
    if (!entries_[(first_ + i) % capacity()].gone()) ++live;
  }
  RNIC_CHECK(live == live_);
  // Each live entry is in the chain of its bucket, once.
  uint32_t linked = 0;
  base::for_each_busy_bucket(buckets_, 0, [&](size_t b) {
    for (uint32_t i = buckets_[b]; i != 0; i = entries_[i - 1].next_ & ~kRestarted) {
      const TimeWaitEntry& entry = entries_[i - 1];
      RNIC_CHECK((i - 1 + capacity() - first_) % capacity() < used_ && !entry.gone());
      RNIC_CHECK(bucket(entry.local(), entry.remote()) == b && ++linked <= live_);
    }
  });
  RNIC_CHECK(linked == live_);
}

base::Now TimeWaitTable::next_deadline(base::Now now) const {
  if (used_ == 0) return base::kNever;
  const auto left = static_cast<int32_t>(entries_[first_].expires_ms_ - milliseconds_of(now));
  return base::from_nanos((base::nanos(now) / 1'000'000 + std::max(left, 1)) * 1'000'000);
}

}  // namespace rnic::tcp
