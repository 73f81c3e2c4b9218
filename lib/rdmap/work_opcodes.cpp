#include "rdmap/work_opcodes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "rdmap/send_queue.hpp"
#include "rdmap/stream_memory.hpp"

namespace rnic::rdmap {

namespace {

using wire::kRdmapReadRequestQn;

// --- what a request keeps ---

void keep_atomic(const SendRequest& work, std::byte* out) {
  std::memcpy(out, &work.atomic, sizeof work.atomic);
}

void keep_immediate(const SendRequest& work, std::byte* out) {
  std::memcpy(out, work.immediate.data(), work.immediate.size());
}

void keep_grant(const SendRequest& work, std::byte* out) {
  std::memcpy(out, &work.grant, sizeof work.grant);
}

// --- what its message says ---

void make_read_request(const SendSlot& slot, uint8_t* out) {
  const PostedSend& work = *slot.work;
  const Sge sink = sink_of(slot);
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

// --- what is done here ---

mem::AccessFault invalidate(uint32_t stag, StreamMemory& memory, Counters& counters) {
  const mem::AccessFault fault = memory.invalidate_local(stag);
  if (fault == mem::AccessFault::None) ++counters.local_invalidations;
  return fault;
}

mem::AccessFault invalidate_named(const SendSlot& slot, StreamMemory& memory, Counters& counters) {
  return invalidate(slot.work->remote_stag, memory, counters);
}

mem::AccessFault bind_window(const SendSlot& slot, StreamMemory& memory, Counters& counters) {
  const mem::AccessFault fault = memory.bind(slot.work->grant(), slot.work->sges());
  if (fault == mem::AccessFault::None) ++counters.windows_bound;
  return fault;
}

mem::AccessFault fast_register(const SendSlot& slot, StreamMemory& memory, Counters& counters) {
  const mem::AccessFault fault = memory.bind(slot.work->grant(), slot.work->sges());
  if (fault == mem::AccessFault::None) ++counters.fast_registrations;
  return fault;
}

mem::AccessFault invalidate_sink(const SendSlot& slot, StreamMemory& memory, Counters& counters) {
  return invalidate(slot.work->sges()[0].stag, memory, counters);
}

mem::AccessFault store_original(const SendSlot& slot, StreamMemory& memory, Counters&) {
  if (slot.work->sges().empty()) return mem::AccessFault::None;
  std::array<uint8_t, kAtomicSize> octets;
  std::memcpy(octets.data(), &slot.original, octets.size());
  return memory.store(slot.work->sges()[0], octets);
}

constexpr WorkRow kImmediateRow{.opcode = Opcode::Immediate,
                                .max_sges = 0,
                                .length = wire::kRdmapImmediateSize,
                                .message = WireOpcode::Immediate,
                                .solicited_message = WireOpcode::ImmediateSolicited,
                                .extension = true,
                                .size = wire::kRdmapImmediateSize,
                                .operand_octets = sizeof(ImmediateData),
                                .keep_operands = keep_immediate,
                                .make = make_immediate};

constexpr std::array<WorkRow, 13> kWorkRows{{
    {.opcode = Opcode::Send,
     .message = WireOpcode::Send,
     .solicited_message = WireOpcode::SendSolicited,
     .takes_any_sge = true,
     .direct = true},
    {.opcode = Opcode::SendInvalidate,
     .invalidates = true,
     .message = WireOpcode::SendInvalidate,
     .solicited_message = WireOpcode::SendSolicitedInvalidate},
    {.opcode = Opcode::Write,
     .tagged = true,
     .message = WireOpcode::Write,
     .solicited_message = WireOpcode::Write,
     .takes_any_sge = true,
     .direct = true},
    {.opcode = Opcode::Read,
     .qn = kRdmapReadRequestQn,
     .message = WireOpcode::ReadRequest,
     .solicited_message = WireOpcode::ReadRequest,
     .size = wire::kRdmapReadRequestSize,
     .make = make_read_request,
     .response = Response::Read,
     .takes_any_sge = true},
    {.opcode = Opcode::Receive, .sent = false},
    {.opcode = Opcode::ReadInvalidate,
     .qn = kRdmapReadRequestQn,
     .max_sges = 1,
     .needs_sink = true,
     .message = WireOpcode::ReadRequest,
     .solicited_message = WireOpcode::ReadRequest,
     .size = wire::kRdmapReadRequestSize,
     .make = make_read_request,
     .response = Response::Read,
     .conclude = invalidate_sink},
    {.opcode = Opcode::FetchAdd,
     .qn = kRdmapReadRequestQn,
     .max_sges = 1,
     .length = kAtomicSize,
     .message = WireOpcode::AtomicRequest,
     .solicited_message = WireOpcode::AtomicRequest,
     .extension = true,
     .size = wire::kRdmapAtomicRequestSize,
     .operand_octets = sizeof(AtomicOperands),
     .keep_operands = keep_atomic,
     .make = make_fetch_add,
     .response = Response::Atomic,
     .conclude = store_original},
    {.opcode = Opcode::CompareSwap,
     .qn = kRdmapReadRequestQn,
     .max_sges = 1,
     .length = kAtomicSize,
     .message = WireOpcode::AtomicRequest,
     .solicited_message = WireOpcode::AtomicRequest,
     .extension = true,
     .size = wire::kRdmapAtomicRequestSize,
     .operand_octets = sizeof(AtomicOperands),
     .keep_operands = keep_atomic,
     .make = make_compare_swap,
     .response = Response::Atomic,
     .conclude = store_original},
    kImmediateRow,
    {.opcode = Opcode::LocalInvalidate,
     .max_sges = 0,
     .invalidates = true,
     .carry_out = invalidate_named,
     .waits = true},
    {.opcode = Opcode::WriteImmediate,
     .tagged = true,
     .message = WireOpcode::Write,
     .solicited_message = WireOpcode::Write,
     .extension = true,
     .operand_octets = sizeof(ImmediateData),
     .keep_operands = keep_immediate,
     .then = &kImmediateRow},
    {.opcode = Opcode::BindWindow,
     .max_sges = 1,
     .needs_sink = true,
     .operand_octets = sizeof(MemoryGrant),
     .keep_operands = keep_grant,
     .carry_out = bind_window},
    {.opcode = Opcode::FastRegister,
     .operand_octets = sizeof(MemoryGrant),
     .keep_operands = keep_grant,
     .carry_out = fast_register},
}};

static_assert(
    [] {
      for (size_t i = 0; i < kWorkRows.size(); ++i) {
        if (kWorkRows[i].opcode != static_cast<Opcode>(i)) return false;
      }
      return true;
    }(),
    "each opcode has the row of its number");
static_assert(std::ranges::all_of(kWorkRows,
                                  [](const WorkRow& row) {
                                    return (row.response == Response::Read) ==
                                               is_read(row.opcode) &&
                                           (row.response == Response::Atomic) ==
                                               is_atomic(row.opcode) &&
                                           row.operand_octets % 8 == 0;
                                  }),
              "the words of the API mean the same");
static_assert(std::ranges::all_of(kWorkRows,
                                  [](const WorkRow& row) {
                                    return !row.takes_any_sge ||
                                           (row.sent && row.max_sges != 0 && row.length == 0 &&
                                            row.operand_octets == 0 && !row.invalidates &&
                                            !row.extension);
                                  }),
              "what is not checked cannot be wrong");
static_assert(std::ranges::all_of(kWorkRows,
                                  [](const WorkRow& row) {
                                    return !row.direct ||
                                           (row.takes_any_sge && row.sends_memory() &&
                                            row.size == 0 && row.then == nullptr &&
                                            !row.awaits_response());
                                  }),
              "nothing but the memory of what is direct has to be looked at");

constexpr uint32_t bits_of_rows(bool WorkRow::*member) {
  uint32_t bits = 0;
  for (const WorkRow& row : kWorkRows) bits |= uint32_t{row.*member} << uint32_t(row.opcode);
  return bits;
}

}  // namespace

constinit const uint32_t kTakesAnySge = bits_of_rows(&WorkRow::takes_any_sge);
constinit const uint32_t kDirect = bits_of_rows(&WorkRow::direct);

const WorkRow& work_row(Opcode opcode) {
  const auto row = static_cast<size_t>(opcode);
  return kWorkRows[row < kWorkRows.size() ? row : static_cast<size_t>(Opcode::Receive)];
}

Sge sink_of(const SendSlot& slot) {
  const std::span<const Sge> pieces = slot.work->sges();
  if (pieces.empty()) return {};
  if (pieces.size() == 1) return pieces[0];
  return {.address = uint64_t{slot.msn} << 32, .length = slot.length(),
          .stag = static_cast<uint32_t>(slot.list_stag)};
}

}  // namespace rnic::rdmap
