#include "rdmap/opcodes.hpp"

#include <array>

#include "mem/stag_table.hpp"

namespace rnic::rdmap {

namespace {

using wire::rdmap::kReadRequestQn;
using wire::rdmap::kSendQn;
using wire::rdmap::kTerminateQn;

constexpr std::array<OpcodeRow, 8> kRows{{
    {"Write", true, 0, mem::kRemoteWrite, false, false},
    {"Read Request", false, kReadRequestQn, 0, false, false},
    // The sink of our own Read: the user granted local write, the peer needs no right of its own.
    {"Read Response", true, 0, mem::kLocalWrite, false, false},
    {"Send", false, kSendQn, 0, false, false},
    {"Send with Invalidate", false, kSendQn, 0, false, true},
    {"Send with Solicited Event", false, kSendQn, 0, true, false},
    {"Send with Solicited Event and Invalidate", false, kSendQn, 0, true, true},
    {"Terminate", false, kTerminateQn, 0, false, false},
}};

}  // namespace

const OpcodeRow* opcode_row(uint8_t opcode) {
  return opcode < kRows.size() ? &kRows[opcode] : nullptr;
}

ddp::Fault check_control(uint8_t control, uint8_t version, bool tagged, uint32_t qn,
                         const OpcodeRow*& row) {
  // RFC 5040 s.7.2. The version first: opcodes of another version mean something else.
  if (wire::rdmap::version_of(control) != version) return kWrongVersion;
  row = opcode_row(wire::rdmap::opcode_of(control));
  if (row == nullptr || row->tagged != tagged) return kUnexpectedOpcode;
  if (!tagged && row->qn != qn) return kUnexpectedOpcode;
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
