/// \file
/// Chooses the association that gives way when a table is full: the oldest one of the address that
/// holds the most places.
#pragma once

#include <cstdint>
#include <vector>

#include "base/siphash.hpp"
#include "base/slab.hpp"
#include "rnic/address.hpp"

namespace rnic::llp {

/// The associations of a table, ordered by their age and by the address that they come from. An
/// IPv6 host can choose its addresses from a whole /64, so a /64 counts as one address.
///
/// A peer that opens many associations cannot push out those of others, since it loses the oldest
/// of its own. All memory is taken at construction; every call costs at most the logarithm of the
/// capacity.
class Admission {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// \param secret keys the hash of addresses, since remote hosts choose theirs
  Admission(uint32_t capacity, const base::Secret& secret);

  /// The memory that a table of this capacity takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity);

  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(seats_.size()); }
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] bool full() const { return size_ == capacity(); }
  /// Places that the address holds, or in IPv6 all addresses of its /64.
  [[nodiscard]] uint32_t held_by(const IpAddress& address) const;

  /// Takes a place; full() must be false. \return the seat, to be passed to leave()
  uint32_t enter(const IpAddress& from, base::Handle who);
  void leave(uint32_t seat);

  /// The association whose place a newcomer from `from` takes: the oldest one of the address that
  /// holds the most places, where the newcomer is counted, too. Among addresses that hold equally
  /// many it is the oldest of all. Invalid: the table is empty.
  [[nodiscard]] base::Handle gives_way(const IpAddress& from) const;
  /// The association that gives way when there is no newcomer to count.
  [[nodiscard]] base::Handle gives_way() const;
  /// Recounts the seats of each holder, and checks the order of the heap.
  void validate() const;

 private:
  struct Seat {
    base::Handle who;
    uint64_t number = 0;       // number of the entry: lower is older
    uint32_t holder = kNone;   // kNone: free
    uint32_t older = kNone;    // of the same holder
    uint32_t younger = kNone;  // of the same holder; of a free seat the next free one
  };
  struct Holder {
    IpAddress prefix;
    uint32_t count = 0;  // 0: free
    uint32_t oldest = kNone;
    uint32_t youngest = kNone;
    uint32_t rank = 0;      // index of this holder in ranks_
    uint32_t next = kNone;  // next holder in the same bucket, or the next free one
  };

  [[nodiscard]] static IpAddress prefix_of(const IpAddress& address);
  [[nodiscard]] uint32_t find(const IpAddress& prefix) const;
  [[nodiscard]] size_t index_of(const IpAddress& prefix) const;
  uint32_t make_holder(const IpAddress& prefix);
  void free_holder(uint32_t holder);

  /// `a` gives way before `b`.
  [[nodiscard]] bool before(uint32_t a, uint32_t b) const;
  void place(uint32_t rank, uint32_t holder);
  void rise(uint32_t rank);
  void sink(uint32_t rank);
  void ranked_anew(uint32_t holder);

  base::Secret secret_;
  std::vector<Seat> seats_;
  std::vector<Holder> holders_;
  std::vector<uint32_t> buckets_;  // heads of chains; a power of two
  std::vector<uint32_t> ranks_;    // a heap of holders: the one that gives way first is in front
  uint32_t free_seat_ = kNone;
  uint32_t free_holder_ = kNone;
  uint32_t size_ = 0;
  uint64_t entered_ = 0;
};

}  // namespace rnic::llp
