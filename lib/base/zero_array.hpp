/// \file
/// Memory of large tables: all of it is asked for at construction, none of it is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "base/check.hpp"

namespace rnic::base {

/// An array whose octets are all zero, which is a valid T. The machine backs a page of it when it
/// is first written, so a table costs what was in use at once, whatever its limit.
template <typename T>
class ZeroArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "T comes about without a constructor");

 public:
  /// \throw std::bad_alloc
  explicit ZeroArray(size_t size) : block_(block_for(size)), size_(size) {
    void* at = block_.get();
    size_t room = size * sizeof(T) + kSlack;
    elements_ = static_cast<T*>(std::align(alignof(T), size * sizeof(T), at, room));
  }

  [[nodiscard]] T& operator[](size_t i) { return elements_[i]; }
  [[nodiscard]] const T& operator[](size_t i) const { return elements_[i]; }
  [[nodiscard]] T* data() { return elements_; }
  [[nodiscard]] const T* data() const { return elements_; }
  [[nodiscard]] size_t size() const { return size_; }

  /// Octets of memory that an array of that size takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t size) { return size * sizeof(T) + kSlack; }

 private:
  // calloc() aligns for every fundamental type; what asks for more is moved within its block, by
  // so many octets at most.
  static constexpr size_t kSlack = alignof(T) > alignof(std::max_align_t)
                                       ? alignof(T) - alignof(std::max_align_t)
                                       : 0;

  static void* block_for(size_t size) {
    // Also keeps the sum from wrapping round.
    if (size > (PTRDIFF_MAX - kSlack) / sizeof(T)) throw std::bad_alloc();
    void* block = std::calloc(size * sizeof(T) + kSlack, 1);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }

  struct Free {
    void operator()(void* block) const { std::free(block); }
  };

  std::unique_ptr<void, Free> block_;
  T* elements_;
  size_t size_;
};

/// Gives out the numbers 0 .. capacity - 1: the one that came back last, else the lowest that was
/// never given out. All memory is taken at construction and touched only by numbers that come back.
class FreeNumbers {
 public:
  explicit FreeNumbers(uint32_t capacity) : back_(capacity), capacity_(capacity) {}

  [[nodiscard]] bool empty() const { return back_count_ == 0 && fresh_ == capacity_; }
  /// How many are left.
  [[nodiscard]] uint32_t size() const { return back_count_ + (capacity_ - fresh_); }
  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  /// All numbers that were ever given out are below.
  [[nodiscard]] uint32_t fresh() const { return fresh_; }

  /// The number that take() gives next. Precondition: empty() is false.
  [[nodiscard]] uint32_t next() const { return back_count_ != 0 ? back_[back_count_ - 1] : fresh_; }
  /// empty() is false.
  uint32_t take() {
    if (back_count_ != 0) return back_[--back_count_];
    return fresh_++;
  }
  /// A number that take() gave.
  void give(uint32_t number) { back_[back_count_++] = number; }

  /// Checks that each number that came back had been given out, and is there once.
  void validate() const {
    RNIC_CHECK(back_count_ <= fresh_ && fresh_ <= capacity_);
    std::vector<bool> there(fresh_);
    for (uint32_t i = 0; i < back_count_; ++i) {
      RNIC_CHECK(back_[i] < fresh_ && !there[back_[i]]);
      there[back_[i]] = true;
    }
  }

  [[nodiscard]] static uint64_t octets_for(uint64_t capacity) {
    return ZeroArray<uint32_t>::octets_for(capacity);
  }

 private:
  ZeroArray<uint32_t> back_;
  uint32_t back_count_ = 0;
  uint32_t fresh_ = 0;
  uint32_t capacity_;
};

}  // namespace rnic::base
