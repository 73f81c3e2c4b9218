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

/// The outcome of posting a request.
enum class PostResult : uint8_t {
  Ok,
  Full,           ///< the queue has no place
  TooManySge,     ///< more elements than the opcode takes
  BadLength,      ///< the sink's size is not that of the response, or a sink is missing
  Disabled,       ///< an extension of RFC 7306, which the device has disabled
  TooLong,        ///< 2^32 octets or more (DDP-5.2-02)
  BadOpcode,      ///< not an opcode of the send queue
  InlineTooLong,  ///< more than kMaxInline octets of inline data
  BadInline,      ///< inline data with SGEs, or for an opcode that sends no memory of this side
};

/// The kind of response to a request, which counts against the ORD until the response is here.
enum class Response : uint8_t {
  None,
  Read,    ///< a Read Response: tagged, into the sink
  Atomic,  ///< an Atomic Response: untagged, on queue 3
};

/// An action on memory of this side.
using LocalWork = mem::AccessFault (*)(const SendSlot& slot, StreamMemory& memory,
                                       Counters& counters);

/// Everything that depends on the opcode of a request for a send queue.
struct WorkRow {
  Opcode opcode;
  bool sent = true;     ///< a send queue takes it
  bool tagged = false;  ///< a Write: Tagged DDP Segments, which have no MSN
  uint32_t qn = 0;      ///< untagged: the DDP queue
  uint32_t max_sges = kMaxSge;
  uint32_t length = 0;      ///< octets that it moves and its SGE has, if the opcode fixes them
  bool needs_sink = false;  ///< a request without an SGE makes no sense
  /// The message carries SendRequest::invalidate_stag to the peer.
  bool invalidates = false;
  /// The opcode of the message, without a solicited event and with one where it can have one.
  WireOpcode message{};
  WireOpcode solicited_message{};
  bool extension = false;  ///< of RFC 7306: RDMAP version 1 only
  uint32_t size = 0;  ///< octets of the message, where the opcode says so; 0: those of the SGEs

  size_t operand_octets = 0;  ///< octets kept of the request besides SGEs; a multiple of 8
  void (*keep_operands)(const SendRequest& work, std::byte* out) = nullptr;
  /// Writes a message of `size` octets; nullptr: its payload is in registered memory.
  void (*make)(const SendSlot& slot, uint8_t* out) = nullptr;
  /// The row of the message that follows its own, for the same request; nullptr: none does.
  const WorkRow* then = nullptr;
  /// Work without a message: the action that carries it out once everything before it has been
  /// sent.
  LocalWork carry_out = nullptr;
  bool waits = false;  ///< carry_out waits until everything before it has completed

  Response response = Response::None;
  /// The action left to do when the response is here, before the completion.
  LocalWork conclude = nullptr;

  /// A request with one SGE, and no inline data, is right whatever that SGE is.
  bool takes_any_sge = false;
  /// If such a request has no fence either, it can go when its turn comes: it waits for nothing,
  /// and its only message is the memory of that SGE.
  bool direct = false;

  [[nodiscard]] constexpr bool has_message() const { return carry_out == nullptr; }
  /// \return whether its message is memory of this side, which may be inline data as well
  [[nodiscard]] constexpr bool sends_memory() const { return sent && has_message() && !make; }
  [[nodiscard]] constexpr bool awaits_response() const { return response != Response::None; }
};

/// The row of an opcode. \param opcode any number; one that is not of the send queue has a row that
/// is not `sent`
[[nodiscard]] const WorkRow& work_row(Opcode opcode);

/// WorkRow::takes_any_sge of all opcodes, a bit each.
extern const uint32_t kTakesAnySge;

/// \return whether the row of an opcode, which may be any number, says so. Most requests are of
/// such an opcode, and need nothing else of the row to be posted.
[[nodiscard]] inline bool takes_any_sge(Opcode opcode) {
  const auto bit = static_cast<uint8_t>(opcode);
  return bit < 32 && (kTakesAnySge >> bit & 1) != 0;
}

/// WorkRow::direct of all opcodes, a bit each.
extern const uint32_t kDirect;

/// \return whether the row of an opcode that takes_any_sge() says so
[[nodiscard]] inline bool is_direct_opcode(Opcode opcode) {
  return (kDirect >> static_cast<uint8_t>(opcode) & 1) != 0;
}

/// Checks whether a request of this shape can be carried out, whatever its memory is.
/// \param sges `sge_count` of them, or the first kMaxSge \param length octets of all SGEs
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

/// Checks whether the inline data of a request can be kept. \param sge_count SGEs of the request
[[nodiscard]] inline PostResult check_inline(const WorkRow& row, uint32_t sge_count,
                                             size_t octets) {
  if (octets == 0) return PostResult::Ok;
  if (octets > kMaxInline) return PostResult::InlineTooLong;
  return sge_count == 0 && row.sends_memory() ? PostResult::Ok : PostResult::BadInline;
}

/// The sink of a Read or an atomic as the peer knows it, from SendQueue::number() on. A sink of one
/// piece is that piece, and a sink without a piece has no octets. A sink of several pieces is a
/// range as long as all of them; the ranges of two Reads never overlap, since the MSN is in the
/// upper half of the offset.
[[nodiscard]] Sge sink_of(const SendSlot& slot);

}  // namespace rnic::rdmap
