/// \file
/// ReadableRun: the memory that the last message was read from, where the next one often is.
#pragma once

#include <cstdint>

#include "mem/stag_table.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// Octets of one STag that the messages of a stream may be read from. An access to some of them was
/// allowed, and stands for each access inside of them until an STag of the table ends: from then on
/// nothing is known.
class ReadableRun {
 public:
  /// Nothing is known yet.
  ReadableRun() = default;
  /// An access to octets of that STag has just been allowed.
  ReadableRun(uint32_t stag, const mem::StagTable& table)
      : stag_(stag), ends_(table.ends()) {
    const mem::AccessRun run = table.run_of(mem::Stag{stag});
    at_ = run.at;
    first_ = run.offsets.begin;
    length_ = run.offsets.size();
  }

  /// The first octet of `piece`, all of which may be read, or nullptr: it has to be looked up.
  [[nodiscard]] uint8_t* find(const Sge& piece, const mem::StagTable& table) const {
    // Unsigned: an offset below the first one is past every length.
    const uint64_t from = piece.address - first_;
    const bool inside = piece.stag == stag_ && from <= length_ && piece.length <= length_ - from;
    return inside && table.holds_since(ends_) ? at_ + from : nullptr;
  }

 private:
  uint8_t* at_ = nullptr;  // of first_; nullptr: nothing is known
  uint64_t first_ = 0;     // offset of the first octet
  uint64_t length_ = 0;
  uint32_t stag_ = 0;
  uint64_t ends_ = 0;  // StagTable::ends() when the access was allowed
};

}  // namespace rnic::rdmap
