/// \file
/// Steering tags, and the record of those that are given out.
#pragma once

#include <cstdint>
#include <optional>

#include "base/secret_permutation.hpp"
#include "base/siphash.hpp"
#include "base/zero_array.hpp"

namespace rnic::mem {

/// Steering tag: 24 bits of index, and 8 bits of key, the low octet, which its owner may choose
/// (RDMAC verbs).
struct Stag {
  uint32_t value = 0;

  [[nodiscard]] constexpr uint32_t index() const { return value >> 8; }
  [[nodiscard]] constexpr uint8_t key() const { return static_cast<uint8_t>(value); }
  [[nodiscard]] constexpr Stag with_key(uint8_t key) const { return {(value & ~0xffu) | key}; }
  friend constexpr bool operator==(Stag, Stag) = default;
};

/// Gives an STag to each slot of a table. The low bits of an STag's index name the slot; the bits
/// above them and the key are drawn anew each time, so that STags are spread over their whole range
/// (RFC 5040 s.8.1.1 (8)). Of all free slots the one given back last is given out last (RFC 5042
/// s.6.1.1), and never with the value that it had before.
class StagNames {
 public:
  /// At least 9 bits of an STag are never a slot's number.
  static constexpr uint32_t kMaxSlots = (1u << 23) - 1;

  /// \param limit slots are 1 .. limit, slot 0 is never given out; at most kMaxSlots
  StagNames(uint32_t limit, const base::Secret& secret);

  [[nodiscard]] static uint32_t slots_of(uint32_t limit);
  [[nodiscard]] static uint64_t octets_for(uint32_t limit);

  [[nodiscard]] uint32_t limit() const { return static_cast<uint32_t>(back_.size()); }
  /// How many are given out.
  [[nodiscard]] uint32_t live() const { return live_; }
  [[nodiscard]] bool empty() const { return live_ == limit(); }

  /// The slot that an STag names; for an STag that was not given out it may be above limit().
  [[nodiscard]] uint32_t slot_of(Stag stag) const { return stag.index() & slot_mask_; }

  /// Takes a free slot and returns its STag. Precondition: not empty(). \param key nothing: it is
  /// drawn
  [[nodiscard]] Stag take(std::optional<uint8_t> key);
  /// A value that no slot ever has: one of slot 0. It is never 0, which some peers take for memory
  /// that needs no registration.
  [[nodiscard]] Stag nobodys();
  /// Gives the slot of `last` another key, which nobody can guess.
  [[nodiscard]] Stag with_new_key(Stag last) {
    return last.with_key(static_cast<uint8_t>(last.key() + 1 + source_.below(255)));
  }
  /// Gives a slot back. \param last the value that it had last
  void give_back(Stag last);

 private:
  [[nodiscard]] Stag fresh_name();
  [[nodiscard]] Stag renamed(Stag last, std::optional<uint8_t> key);

  uint32_t slot_bits_;
  uint32_t slot_mask_;
  base::ZeroArray<uint32_t> back_;  // ring of values given back, oldest at head_; size: limit
  uint32_t head_ = 0;
  uint32_t fresh_ = 0;  // slots given out for the first time
  uint32_t live_ = 0;   // Invariant: the ring holds fresh_ - live_ values
  base::SecretSource source_;
  base::SecretSource nobodys_;  // apart, so that the values of slots do not depend on it
  base::SecretPermutation order_;
};

}  // namespace rnic::mem
