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

/// A ring of at most `depth` requests of 1 to `max_units` units each, between one application
/// thread and the worker. A request lies in one piece and starts on a cache line: if the longest
/// request would not fit before the end of the memory, both sides go on at its beginning.
///
/// Marks, which run modulo 2^32: retired <= taken <= published <= written, written - retired <=
/// depth. A request that was retired may be overwritten at once.
class WorkRing {
 public:
  static constexpr uint32_t kUnit = 64;  ///< octets

  [[nodiscard]] static constexpr uint32_t units_of(size_t octets) {
    return static_cast<uint32_t>((octets + kUnit - 1) / kUnit);
  }

  WorkRing(uint32_t depth, uint32_t max_units)
      : depth_(depth), max_units_(max_units), units_(size_for(depth, max_units)) {}

  /// Octets of memory that a ring takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth, uint32_t max_units) {
    return base::ZeroArray<Unit>::octets_for(size_for(depth, max_units));
  }
  [[nodiscard]] uint32_t depth() const { return depth_; }

  // --- Application: one thread at a time ---

  /// \return whether another request may be written: the worker is done with the one whose place it
  /// takes
  [[nodiscard]] bool has_room() const {
    return written_ - retired_.load(std::memory_order_acquire) < depth_;
  }
  /// \return whether the worker is done with all requests
  [[nodiscard]] bool is_idle() const {
    return written_ == retired_.load(std::memory_order_acquire);
  }
  /// Memory for the next request, of `units` units. Precondition: has_room().
  [[nodiscard]] std::byte* write(uint32_t units) {
    RNIC_DCHECK(units >= 1 && units <= max_units_);
    std::byte* const place = units_[write_at_].octets;
    write_at_ = behind(write_at_, units);
    ++written_;
    return place;
  }
  /// Hands all requests written so far to the worker.
  void publish() { published_.store(written_, std::memory_order_release); }

  // --- Worker ---

  /// The oldest request that was not taken, or nullptr.
  [[nodiscard]] const std::byte* front() {
    if (taken_ == seen_) {
      seen_ = published_.load(std::memory_order_acquire);
      if (taken_ == seen_) return nullptr;
    }
    return units_[take_at_].octets;
  }
  /// Takes the request at front(), of `units` units; the worker has to retire it.
  void take(uint32_t units) {
    take_at_ = behind(take_at_, units);
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
  struct alignas(kUnit) Unit {
    std::byte octets[kUnit];
  };

  // The memory is enough for `depth` of the longest requests and the gap at the end, so that the
  // next request written never reaches the oldest one in use.
  static uint64_t size_for(uint64_t depth, uint32_t max_units) {
    return (depth + 1) * max_units - 1;
  }
  [[nodiscard]] size_t behind(size_t at, uint32_t units) const {
    at += units;
    return at + max_units_ <= units_.size() ? at : 0;
  }

  const uint32_t depth_;
  const uint32_t max_units_;
  base::ZeroArray<Unit> units_;

  alignas(64) size_t write_at_ = 0;  // application
  uint32_t written_ = 0;             // application
  std::atomic<uint32_t> published_{0};

  alignas(64) size_t take_at_ = 0;  // worker
  uint32_t taken_ = 0;              // worker
  uint32_t seen_ = 0;               // worker: its last reading of published_
  std::atomic<uint32_t> retired_{0};
};

}  // namespace rnic::rdmap
