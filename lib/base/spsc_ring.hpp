/// \file
/// Single-producer single-consumer ring.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "base/zero_array.hpp"

namespace rnic::base {

/// A ring of at least `capacity` elements between one producing and one consuming thread. What the
/// producer wrote before push() is visible to the consumer after pop(). Its memory is taken at
/// construction and touched by the elements that come to be there.
template <typename T>
class SpscRing {
 public:
  /// \param capacity elements that fit; rounded up to a power of two.
  explicit SpscRing(size_t capacity)
      : mask_(capacity_for(capacity) - 1), slots_(mask_ + 1), elements_(slots_.data()) {}
  ~SpscRing() {
    while (front() != nullptr) pop_front();
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  /// Producer: false when full.
  bool push(T value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - cached_head_ > mask_) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail - cached_head_ > mask_) return false;
    }
    new (slots_[tail & mask_].storage) T(std::move(value));
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// Consumer: false when empty.
  bool pop(T& out) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == cached_tail_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head == cached_tail_) return false;
    }
    T* const element = at(head);
    out = std::move(*element);
    element->~T();
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  /// Consumer: the oldest element without taking it, or nullptr.
  [[nodiscard]] T* front() {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == cached_tail_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head == cached_tail_) return nullptr;
    }
    return at(head);
  }

  /// Consumer: drops the element that front() showed.
  void pop_front() {
    const size_t head = head_.load(std::memory_order_relaxed);
    at(head)->~T();
    head_.store(head + 1, std::memory_order_release);
  }

  /// Room for at least `capacity` elements, and for those that are in it: they stay. Neither side
  /// is at work meanwhile.
  /// \throw std::bad_alloc, and nothing has changed
  void resize(size_t capacity) {
    const size_t head = head_.load(std::memory_order_relaxed);
    const size_t tail = tail_.load(std::memory_order_relaxed);
    const size_t mask = std::bit_ceil(std::max({capacity, tail - head, size_t{1}})) - 1;
    ZeroArray<Slot> slots(mask + 1);
    for (size_t position = head; position != tail; ++position) {
      T* const element = at(position);
      new (slots[position & mask].storage) T(std::move(*element));
      element->~T();
    }
    slots_ = std::move(slots);
    mask_ = read_mask_ = mask;
    elements_ = slots_.data();
    cached_head_ = head;
    cached_tail_ = tail;
  }

  /// Either side; exact only for the side that asks about its own end.
  [[nodiscard]] size_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] size_t capacity() const { return mask_ + 1; }
  /// Elements that fit a ring made for `capacity`.
  [[nodiscard]] static uint64_t capacity_for(uint64_t capacity) {
    return std::bit_ceil(capacity < 1 ? uint64_t{1} : capacity);
  }
  /// Octets of memory that a ring takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity) {
    return ZeroArray<Slot>::octets_for(capacity_for(capacity));
  }

 private:
  struct Slot {
    alignas(T) unsigned char storage[sizeof(T)];
  };

  T* at(size_t position) {
    return std::launder(reinterpret_cast<T*>(elements_[position & read_mask_].storage));
  }

  // Each side has a cache line, with a copy of what it needs of the other's that only resize()
  // changes.
  alignas(64) size_t mask_;  // producer
  ZeroArray<Slot> slots_;    // producer
  std::atomic<size_t> tail_{0};
  size_t cached_head_ = 0;      // producer's last reading of head_
  alignas(64) Slot* elements_;  // consumer
  size_t read_mask_ = mask_;    // consumer
  std::atomic<size_t> head_{0};
  size_t cached_tail_ = 0;  // consumer's last reading of tail_
};

}  // namespace rnic::base
