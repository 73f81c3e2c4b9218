/// \file
/// The receive queue of a stream: the buffers of DDP queue 0, its own or those of a shared one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/zero_array.hpp"
#include "rdmap/posted_work.hpp"
#include "rdmap/shared_receive_queue.hpp"
#include "rdmap/work_ring.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// What the worker knows of a buffer.
struct ReceiveSlot {
  const PostedReceive* work;         ///< in the ring
  std::array<uint8_t, 8> immediate;  ///< where Immediate Data goes instead of the user's memory
  bool refused;                      ///< a piece of it is not covered by a region with local write
};

/// Buffers in post order; message MSN m takes the m-th. With a shared queue those that this stream
/// has taken from it: the buffers of the messages up to the highest one that has begun.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(uint32_t depth)
      : ring_(depth, kMaxUnits),
        mask_(std::bit_ceil(depth < 1 ? 1u : depth) - 1),
        slots_(size_t{mask_} + 1) {}
  /// \param stream its number in what `shared` tells; `shared` outlives it, or leave() was called
  /// \param ahead how many buffers are taken for messages ahead of the order, at most
  ReceiveQueue(SharedReceiveQueue& shared, uint32_t stream, uint32_t ahead)
      : ring_(0, kMaxUnits),
        mask_(mask_for_shared(ahead)),
        slots_(size_t{mask_} + 1),
        shared_(&shared),
        stream_(stream),
        ahead_(ahead) {}
  ~ReceiveQueue() { leave(); }
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  /// What a queue asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return WorkRing::octets_for(depth, kMaxUnits) +
           base::ZeroArray<ReceiveSlot>::octets_for(std::bit_ceil(depth < 1 ? uint64_t{1} : depth));
  }
  [[nodiscard]] static uint64_t octets_for_shared(uint32_t ahead) {
    return WorkRing::octets_for(0, kMaxUnits) +
           base::ZeroArray<ReceiveSlot>::octets_for(mask_for_shared(ahead) + 1);
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
    add(work);
  }
  /// Shared: takes the buffers of the `count` messages behind those that have one. False: there are
  /// not so many, or too many for messages ahead of the order. Those come to nothing then.
  bool claim(uint32_t count, bool in_order) {
    const uint32_t most = in_order ? mask_ + 1 : ahead_;
    // A queue pair that waits goes first, and takes nothing for messages behind the one that waits.
    if (shared_ != nullptr && !shared_->serves(waiter_, in_order)) return false;
    if (shared_ == nullptr || count > most || in_progress() > most - count) return false;
    if (shared_->posted() < count) return false;
    for (uint32_t i = 0; i < count; ++i) add(shared_->take());
    claimed_ += count;
    shared_->note_progress(stream_, in_progress(), told_);
    return true;
  }
  /// There are receives for `count` messages that have not begun, and one that may have.
  [[nodiscard]] bool covers(uint32_t count) const {
    if (shared_ == nullptr) return accepted() > count;
    return !shared_->has_waiters() && shared_->posted() > count;
  }
  /// The next message in order waits for a receive. Shared: behind those that wait already.
  void begin_wait() {
    if (shared_ != nullptr) shared_->begin_wait(waiter_, stream_);
  }
  void end_wait() {
    if (shared_ != nullptr) shared_->end_wait(waiter_);
  }
  /// Shared: it stands among those that wait.
  [[nodiscard]] bool waits() const { return waiter_.is_listed(); }
  /// There is a receive for message `msn`, which waits. Shared: and its turn has come.
  [[nodiscard]] bool serves_wait(uint32_t msn) const {
    if (shared_ == nullptr) return has_msn(msn);
    return shared_->serves(waiter_, true) && shared_->posted() != 0;
  }
  /// Shared: gives back what it has, of which nobody is told, and takes nothing more.
  void leave() {
    end_wait();
    while (shared_ != nullptr && !empty()) pop();
    shared_ = nullptr;
  }
  [[nodiscard]] bool is_shared() const { return shared_ != nullptr; }
  /// Buffers of messages that were not delivered.
  [[nodiscard]] uint32_t in_progress() const { return tail_ - head_; }
  /// Shared: how many it has taken since it was made (RFC 5042 s.6.4.3.1).
  [[nodiscard]] uint64_t claimed() const { return claimed_; }
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  /// Slots that wait for a message.
  [[nodiscard]] uint32_t accepted() const { return tail_ - head_; }
  [[nodiscard]] const ReceiveSlot& front() const { return slots_[head_ & mask_]; }
  /// The place of front() is the application's.
  void pop() {
    if (shared_ != nullptr) [[unlikely]] {
      shared_->give_back(*front().work);
    } else {
      ring_.retire();
    }
    ++head_;
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
  /// Another connection begins with message 1; only when empty(). \param stream as in the
  /// constructor
  void renew(uint32_t stream) {
    RNIC_CHECK(empty());
    stream_ = stream;
    told_ = 0;
    first_msn_ = 1;
    head_ = tail_ = 0;
  }
  void validate() const {
    ring_.validate();
    RNIC_CHECK(tail_ - head_ <= mask_ + 1);
    RNIC_CHECK(ring_.in_hand() == (shared_ == nullptr ? tail_ - head_ : 0));
  }

 private:
  /// Of messages in order one segment begins at most so many before the first is delivered.
  static constexpr uint32_t kInSegment = 128;

  [[nodiscard]] static constexpr uint32_t mask_for_shared(uint32_t ahead) {
    return std::bit_ceil(std::max(ahead, kInSegment)) - 1;
  }
  [[nodiscard]] uint32_t place_of(uint32_t msn) const { return (msn - first_msn_) & mask_; }
  void add(const PostedReceive& work) {
    ReceiveSlot& slot = slots_[tail_++ & mask_];
    slot.work = &work;
    slot.refused = false;
  }

  static constexpr uint32_t kMaxUnits = WorkRing::units_of(PostedReceive::kSizeMax);

  WorkRing ring_;
  uint32_t mask_;
  base::ZeroArray<ReceiveSlot> slots_;
  uint32_t first_msn_ = 1;
  uint32_t head_ = 0;  // Invariant: message head_ + first_msn_ is the next to be delivered
  uint32_t tail_ = 0;

  SharedReceiveQueue* shared_ = nullptr;  // nullptr: the buffers are its own
  uint32_t stream_ = 0;
  uint32_t ahead_ = 0;
  uint32_t told_ = 0;  // see SharedReceiveQueue::note_progress()
  uint64_t claimed_ = 0;
  ReceiveWaiter waiter_;  // Shared: listed while a message waits
};

}  // namespace rnic::rdmap
