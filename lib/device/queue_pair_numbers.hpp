/// \file
/// QueuePairNumbers: the numbers of a device's queue pairs.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace rnic::device {

/// The low bits of a number are a slot of a table, and the bits above count the lives of this slot.
/// So a completion, an event or an STag that bears the number of a former life is never taken for
/// one of the present life: a slot's number comes again only after 2^32 lives divided by the number
/// of slots (rounded up to a power of two). take() gives out the slot that has been free longest.
///
/// The first life of slot n has number n. Numbers are never 0, and never UINT32_MAX.
class QueuePairNumbers {
 public:
  /// \param slots how many there are; they are numbered from 1
  explicit QueuePairNumbers(uint32_t slots)
      : lives_from_(std::bit_ceil(slots + 1)), next_number_(slots + 1), next_free_(slots + 1) {
    for (uint32_t slot = 1; slot <= slots; ++slot) {
      next_number_[slot] = slot;
      append(slot);
    }
  }

  [[nodiscard]] uint32_t slot_of(uint32_t number) const { return number & (lives_from_ - 1); }
  /// The number of the next life of the slot of `number`.
  [[nodiscard]] uint32_t after(uint32_t number) const {
    const uint32_t next = number + lives_from_;
    return next == UINT32_MAX ? slot_of(next) : next;
  }
  /// Takes a slot. \return its number; nothing: no slot is free
  std::optional<uint32_t> take() {
    if (first_free_ == 0) return std::nullopt;
    const uint32_t slot = first_free_;
    first_free_ = next_free_[slot];
    if (first_free_ == 0) last_free_ = 0;
    return next_number_[slot];
  }
  /// The slot is free again. \param number of its last life
  void give_back(uint32_t number) {
    next_number_[slot_of(number)] = after(number);
    append(slot_of(number));
  }

 private:
  void append(uint32_t slot) {
    next_free_[slot] = 0;
    (last_free_ == 0 ? first_free_ : next_free_[last_free_]) = slot;
    last_free_ = slot;
  }

  uint32_t lives_from_;                // a power of two above every slot
  std::vector<uint32_t> next_number_;  // by slot; meaningless for a slot in use
  std::vector<uint32_t> next_free_;    // by slot: the next free slot; 0: it is the last
  uint32_t first_free_ = 0;            // 0: none is free
  uint32_t last_free_ = 0;
};

}  // namespace rnic::device
