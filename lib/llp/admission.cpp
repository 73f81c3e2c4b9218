#include "llp/admission.hpp"

#include <bit>

#include "base/check.hpp"

namespace rnic::llp {

Admission::Admission(uint32_t capacity, const base::Secret& secret)
    : secret_(secret),
      seats_(capacity),
      holders_(capacity),
      buckets_(std::bit_ceil(capacity + 1), kNone) {
  RNIC_CHECK(capacity != 0);
  ranks_.reserve(capacity);
  for (uint32_t i = capacity; i-- > 0;) {
    seats_[i].younger = free_seat_;
    free_seat_ = i;
    holders_[i].next = free_holder_;
    free_holder_ = i;
  }
}

uint64_t Admission::octets_for(uint64_t capacity) {
  return capacity * (sizeof(Seat) + sizeof(Holder) + sizeof(uint32_t)) +
         std::bit_ceil(capacity + 1) * sizeof(uint32_t);
}

/// The part of an address that a host cannot choose: the lower half of an IPv6 address is the
/// host's (RFC 4291 s.2.5.4).
IpAddress Admission::prefix_of(const IpAddress& address) {
  return address.is_v4() ? address : IpAddress(address.high(), 0);
}

size_t Admission::index_of(const IpAddress& prefix) const {
  base::SipHash hash(secret_);
  hash.add(prefix.high());
  hash.add(prefix.low());
  return hash.finish() & (buckets_.size() - 1);
}

uint32_t Admission::find(const IpAddress& prefix) const {
  uint32_t holder = buckets_[index_of(prefix)];
  while (holder != kNone && holders_[holder].prefix != prefix) holder = holders_[holder].next;
  return holder;
}

uint32_t Admission::held_by(const IpAddress& address) const {
  const uint32_t holder = find(prefix_of(address));
  return holder == kNone ? 0 : holders_[holder].count;
}

uint32_t Admission::make_holder(const IpAddress& prefix) {
  const uint32_t holder = free_holder_;
  free_holder_ = holders_[holder].next;
  uint32_t& head = buckets_[index_of(prefix)];
  holders_[holder] = {.prefix = prefix, .next = head};
  head = holder;
  holders_[holder].rank = static_cast<uint32_t>(ranks_.size());
  ranks_.push_back(holder);
  return holder;
}

void Admission::free_holder(uint32_t holder) {
  const uint32_t rank = holders_[holder].rank;
  const uint32_t last = ranks_.back();
  ranks_.pop_back();
  if (last != holder) {
    place(rank, last);
    ranked_anew(last);
  }
  uint32_t* link = &buckets_[index_of(holders_[holder].prefix)];
  while (*link != holder) link = &holders_[*link].next;
  *link = holders_[holder].next;
  holders_[holder] = {};
  holders_[holder].next = free_holder_;
  free_holder_ = holder;
}

uint32_t Admission::enter(const IpAddress& from, base::Handle who) {
  RNIC_CHECK(!full());
  const IpAddress prefix = prefix_of(from);
  uint32_t holder = find(prefix);
  if (holder == kNone) holder = make_holder(prefix);
  const uint32_t seat = free_seat_;
  free_seat_ = seats_[seat].younger;
  Holder& mine = holders_[holder];
  seats_[seat] = {.who = who, .number = entered_++, .holder = holder, .older = mine.youngest};
  (mine.youngest == kNone ? mine.oldest : seats_[mine.youngest].younger) = seat;
  mine.youngest = seat;
  ++mine.count;
  ++size_;
  ranked_anew(holder);
  return seat;
}

void Admission::leave(uint32_t seat) {
  Seat& gone = seats_[seat];
  RNIC_CHECK(gone.holder != kNone);
  const uint32_t holder = gone.holder;
  Holder& mine = holders_[holder];
  (gone.older == kNone ? mine.oldest : seats_[gone.older].younger) = gone.younger;
  (gone.younger == kNone ? mine.youngest : seats_[gone.younger].older) = gone.older;
  gone = {};
  gone.younger = free_seat_;
  free_seat_ = seat;
  --size_;
  if (--mine.count == 0) {
    free_holder(holder);
  } else {
    ranked_anew(holder);
  }
}

base::Handle Admission::gives_way() const {
  return ranks_.empty() ? base::Handle{} : seats_[holders_[ranks_.front()].oldest].who;
}

base::Handle Admission::gives_way(const IpAddress& from) const {
  const uint32_t own = find(prefix_of(from));
  if (own == kNone) return gives_way();
  const Holder& mine = holders_[own];
  const Holder& first = holders_[ranks_.front()];
  const uint32_t with_newcomer = mine.count + 1;
  const bool older = seats_[mine.oldest].number <= seats_[first.oldest].number;
  const bool own_first = with_newcomer > first.count || (with_newcomer == first.count && older);
  return own_first ? seats_[mine.oldest].who : gives_way();
}

void Admission::validate() const {
  uint32_t seated = 0;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Holder& holder = holders_[ranks_[rank]];
    RNIC_CHECK(holder.rank == rank && holder.count != 0 && find(holder.prefix) == ranks_[rank]);
    RNIC_CHECK(rank == 0 || !before(ranks_[rank], ranks_[(rank - 1) / 2]));
    uint32_t count = 0;
    uint32_t older = kNone;
    for (uint32_t i = holder.oldest; i != kNone; older = i, i = seats_[i].younger) {
      RNIC_CHECK(seats_[i].holder == ranks_[rank] && seats_[i].older == older);
      RNIC_CHECK(older == kNone || seats_[older].number < seats_[i].number);
      RNIC_CHECK(++count <= holder.count);
    }
    RNIC_CHECK(older == holder.youngest && count == holder.count);
    seated += count;
  }
  RNIC_CHECK(seated == size_ && size_ <= capacity());
}

// --- the heap ---

bool Admission::before(uint32_t a, uint32_t b) const {
  const Holder& one = holders_[a];
  const Holder& other = holders_[b];
  if (one.count != other.count) return one.count > other.count;
  return seats_[one.oldest].number < seats_[other.oldest].number;
}

void Admission::place(uint32_t rank, uint32_t holder) {
  ranks_[rank] = holder;
  holders_[holder].rank = rank;
}

void Admission::rise(uint32_t rank) {
  const uint32_t holder = ranks_[rank];
  while (rank != 0 && before(holder, ranks_[(rank - 1) / 2])) {
    place(rank, ranks_[(rank - 1) / 2]);
    rank = (rank - 1) / 2;
  }
  place(rank, holder);
}

void Admission::sink(uint32_t rank) {
  const uint32_t holder = ranks_[rank];
  const auto count = static_cast<uint32_t>(ranks_.size());
  for (uint32_t child = 2 * rank + 1; child < count; child = 2 * rank + 1) {
    if (child + 1 < count && before(ranks_[child + 1], ranks_[child])) ++child;
    if (!before(ranks_[child], holder)) break;
    place(rank, ranks_[child]);
    rank = child;
  }
  place(rank, holder);
}

void Admission::ranked_anew(uint32_t holder) {
  rise(holders_[holder].rank);
  sink(holders_[holder].rank);
}

}  // namespace rnic::llp
