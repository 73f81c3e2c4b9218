/// \file
/// Single-producer single-consumer ring whose places say by themselves whether they are full.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/zero_array.hpp"

namespace rnic::base {

/// How the two sides of a StampedRing reach the words that they share.
struct SharedWord {
  static size_t load(const size_t& word) {
    return std::atomic_ref(const_cast<size_t&>(word)).load(std::memory_order_acquire);
  }
  static void store(size_t& word, size_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }
};

/// As SpscRing, for a consumer that waits for the next element: it looks at one word beside the
/// element, not at a mark of the producer's. So an element that fits a cache line with that word
/// comes to the consumer's core by one way of one line, where a mark would cost a second one, after
/// the first.
///
/// \tparam T zero octets are a valid one \tparam Word SharedWord, or that of a model of the machine
template <typename T, typename Word = SharedWord>
class StampedRing {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied, and never destroyed");

 public:
  /// \param capacity elements that fit; rounded up to a power of two.
  explicit StampedRing(size_t capacity) : mask_(capacity_for(capacity) - 1), places_(mask_ + 1) {}
  StampedRing(const StampedRing&) = delete;
  StampedRing& operator=(const StampedRing&) = delete;

  /// Producer: false when full.
  bool push(const T& value) {
    const size_t tail = Word::load(tail_);
    if (tail - cached_head_ > mask_) {
      cached_head_ = Word::load(head_);
      if (tail - cached_head_ > mask_) return false;
    }
    Place& place = places_[tail & mask_];
    place.value = value;
    // The count comes first, so that whoever has taken the element sees it counted (size()).
    Word::store(tail_, tail + 1);
    Word::store(place.stamp, tail + 1);
    return true;
  }

  /// Consumer: false when empty.
  bool pop(T& out) {
    const size_t head = Word::load(head_);
    const Place& place = elements_[head & read_mask_];
    if (Word::load(place.stamp) != head + 1) return false;
    out = place.value;
    Word::store(head_, head + 1);
    return true;
  }

  /// Consumer: the oldest element without taking it, or nullptr.
  [[nodiscard]] const T* front() const {
    const size_t head = Word::load(head_);
    const Place& place = elements_[head & read_mask_];
    return Word::load(place.stamp) == head + 1 ? &place.value : nullptr;
  }

  /// Room for at least `capacity` elements, and for those that are in it: they stay. Neither side
  /// is at work meanwhile.
  /// \throw std::bad_alloc, and nothing has changed
  void resize(size_t capacity) {
    const size_t mask = std::bit_ceil(std::max({capacity, size(), size_t{1}})) - 1;
    ZeroArray<Place> places(mask + 1);
    for (size_t position = head_; position != tail_; ++position) {
      places[position & mask] = places_[position & mask_];
    }
    places_ = std::move(places);
    mask_ = read_mask_ = mask;
    elements_ = places_.data();
    cached_head_ = head_;
  }

  /// Either side: never less than the consumer may pop() by then, and at most one more, which is
  /// just being added.
  [[nodiscard]] size_t size() const { return Word::load(tail_) - Word::load(head_); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] size_t capacity() const { return mask_ + 1; }
  /// Elements that fit a ring made for `capacity`.
  [[nodiscard]] static uint64_t capacity_for(uint64_t capacity) {
    return std::bit_ceil(capacity < 1 ? uint64_t{1} : capacity);
  }
  /// Octets of memory that a ring takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity) {
    return ZeroArray<Place>::octets_for(capacity_for(capacity));
  }

 private:
  // A place that fits a cache line does not lie across two.
  static constexpr size_t kOctets = std::bit_ceil(sizeof(T) + sizeof(size_t));
  static constexpr size_t kAlignment =
      kOctets <= 64 ? kOctets : std::max(alignof(T), alignof(size_t));

  struct alignas(kAlignment) Place {
    T value;
    size_t stamp;  // one more than the position of its element; another number: it is empty
  };

  // Each side has a cache line, with a copy of what it needs of the other's that only resize()
  // changes. Positions start at 0 and never wrap.
  alignas(64) size_t mask_;                             // producer
  ZeroArray<Place> places_;                             // producer
  size_t tail_ = 0;                                     // producer; any side may look at it
  size_t cached_head_ = 0;                              // producer's last reading of head_
  alignas(64) const Place* elements_ = places_.data();  // consumer
  size_t read_mask_ = mask_;                            // consumer
  size_t head_ = 0;                                     // consumer; any side may look at it
};

}  // namespace rnic::base
