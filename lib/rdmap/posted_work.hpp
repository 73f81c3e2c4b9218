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

/// The far place of a request, which its near one names.
[[nodiscard]] inline const std::byte* far_at(const std::byte* near) {
  const std::byte* far = nullptr;
  std::memcpy(&far, near, sizeof far);
  return far;
}

/// Writes SGEs behind a head.
inline void write_sges(const SgeList& sges, std::byte* behind) {
  auto* const out = reinterpret_cast<Sge*>(behind);
  if (sges.size() == 1) [[likely]] {
    new (out) Sge(sges[0]);
  } else {
    std::uninitialized_copy_n(sges.view().data(), sges.size(), out);
  }
}

/// A request of the send queue: a head, and behind it the operands and the inline data or SGEs.
/// Those lie in its near place, in the line of its head, if they fit there, as two SGEs do.
class PostedSend {
 public:
  static constexpr uint32_t kNear = 64;  ///< octets of a near place
  static constexpr uint32_t kFar = sizeof(AtomicOperands) + kMaxSge * sizeof(Sge);  ///< a far one

  /// Writes `work`, whose list of SGEs is not too long. \param row the row of its opcode
  /// \param octets of all its SGEs \param place aligned to 8
  static void write(const SendRequest& work, const WorkRow& row, uint64_t octets,
                    const WorkPlace& place) {
    const size_t tail = tail_octets(work);
    const Shape shape{
        .length = row.length != 0 ? row.length : work.inline_data.size() + octets,
        .stag = row.invalidates ? work.invalidate_stag : work.remote.stag,
        .is_inline = !work.inline_data.empty(),
        .is_direct = row.direct && !work.fence && work.sges.size() == 1,
        .is_far = row.operand_octets + tail > kNear - sizeof(PostedSend),
        .operand_words = static_cast<uint8_t>(row.operand_octets / 8),
        .tail_words = static_cast<uint8_t>(tail / 8)};
    const auto* const head = new (place.near) PostedSend(work, shape);
    std::byte* behind = place.near + sizeof(PostedSend);
    if (head->is_far_) {
      std::memcpy(behind, &place.far, sizeof place.far);
      behind = place.far;
    }
    if (row.keep_operands != nullptr) row.keep_operands(work, behind);
    behind += row.operand_octets;
    if (head->is_inline) {
      std::memcpy(behind, work.inline_data.data(), work.inline_data.size());
    } else {
      write_sges(work.sges, behind);
    }
  }
  /// Does the same for an opcode that takes_any_sge(), with one SGE and no inline data.
  static void write_plain(const SendRequest& work, const WorkPlace& place) {
    const Sge& sge = work.sges[0];
    new (place.near) PostedSend(work, {.length = sge.length,
                                       .stag = work.remote.stag,
                                       .is_direct = is_direct_opcode(work.opcode) && !work.fence,
                                       .tail_words = static_cast<uint8_t>(sizeof(Sge) / 8)});
    new (place.near + sizeof(PostedSend)) Sge(sge);
  }
  /// The request that write() left at `place`.
  [[nodiscard]] static const PostedSend& at(const std::byte* place) {
    return *std::launder(reinterpret_cast<const PostedSend*>(place));
  }

  /// Octets of a copy of the request.
  [[nodiscard]] size_t size() const {
    return sizeof(PostedSend) + (is_far_ ? sizeof(std::byte*) : 0) + behind_octets();
  }
  /// Copies the request to `size()` octets, aligned to 8, which at() reads as it reads this.
  void copy_to(std::byte* place) const {
    std::memcpy(place, this, sizeof(PostedSend));
    place += sizeof(PostedSend);
    if (is_far_) {
      const std::byte* const far = place + sizeof far;
      std::memcpy(place, &far, sizeof far);
      place += sizeof far;
    }
    std::memcpy(place, behind(), behind_octets());
  }
  /// The SGEs; empty for a request with inline data.
  [[nodiscard]] std::span<const Sge> sges() const {
    const size_t count = is_inline ? 0 : tail_words_ / (sizeof(Sge) / 8);
    return {std::launder(reinterpret_cast<const Sge*>(tail())), count};
  }
  /// The only SGE. Precondition: is_direct.
  [[nodiscard]] const Sge& piece() const {
    return *std::launder(reinterpret_cast<const Sge*>(this + 1));
  }
  /// The inline data. Precondition: is_inline.
  [[nodiscard]] std::span<const std::byte> inline_data() const {
    return {tail(), static_cast<size_t>(length)};
  }
  /// The operands of an atomic, as WorkRow::keep_operands() left them.
  [[nodiscard]] AtomicOperands atomic() const {
    AtomicOperands operands;
    std::memcpy(&operands, behind(), sizeof operands);
    return operands;
  }
  /// The octets of Immediate Data, alone or behind a Write.
  [[nodiscard]] ImmediateData immediate() const {
    ImmediateData octets;
    std::memcpy(octets.data(), behind(), octets.size());
    return octets;
  }

  /// The grant of BindWindow or FastRegister.
  [[nodiscard]] MemoryGrant grant() const {
    MemoryGrant grant;
    std::memcpy(&grant, behind(), sizeof grant);
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
  const bool is_direct : 1;  ///< of an opcode with WorkRow::direct, without a fence, and of one SGE

 private:
  /// What follows from the parts of a request.
  struct Shape {
    uint64_t length = 0;
    uint32_t stag = 0;
    bool is_inline = false;
    bool is_direct = false;
    bool is_far = false;
    uint8_t operand_words = 0;
    uint8_t tail_words = 0;
  };
  PostedSend(const SendRequest& work, const Shape& shape)
      : id(work.id),
        remote_offset(work.remote.offset),
        length(shape.length),
        remote_stag(shape.stag),
        opcode(work.opcode),
        signaled(work.signaled),
        solicited(work.solicited),
        fence(work.fence),
        is_inline(shape.is_inline),
        is_direct(shape.is_direct),
        is_far_(shape.is_far),
        operand_words_(shape.operand_words),
        tail_words_(shape.tail_words) {}

  /// Octets of the tail: inline data with padding, or SGEs.
  [[nodiscard]] static size_t tail_octets(const SendRequest& work) {
    if (!work.inline_data.empty()) return (work.inline_data.size() + 7) / 8 * 8;
    return work.sges.size() * sizeof(Sge);
  }

  [[nodiscard]] size_t operand_octets() const { return size_t{operand_words_} * 8; }
  [[nodiscard]] size_t behind_octets() const {
    return operand_octets() + size_t{tail_words_} * 8;
  }
  /// What is behind the head, wherever it lies.
  [[nodiscard]] const std::byte* behind() const {
    const auto* const near = reinterpret_cast<const std::byte*>(this + 1);
    return is_far_ ? far_at(near) : near;
  }
  [[nodiscard]] const std::byte* tail() const { return behind() + operand_octets(); }

  const bool is_far_ : 1;  // what is behind the head lies where the pointer there says
  uint8_t : 2;
  const uint8_t operand_words_;  // of 8 octets, behind the head
  const uint8_t tail_words_;     // of 8 octets, behind the operands
};
static_assert(sizeof(PostedSend) == 32);
static_assert(sizeof(ImmediateData) + kMaxInline <= PostedSend::kFar);

/// A request of the receive queue. Its head and one SGE are its near place; if it has more, all are
/// in its far place.
class PostedReceive {
 public:
  static constexpr uint32_t kNear = 24 + sizeof(Sge);       ///< octets of a near place
  static constexpr uint32_t kFar = kMaxSge * sizeof(Sge);  ///< of a far one

  /// Writes `work`, whose list of SGEs is not too long. \param octets of all its SGEs
  /// \param place aligned to 8
  static void write(const ReceiveRequest& work, uint64_t octets, const WorkPlace& place) {
    const auto* const head = new (place.near) PostedReceive(work, octets);
    std::byte* behind = place.near + sizeof(PostedReceive);
    if (head->is_far()) [[unlikely]] {
      std::memcpy(behind, &place.far, sizeof place.far);
      behind = place.far;
    }
    write_sges(work.sges, behind);
  }
  /// The request that write() left at `place`.
  [[nodiscard]] static const PostedReceive& at(const std::byte* place) {
    return *std::launder(reinterpret_cast<const PostedReceive*>(place));
  }

  [[nodiscard]] std::span<const Sge> sges() const {
    const auto* const near = reinterpret_cast<const std::byte*>(this + 1);
    return {std::launder(reinterpret_cast<const Sge*>(is_far() ? far_at(near) : near)),
            sge_count_};
  }

  const uint64_t id;
  const uint64_t length;  ///< octets of its memory

 private:
  PostedReceive(const ReceiveRequest& work, uint64_t octets)
      : id(work.id), length(octets), sge_count_(work.sges.size()) {}

  [[nodiscard]] bool is_far() const { return sge_count_ > 1; }

  const uint32_t sge_count_;
};
static_assert(sizeof(PostedReceive) == 24);

}  // namespace rnic::rdmap
