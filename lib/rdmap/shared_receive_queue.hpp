/// \file
/// The shared receive queue: buffers that any of several streams takes for the untagged messages of
/// its DDP queue 0.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "base/spsc_ring.hpp"
#include "base/zero_array.hpp"
#include "rdmap/posted_work.hpp"
#include "rdmap/receive_waiters.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// Learns what streams do to a shared receive queue (worker).
class SharedReceiveOwner {
 public:
  /// Fewer receives are posted than the limit that was armed, which is armed no longer.
  virtual void limit_reached(uint32_t posted) = 0;
  /// More receives are in progress on that stream than the mark allows. Called once per stream,
  /// until the mark is armed again (RFC 5042 s.6.4.3.1).
  virtual void high_water_passed(uint32_t stream, uint32_t in_progress) = 0;

 protected:
  ~SharedReceiveOwner() = default;
};

/// Receives wait in the order in which they were posted, and a stream takes the oldest when one of
/// its messages begins. They come back in any order. Each of the `depth` places is free for the
/// application, posted, or taken by a stream; places circulate between the application's thread and
/// the worker, and the memory of a place never moves.
class SharedReceiveQueue {
 public:
  /// \param max_sges pieces that a receive may have, at most kMaxSge. \param owner outlives it
  SharedReceiveQueue(uint32_t depth, uint32_t max_sges, SharedReceiveOwner& owner)
      : max_sges_(max_sges), owner_(owner), free_(depth), posted_(depth) {
    add_places(depth);
  }

  /// Octets of memory that a queue takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth, uint32_t max_sges) {
    return base::ZeroArray<uint64_t>::octets_for(depth * words_for(max_sges)) +
           2 * base::SpscRing<std::byte*>::octets_for(depth);
  }

  // --- Application: one thread at a time ---

  [[nodiscard]] uint32_t depth() const { return depth_; }
  [[nodiscard]] uint32_t max_sges() const { return max_sges_; }
  /// Posts a receive. \return false: the queue is full
  bool post(const ReceiveRequest& work) {
    std::byte* place = nullptr;
    if (!free_.pop(place)) return false;
    PostedReceive::write(work, work.sges.length(), {place, place + PostedReceive::kNear});
    RNIC_CHECK(posted_.push(place));  // there is room for each place
    return true;
  }

  // --- Worker ---

  /// Receives that were posted and that no stream has taken.
  [[nodiscard]] uint32_t posted() const { return static_cast<uint32_t>(posted_.size()); }
  /// Takes the oldest posted receive. Precondition: posted() is not 0. It stays where it is until
  /// give_back().
  [[nodiscard]] const PostedReceive& take() {
    std::byte* place = nullptr;
    RNIC_CHECK(posted_.pop(place));
    ++taken_;
    if (limit_ != 0 && posted() < limit_) {
      limit_ = 0;
      owner_.limit_reached(posted());
    }
    return PostedReceive::at(place);
  }
  /// Gives the place of a receive that was taken back to the application.
  void give_back(const PostedReceive& work) {
    --taken_;
    auto* place = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&work));
    RNIC_CHECK(free_.push(place));
  }
  /// Receives that streams have taken and not given back.
  [[nodiscard]] uint32_t taken() const { return taken_; }

  // The streams that have a message waiting for a receive, in the order in which they began to
  // wait.
  [[nodiscard]] bool has_waiters() const { return !waiters_.empty(); }
  void begin_wait(ReceiveWaiter& who, uint32_t stream) { waiters_.add(who, stream); }
  void end_wait(ReceiveWaiter& who) { waiters_.remove(who); }
  /// \return whether `who` may take receives now. If streams wait, only the first of them may, for
  /// the message that waits.
  [[nodiscard]] bool serves(const ReceiveWaiter& who, bool in_order) const {
    return waiters_.empty() || (in_order && waiters_.first() == &who);
  }
  /// The stream that has waited longest, if there is a receive for it.
  [[nodiscard]] std::optional<uint32_t> to_resume() const {
    if (waiters_.empty() || posted() == 0) return std::nullopt;
    return waiters_.first()->stream();
  }

  /// Arms the low-water limit: the owner is told once when fewer than `limit` receives are posted,
  /// at once if that is so now. 0 disarms it.
  void arm_limit(uint32_t limit) {
    limit_ = limit;
    if (limit_ == 0 || posted() >= limit_) return;
    limit_ = 0;
    owner_.limit_reached(posted());
  }
  [[nodiscard]] uint32_t limit() const { return limit_; }

  /// Arms the high-water mark: the owner is told once of each stream that has more than `mark`
  /// receives in progress. 0 disarms it.
  void arm_high_water(uint32_t mark) {
    high_water_ = mark;
    ++armings_;
  }
  [[nodiscard]] uint32_t high_water() const { return high_water_; }
  /// A stream has `in_progress` receives now. \param told the stream's own note of the arming that
  /// it was last reported for
  void note_progress(uint32_t stream, uint32_t in_progress, uint32_t& told) {
    if (high_water_ == 0 || in_progress <= high_water_ || told == armings_) return;
    told = armings_;
    owner_.high_water_passed(stream, in_progress);
  }

  /// Gives the queue another depth while the application's thread waits for the worker. \return
  /// false: more receives than that are posted or taken, and nothing has changed
  bool resize(uint32_t depth) {
    if (depth < posted() + taken_) return false;
    if (depth > depth_) {
      free_.resize(depth);
      posted_.resize(depth);
      add_places(depth - depth_);
      return true;
    }
    spare_.reserve(spare_.size() + (depth_ - depth));
    for (std::byte* place = nullptr; depth_ != depth; --depth_) {
      RNIC_CHECK(free_.pop(place));
      spare_.push_back(place);
    }
    return true;
  }

  /// Recounts the places.
  void validate() const {
    waiters_.validate();
    RNIC_CHECK(posted_.size() + taken_ <= depth_);
    RNIC_CHECK(free_.size() <= depth_);
  }

 private:
  [[nodiscard]] static constexpr uint64_t words_for(uint32_t max_sges) {
    return (PostedReceive::kNear + (max_sges > 1 ? max_sges * sizeof(Sge) : 0)) /
           sizeof(uint64_t);
  }
  /// Adds places. Precondition: the rings have room for `count` more.
  void add_places(uint32_t count) {
    const auto reused = static_cast<uint32_t>(std::min<size_t>(count, spare_.size()));
    const uint64_t words = words_for(max_sges_);
    if (count != reused) {
      auto block = std::make_unique<base::ZeroArray<uint64_t>>((count - reused) * words);
      blocks_.push_back(std::move(block));
      uint64_t* const first = blocks_.back()->data();
      for (uint32_t i = 0; i < count - reused; ++i) add_place(first + i * words);
    }
    for (uint32_t i = 0; i < reused; ++i) {
      add_place(spare_.back());
      spare_.pop_back();
    }
  }
  void add_place(void* place) {
    RNIC_CHECK(free_.push(static_cast<std::byte*>(place)));
    ++depth_;
  }

  const uint32_t max_sges_;
  SharedReceiveOwner& owner_;
  uint32_t depth_ = 0;
  std::vector<std::unique_ptr<base::ZeroArray<uint64_t>>> blocks_;  // the memory of the places
  std::vector<std::byte*> spare_;      // places that a smaller depth has no use for
  base::SpscRing<std::byte*> free_;    // from the worker to the application
  base::SpscRing<std::byte*> posted_;  // from the application to the worker

  // The members from here on belong to the worker.
  ReceiveWaiters waiters_;
  uint32_t taken_ = 0;
  uint32_t limit_ = 0;       // 0: not armed
  uint32_t high_water_ = 0;  // 0: not armed
  uint32_t armings_ = 0;     // how often the mark was armed
};

}  // namespace rnic::rdmap
