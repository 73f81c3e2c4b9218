/// \file
/// One row per opcode (RFC 5040 figure 4, RFC 7306 figure 2).
#pragma once

#include <cstdint>

#include "ddp/fault.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// The opcode of an RDMA message; that of a work request is rnic::Opcode.
using WireOpcode = wire::RdmapOpcode;

struct OpcodeRow {
  const char* name;
  bool tagged = false;
  uint32_t qn = 0;     ///< untagged: its queue
  AccessSet rights{};  ///< tagged: what the sink's region must allow
  bool solicited = false;
  bool invalidates = false;
  bool extension = false;  ///< of RFC 7306: RDMAP version 1 only
};

/// nullptr for the reserved opcodes 12..15.
[[nodiscard]] const OpcodeRow* opcode_row(uint8_t opcode);

// RDMAP remote operation errors (RFC 5040 figure 9).
inline constexpr Fault kWrongVersion{FaultLayer::Rdmap, 0x2, 0x05, "RDMAP-4.1-02"};
inline constexpr Fault kUnexpectedOpcode{FaultLayer::Rdmap, 0x2, 0x06, "RDMAP-4.1-06"};

/// What a segment must fit.
struct OpcodeContext {
  uint8_t version = 1;     ///< of the stream
  bool extensions = true;  ///< RFC 7306 is spoken
  bool tagged = false;
  uint32_t qn = 0;  ///< untagged
};

/// RV, opcode, and whether the opcode belongs into this buffer model and queue. `row` is set when
/// there is no fault.
[[nodiscard]] Fault check_control(uint8_t control, const OpcodeContext& context,
                                  const OpcodeRow*& row);

}  // namespace rnic::rdmap
