/// \file
/// Registered memory of a simulated application: a region between guard octets, in which every
/// octet has one lawful value at any time (or two, while a message is on its way).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "address_space.hpp"
#include "base/bytes.hpp"
#include "base/prng.hpp"

namespace rnic::simulation {

/// What memory holds that no message has been placed in.
inline constexpr uint8_t kPoison = 0xe7;

/// Octet `index` of the content named `key`.
[[nodiscard]] uint8_t pattern_octet(uint64_t key, uint64_t index);
/// Writes octets `first`.. of the content `key`.
void fill_pattern(base::ByteSpan out, uint64_t key, uint64_t first);
/// Index of the first octet of `in` that is not the content; nothing when all are.
[[nodiscard]] std::optional<uint64_t> pattern_difference(base::ByteView in, uint64_t key,
                                                         uint64_t first);

/// A part of a region.
struct Slice {
  uint64_t offset = 0;
  uint32_t length = 0;
};

/// Memory with guards in front and behind, handed out in slices with poison between them.
class GuardedMemory {
 public:
  explicit GuardedMemory(uint64_t octets);

  [[nodiscard]] uint8_t* data() { return octets_.data() + kGuard; }
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] base::ByteSpan view(Slice s) { return {data() + s.offset, s.length}; }

  /// The first free slice; nothing when none is free now.
  [[nodiscard]] std::optional<Slice> take_first(uint32_t length);
  /// A free slice at a place that the generator chooses; nothing when none is free now.
  [[nodiscard]] std::optional<Slice> take(uint32_t length, base::Prng& prng);
  /// Poisons the slice again and gives it back.
  void release(Slice s);

  /// Every octet outside the slices in use, guards included, is poison. Otherwise says which is
  /// not.
  [[nodiscard]] std::optional<std::string> check_idle() const;
  /// The octets next to a slice on both sides are poison.
  [[nodiscard]] bool neighbours_clean(Slice s) const;

 private:
  static constexpr uint64_t kGuard = 4096;
  static constexpr uint64_t kGap = 16;  // between slices

  [[nodiscard]] bool fits(uint64_t offset, uint64_t length) const;

  PlacedOctets octets_;
  uint64_t size_;
  std::map<uint64_t, uint64_t> used_;  // offset -> end, zero-length slices left out
};

}  // namespace rnic::simulation
