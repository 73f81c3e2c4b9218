/// \file
/// FrameRing: the frames on their way in one direction of a wire that is memory; private to the
/// driver.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "port/port.hpp"

struct rte_mbuf;

namespace rnic::dpdk {

/// One thread sends and one receives; each frame has the next position, and a place that says by
/// itself whether its frame is there. A long frame's place has the pointer of an mbuf, whose lines
/// come to the receiver's core when it has read that. A short frame is carried: its octets stand
/// behind the word that tells of it, so that its lines come with that word, and its mbuf and pool
/// never leave the sender's core. The receiver looks at both places of the next position.
///
/// A carried frame is read where it stands, and belongs to the receiver until release(). As long as
/// the receiver keeps those of an earlier round, frames go by pointer.
class FrameRing {
 public:
  static constexpr uint32_t kCarried = 240;  ///< octets of the longest frame that is carried

  /// \param capacity frames that are on their way at most; rounded up to a power of two
  explicit FrameRing(size_t capacity)
      : mask_(std::bit_ceil(std::max<size_t>(capacity, 1)) - 1),
        places_(std::make_unique<Place[]>(mask_ + 1)),
        slots_(std::make_unique<Slot[]>(kSlots)) {}
  FrameRing(const FrameRing&) = delete;
  FrameRing& operator=(const FrameRing&) = delete;

  /// Sender: copies a frame. False: it is too long, or there is no room; push() it.
  /// \param frame of which whole pieces of kPiece octets may be read
  bool carry(const port::Packet& frame) {
    if (frame.length > kCarried || frame.room < kCarried) return false;
    Slot& slot = slots_[tail() & (kSlots - 1)];
    if (slot.stamp.load(std::memory_order_acquire) != kFree || is_full()) return false;
    const uint32_t length = frame.length;
    const uint8_t* const octets = frame.data;
    for (uint32_t at = 0; at < length; at += kPiece) {
      std::memcpy(slot.octets + at, octets + at, kPiece);
    }
    slot.length = length;
    tell(slot.stamp);
    return true;
  }
  /// Sender: false when full.
  bool push(rte_mbuf* frame) {
    if (is_full()) return false;
    Place& place = places_[tail() & mask_];
    place.frame = frame;
    tell(place.stamp);
    return true;
  }

  /// Receiver: hands up to `most` frames, oldest first, to show(packet), which has the octets of a
  /// carried one, or to show(mbuf). \return how many there were
  template <typename Show>
  size_t consume(size_t most, Show&& show) {
    const size_t head = head_.load(std::memory_order_relaxed);
    size_t taken = 0;
    for (; taken < most; ++taken) {
      const size_t position = head + taken;
      const Place& place = read_places_[position & read_mask_];
      if (place.stamp.load(std::memory_order_acquire) == position + 1) {
        show(place.frame);
        continue;
      }
      Slot& slot = read_slots_[position & (kSlots - 1)];
      if (slot.stamp.load(std::memory_order_acquire) != position + 1) break;
      slot.expect();
      show(port::Packet{slot.octets, slot.length, kCarried, slot.as_buffer()});
    }
    if (taken != 0) head_.store(head + taken, std::memory_order_release);
    return taken;
  }
  /// Receiver: takes a carried frame back. False: it is none of this ring.
  bool release(port::Buffer* buffer) {
    auto* const slot = reinterpret_cast<Slot*>(buffer);
    if (slot < read_slots_ || slot >= read_slots_ + kSlots) return false;
    slot->stamp.store(kFree, std::memory_order_release);
    return true;
  }

  /// Either side: whether all frames that were sent have been taken.
  [[nodiscard]] bool empty() const {
    return tail_.load(std::memory_order_acquire) == head_.load(std::memory_order_acquire);
  }

 private:
  static constexpr size_t kSlots = 16;  // few, so that they stay in the first cache of both cores
  static constexpr uint32_t kPiece = 16;  // octets that are copied at once
  static constexpr size_t kFree = 0;
  static constexpr size_t kLine = 64;  // octets of a cache line
  static_assert(kCarried % kPiece == 0 && std::has_single_bit(kSlots));

  // A stamp is one more than the position of its frame, so no two frames have the same.
  struct Place {
    rte_mbuf* frame = nullptr;
    std::atomic<size_t> stamp{kFree};
  };
  struct alignas(256) Slot {
    [[nodiscard]] port::Buffer* as_buffer() { return reinterpret_cast<port::Buffer*>(this); }
    /// The other lines of its headers, and of a small message, come at the same time.
    void expect() const {
      const auto* const first = reinterpret_cast<const char*>(this);
      __builtin_prefetch(first + kLine);
      __builtin_prefetch(first + 2 * kLine);
    }

    std::atomic<size_t> stamp{kFree};
    uint32_t length = 0;
    alignas(kPiece) uint8_t octets[kCarried]{};
  };

  [[nodiscard]] size_t tail() const { return tail_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_full() {
    if (tail() - cached_head_ <= mask_) return false;
    cached_head_ = head_.load(std::memory_order_acquire);
    return tail() - cached_head_ > mask_;
  }
  /// The count comes first, so that whoever has taken the frame sees it counted (empty()).
  void tell(std::atomic<size_t>& stamp) {
    const size_t next = tail() + 1;
    tail_.store(next, std::memory_order_release);
    stamp.store(next, std::memory_order_release);
  }

  // Each side has a cache line of its own, with a copy of what never changes. Positions never wrap.
  alignas(kLine) const size_t mask_;                // sender
  const std::unique_ptr<Place[]> places_;           // sender
  const std::unique_ptr<Slot[]> slots_;             // sender
  std::atomic<size_t> tail_{0};                     // sender; either side may look at it
  size_t cached_head_ = 0;                          // sender's last reading of head_
  alignas(kLine) const size_t read_mask_ = mask_;   // receiver
  const Place* const read_places_ = places_.get();  // receiver
  Slot* const read_slots_ = slots_.get();           // receiver
  std::atomic<size_t> head_{0};                     // receiver; either side may look at it
};

}  // namespace rnic::dpdk
