#include "rdmap/work_opcodes.hpp"

#include <algorithm>
#include <array>

#include "rdmap/send_queue.hpp"

namespace rnic::rdmap {

namespace {

void make_read_request(const SendSlot& slot, uint8_t* out) {
  const PostedSend& work = *slot.work;
  const Sge sink = first_sge(work);
  wire::write_rdmap(out, wire::RdmapReadRequest{.sink_stag = sink.stag,
                                                .sink_to = sink.address,
                                                .size = sink.length,
                                                .source_stag = work.remote_stag,
                                                .source_to = work.remote_offset});
}

void make_fetch_add(const SendSlot& slot, uint8_t* out) {
  const PostedSend& work = *slot.work;
  const AtomicOperands operands = work.atomic();
  const auto code = static_cast<uint8_t>(wire::RdmapAtomicCode::FetchAdd);
  // RFC 7306 s.5.2.1: FetchAdd sends 0 and all ones for what it does not use.
  wire::write_rdmap(out, wire::RdmapAtomicRequest{.code = code,
                                                  .id = slot.msn,
                                                  .stag = work.remote_stag,
                                                  .to = work.remote_offset,
                                                  .data = operands.data,
                                                  .mask = operands.mask,
                                                  .compare = 0,
                                                  .compare_mask = ~uint64_t{0}});
}

void make_compare_swap(const SendSlot& slot, uint8_t* out) {
  const PostedSend& work = *slot.work;
  const AtomicOperands operands = work.atomic();
  const auto code = static_cast<uint8_t>(wire::RdmapAtomicCode::CompareSwap);
  wire::write_rdmap(out, wire::RdmapAtomicRequest{.code = code,
                                                  .id = slot.msn,
                                                  .stag = work.remote_stag,
                                                  .to = work.remote_offset,
                                                  .data = operands.data,
                                                  .mask = operands.mask,
                                                  .compare = operands.compare,
                                                  .compare_mask = operands.compare_mask});
}

void make_immediate(const SendSlot& slot, uint8_t* out) {
  std::ranges::copy(slot.work->immediate(), out);
}

constexpr std::array<WorkRow, 10> kWorkRows{{
    {.opcode = Opcode::Send,
     .message = WireOpcode::Send,
     .solicited_message = WireOpcode::SendSolicited},
    {.opcode = Opcode::SendInvalidate,
     .message = WireOpcode::SendInvalidate,
     .solicited_message = WireOpcode::SendSolicitedInvalidate},
    {.opcode = Opcode::Write,
     .tagged = true,
     .message = WireOpcode::Write,
     .solicited_message = WireOpcode::Write},
    {.opcode = Opcode::Read,
     .max_sges = 1,
     .message = WireOpcode::ReadRequest,
     .solicited_message = WireOpcode::ReadRequest,
     .size = wire::kRdmapReadRequestSize,
     .make = make_read_request},
    {.opcode = Opcode::Receive, .sent = false, .has_message = false},
    {.opcode = Opcode::ReadInvalidate,
     .max_sges = 1,
     .needs_sink = true,
     .message = WireOpcode::ReadRequest,
     .solicited_message = WireOpcode::ReadRequest,
     .size = wire::kRdmapReadRequestSize,
     .make = make_read_request},
    {.opcode = Opcode::FetchAdd,
     .max_sges = 1,
     .sink_length = kAtomicSize,
     .message = WireOpcode::AtomicRequest,
     .solicited_message = WireOpcode::AtomicRequest,
     .extension = true,
     .size = wire::kRdmapAtomicRequestSize,
     .make = make_fetch_add},
    {.opcode = Opcode::CompareSwap,
     .max_sges = 1,
     .sink_length = kAtomicSize,
     .message = WireOpcode::AtomicRequest,
     .solicited_message = WireOpcode::AtomicRequest,
     .extension = true,
     .size = wire::kRdmapAtomicRequestSize,
     .make = make_compare_swap},
    {.opcode = Opcode::Immediate,
     .max_sges = 0,
     .message = WireOpcode::Immediate,
     .solicited_message = WireOpcode::ImmediateSolicited,
     .extension = true,
     .size = wire::kRdmapImmediateSize,
     .make = make_immediate},
    {.opcode = Opcode::LocalInvalidate, .has_message = false, .max_sges = 0},
}};

static_assert(
    [] {
      for (size_t i = 0; i < kWorkRows.size(); ++i) {
        if (kWorkRows[i].opcode != static_cast<Opcode>(i)) return false;
      }
      return true;
    }(),
    "each opcode has the row of its number");

}  // namespace

const WorkRow& work_row(Opcode opcode) {
  const auto row = static_cast<size_t>(opcode);
  return kWorkRows[row < kWorkRows.size() ? row : static_cast<size_t>(Opcode::Receive)];
}

Sge first_sge(const PostedSend& work) { return work.sges().empty() ? Sge{} : work.sges()[0]; }

}  // namespace rnic::rdmap
