/// \file
/// One row per opcode of a work request: what may be posted and the message that carries it out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mem/stag_table.hpp"
#include "rdmap/counters.hpp"
#include "rdmap/opcodes.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

class PostedSend;
class StreamMemory;
struct SendSlot;

/// What became of a request that was to be posted.
enum class PostResult : uint8_t {
  Ok,
  Full,           ///< the queue has no place
  TooManySge,     ///< more elements than the opcode takes
  BadLength,      ///< a sink of another size than what comes back, or none where there must be one
  Disabled,       ///< an extension of RFC 7306, which the device does without
  TooLong,        ///< 2^32 octets or more (DDP-5.2-02)
  BadOpcode,      ///< none of the send queue's
  InlineTooLong,  ///< more than kMaxInline octets of inline data
  BadInline,      ///< inline data beside SGEs, or of an opcode that sends no memory of this side
};

/// What comes back for a request, and counts against the ORD until it is here.
enum class Response : uint8_t {
  None,
  Read,    ///< a Read Response: tagged, into the sink
  Atomic,  ///< an Atomic Response: untagged, on queue 3
};

/// Something that is done here with memory of this side.
using LocalWork = mem::AccessFault (*)(const SendSlot& slot, StreamMemory& memory,
                                       Counters& counters);

/// Everything that differs by opcode in what is posted to a send queue.
struct WorkRow {
  Opcode opcode;
  bool sent = true;     ///< a send queue takes it
  bool tagged = false;  ///< a Write: Tagged DDP Segments, which have no MSN
  uint32_t qn = 0;      ///< untagged: the DDP queue
  uint32_t max_sges = kMaxSge;
  uint32_t length = 0;      ///< octets that it moves, where the opcode says so; so has its SGE
  bool needs_sink = false;  ///< a request without an SGE makes no sense
  /// It has SendRequest::invalidate_stag, which a message carries to the peer.
  bool invalidates = false;
  /// The opcode of the message, without a solicited event and with one where it can have one.
  WireOpcode message{};
  WireOpcode solicited_message{};
  bool extension = false;  ///< of RFC 7306: RDMAP version 1 only
  uint32_t size = 0;  ///< octets of the message, where the opcode says so; 0: those of the SGEs

  size_t operand_octets = 0;  ///< what it keeps of the request beside SGEs; a multiple of 8
  void (*keep_operands)(const SendRequest& work, std::byte* out) = nullptr;
  /// Writes a message of `size` octets; nullptr: its payload is in registered memory.
  void (*make)(const SendSlot& slot, uint8_t* out) = nullptr;
  /// The row of the message that follows its own, for the same request; nullptr: none does.
  const WorkRow* then = nullptr;
  /// It has no message: this carries it out, once everything before it has been sent.
  LocalWork carry_out = nullptr;
  bool waits = false;  ///< to be carried out: until everything before it has completed

  Response response = Response::None;
  /// What is left to do when the response is here, before the completion.
  LocalWork conclude = nullptr;

  [[nodiscard]] constexpr bool has_message() const { return carry_out == nullptr; }
  /// Its message is memory of this side, which may be inline data as well.
  [[nodiscard]] constexpr bool sends_memory() const { return sent && has_message() && !make; }
  [[nodiscard]] constexpr bool awaits_response() const { return response != Response::None; }
};

/// \param opcode any number: what is none of the send queue's has a row that is not `sent`
[[nodiscard]] const WorkRow& work_row(Opcode opcode);

/// Whether a request of this shape can be carried out, whatever its memory is.
/// \param sges as many as are counted, or the first kMaxSge \param length octets of them all
[[nodiscard]] inline PostResult check_shape(const WorkRow& row, uint32_t sge_count, const Sge* sges,
                                            uint64_t length) {
  if (!row.sent) return PostResult::BadOpcode;
  if (sge_count > row.max_sges) return PostResult::TooManySge;
  if (sge_count == 0 && row.needs_sink) return PostResult::BadLength;
  if (sge_count != 0 && row.length != 0 && sges[0].length != row.length) {
    return PostResult::BadLength;
  }
  return length > UINT32_MAX ? PostResult::TooLong : PostResult::Ok;  // DDP-5.2-02
}

/// Whether its inline data can be kept. \param sge_count as many as are counted
[[nodiscard]] inline PostResult check_inline(const WorkRow& row, uint32_t sge_count,
                                             size_t octets) {
  if (octets == 0) return PostResult::Ok;
  if (octets > kMaxInline) return PostResult::InlineTooLong;
  return sge_count == 0 && row.sends_memory() ? PostResult::Ok : PostResult::BadInline;
}

/// The sink of a Read or an atomic as the peer knows it, from SendQueue::number() on: its only
/// piece; of no octets where it has none; where it has several, as many octets as all of them have.
/// Those of two Reads never overlap: the MSN is in the upper half of the offset.
[[nodiscard]] Sge sink_of(const SendSlot& slot);

}  // namespace rnic::rdmap
