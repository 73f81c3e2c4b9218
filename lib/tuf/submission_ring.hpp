/// \file
/// SubmissionRing: what the ULP has submitted, until the peer's TCP has acknowledged it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/octet_ring.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

/// The place of one sending operation in the ring: a PDU, or a buffer in the modes without PDUs.
struct Submission {
  static constexpr uint32_t kHead = 4;          // length, mode, an octet of nothing
  static constexpr uint32_t kLongest = 0xffff;  // the head has 16 bits for the length

  uint64_t begin = 0;  ///< position of its head
  uint32_t length = 0;
  FramedSendMode mode = FramedSendMode::Plain;

  /// Where the next one begins.
  [[nodiscard]] uint64_t end() const { return begin + kHead + length; }
};

/// Submissions lie one behind the other, each with a head of its own; positions count octets of the
/// ring since it was made, heads included. The application side submits, the owner's side reads and
/// frees, and each writes one word that the other reads: a position that has moved tells that the
/// octets in front of it are there, or that their room may be used again.
class SubmissionRing {
 public:
  SubmissionRing(uint8_t* memory, uint32_t octets) : ring_(memory, octets) {}
  SubmissionRing(const SubmissionRing&) = delete;
  SubmissionRing& operator=(const SubmissionRing&) = delete;

  // --- Application side ---

  [[nodiscard]] bool has_room(size_t octets) const {
    return unacknowledged() + Submission::kHead + octets <= ring_.size();
  }
  /// \param octets at most Submission::kLongest, and has_room() for them
  void submit(FramedSendMode mode, base::ByteView octets);
  /// Octets of the ring that are in use, heads included.
  [[nodiscard]] uint64_t unacknowledged() const {
    return written_.load(std::memory_order_relaxed) - freed_.load(std::memory_order_acquire);
  }

  // --- Owner's side ---

  /// Position behind the last submission.
  [[nodiscard]] uint64_t written() const { return written_.load(std::memory_order_acquire); }
  /// The oldest submission that is still kept.
  [[nodiscard]] uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }
  /// The submission that begins at `position`, in [freed(), written()).
  [[nodiscard]] Submission at(uint64_t position) const;
  /// Its octets from `from` on, as many as `out` takes.
  void read(const Submission& submission, uint32_t from, base::ByteSpan out) const {
    ring_.read(submission.begin + Submission::kHead + from, out);
  }
  /// What lies below `position` is not read again.
  void free_to(uint64_t position) { freed_.store(position, std::memory_order_release); }
  /// Owner's side: checks the bounds, and that from head to head one comes to the end.
  void validate() const;

 private:
  base::OctetRing ring_;
  // Invariant: freed_ <= written_ <= freed_ + ring_.size(); both begin at a submission's head.
  alignas(64) std::atomic<uint64_t> freed_{0};    // written by the owner
  alignas(64) std::atomic<uint64_t> written_{0};  // written by the application
};

}  // namespace rnic::tuf
