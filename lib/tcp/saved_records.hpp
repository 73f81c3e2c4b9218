/// \file
/// Copies of records that had to be cut over several segments: all later pieces of such a record
/// come from the same copy, so that an FPDU never mixes octets of two points in time.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/zero_array.hpp"

namespace rnic::tcp {

/// A bounded store of records in chains of blocks of a fixed size. It allocates nothing after
/// construction and touches no octet before it is used.
class SavedRecords {
 public:
  static constexpr uint32_t kBlockOctets = 2048;

  explicit SavedRecords(uint32_t max_octets);

  /// True when a record of `length` octets fits now.
  [[nodiscard]] bool fits(uint32_t length) const;
  /// True when a record of `length` octets fits and half of the store stays free for other users,
  /// or when nothing is saved.
  [[nodiscard]] bool fits_half(uint32_t length) const;
  /// \return the number of the copy, or UINT32_MAX when there is no room.
  uint32_t save(base::ByteView octets);
  /// Copies `length` octets from `from` within the copy to `out`; the range lies inside the copy.
  void copy(uint32_t saved, uint32_t from, uint32_t length, uint8_t* out) const;
  void release(uint32_t saved);

  [[nodiscard]] uint32_t blocks_in_use() const { return free_.capacity() - free_.size(); }
  /// Blocks that a copy takes.
  [[nodiscard]] uint32_t blocks_of(uint32_t saved) const;
  void validate() const { free_.validate(); }
  /// The memory that a store of this size takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t max_octets);

 private:
  base::ZeroArray<uint8_t> octets_;
  base::ZeroArray<uint32_t> next_;  // next block of the chain
  base::FreeNumbers free_;
};

}  // namespace rnic::tcp
