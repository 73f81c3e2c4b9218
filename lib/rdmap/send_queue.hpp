/// \file
/// The send queue: work requests from post to the acknowledgement of their last octet.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "base/prefetch.hpp"
#include "rdmap/posted_work.hpp"
#include "rdmap/work_opcodes.hpp"
#include "rdmap/work_ring.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// The worker's record of a work request: a cache line.
struct alignas(64) SendSlot {
  const PostedSend* work;  ///< in the ring; after a flush, in the queue's own memory
  const WorkRow* row;      ///< of the opcode of this work
  /// A copy of its head, for questions after its completion.
  alignas(PostedSend) std::array<std::byte, sizeof(PostedSend)> head;
  union {
    uint64_t original;   ///< atomic: the value from its response
    uint64_t list_stag;  ///< others: names a sink that has several pieces; from the first pull on
  };
  uint32_t msn;  ///< untagged messages, from the first pull on
  CompletionStatus status;
  CompletionCause cause;  ///< the cause of its status, if it differs from that of all
  bool started : 1;       ///< some of it was pulled
  bool released : 1;      ///< the peer's TCP has all of it
  bool answered : 1;      ///< Read, atomic: its response was delivered
  bool direct : 1;        ///< as of its work, and it has not failed
  uint8_t part;           ///< which of its messages is pulled: 0, or 1 where WorkRow::then says so

  /// The posted request without operands and SGEs; valid even after its completion.
  [[nodiscard]] const PostedSend& posted() const { return PostedSend::at(head.data()); }
  /// Octets of the message, as its 32 bits say; a request for more fails when its turn comes.
  [[nodiscard]] uint32_t length() const { return static_cast<uint32_t>(work->length); }
  /// The row of one of its messages.
  [[nodiscard]] const WorkRow& message_row(uint8_t which) const {
    return which == 0 ? *row : *row->then;
  }
  /// Octets of one of its messages.
  [[nodiscard]] uint32_t message_length(uint8_t which) const {
    const uint32_t size = message_row(which).size;
    return size != 0 ? size : length();
  }
  /// \return whether that message is the last one of the request
  [[nodiscard]] bool is_last(uint8_t which) const {
    return direct || which != 0 || row->then == nullptr;  // a direct request is one message
  }
  /// \return whether the request may complete once everything before it has
  [[nodiscard]] bool done() const {
    if (direct) return released;
    if (status != CompletionStatus::Success) return true;
    return released && (!row->awaits_response() || answered);
  }
};

/// The ring that the application posts into, and three marks of the worker's: free <= report <=
/// end and free <= next <= end. Sequence numbers run modulo 2^32; they name a slot and its
/// generation at once.
///
/// While the endpoint works, free equals report: a request is reported when its records are
/// acknowledged. A flush reports all of them at once, but a retransmission of requests that were
/// begun still has to be rebuilt from them: abandon() copies these requests, so that the ring is
/// free for the application. Requests posted after that pass through without a slot.
class SendQueue {
 public:
  /// \param store where the far places of requests come from, as for a PageArray
  explicit SendQueue(uint32_t depth, base::PageStore* store = nullptr)
      : ring_(depth, PostedSend::kNear, PostedSend::kFar, store),
        mask_(std::bit_ceil(depth < 1 ? 1u : depth) - 1),
        slots_(std::make_unique_for_overwrite<SendSlot[]>(size_t{mask_} + 1)) {}

  /// Octets of memory that a queue of `depth` requests takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return WorkRing::octets_for(depth, PostedSend::kNear, PostedSend::kFar) +
           std::bit_ceil(depth < 1 ? uint64_t{1} : depth) * sizeof(SendSlot);
  }

  // --- Application: one thread at a time ---

  [[nodiscard]] bool has_room() { return ring_.has_room(); }
  /// \return whether nothing that was posted is under way
  [[nodiscard]] bool is_idle() const { return ring_.is_idle(); }
  /// Writes a request into the ring; the worker does not see it before publish(). Precondition:
  /// has_room(), and neither SGEs nor inline data are too long. \param row the row of its opcode
  /// \param octets of all its SGEs
  void write(const SendRequest& work, const WorkRow& row, uint64_t octets) {
    PostedSend::write(work, row, octets, ring_.write());
  }
  /// Does the same for a request that PostedSend::write_plain() can write.
  void write_plain(const SendRequest& work) { PostedSend::write_plain(work, ring_.write()); }
  void publish() { ring_.publish(); }
  void post(const SendRequest& work, const WorkRow& row) {
    write(work, row, work.sges.length());
    publish();
  }

  // --- Worker ---

  /// \return whether a request has been posted that is neither accepted nor passed
  [[nodiscard]] bool has_posted() { return ring_.front() != nullptr; }
  /// Makes a slot of the oldest request posted. Precondition: has_posted(). \return its number
  uint32_t accept() {
    const PostedSend& work = take();
    SendSlot& made = slot(end_);
    made.work = &work;
    made.row = &work_row(work.opcode);
    made.original = 0;
    made.msn = 0;
    made.status = CompletionStatus::Success;
    made.cause = CompletionCause::None;
    // All of them at once, as what is written apart and read back as one word is waited for.
    made.started = made.released = made.answered = made.direct = false;
    made.part = 0;
    if (work.is_direct) made.direct = true;
    std::memcpy(made.head.data(), &work, sizeof work);
    if (known_ <= mask_) ++known_;
    return end_++;
  }
  /// Takes the oldest request posted without making a slot of it, and gives its place back.
  /// Precondition: has_posted(), and abandon() was called. \return the completion that the user
  /// gets
  Completion pass() {
    const PostedSend& work = take();
    const Completion completion{.id = work.id, .opcode = work.opcode};
    ring_.retire();
    return completion;
  }

  /// The message of next() is being pulled in several segments: the request behind it is fetched
  /// into the caches meanwhile.
  void prefetch_behind() const {
    if (end_ - next_ < 2) return;
    base::prefetch(at(next_ + 1).work, PostedSend::kNear);
    base::prefetch(at(next_ + 2));
  }

  [[nodiscard]] const SendSlot& at(uint32_t seq) const { return slots_[seq & mask_]; }
  /// The number that the next slot will have.
  [[nodiscard]] uint32_t end() const { return end_; }
  [[nodiscard]] bool holds(uint32_t seq) const { return seq - free_ < end_ - free_; }

  // These record the progress of a slot that the queue holds.
  /// Lets the request complete with an error at its turn.
  void fail(uint32_t seq, CompletionStatus status, CompletionCause cause = CompletionCause::None) {
    slot(seq).status = status;
    slot(seq).cause = cause;
    slot(seq).direct = false;
  }
  /// Sets the MSN of its untagged message. \param list_stag names the pieces of its sink
  void number(uint32_t seq, uint32_t msn, uint32_t list_stag) {
    slot(seq).msn = msn;
    slot(seq).list_stag = list_stag;
  }
  /// A part of the request was pulled.
  void start(uint32_t seq) { slot(seq).started = true; }
  /// The peer's TCP has all of the request. Requests that have completed before are held no longer
  /// then.
  void release(uint32_t seq) {
    slot(seq).released = true;
    free_slots();
  }
  /// Keeps the value before, from the response to an atomic.
  void keep_original(uint32_t seq, uint64_t original) { slot(seq).original = original; }
  /// The response to a Read or an atomic was delivered.
  void answer(uint32_t seq) { slot(seq).answered = true; }

  /// The slot whose message is pulled next. Precondition for next(): has_next().
  [[nodiscard]] bool has_next() const { return next_ != end_; }
  [[nodiscard]] uint32_t next() const { return next_; }
  void advance() { ++next_; }
  /// Does start() and advance() for a request whose only message is pulled as a whole.
  void pass_next() { slot(next_++).started = true; }
  /// Goes on to the second message of the slot at next().
  void next_part() { ++slot(next_).part; }

  /// The oldest slot that the user was not told of. Precondition for report(): has_unreported().
  [[nodiscard]] bool has_unreported() const { return report_ != end_; }
  [[nodiscard]] uint32_t report() const { return report_; }
  /// Forgets the requests that have completed: they belonged to another connection.
  void forget_completed() { known_ = end_ - free_; }
  [[nodiscard]] bool is_unreported(uint32_t seq) const { return seq - report_ < end_ - report_; }
  /// The oldest slot whose place no other one has taken. SendSlot::work of slots before report() is
  /// meaningless.
  [[nodiscard]] uint32_t oldest_known() const { return end_ - known_; }
  /// The user was told of the slot at report(): its place goes back to the application.
  void retire() {
    ++report_;
    if (next_ - free_ < report_ - free_) next_ = report_;
    free_slots();
    ring_.retire();
  }

  /// Does the same where that slot was pulled and released, and the endpoint works.
  void retire_released() {
    RNIC_DCHECK(free_ == report_);
    free_ = ++report_;
    ring_.retire();
  }

  /// No more messages are pulled, and no more slots are made. If there is no memory for the copies,
  /// nothing can be rebuilt once the requests have completed.
  void abandon() {
    next_ = end_;
    size_t octets = 0;
    for (uint32_t seq = free_; seq != end_; ++seq) octets += octets_kept(seq);
    if (octets == 0) return;
    // The copies of an earlier call stay until everything is copied from them.
    std::unique_ptr<std::byte[]> kept(new (std::nothrow) std::byte[octets]);
    std::byte* place = kept.get();
    for (uint32_t seq = free_; seq != end_; ++seq) {
      const size_t size = octets_kept(seq);
      SendSlot& left = slot(seq);
      if (place == nullptr) left.started = false;
      if (place == nullptr || size == 0) continue;
      left.work->copy_to(place);
      left.work = &PostedSend::at(place);
      place += size;
    }
    kept_ = std::move(kept);
  }
  /// Another connection begins: nothing flushed is retransmitted any more. Precondition: the user
  /// was told of everything.
  void renew() {
    RNIC_CHECK(!has_unreported());
    free_ = next_ = end_;
    kept_.reset();
  }
  /// Checks the order of the marks, that the ring holds the requests not reported yet, and that no
  /// slot is kept longer than needed.
  void validate() const {
    ring_.validate();
    const uint32_t slots = end_ - free_;
    RNIC_CHECK(slots <= mask_ + 1 && report_ - free_ <= slots && next_ - free_ <= slots);
    RNIC_CHECK(next_ - free_ >= report_ - free_);
    RNIC_CHECK(ring_.in_hand() == end_ - report_);
    RNIC_CHECK(free_ == report_ || (at(free_).started && !at(free_).released));
    for (uint32_t seq = next_ + 1; seq - free_ < slots; ++seq) RNIC_CHECK(!at(seq).started);
  }

 private:
  [[nodiscard]] SendSlot& slot(uint32_t seq) { return slots_[seq & mask_]; }
  void free_slots() {
    while (free_ != report_ && (at(free_).released || !at(free_).started)) ++free_;
  }
  /// Octets of a slot's request that have to outlive its place in the ring.
  [[nodiscard]] size_t octets_kept(uint32_t seq) const {
    const SendSlot& left = at(seq);
    return left.started && !left.released ? left.work->size() : 0;
  }
  const PostedSend& take() {
    const PostedSend& work = PostedSend::at(ring_.front());
    ring_.take();
    return work;
  }

  WorkRing ring_;
  uint32_t mask_;
  std::unique_ptr<SendSlot[]> slots_;
  std::unique_ptr<std::byte[]> kept_;
  uint32_t free_ = 0;    // oldest slot in use
  uint32_t report_ = 0;  // oldest slot not told to the user
  uint32_t next_ = 0;    // next slot to pull
  uint32_t end_ = 0;     // next slot to make
  uint32_t known_ = 0;   // slots that were made and not taken by another one
};

}  // namespace rnic::rdmap
