/// \file
/// The receive queue of a stream: the buffers of DDP queue 0, its own or those of a shared one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "rdmap/posted_work.hpp"
#include "rdmap/shared_receive_queue.hpp"
#include "rdmap/work_ring.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// The worker's record of a buffer.
struct ReceiveSlot {
  const PostedReceive* work;         ///< in the ring
  std::array<uint8_t, 8> immediate;  ///< where Immediate Data goes instead of the user's memory
  bool refused;                      ///< a piece of it is not covered by a region with local write
};

/// Buffers in post order; message MSN m takes the m-th. With a shared queue these are the buffers
/// that this stream has taken from it, for all messages up to the highest one that has begun.
class ReceiveQueue {
 public:
  /// \param store where the far places of receives come from, as for a PageArray
  explicit ReceiveQueue(uint32_t depth, base::PageStore* store = nullptr)
      : ring_(depth, PostedReceive::kNear, PostedReceive::kFar, store),
        mask_(std::bit_ceil(depth < 1 ? 1u : depth) - 1),
        slots_(std::make_unique_for_overwrite<ReceiveSlot[]>(size_t{mask_} + 1)) {}
  /// \param shared outlives the queue, or leave() was called
  /// \param stream the stream's number in the reports of `shared`
  /// \param ahead the most buffers that are taken for messages ahead of the order
  ReceiveQueue(SharedReceiveQueue& shared, uint32_t stream, uint32_t ahead)
      : ring_(0, PostedReceive::kNear, PostedReceive::kFar),
        mask_(mask_for_shared(ahead)),
        slots_(std::make_unique_for_overwrite<ReceiveSlot[]>(size_t{mask_} + 1)),
        shared_(&shared),
        stream_(stream),
        ahead_(ahead) {}
  ~ReceiveQueue() { leave(); }
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  /// Octets of memory that a queue of `depth` receives takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return WorkRing::octets_for(depth, PostedReceive::kNear, PostedReceive::kFar) +
           std::bit_ceil(depth < 1 ? uint64_t{1} : depth) * sizeof(ReceiveSlot);
  }
  [[nodiscard]] static uint64_t octets_for_shared(uint32_t ahead) {
    return WorkRing::octets_for(0, PostedReceive::kNear, PostedReceive::kFar) +
           (uint64_t{mask_for_shared(ahead)} + 1) * sizeof(ReceiveSlot);
  }

  // --- Application: one thread at a time ---

  [[nodiscard]] bool has_room() { return ring_.has_room(); }
  /// Writes a request into the ring. Precondition: has_room(), and the list of SGEs is not too
  /// long.
  void write(const ReceiveRequest& work) {
    PostedReceive::write(work, work.sges.length(), ring_.write());
  }
  void publish() { ring_.publish(); }
  void post(const ReceiveRequest& work) {
    write(work);
    publish();
  }

  // --- Worker ---

  /// \return whether a receive has been posted that was not accepted yet
  [[nodiscard]] bool has_posted() { return ring_.front() != nullptr; }
  /// Makes a slot of the oldest receive posted. Precondition: has_posted().
  void accept() {
    const PostedReceive& work = PostedReceive::at(ring_.front());
    ring_.take();
    add(work);
  }
  /// Shared: takes buffers for the `count` messages behind those that have one. \return false:
  /// there are fewer, or it would be too many for messages ahead of the order; nothing was taken
  bool claim(uint32_t count, bool in_order) {
    const uint32_t most = in_order ? mask_ + 1 : ahead_;
    // A queue pair that waits is served first, but only for the message that waits.
    if (shared_ != nullptr && !shared_->serves(waiter_, in_order)) return false;
    if (shared_ == nullptr || count > most || in_progress() > most - count) return false;
    if (shared_->posted() < count) return false;
    for (uint32_t i = 0; i < count; ++i) add(shared_->take());
    claimed_ += count;
    shared_->note_progress(stream_, in_progress(), told_);
    return true;
  }
  /// \return whether there are receives for `count` messages that have not begun, and for one that
  /// may have begun
  [[nodiscard]] bool covers(uint32_t count) const {
    if (shared_ == nullptr) return accepted() > count;
    return !shared_->has_waiters() && shared_->posted() > count;
  }
  /// \return whether message `msn`, which is not ahead of the order, has a receive or would get one
  [[nodiscard]] bool covers_msn(uint32_t msn) const {
    uint32_t more = 0;
    if (shared_ != nullptr && !shared_->has_waiters()) {
      more = std::min(shared_->posted(), mask_ + 1 - in_progress());
    }
    return msn - first_msn_ - head_ < in_progress() + more;
  }
  /// The next message in order begins to wait for a receive. Shared: behind the streams that wait
  /// already.
  void begin_wait() {
    if (shared_ != nullptr) shared_->begin_wait(waiter_, stream_);
  }
  void end_wait() {
    if (shared_ != nullptr) shared_->end_wait(waiter_);
  }
  /// Shared: \return whether the stream is listed among those that wait
  [[nodiscard]] bool waits() const { return waiter_.is_listed(); }
  /// \return whether there is a receive for message `msn`, which waits, and (shared) its turn has
  /// come
  [[nodiscard]] bool serves_wait(uint32_t msn) const {
    if (shared_ == nullptr) return has_msn(msn);
    return shared_->serves(waiter_, true) && shared_->posted() != 0;
  }
  /// Shared: gives the buffers back without completions, and takes no more.
  void leave() {
    end_wait();
    while (shared_ != nullptr && !empty()) pop();
    shared_ = nullptr;
  }
  [[nodiscard]] bool is_shared() const { return shared_ != nullptr; }
  /// Buffers of messages that were not delivered.
  [[nodiscard]] uint32_t in_progress() const { return tail_ - head_; }
  /// Shared: how many buffers the stream has taken since it was made (RFC 5042 s.6.4.3.1).
  [[nodiscard]] uint64_t claimed() const { return claimed_; }
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  /// Slots that wait for a message.
  [[nodiscard]] uint32_t accepted() const { return tail_ - head_; }
  [[nodiscard]] const ReceiveSlot& front() const { return slots_[head_ & mask_]; }
  /// Gives the place of front() back to the application.
  void pop() {
    if (shared_ != nullptr) [[unlikely]] {
      shared_->give_back(*front().work);
    } else {
      ring_.retire();
    }
    ++head_;
  }
  /// The first posted buffer is for message `msn`. Called before anything is delivered.
  void begin_at(uint32_t msn) { first_msn_ = msn; }
  /// The buffer of message `msn` (RFC 5041 s.4.3: MSNs start at 1), which must have one.
  [[nodiscard]] const ReceiveSlot& of_msn(uint32_t msn) const { return slots_[place_of(msn)]; }
  /// The memory that Immediate Data of that message go to.
  [[nodiscard]] base::ByteSpan immediate_buffer(uint32_t msn) {
    return slots_[place_of(msn)].immediate;
  }
  /// A piece of the buffer of that message cannot be written to.
  void refuse(uint32_t msn) { slots_[place_of(msn)].refused = true; }
  [[nodiscard]] bool has_msn(uint32_t msn) const {
    return msn - first_msn_ - head_ < tail_ - head_;
  }
  /// Another connection begins with message 1. Precondition: empty(). \param stream as in the
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
  /// The most messages in order that one segment begins before the first of them is delivered.
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

  WorkRing ring_;
  uint32_t mask_;
  std::unique_ptr<ReceiveSlot[]> slots_;
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
