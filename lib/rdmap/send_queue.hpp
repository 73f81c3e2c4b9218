/// \file
/// The send queue: work requests from post to the acknowledgement of their last octet.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.hpp"
#include "base/zero_array.hpp"
#include "rnic/work.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

struct SendSlot {
  SendRequest work;
  uint32_t length = 0;    ///< octets of the message; of a Read or atomic, of what it returns
  uint32_t msn = 0;       ///< untagged messages, from the first pull on
  uint64_t original = 0;  ///< atomic: what its response said
  CompletionStatus status = CompletionStatus::Success;
  bool started = false;   ///< some of it was pulled
  bool released = false;  ///< the peer's TCP has all of it
  bool answered = false;  ///< Read, atomic: its response was delivered
  bool reported = false;  ///< the user knows
  bool early = false;     ///< completes before its time: only ever true with a planted defect

  /// May be told to the user once everything before it was.
  [[nodiscard]] bool done() const {
    if (status != CompletionStatus::Success) return true;
    return (released || early) && (!has_response(work.opcode) || answered);
  }
};

/// A ring with four marks: free <= report <= tail and free <= next <= tail. Sequence numbers run
/// modulo 2^32; they name a slot and its generation at once. A slot stays until its records are
/// acknowledged, because a retransmission is rebuilt from it, even when the user was told of it
/// before (a flush).
class SendQueue {
 public:
  explicit SendQueue(uint32_t depth)
      : depth_(depth),
        mask_(std::bit_ceil(depth < 1 ? 1u : depth) - 1),
        slots_(size_t{mask_} + 1) {}

  /// What a queue asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return base::ZeroArray<SendSlot>::octets_for(std::bit_ceil(depth < 1 ? uint64_t{1} : depth));
  }

  [[nodiscard]] bool has_room() const { return tail_ - free_ < depth_; }
  SendSlot& push(const SendRequest& work) {
    RNIC_CHECK(has_room());
    SendSlot& slot = at(tail_++);
    slot.work.id = work.id;
    slot.work.opcode = work.opcode;
    slot.work.signaled = work.signaled;
    slot.work.solicited = work.solicited;
    slot.work.fence = work.fence;
    slot.work.sge_count = work.sge_count;
    std::copy_n(work.sges.begin(), work.sge_count, slot.work.sges.begin());
    slot.work.remote_stag = work.remote_stag;
    slot.work.remote_offset = work.remote_offset;
    if (is_atomic(work.opcode)) slot.work.atomic = work.atomic;
    if (work.opcode == Opcode::Immediate) slot.work.immediate = work.immediate;
    slot.length = own_length(work);
    slot.msn = 0;
    slot.original = 0;
    slot.status = CompletionStatus::Success;
    slot.started = slot.released = slot.answered = slot.reported = slot.early = false;
    return slot;
  }

  [[nodiscard]] SendSlot& at(uint32_t seq) { return slots_[seq & mask_]; }
  [[nodiscard]] const SendSlot& at(uint32_t seq) const { return slots_[seq & mask_]; }
  /// Behind the last slot that was filled.
  [[nodiscard]] uint32_t end() const { return tail_; }
  [[nodiscard]] bool holds(uint32_t seq) const { return seq - free_ < tail_ - free_; }

  /// The slot whose message is pulled next; only when has_next().
  [[nodiscard]] bool has_next() const { return next_ != tail_; }
  [[nodiscard]] uint32_t next() const { return next_; }
  void advance() { ++next_; }
  /// Nothing of the rest will be pulled.
  void abandon() { next_ = tail_; }

  /// The oldest slot that the user was not told of; only when has_unreported().
  [[nodiscard]] bool has_unreported() const { return report_ != tail_; }
  [[nodiscard]] uint32_t report() const { return report_; }
  /// The slot at report() was told.
  void retire() {
    at(report_++).reported = true;
    if (next_ - free_ < report_ - free_) next_ = report_;
    free_slots();
  }
  void free_slots() {
    while (free_ != report_ && (at(free_).released || !at(free_).started)) ++free_;
  }

 private:
  [[nodiscard]] static uint32_t own_length(const SendRequest& work) {
    if (is_atomic(work.opcode)) return kAtomicSize;
    if (work.opcode == Opcode::Immediate) return wire::rdmap::kImmediateSize;
    return static_cast<uint32_t>(work.length());
  }

  uint32_t depth_;
  uint32_t mask_;
  base::ZeroArray<SendSlot> slots_;
  uint32_t free_ = 0;    // oldest slot in use
  uint32_t report_ = 0;  // oldest slot not told to the user
  uint32_t next_ = 0;    // next slot to pull
  uint32_t tail_ = 0;    // next slot to fill
};

}  // namespace rnic::rdmap
