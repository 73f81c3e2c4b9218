/// \file
/// Rings of slots that the endpoints of a device use in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/check.hpp"
#include "base/zero_array.hpp"

namespace rnic::rdmap {

/// Rings of one size. Whoever may need one is promised one, and takes it while there is something
/// in it: the memory touched is that of the rings that were in use at once, and not of all that are
/// promised. Memory is asked for with the promises, so that a ring that is taken is always there
/// and taking it allocates nothing. A slot is zero, or as it was left by whoever had the ring last.
template <typename Slot>
class RingPool {
 public:
  explicit RingPool(uint32_t slots) : slots_(slots) {}

  /// \throw std::bad_alloc: nothing has happened
  void promise() {
    if (promised_ == capacity_) grow();
    ++promised_;
  }
  /// That many rings fewer than were promised may be needed. Precondition: none of them is taken.
  void withdraw() { --promised_; }

  /// The ring that came back last, else one that was never taken. Called once for each promise,
  /// until the ring is given back.
  [[nodiscard]] Slot* take() {
    RNIC_CHECK(taken_ < promised_);
    ++taken_;
    if (back_.empty()) return fresh();
    Slot* const ring = back_.back();
    back_.pop_back();
    return ring;
  }
  void give(Slot* ring) {
    --taken_;
    back_.push_back(ring);
  }

  [[nodiscard]] uint32_t slots() const { return slots_; }
  [[nodiscard]] uint32_t promised() const { return promised_; }
  [[nodiscard]] uint32_t taken() const { return taken_; }
  /// How many rings were ever in use at once: those whose memory was touched.
  [[nodiscard]] uint32_t touched() const { return fresh_; }

  /// Checks that a ring is there for each promise, and that each ring that was ever taken is with
  /// somebody or has come back.
  void validate() const {
    RNIC_CHECK(taken_ <= promised_ && promised_ <= capacity_);
    RNIC_CHECK(back_.capacity() >= capacity_);
    RNIC_CHECK(back_.size() + taken_ == fresh_);
  }

 private:
  static constexpr uint32_t kFirstRings = 8;

  /// Each block doubles what there is: a few large ones are left untouched by calloc(), which
  /// clears what it takes from the heap's top.
  void grow() {
    const uint32_t more = std::max(capacity_, kFirstRings);
    back_.reserve(size_t{capacity_} + more);
    blocks_.emplace_back(size_t{more} * slots_);
    capacity_ += more;
  }
  Slot* fresh() {
    if (next_ == blocks_[block_].size()) {
      ++block_;
      next_ = 0;
    }
    Slot* const ring = &blocks_[block_][next_];
    next_ += slots_;
    ++fresh_;
    return ring;
  }

  const uint32_t slots_;  // of each ring
  std::vector<base::ZeroArray<Slot>> blocks_;
  std::vector<Slot*> back_;  // Invariant: has room for all rings, so that give() allocates nothing
  size_t block_ = 0;         // where the next ring is that was never taken, and there
  size_t next_ = 0;          // its first slot
  uint32_t capacity_ = 0;    // rings of all blocks
  uint32_t fresh_ = 0;       // rings that were taken once
  uint32_t taken_ = 0;       // Invariant: <= promised_
  uint32_t promised_ = 0;    // Invariant: <= capacity_; one for each Ring
};

/// The ring of one endpoint: promised to it for its life, and taken while it is needed.
template <typename Slot>
class Ring {
 public:
  /// \param pool outlives this
  explicit Ring(RingPool<Slot>& pool) : pool_(pool), mask_(pool.slots() - 1) { pool_.promise(); }
  ~Ring() {
    if (is_taken()) give();
    pool_.withdraw();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] bool is_taken() const { return slots_ != nullptr; }
  /// Precondition: the ring is not taken.
  void take() { slots_ = pool_.take(); }
  /// Precondition: the ring is taken. What is in it is lost.
  void give() {
    pool_.give(slots_);
    slots_ = nullptr;
  }
  [[nodiscard]] uint32_t size() const { return mask_ + 1; }
  /// The slot of a sequence number. Precondition: the ring is taken.
  [[nodiscard]] Slot& operator[](uint32_t seq) { return slots_[seq & mask_]; }
  [[nodiscard]] const Slot& operator[](uint32_t seq) const { return slots_[seq & mask_]; }

 private:
  RingPool<Slot>& pool_;
  Slot* slots_ = nullptr;
  const uint32_t mask_;
};

/// The rings of a device, of all sizes: a pool for each.
template <typename Slot>
class RingStore {
 public:
  /// Promises a ring. \param slots a power of two \throw std::bad_alloc: nothing was promised
  [[nodiscard]] Ring<Slot> promise(uint32_t slots) {
    RNIC_CHECK(slots != 0 && (slots & (slots - 1)) == 0);
    return Ring<Slot>(pools_.try_emplace(slots, slots).first->second);
  }
  /// Precondition: a ring of so many slots was promised once.
  [[nodiscard]] const RingPool<Slot>& pool(uint32_t slots) const { return pools_.at(slots); }

  void validate() const {
    for (const auto& [slots, pool] : pools_) pool.validate();
  }

 private:
  std::map<uint32_t, RingPool<Slot>> pools_;  // by the slots of a ring; they stay where they are
};

}  // namespace rnic::rdmap
