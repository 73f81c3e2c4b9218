/// \file
/// One row per opcode (RFC 5040 figure 4, RFC 7306 figure 2).
#pragma once

#include <cstdint>

#include "ddp/fault.hpp"
#include "rdmap/deliveries.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// The opcode of an RDMA message; that of a work request is rnic::Opcode.
using WireOpcode = wire::RdmapOpcode;

/// Everything that an endpoint does by opcode with what comes in.
struct OpcodeRow {
  const char* name;
  bool tagged = false;
  uint32_t qn = 0;     ///< untagged: its queue
  uint32_t size = 0;   ///< untagged: octets of the message, where the opcode says so; 0: any
  AccessSet rights{};  ///< tagged: what the sink's region must allow
  bool asked = false;  ///< tagged: only where a Read of ours waits for it
  bool solicited = false;
  bool invalidates = false;
  bool extension = false;  ///< of RFC 7306: RDMAP version 1 only
  bool attached = false;   ///< a Terminate about it has its RDMAP header (RFC 5040 figure 10)
  /// Tagged: what a segment does. Untagged rows have none.
  Fault (Deliveries::*deliver_segment)(const wire::DdpTaggedHeader& header,
                                       uint32_t payload) = nullptr;
  /// Untagged: what the message does. Tagged rows have none.
  Fault (Deliveries::*deliver_message)(const UntaggedMessage& message) = nullptr;
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
