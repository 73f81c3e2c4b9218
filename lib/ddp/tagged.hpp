/// \file
/// The tagged buffer model: the peer names the memory (RFC 5041 sections 4.2 and 7.1).
#pragma once

#include <cstdint>
#include <span>

#include "ddp/coverage.hpp"
#include "ddp/fault.hpp"
#include "ddp/placement.hpp"
#include "mem/stag_table.hpp"
#include "rnic/work.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// The answer of the layer above about a tagged segment.
struct TaggedTarget {
  AccessSet rights;  ///< the rights that its access needs
  /// Not empty: the STag is not in the table, and the segment goes to this list, from `offset` on.
  /// Empty: STag and TO name the memory.
  std::span<const Sge> sges;
  uint64_t offset = 0;
  /// TOs of which the answer is the same for all segments with this STag and control field, until
  /// one of them with L was delivered. Empty: the answer is for this segment.
  base::Range same{};
  /// The delivery of such a segment ends nothing and changes nothing that another segment depends
  /// on; without L its octets are counted, and that is all. The answer holds behind L, too.
  bool quiet = false;
  /// Not nullptr, where the segment is quiet: a delivery with L only counts a message there.
  uint64_t* messages = nullptr;
  /// Not nullptr: the delivery of such a segment without L only adds its octets there, by their
  /// offset from the begin of `same`, and is refused if they are more than `same` has room for.
  Coverage* coverage = nullptr;
};

/// The one access check of a tagged segment. A segment without payload is not checked (DDP-5.2-07).
[[nodiscard]] inline Fault check_tagged(const mem::StagTable& memory, const Identity& who,
                                        const wire::DdpTaggedHeader& header, uint32_t payload,
                                        const TaggedTarget& target, Pieces& out) {
  out.clear();
  if (payload == 0) return kNoFault;
  mem::AccessFault fault = mem::AccessFault::None;
  if (!target.sges.empty()) {
    fault = locate(memory, who, target.sges, target.offset, payload, target.rights, out);
  } else {
    fault = add_access(memory,
                       {.stag = mem::Stag{header.stag},
                        .to = header.to,
                        .length = payload,
                        .rights = target.rights,
                        .pd = who.pd,
                        .stream = who.stream},
                       out);
  }
  if (fault == mem::AccessFault::None) [[likely]]
    return kNoFault;
  return tagged_fault(fault);
}

}  // namespace rnic::ddp
