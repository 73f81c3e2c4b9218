/// \file
/// One row per opcode (RFC 5040 figure 4, RFC 7306 figure 2).
#pragma once

#include <array>
#include <cstdint>

#include "ddp/fault.hpp"
#include "rdmap/deliveries.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// The opcode of an RDMA message; that of a work request is rnic::Opcode.
using WireOpcode = wire::RdmapOpcode;

/// Everything that depends on the opcode of a message that comes in.
struct OpcodeRow {
  const char* name;
  bool tagged = false;
  uint32_t qn = 0;     ///< untagged: its queue
  uint32_t size = 0;   ///< untagged: octets of the message, where the opcode says so; 0: any
  AccessSet rights{};  ///< tagged: what the sink's region must allow
  bool asked = false;  ///< tagged: only if a Read of ours waits for it
  bool solicited = false;
  bool invalidates = false;
  bool extension = false;  ///< of RFC 7306: RDMAP version 1 only
  bool attached = false;   ///< a Terminate about it attaches its RDMAP header (RFC 5040 figure 10)
  /// Tagged: the function that handles a segment; nullptr in untagged rows.
  Fault (Deliveries::*deliver_segment)(const wire::DdpTaggedHeader& header,
                                       uint32_t payload) = nullptr;
  /// Untagged: the function that handles the message; nullptr in tagged rows.
  Fault (Deliveries::*deliver_message)(const UntaggedMessage& message) = nullptr;
};

/// The number of opcodes; those above are reserved.
inline constexpr size_t kOpcodes = 12;
extern const std::array<OpcodeRow, kOpcodes> kOpcodeRows;

/// The row of an opcode; nullptr for the reserved opcodes 12..15.
[[nodiscard]] inline const OpcodeRow* opcode_row(uint8_t opcode) {
  return opcode < kOpcodes ? &kOpcodeRows[opcode] : nullptr;
}

// RDMAP remote operation errors (RFC 5040 figure 9).
inline constexpr Fault kWrongVersion{FaultLayer::Rdmap, 0x2, 0x05, "RDMAP-4.1-02"};
inline constexpr Fault kUnexpectedOpcode{FaultLayer::Rdmap, 0x2, 0x06, "RDMAP-4.1-06"};

/// The properties of the stream and of a segment that its opcode must fit.
struct OpcodeContext {
  uint8_t version = 1;     ///< of the stream
  bool extensions = true;  ///< RFC 7306 is spoken
  bool tagged = false;
  uint32_t qn = 0;  ///< untagged
};

/// Checks RV and the opcode, and that the opcode belongs to this buffer model and queue. `row` is
/// set if there is no fault.
[[nodiscard]] inline Fault check_control(uint8_t control, const OpcodeContext& context,
                                         const OpcodeRow*& row) {
  // RFC 5040 s.7.2: the version is checked first, as another version may give an opcode another
  // meaning.
  if (wire::rdmap_version(control) != context.version) return kWrongVersion;
  row = opcode_row(wire::rdmap_opcode(control));
  if (row == nullptr || row->tagged != context.tagged) return kUnexpectedOpcode;
  if (!row->tagged && row->qn != context.qn) return kUnexpectedOpcode;
  // R7306-4-01: the opcodes of RFC 7306 exist with RV 1 only.
  if (row->extension && (!context.extensions || context.version != 1)) return kUnexpectedOpcode;
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
