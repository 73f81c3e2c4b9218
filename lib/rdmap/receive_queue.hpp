/// \file
/// The receive queue: the buffers of DDP queue 0.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "base/check.hpp"
#include "base/zero_array.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

struct ReceiveSlot {
  ReceiveRequest work;
  uint64_t length = 0;
  std::array<uint8_t, 8> immediate{};  ///< where Immediate Data goes instead of the user's memory
  bool refused = false;  ///< a piece of it is not covered by a region with local write

  [[nodiscard]] std::span<const Sge> sges() const { return {work.sges.data(), work.sge_count}; }
};

/// Buffers in post order; message MSN m takes the m-th.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(uint32_t depth)
      : depth_(depth),
        mask_(std::bit_ceil(depth < 1 ? 1u : depth) - 1),
        slots_(size_t{mask_} + 1) {}

  /// What a queue asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return base::ZeroArray<ReceiveSlot>::octets_for(std::bit_ceil(depth < 1 ? uint64_t{1} : depth));
  }

  [[nodiscard]] bool has_room() const { return tail_ - head_ < depth_; }
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  void push(const ReceiveRequest& work) {
    RNIC_CHECK(has_room());
    ReceiveSlot& slot = slots_[tail_++ & mask_];
    slot.work = work;
    slot.length = 0;
    slot.refused = false;
    for (const Sge& sge : slot.sges()) slot.length += sge.length;
  }
  [[nodiscard]] ReceiveSlot& front() { return slots_[head_ & mask_]; }
  void pop() { ++head_; }
  /// The first posted buffer is for that message; before anything is delivered.
  void begin_at(uint32_t msn) { first_msn_ = msn; }
  /// The buffer of message `msn` (RFC 5041 s.4.3: MSNs start at 1), which must have one.
  [[nodiscard]] ReceiveSlot& of_msn(uint32_t msn) { return slots_[(msn - first_msn_) & mask_]; }
  [[nodiscard]] bool has_msn(uint32_t msn) const {
    return msn - first_msn_ - head_ < tail_ - head_;
  }

 private:
  uint32_t depth_;
  uint32_t mask_;
  base::ZeroArray<ReceiveSlot> slots_;
  uint32_t first_msn_ = 1;
  uint32_t head_ = 0;  // Invariant: message head_ + first_msn_ is the next to be delivered
  uint32_t tail_ = 0;
};

}  // namespace rnic::rdmap
