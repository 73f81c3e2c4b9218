/// \file
/// Work requests as they lie in a WorkRing: a head of fixed size, and behind it the operands and
/// the SGEs that the request has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "rdmap/work_ring.hpp"
#include "rnic/work.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// A request of the send queue. Its head and two SGEs share a cache line.
class PostedSend {
 public:
  /// Octets of a request like `work`, whose list of SGEs is not too long.
  [[nodiscard]] static size_t size_for(const SendRequest& work) {
    return sizeof(PostedSend) + made_octets(work.opcode) + work.sges.size() * sizeof(Sge);
  }
  static constexpr size_t kSizeMax = 32 + sizeof(AtomicOperands) + kMaxSge * sizeof(Sge);

  /// Writes `work` to size_for(work) octets at `place`, aligned to 8.
  static void write(const SendRequest& work, std::byte* place) {
    auto* const head = new (place) PostedSend(work);
    std::byte* behind = place + sizeof(PostedSend);
    if (is_atomic(work.opcode)) std::memcpy(behind, &work.atomic, sizeof work.atomic);
    if (work.opcode == Opcode::Immediate) {
      std::memcpy(behind, work.immediate.data(), work.immediate.size());
    }
    behind += made_octets(work.opcode);
    std::uninitialized_copy_n(work.sges.view().data(), head->sge_count_,
                              reinterpret_cast<Sge*>(behind));
  }
  /// What write() left at `place`.
  [[nodiscard]] static const PostedSend& at(const std::byte* place) {
    return *std::launder(reinterpret_cast<const PostedSend*>(place));
  }

  [[nodiscard]] size_t size() const {
    return sizeof(PostedSend) + made_octets(opcode) + sge_count_ * sizeof(Sge);
  }
  [[nodiscard]] std::span<const Sge> sges() const {
    const std::byte* const behind = end_of_head() + made_octets(opcode);
    return {std::launder(reinterpret_cast<const Sge*>(behind)), sge_count_};
  }
  /// FetchAdd, CompareSwap.
  [[nodiscard]] AtomicOperands atomic() const {
    AtomicOperands operands;
    std::memcpy(&operands, end_of_head(), sizeof operands);
    return operands;
  }
  /// Immediate.
  [[nodiscard]] ImmediateData immediate() const {
    ImmediateData octets;
    std::memcpy(octets.data(), end_of_head(), octets.size());
    return octets;
  }

  const uint64_t id;
  const uint64_t remote_offset;
  const uint64_t length;  ///< octets of the message; a Read's or atomic's are those that it returns
  const uint32_t remote_stag;  ///< of the remote address; of an invalidation, what it invalidates
  const Opcode opcode;
  const bool signaled : 1;
  const bool solicited : 1;
  const bool fence : 1;

 private:
  explicit PostedSend(const SendRequest& work)
      : id(work.id),
        remote_offset(work.remote.offset),
        length(length_of(work)),
        remote_stag(invalidates(work.opcode) ? work.invalidate_stag : work.remote.stag),
        opcode(work.opcode),
        signaled(work.signaled),
        solicited(work.solicited),
        fence(work.fence),
        sge_count_(static_cast<uint8_t>(work.sges.size())) {}

  [[nodiscard]] static constexpr bool invalidates(Opcode opcode) {
    return opcode == Opcode::SendInvalidate || opcode == Opcode::LocalInvalidate;
  }
  /// Octets of the operands or of the data that the request itself carries.
  [[nodiscard]] static constexpr size_t made_octets(Opcode opcode) {
    if (is_atomic(opcode)) return sizeof(AtomicOperands);
    return opcode == Opcode::Immediate ? sizeof(ImmediateData) : 0;
  }
  [[nodiscard]] static uint64_t length_of(const SendRequest& work) {
    if (is_atomic(work.opcode)) return kAtomicSize;
    if (work.opcode == Opcode::Immediate) return wire::kRdmapImmediateSize;
    return work.sges.length();
  }
  [[nodiscard]] const std::byte* end_of_head() const {
    return reinterpret_cast<const std::byte*>(this + 1);
  }

  const uint8_t sge_count_;
};
static_assert(sizeof(PostedSend) == 32);

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
  /// What write() left at `place`.
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
