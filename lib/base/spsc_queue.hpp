/// \file
/// A queue between two threads for elements that are large and seldom wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/spsc_ring.hpp"
#include "base/zero_array.hpp"

namespace rnic::base {

/// As SpscRing, for one producing and one consuming thread. A ring writes to each of its slots in
/// turn, so in the end it takes the memory of all; here the place that came back last is the next
/// one used, so that the memory touched is that of the elements that were in the queue at once, and
/// a few octets for each place that may be.
template <typename T>
class SpscQueue {
 public:
  /// \param capacity elements that fit; rounded up to a power of two
  explicit SpscQueue(size_t capacity)
      : full_(capacity),
        back_(capacity),
        places_(full_.capacity()),
        free_(static_cast<uint32_t>(full_.capacity())) {}
  ~SpscQueue() {
    while (const uint32_t* place = full_.front()) {
      at(*place)->~T();
      full_.pop_front();
    }
  }
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;

  /// Producer: false when full.
  bool push(T value) {
    uint32_t place = 0;
    while (back_.pop(place)) free_.give(place);
    if (free_.empty()) return false;
    place = free_.take();
    new (places_[place].storage) T(std::move(value));
    return full_.push(place);  // there is room for each place
  }
  /// Consumer: false when empty.
  bool pop(T& out) {
    uint32_t place = 0;
    if (!full_.pop(place)) return false;
    T* const element = at(place);
    out = std::move(*element);
    element->~T();
    back_.push(place);  // there is room for each place
    return true;
  }

  /// Either side; exact only for the side that asks about its own end.
  [[nodiscard]] size_t size() const { return full_.size(); }
  [[nodiscard]] bool empty() const { return full_.empty(); }
  [[nodiscard]] size_t capacity() const { return full_.capacity(); }
  /// Producer: places whose memory was touched.
  [[nodiscard]] uint32_t touched() const { return free_.fresh(); }
  /// Octets of memory that a queue takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity) {
    const uint64_t places = SpscRing<uint32_t>::capacity_for(capacity);
    return 2 * SpscRing<uint32_t>::octets_for(capacity) + ZeroArray<Place>::octets_for(places) +
           FreeNumbers::octets_for(places);
  }

  /// Producer: checks that no place is there twice.
  void validate() const { free_.validate(); }

 private:
  struct Place {
    alignas(T) unsigned char storage[sizeof(T)];
  };

  T* at(uint32_t place) { return std::launder(reinterpret_cast<T*>(places_[place].storage)); }

  SpscRing<uint32_t> full_;  // producer to consumer: places with elements, oldest first
  SpscRing<uint32_t> back_;  // consumer to producer: places that are free again
  ZeroArray<Place> places_;  // Invariant: each is in full_, in back_ or free_, or in a side's hands
  FreeNumbers free_;         // producer
};

}  // namespace rnic::base
