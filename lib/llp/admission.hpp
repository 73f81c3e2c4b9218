/// \file
/// A table of associations that is full makes room: the oldest of the address that holds most
/// gives way.
#pragma once

#include <cstdint>
#include <vector>

#include "base/siphash.hpp"
#include "base/slab.hpp"
#include "rnic/address.hpp"

namespace rnic::llp {

/// Associations that may be given up for others, by age and by the address that they come from. An
/// IPv6 host has a whole /64 to choose its addresses from, so there the /64 counts as one.
///
/// Nobody can buy more than a place: who opens many pays with the oldest of its own. All memory is
/// taken at construction; every call costs at most the logarithm of the capacity.
class Admission {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// \param secret keys the search by address: strangers choose their addresses
  Admission(uint32_t capacity, const base::Secret& secret);

  /// What a table asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity);

  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(seats_.size()); }
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] bool full() const { return size_ == capacity(); }
  /// Places that the address has, or in IPv6 its /64.
  [[nodiscard]] uint32_t held_by(const IpAddress& address) const;

  /// full() is false. \return the seat, for leave()
  uint32_t enter(const IpAddress& from, base::Handle who);
  void leave(uint32_t seat);

  /// Whose place a newcomer from `from` takes: the oldest of the address that holds most, the
  /// newcomer counted in; among addresses that hold as many the oldest of all. Invalid: nobody is
  /// here.
  [[nodiscard]] base::Handle gives_way(const IpAddress& from) const;
  /// The same without a newcomer.
  [[nodiscard]] base::Handle gives_way() const;
  /// Counts the seats anew, by holder, and checks that who gives way stands in front.
  void validate() const;

 private:
  struct Seat {
    base::Handle who;
    uint64_t number = 0;       // of the entry: lower is older
    uint32_t holder = kNone;   // kNone: free
    uint32_t older = kNone;    // of the same holder
    uint32_t younger = kNone;  // of the same holder; of a free seat the next free one
  };
  struct Holder {
    IpAddress prefix;
    uint32_t count = 0;  // 0: free
    uint32_t oldest = kNone;
    uint32_t youngest = kNone;
    uint32_t rank = 0;      // its index in ranks_
    uint32_t next = kNone;  // in its bucket; of a free holder the next free one
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
  std::vector<uint32_t> ranks_;    // a heap of holders: who gives way first stands in front
  uint32_t free_seat_ = kNone;
  uint32_t free_holder_ = kNone;
  uint32_t size_ = 0;
  uint64_t entered_ = 0;
};

}  // namespace rnic::llp
