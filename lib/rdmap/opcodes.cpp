#include "rdmap/opcodes.hpp"

#include <array>

#include "mem/stag_table.hpp"

namespace rnic::rdmap {

namespace {

using wire::kRdmapAtomicResponseQn;
using wire::kRdmapReadRequestQn;
using wire::kRdmapSendQn;
using wire::kRdmapTerminateQn;

constexpr std::array<OpcodeRow, 12> kRows{{
    {"Write", true, 0, Access::RemoteWrite, false, false, false},
    {"Read Request", false, kRdmapReadRequestQn, {}, false, false, false},
    // The sink of our own Read: the user granted local write, the peer needs no right of its own.
    {"Read Response", true, 0, Access::LocalWrite, false, false, false},
    {"Send", false, kRdmapSendQn, {}, false, false, false},
    {"Send with Invalidate", false, kRdmapSendQn, {}, false, true, false},
    {"Send with Solicited Event", false, kRdmapSendQn, {}, true, false, false},
    {"Send with Solicited Event and Invalidate", false, kRdmapSendQn, {}, true, true, false},
    {"Terminate", false, kRdmapTerminateQn, {}, false, false, false},
    {"Immediate Data", false, kRdmapSendQn, {}, false, false, true},
    {"Immediate Data with Solicited Event", false, kRdmapSendQn, {}, true, false, true},
    {"Atomic Request", false, kRdmapReadRequestQn, {}, false, false, true},
    {"Atomic Response", false, kRdmapAtomicResponseQn, {}, false, false, true},
}};

}  // namespace

const OpcodeRow* opcode_row(uint8_t opcode) {
  return opcode < kRows.size() ? &kRows[opcode] : nullptr;
}

Fault check_control(uint8_t control, const OpcodeContext& context, const OpcodeRow*& row) {
  // RFC 5040 s.7.2. The version first: opcodes of another version mean something else.
  if (wire::rdmap_version(control) != context.version) return kWrongVersion;
  row = opcode_row(wire::rdmap_opcode(control));
  if (row == nullptr || row->tagged != context.tagged) return kUnexpectedOpcode;
  if (!row->tagged && row->qn != context.qn) return kUnexpectedOpcode;
  // R7306-4-01: these exist with RV 1 only.
  if (row->extension && (!context.extensions || context.version != 1)) return kUnexpectedOpcode;
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
