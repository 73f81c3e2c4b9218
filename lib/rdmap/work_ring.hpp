/// \file
/// The memory in which work requests lie from post to completion: written once by the application,
/// read in place by the worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/zero_array.hpp"

namespace rnic::rdmap {

/// A ring of at most `depth` requests of up to `octets` octets each, between one application thread
/// and the worker. Each request has a place of so many octets, which starts on a cache line, so
/// that a short one costs the lines that it fills and no more.
///
/// Marks, which run modulo 2^32: retired <= taken <= published <= written, written - retired <=
/// depth. A request that was retired may be overwritten at once.
class WorkRing {
 public:
  static constexpr uint32_t kLine = 64;  ///< octets

  WorkRing(uint32_t depth, size_t octets)
      : depth_(depth),
        step_(lines_of(octets)),
        lines_(size_t{depth} * step_),
        write_at_(lines_.data()),
        begin_(lines_.data()),
        end_(begin_ + lines_.size()),
        take_at_(begin_) {}
  WorkRing(const WorkRing&) = delete;
  WorkRing& operator=(const WorkRing&) = delete;

  /// Octets of memory that a ring takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth, size_t octets) {
    return base::ZeroArray<Line>::octets_for(depth * lines_of(octets));
  }
  [[nodiscard]] uint32_t depth() const { return depth_; }

  // --- Application: one thread at a time ---

  /// \return whether another request may be written: the worker is done with the one whose place it
  /// takes
  [[nodiscard]] bool has_room() {
    const bool looks_full = written_ - seen_retired_ == depth_;
    if (looks_full) seen_retired_ = retired_.load(std::memory_order_acquire);
    return written_ - seen_retired_ < depth_;
  }
  /// \return whether the worker is done with all requests
  [[nodiscard]] bool is_idle() const {
    return written_ == retired_.load(std::memory_order_acquire);
  }
  /// Memory for the next request. Precondition: has_room().
  [[nodiscard]] std::byte* write() {
    std::byte* const place = write_at_->octets;
    write_at_ += step_;
    if (write_at_ == lines_.data() + lines_.size()) write_at_ = lines_.data();
    ++written_;
    return place;
  }
  /// Hands all requests written so far to the worker.
  void publish() { published_.store(written_, std::memory_order_release); }

  // --- Worker ---

  /// The oldest request that was not taken, or nullptr.
  [[nodiscard]] const std::byte* front() {
    if (taken_ == seen_) {
      // Both lines are the other side's: the second comes while the first one is waited for.
      __builtin_prefetch(take_at_);
      seen_ = published_.load(std::memory_order_acquire);
      if (taken_ == seen_) return nullptr;
    }
    return take_at_->octets;
  }
  /// Takes the request at front(); the worker has to retire it.
  void take() {
    take_at_ += worker_step_;
    if (take_at_ == end_) take_at_ = begin_;
    ++taken_;
  }
  /// The worker does not look at the oldest request taken any more.
  void retire() {
    const uint32_t retired = retired_.load(std::memory_order_relaxed);
    RNIC_DCHECK(retired != taken_);
    retired_.store(retired + 1, std::memory_order_release);
  }
  /// Requests that were taken and not retired.
  [[nodiscard]] uint32_t in_hand() const {
    return taken_ - retired_.load(std::memory_order_relaxed);
  }
  /// Checks the marks as the worker sees them.
  void validate() const { RNIC_CHECK(in_hand() + (seen_ - taken_) <= depth_); }

 private:
  struct alignas(kLine) Line {
    std::byte octets[kLine];
  };

  [[nodiscard]] static constexpr uint32_t lines_of(size_t octets) {
    return static_cast<uint32_t>((octets + kLine - 1) / kLine);
  }

  // Each side has a cache line, with a copy of what it needs of the other's that never changes.
  alignas(64) const uint32_t depth_;  // application
  const uint32_t step_;               // application: lines of a place
  base::ZeroArray<Line> lines_;       // application
  Line* write_at_;                    // application
  uint32_t written_ = 0;              // application
  uint32_t seen_retired_ = 0;         // application: its last reading of retired_
  std::atomic<uint32_t> published_{0};

  alignas(64) const Line* const begin_;  // worker
  const Line* const end_;                // worker
  const Line* take_at_;                  // worker
  const uint32_t worker_step_ = step_;   // worker
  uint32_t taken_ = 0;                   // worker
  uint32_t seen_ = 0;                    // worker: its last reading of published_
  std::atomic<uint32_t> retired_{0};
};

}  // namespace rnic::rdmap
