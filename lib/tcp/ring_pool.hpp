/// \file
/// RingPool: the memory of byte streams' rings, in blocks of one size.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.hpp"

namespace rnic::tcp {

/// At most `blocks` blocks of `block_octets` octets. Their addresses are reserved at construction
/// and never touched before a block is first used, so the machine only backs what was in use at
/// once. One thread at a time.
class RingPool {
 public:
  RingPool(uint32_t block_octets, uint32_t blocks)
      : block_octets_(block_octets == 0 ? 1 : block_octets),
        memory_(std::make_unique_for_overwrite<uint8_t[]>(size_t{block_octets_} * blocks)),
        blocks_(blocks) {
    free_.reserve(blocks);
    for (uint32_t i = blocks; i-- > 0;) free_.push_back(i);
  }

  /// A block whose content is anything, or nullptr when all are taken.
  [[nodiscard]] uint8_t* take() {
    if (free_.empty()) return nullptr;
    uint8_t* block = memory_.get() + size_t{free_.back()} * block_octets_;
    free_.pop_back();
    return block;
  }
  /// A block that take() gave.
  void give(uint8_t* block) {
    const auto at = static_cast<size_t>(block - memory_.get());
    RNIC_CHECK(at % block_octets_ == 0 && at / block_octets_ < blocks_);
    free_.push_back(static_cast<uint32_t>(at / block_octets_));
  }

  [[nodiscard]] uint32_t block_octets() const { return block_octets_; }
  [[nodiscard]] uint32_t taken() const { return blocks_ - static_cast<uint32_t>(free_.size()); }
  [[nodiscard]] bool empty() const { return free_.empty(); }

 private:
  uint32_t block_octets_;
  std::unique_ptr<uint8_t[]> memory_;
  uint32_t blocks_;
  std::vector<uint32_t> free_;  // capacity blocks_: give() allocates nothing
};

}  // namespace rnic::tcp
