/// \file
/// One row per opcode of a work request: the message that carries it out.
#pragma once

#include <cstdint>

#include "rdmap/opcodes.hpp"
#include "rdmap/send_queue.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// Everything that a requester does by opcode with what is posted.
struct WorkRow {
  Opcode opcode;
  bool has_message = true;
  /// The opcode of the message, without a solicited event and with one where it can have one.
  WireOpcode message{};
  WireOpcode solicited_message{};
  bool extension = false;  ///< of RFC 7306: RDMAP version 1 only
  uint32_t size = 0;  ///< octets of the message, where the opcode says so; 0: those of the SGEs
  /// Writes a message of `size` octets; nullptr: its payload is in registered memory.
  void (*make)(const SendSlot& slot, uint8_t* out) = nullptr;
};

[[nodiscard]] const WorkRow& work_row(Opcode opcode);

/// The only sink of a Read or an atomic; of no octets where it has none.
[[nodiscard]] Sge first_sge(const PostedSend& work);

/// Octets of the message that carries out this work.
[[nodiscard]] inline uint32_t message_length(const SendSlot& slot) {
  const WorkRow& row = work_row(slot.work->opcode);
  return row.size != 0 ? row.size : slot.length();
}

}  // namespace rnic::rdmap
