/// \file
/// The tagged buffer model: the peer names the memory (RFC 5041 sections 4.2 and 7.1).
#pragma once

#include <cstdint>

#include "ddp/fault.hpp"
#include "ddp/placement.hpp"
#include "mem/stag_table.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// The one access check of a tagged segment. A segment without payload is not checked (DDP-5.2-07).
[[nodiscard]] Fault check_tagged(const mem::StagTable& memory, const Identity& who,
                                 const wire::DdpTaggedHeader& header, uint32_t payload,
                                 AccessSet rights, Pieces& out);

}  // namespace rnic::ddp
