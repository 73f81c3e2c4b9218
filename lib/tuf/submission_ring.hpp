/// \file
/// SubmissionRing: keeps the octets that the ULP has submitted until the peer's TCP has
/// acknowledged them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/octet_ring.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

/// The place of one sending operation in the ring: a PDU, or a buffer in the modes without PDUs.
struct Submission {
  static constexpr uint32_t kHead = 4;          // length, mode and an unused octet
  static constexpr uint32_t kLongest = 0xffff;  // the head has 16 bits for the length

  uint64_t begin = 0;  ///< position of its head
  uint32_t length = 0;
  FramedSendMode mode = FramedSendMode::Plain;

  /// Position of the next submission.
  [[nodiscard]] uint64_t end() const { return begin + kHead + length; }
};

/// Submissions follow each other in the ring, each with a head. A position counts all octets that
/// were put into the ring before it, heads included. The application side submits, the owner's side
/// reads and frees, and each side writes one position that the other reads: when it has moved, the
/// octets before it are there, or their room may be used again.
class SubmissionRing {
 public:
  SubmissionRing(uint8_t* memory, uint32_t octets) : ring_(memory, octets) {}
  SubmissionRing(const SubmissionRing&) = delete;
  SubmissionRing& operator=(const SubmissionRing&) = delete;

  // --- Application side ---

  [[nodiscard]] bool has_room(size_t octets) const {
    return unacknowledged() + Submission::kHead + octets <= ring_.size();
  }
  /// \param octets at most Submission::kLongest; has_room() must be true for them
  void submit(FramedSendMode mode, base::ByteView octets);
  /// Octets of the ring that are in use, heads included.
  [[nodiscard]] uint64_t unacknowledged() const {
    return written_.load(std::memory_order_relaxed) - freed_.load(std::memory_order_acquire);
  }

  // --- Owner's side ---

  /// Position behind the last submission.
  [[nodiscard]] uint64_t written() const { return written_.load(std::memory_order_acquire); }
  /// Position of the oldest submission that is still kept.
  [[nodiscard]] uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }
  /// The submission that begins at `position`, in [freed(), written()).
  [[nodiscard]] Submission at(uint64_t position) const;
  /// Reads octets of a submission from `from` on, as many as `out` has room for.
  void read(const Submission& submission, uint32_t from, base::ByteSpan out) const {
    ring_.read(submission.begin + Submission::kHead + from, out);
  }
  /// Frees the room below `position`, which is not read again.
  void free_to(uint64_t position) { freed_.store(position, std::memory_order_release); }
  /// Checks the bounds, and that the heads lead from one submission to the next up to the end.
  /// Called on the owner's side.
  void validate() const;

 private:
  base::OctetRing ring_;
  // Invariant: freed_ <= written_ <= freed_ + ring_.size(); both begin at a submission's head.
  alignas(64) std::atomic<uint64_t> freed_{0};    // written by the owner
  alignas(64) std::atomic<uint64_t> written_{0};  // written by the application
};

}  // namespace rnic::tuf
