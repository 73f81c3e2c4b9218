#include "rdmap/opcodes.hpp"

#include <array>

#include "mem/stag_table.hpp"

namespace rnic::rdmap {

namespace {

using wire::kRdmapAtomicResponseQn;
using wire::kRdmapReadRequestQn;
using wire::kRdmapSendQn;
using wire::kRdmapTerminateQn;

using D = Deliveries;

constexpr std::array<OpcodeRow, 12> kRows{{
    {.name = "Write",
     .tagged = true,
     .rights = Access::RemoteWrite,
     .deliver_segment = &D::deliver_write},
    {.name = "Read Request",
     .qn = kRdmapReadRequestQn,
     .size = wire::kRdmapReadRequestSize,
     .attached = true,
     .deliver_message = &D::deliver_read_request},
    // A Response goes to the sink of our own Read: the user has granted local write with it, and
    // the peer needs no right of its own.
    {.name = "Read Response",
     .tagged = true,
     .rights = Access::LocalWrite,
     .asked = true,
     .deliver_segment = &D::deliver_read_response},
    {.name = "Send", .qn = kRdmapSendQn, .deliver_message = &D::deliver_send},
    {.name = "Send with Invalidate",
     .qn = kRdmapSendQn,
     .invalidates = true,
     .deliver_message = &D::deliver_send},
    {.name = "Send with Solicited Event",
     .qn = kRdmapSendQn,
     .solicited = true,
     .deliver_message = &D::deliver_send},
    {.name = "Send with Solicited Event and Invalidate",
     .qn = kRdmapSendQn,
     .solicited = true,
     .invalidates = true,
     .deliver_message = &D::deliver_send},
    {.name = "Terminate", .qn = kRdmapTerminateQn, .deliver_message = &D::deliver_terminate},
    {.name = "Immediate Data",
     .qn = kRdmapSendQn,
     .size = wire::kRdmapImmediateSize,
     .extension = true,
     .deliver_message = &D::deliver_immediate},
    {.name = "Immediate Data with Solicited Event",
     .qn = kRdmapSendQn,
     .size = wire::kRdmapImmediateSize,
     .solicited = true,
     .extension = true,
     .deliver_message = &D::deliver_immediate},
    {.name = "Atomic Request",
     .qn = kRdmapReadRequestQn,
     .size = wire::kRdmapAtomicRequestSize,
     .extension = true,
     .deliver_message = &D::deliver_atomic_request},
    {.name = "Atomic Response",
     .qn = kRdmapAtomicResponseQn,
     .size = wire::kRdmapAtomicResponseSize,
     .extension = true,
     .deliver_message = &D::deliver_atomic_response},
}};

}  // namespace

const OpcodeRow* opcode_row(uint8_t opcode) {
  return opcode < kRows.size() ? &kRows[opcode] : nullptr;
}

Fault check_control(uint8_t control, const OpcodeContext& context, const OpcodeRow*& row) {
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
