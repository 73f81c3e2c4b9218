/// \file
/// Work requests as they lie in a WorkRing: a head of fixed size, and behind it the operands, the
/// inline data and the SGEs that the request has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "rdmap/work_opcodes.hpp"
#include "rdmap/work_ring.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// A request of the send queue. Its head and two SGEs share a cache line.
class PostedSend {
 public:
  /// Octets that a request like `work` takes; its list of SGEs is not too long. \param row the row
  /// of its opcode
  [[nodiscard]] static size_t size_for(const SendRequest& work, const WorkRow& row) {
    return sizeof(PostedSend) + row.operand_octets + tail_octets(work);
  }
  static constexpr size_t kSizeMax = 32 + sizeof(AtomicOperands) + kMaxSge * sizeof(Sge);

  /// Writes `work` to size_for(work, row) octets at `place`, which is aligned to 8.
  static void write(const SendRequest& work, const WorkRow& row, std::byte* place) {
    auto* const head = new (place) PostedSend(work, row);
    std::byte* behind = place + sizeof(PostedSend);
    if (row.keep_operands != nullptr) row.keep_operands(work, behind);
    behind += row.operand_octets;
    if (head->is_inline) {
      std::memcpy(behind, work.inline_data.data(), work.inline_data.size());
    } else {
      std::uninitialized_copy_n(work.sges.view().data(), work.sges.size(),
                                reinterpret_cast<Sge*>(behind));
    }
  }
  /// The request that write() left at `place`.
  [[nodiscard]] static const PostedSend& at(const std::byte* place) {
    return *std::launder(reinterpret_cast<const PostedSend*>(place));
  }

  [[nodiscard]] size_t size() const {
    return sizeof(PostedSend) + operand_octets() + size_t{tail_words_} * 8;
  }
  /// The SGEs; empty for a request with inline data.
  [[nodiscard]] std::span<const Sge> sges() const {
    const size_t count = is_inline ? 0 : tail_words_ / (sizeof(Sge) / 8);
    return {std::launder(reinterpret_cast<const Sge*>(tail())), count};
  }
  /// The inline data. Precondition: is_inline.
  [[nodiscard]] std::span<const std::byte> inline_data() const {
    return {tail(), static_cast<size_t>(length)};
  }
  /// The operands of an atomic, as WorkRow::keep_operands() left them.
  [[nodiscard]] AtomicOperands atomic() const {
    AtomicOperands operands;
    std::memcpy(&operands, end_of_head(), sizeof operands);
    return operands;
  }
  /// The octets of Immediate Data, alone or behind a Write.
  [[nodiscard]] ImmediateData immediate() const {
    ImmediateData octets;
    std::memcpy(octets.data(), end_of_head(), octets.size());
    return octets;
  }

  /// The grant of BindWindow or FastRegister.
  [[nodiscard]] MemoryGrant grant() const {
    MemoryGrant grant;
    std::memcpy(&grant, end_of_head(), sizeof grant);
    return grant;
  }

  const uint64_t id;
  const uint64_t remote_offset;
  const uint64_t length;  ///< octets of the message; for a Read or atomic, of its response
  const uint32_t remote_stag;  ///< of the remote address; invalidation: the STag it revokes
  const Opcode opcode;
  const bool signaled : 1;
  const bool solicited : 1;
  const bool fence : 1;
  const bool is_inline : 1;  ///< its message is kept here

 private:
  PostedSend(const SendRequest& work, const WorkRow& row)
      : id(work.id),
        remote_offset(work.remote.offset),
        length(row.length != 0 ? row.length : work.inline_data.size() + work.sges.length()),
        remote_stag(row.invalidates ? work.invalidate_stag : work.remote.stag),
        opcode(work.opcode),
        signaled(work.signaled),
        solicited(work.solicited),
        fence(work.fence),
        is_inline(!work.inline_data.empty()),
        operand_words_(static_cast<uint8_t>(row.operand_octets / 8)),
        tail_words_(static_cast<uint8_t>(tail_octets(work) / 8)) {}

  /// Octets of the tail: inline data with padding, or SGEs.
  [[nodiscard]] static size_t tail_octets(const SendRequest& work) {
    if (!work.inline_data.empty()) return (work.inline_data.size() + 7) / 8 * 8;
    return work.sges.size() * sizeof(Sge);
  }

  [[nodiscard]] size_t operand_octets() const { return size_t{operand_words_} * 8; }
  [[nodiscard]] const std::byte* end_of_head() const {
    return reinterpret_cast<const std::byte*>(this + 1);
  }

  [[nodiscard]] const std::byte* tail() const { return end_of_head() + operand_octets(); }

  const uint8_t operand_words_;  // of 8 octets, behind the head
  const uint8_t tail_words_;     // of 8 octets, behind the operands
};
static_assert(sizeof(PostedSend) == 32);
static_assert(sizeof(ImmediateData) + kMaxInline <= PostedSend::kSizeMax - sizeof(PostedSend));

/// A request of the receive queue.
class PostedReceive {
 public:
  [[nodiscard]] static size_t size_for(const ReceiveRequest& work) {
    return sizeof(PostedReceive) + work.sges.size() * sizeof(Sge);
  }
  static constexpr size_t kSizeMax = 24 + kMaxSge * sizeof(Sge);

  /// Writes `work` to size_for(work) octets at `place`, aligned to 8.
  static void write(const ReceiveRequest& work, std::byte* place) {
    auto* const head = new (place) PostedReceive(work);
    std::uninitialized_copy_n(work.sges.view().data(), head->sge_count_,
                              reinterpret_cast<Sge*>(place + sizeof(PostedReceive)));
  }
  /// The request that write() left at `place`.
  [[nodiscard]] static const PostedReceive& at(const std::byte* place) {
    return *std::launder(reinterpret_cast<const PostedReceive*>(place));
  }

  [[nodiscard]] size_t size() const { return sizeof(PostedReceive) + sge_count_ * sizeof(Sge); }
  [[nodiscard]] std::span<const Sge> sges() const {
    return {std::launder(reinterpret_cast<const Sge*>(this + 1)), sge_count_};
  }

  const uint64_t id;
  const uint64_t length;  ///< octets of its memory

 private:
  explicit PostedReceive(const ReceiveRequest& work)
      : id(work.id),
        length(work.sges.length()),
        sge_count_(static_cast<uint32_t>(work.sges.size())) {}

  const uint32_t sge_count_;
};
static_assert(sizeof(PostedReceive) == 24);

}  // namespace rnic::rdmap
