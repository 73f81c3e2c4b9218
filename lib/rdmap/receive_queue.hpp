/// \file
/// The receive queue: the buffers of DDP queue 0.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/zero_array.hpp"
#include "rdmap/posted_work.hpp"
#include "rdmap/work_ring.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// What the worker knows of a buffer.
struct ReceiveSlot {
  const PostedReceive* work;         ///< in the ring
  std::array<uint8_t, 8> immediate;  ///< where Immediate Data goes instead of the user's memory
  bool refused;                      ///< a piece of it is not covered by a region with local write
};

/// Buffers in post order; message MSN m takes the m-th.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(uint32_t depth)
      : ring_(depth, kMaxUnits),
        mask_(std::bit_ceil(depth < 1 ? 1u : depth) - 1),
        slots_(size_t{mask_} + 1) {}

  /// What a queue asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return WorkRing::octets_for(depth, kMaxUnits) +
           base::ZeroArray<ReceiveSlot>::octets_for(std::bit_ceil(depth < 1 ? uint64_t{1} : depth));
  }

  // --- Application: one thread at a time ---

  [[nodiscard]] bool has_room() const { return ring_.has_room(); }
  /// Only when has_room(), and with a list of SGEs that is not too long.
  void write(const ReceiveRequest& work) {
    const size_t size = PostedReceive::size_for(work);
    PostedReceive::write(work, ring_.write(WorkRing::units_of(size)));
  }
  void publish() { ring_.publish(); }
  void post(const ReceiveRequest& work) {
    write(work);
    publish();
  }

  // --- Worker ---

  /// Has something been posted that was not accepted?
  [[nodiscard]] bool has_posted() { return ring_.front() != nullptr; }
  /// Makes a slot of the oldest that was posted; only when has_posted().
  void accept() {
    const PostedReceive& work = PostedReceive::at(ring_.front());
    ring_.take(WorkRing::units_of(work.size()));
    ReceiveSlot& slot = slots_[tail_++ & mask_];
    slot.work = &work;
    slot.refused = false;
  }
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  /// Slots that wait for a message.
  [[nodiscard]] uint32_t accepted() const { return tail_ - head_; }
  [[nodiscard]] const ReceiveSlot& front() const { return slots_[head_ & mask_]; }
  /// The place of front() is the application's.
  void pop() {
    ++head_;
    ring_.retire();
  }
  /// The first posted buffer is for that message; before anything is delivered.
  void begin_at(uint32_t msn) { first_msn_ = msn; }
  /// The buffer of message `msn` (RFC 5041 s.4.3: MSNs start at 1), which must have one.
  [[nodiscard]] const ReceiveSlot& of_msn(uint32_t msn) const { return slots_[place_of(msn)]; }
  /// Where Immediate Data of that message goes.
  [[nodiscard]] base::ByteSpan immediate_buffer(uint32_t msn) {
    return slots_[place_of(msn)].immediate;
  }
  /// A piece of the buffer of that message cannot be written to.
  void refuse(uint32_t msn) { slots_[place_of(msn)].refused = true; }
  [[nodiscard]] bool has_msn(uint32_t msn) const {
    return msn - first_msn_ - head_ < tail_ - head_;
  }
  /// Another connection begins with message 1; only when empty().
  void renew() {
    RNIC_CHECK(empty());
    first_msn_ = 1;
    head_ = tail_ = 0;
  }
  void validate() const {
    ring_.validate();
    RNIC_CHECK(tail_ - head_ <= mask_ + 1 && ring_.in_hand() == tail_ - head_);
  }

 private:
  [[nodiscard]] uint32_t place_of(uint32_t msn) const { return (msn - first_msn_) & mask_; }

  static constexpr uint32_t kMaxUnits = WorkRing::units_of(PostedReceive::kSizeMax);

  WorkRing ring_;
  uint32_t mask_;
  base::ZeroArray<ReceiveSlot> slots_;
  uint32_t first_msn_ = 1;
  uint32_t head_ = 0;  // Invariant: message head_ + first_msn_ is the next to be delivered
  uint32_t tail_ = 0;
};

}  // namespace rnic::rdmap
