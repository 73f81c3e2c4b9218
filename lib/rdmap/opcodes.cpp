#include "rdmap/opcodes.hpp"

#include <array>

#include "mem/stag_table.hpp"

namespace rnic::rdmap {

namespace {

using wire::rdmap::kAtomicResponseQn;
using wire::rdmap::kReadRequestQn;
using wire::rdmap::kSendQn;
using wire::rdmap::kTerminateQn;

constexpr std::array<OpcodeRow, 12> kRows{{
    {"Write", true, 0, Access::RemoteWrite, false, false, false},
    {"Read Request", false, kReadRequestQn, {}, false, false, false},
    // The sink of our own Read: the user granted local write, the peer needs no right of its own.
    {"Read Response", true, 0, Access::LocalWrite, false, false, false},
    {"Send", false, kSendQn, {}, false, false, false},
    {"Send with Invalidate", false, kSendQn, {}, false, true, false},
    {"Send with Solicited Event", false, kSendQn, {}, true, false, false},
    {"Send with Solicited Event and Invalidate", false, kSendQn, {}, true, true, false},
    {"Terminate", false, kTerminateQn, {}, false, false, false},
    {"Immediate Data", false, kSendQn, {}, false, false, true},
    {"Immediate Data with Solicited Event", false, kSendQn, {}, true, false, true},
    {"Atomic Request", false, kReadRequestQn, {}, false, false, true},
    {"Atomic Response", false, kAtomicResponseQn, {}, false, false, true},
}};

}  // namespace

const OpcodeRow* opcode_row(uint8_t opcode) {
  return opcode < kRows.size() ? &kRows[opcode] : nullptr;
}

Fault check_control(uint8_t control, const OpcodeContext& context, const OpcodeRow*& row) {
  // RFC 5040 s.7.2. The version first: opcodes of another version mean something else.
  if (wire::rdmap::version_of(control) != context.version) return kWrongVersion;
  row = opcode_row(wire::rdmap::opcode_of(control));
  if (row == nullptr || row->tagged != context.tagged) return kUnexpectedOpcode;
  if (!row->tagged && row->qn != context.qn) return kUnexpectedOpcode;
  // R7306-4-01: these exist with RV 1 only.
  if (row->extension && (!context.extensions || context.version != 1)) return kUnexpectedOpcode;
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
