/// \file
/// The memory in which work requests lie from post to completion: written once by the application,
/// read in place by the worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.hpp"
#include "base/page_array.hpp"

namespace rnic::rdmap {

/// What the memory of a request is divided into: a near part for what nearly every request has, and
/// a far one for what few have, so that the memory of the others is not touched.
struct WorkPlace {
  std::byte* near;
  std::byte* far;
};

/// A ring of at most `depth` requests between one application thread and the worker. Each request
/// has a near place, and a far place elsewhere. Both are there from the start, so a queue always
/// takes `depth` requests of the longest kind.
///
/// When the application finds that all of it has been carried out it begins again at the first
/// place, so that the memory touched is that of the requests which were under way at once, and at
/// most that of kRewound more. It tells so beside the mark of what is published.
///
/// Marks, which run modulo 2^32: retired <= taken <= published <= written, written - retired <=
/// depth. A request that was retired may be overwritten at once.
class WorkRing {
 public:
  static constexpr uint32_t kLine = 64;  ///< octets

  /// \param near, far octets of the places of a request; multiples of 8
  /// \param store where the far places come from, as for a PageArray
  WorkRing(uint32_t depth, uint32_t near, uint32_t far, base::PageStore* store = nullptr)
      : depth_(depth),
        near_(near),
        far_(far),
        // Nothing is touched, not even by zeros: memory is backed as places are used.
        near_places_(std::make_unique_for_overwrite<Line[]>(lines_for(depth, near))),
        far_places_(size_t{depth} * far, store) {
    write_at_ = first_place();
    end_ = write_at_.near + uint64_t{depth} * near;
    take_at_ = write_at_.near;
    read_end_ = end_;
  }
  WorkRing(const WorkRing&) = delete;
  WorkRing& operator=(const WorkRing&) = delete;

  /// Octets of memory that a ring takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth, uint32_t near, uint32_t far) {
    return depth * near + kLine + base::PageArray<std::byte>::octets_for(depth * far);
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
  [[nodiscard]] WorkPlace write() {
    if ((written_ - begun_) % kRewound == 0) [[unlikely]] rewind();
    const WorkPlace place = write_at_;
    write_at_.near += near_;
    write_at_.far += far_;
    if (write_at_.near == end_) write_at_ = first_place();
    ++written_;
    return place;
  }
  /// Hands all requests written so far to the worker.
  void publish() {
    published_.store(uint64_t{begun_} << 32 | written_, std::memory_order_release);
  }

  // --- Worker ---

  /// The near place of the oldest request that was not taken, or nullptr.
  [[nodiscard]] const std::byte* front() {
    if (taken_ == seen_) {
      // Both lines are the other side's: the second comes while the first one is waited for.
      __builtin_prefetch(take_at_);
      const uint64_t published = published_.load(std::memory_order_acquire);
      seen_ = static_cast<uint32_t>(published);
      if (taken_ == seen_) return nullptr;
      const auto begun = static_cast<uint32_t>(published >> 32);
      if (begun != seen_begun_) [[unlikely]] begin_again(begun);
    }
    return take_at_;
  }
  /// Takes the request at front(); the worker has to retire it.
  void take() {
    take_at_ += step_;
    if (take_at_ == read_end_) take_at_ = read_begin();
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
  // The application looks at the worker's line only once in so many requests.
  static constexpr uint32_t kRewound = 16;

  void rewind() {
    // The worker could not tell the same number, 2^32 requests later, from no news.
    if (written_ == begun_ || !is_idle()) return;
    begun_ = seen_retired_ = written_;
    write_at_ = first_place();
  }
  /// The worker has retired all that was published before: the next request is at the first place.
  void begin_again(uint32_t begun) {
    seen_begun_ = begun;
    take_at_ = read_begin();
  }

  struct alignas(kLine) Line {
    std::byte octets[kLine];
  };

  [[nodiscard]] static size_t lines_for(uint32_t depth, uint32_t near) {
    return (size_t{depth} * near + kLine - 1) / kLine;
  }
  [[nodiscard]] WorkPlace first_place() const {
    return {reinterpret_cast<std::byte*>(near_places_.get()), far_places_.data()};
  }
  [[nodiscard]] const std::byte* read_begin() const { return first_place().near; }

  // Each side has a cache line, with a copy of what it needs of the other's that never changes.
  alignas(64) const uint32_t depth_;  // application
  const uint32_t near_;               // application: octets of a near place
  const uint32_t far_;                // application: octets of a far place
  uint32_t written_ = 0;              // application
  uint32_t seen_retired_ = 0;         // application: its last reading of retired_
  uint32_t begun_ = 0;                // application: the request at the first place was so many
  std::atomic<uint64_t> published_{0};  // how many, and above it begun_
  std::byte* end_;                      // application: of the near places
  WorkPlace write_at_;                  // application

  // Either side looks for these when it has used all places, or begins again.
  alignas(64) std::unique_ptr<Line[]> near_places_;
  base::PageArray<std::byte> far_places_;
  const std::byte* read_end_;    // worker
  const std::byte* take_at_;     // worker
  const uint32_t step_ = near_;  // worker
  uint32_t seen_begun_ = 0;      // worker: its last reading of begun_
  uint32_t taken_ = 0;           // worker
  uint32_t seen_ = 0;            // worker: its last reading of published_
  std::atomic<uint32_t> retired_{0};
};

}  // namespace rnic::rdmap
