/// \file
/// Memory of an application between two guards, which no device may touch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz/input.hpp"

namespace rnic::fuzz {

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t size) : octets_(kGuard + size + kGuard, kGuardOctet) {
    std::fill(begin(), begin() + size, uint8_t{0});
  }

  [[nodiscard]] uint8_t* begin() { return octets_.data() + kGuard; }
  [[nodiscard]] size_t size() const { return octets_.size() - 2 * kGuard; }
  void check() const {
    const auto whole = [](const uint8_t* at) {
      return std::all_of(at, at + kGuard, [](uint8_t octet) { return octet == kGuardOctet; });
    };
    demand(whole(octets_.data()) && whole(octets_.data() + octets_.size() - kGuard));
  }

 private:
  static constexpr size_t kGuard = 1024;
  static constexpr uint8_t kGuardOctet = 0xa5;
  std::vector<uint8_t> octets_;
};

}  // namespace rnic::fuzz
