/// \file
/// What the seed decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace rnic::spin {

/// A seeded choice after the other; the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  /// One of 0 to bound - 1; bound > 0.
  size_t below(size_t bound) { return static_cast<size_t>(engine_() % bound); }
  /// True in `percent` of 100 cases.
  bool chance(uint32_t percent) { return below(100) < percent; }
  /// One of them; nothing where there is none.
  template <typename T>
  std::shared_ptr<T> any(const std::vector<std::shared_ptr<T>>& of) {
    return of.empty() ? nullptr : of[below(of.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rnic::spin
