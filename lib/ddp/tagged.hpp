/// \file
/// The tagged buffer model: the peer names the memory (RFC 5041 sections 4.2 and 7.1).
#pragma once

#include <cstdint>
#include <span>

#include "ddp/fault.hpp"
#include "ddp/placement.hpp"
#include "mem/stag_table.hpp"
#include "rnic/work.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// What the layer above says of a tagged segment.
struct TaggedTarget {
  AccessSet rights;  ///< that its access needs
  /// Its STag names none of the table's: the segment goes to the list, from `offset` on. Empty: the
  /// memory is what STag and TO say.
  std::span<const Sge> sges;
  uint64_t offset = 0;
};

/// The one access check of a tagged segment. A segment without payload is not checked (DDP-5.2-07).
[[nodiscard]] Fault check_tagged(const mem::StagTable& memory, const Identity& who,
                                 const wire::DdpTaggedHeader& header, uint32_t payload,
                                 const TaggedTarget& target, Pieces& out);

}  // namespace rnic::ddp
