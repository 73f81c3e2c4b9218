/// \file
/// SourceRun: the memory that a message is read from, looked up once for all of its segments.
#pragma once

#include <cstdint>

#include "ddp/segmenter.hpp"
#include "mem/stag_table.hpp"

namespace rnic::rdmap {

/// The outcome of one access check of all the octets of a message, if they follow each other in
/// memory. It stands for the check of each segment until an STag of the table ends: from then on
/// each segment is looked up again.
class SourceRun {
 public:
  /// Nothing is known yet.
  SourceRun() = default;
  /// \param grant of all octets of the message \param ends StagTable::ends() at that time
  SourceRun(const mem::AccessGrant& grant, uint64_t ends)
      : at_(grant.at), length_(grant.run), ends_(ends) {}

  /// The first octet of the segment `cut`, which the message may read, or nullptr: it has to be
  /// looked up.
  [[nodiscard]] uint8_t* find(const ddp::Cut& cut, const mem::StagTable& table) const {
    const bool inside = cut.offset < length_ && cut.length <= length_ - cut.offset;
    return inside && table.holds_since(ends_) ? at_ + cut.offset : nullptr;
  }

 private:
  uint8_t* at_ = nullptr;
  uint32_t length_ = 0;
  uint64_t ends_ = 0;
};

}  // namespace rnic::rdmap
