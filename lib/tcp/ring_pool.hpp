/// \file
/// RingPool: the memory of byte streams' rings, in blocks of one size.
#pragma once

#include <cstdint>
#include <memory>

#include "base/check.hpp"
#include "base/zero_array.hpp"

namespace rnic::tcp {

/// At most `blocks` blocks of `block_octets` octets. Their addresses are reserved at construction
/// and not touched before a block is first used, so the machine backs no more memory than was in
/// use at once. One thread at a time.
class RingPool {
 public:
  RingPool(uint32_t block_octets, uint32_t blocks)
      : block_octets_(block_octets == 0 ? 1 : block_octets),
        memory_(size_t{block_octets_} * blocks),
        free_(blocks) {}

  /// A block with undefined content, or nullptr when all are taken.
  [[nodiscard]] uint8_t* take() {
    if (free_.empty()) return nullptr;
    return memory_.data() + size_t{free_.take()} * block_octets_;
  }
  /// A block that take() gave.
  void give(uint8_t* block) {
    const auto at = static_cast<size_t>(block - memory_.data());
    RNIC_CHECK(at % block_octets_ == 0 && at / block_octets_ < free_.fresh());
    free_.give(static_cast<uint32_t>(at / block_octets_));
  }

  [[nodiscard]] uint32_t block_octets() const { return block_octets_; }
  [[nodiscard]] uint32_t taken() const { return free_.capacity() - free_.size(); }
  [[nodiscard]] bool empty() const { return free_.empty(); }
  void validate() const { free_.validate(); }
  /// The memory that a pool of this size takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t block_octets, uint64_t blocks) {
    return block_octets * blocks + base::FreeNumbers::octets_for(blocks);
  }

 private:
  uint32_t block_octets_;
  base::ZeroArray<uint8_t> memory_;
  base::FreeNumbers free_;
};

}  // namespace rnic::tcp
