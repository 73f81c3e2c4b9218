/// \file
/// A fixed pool of objects with index+generation handles: a stale handle never reaches a new
/// object.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "base/zero_array.hpp"

namespace rnic::base {

/// Names an object of a Slab. The generation changes each time the place is reused.
struct Handle {
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;

  [[nodiscard]] bool valid() const { return index != UINT32_MAX; }
  friend bool operator==(const Handle&, const Handle&) = default;
};

/// At most `capacity` objects of T, all memory taken at construction and touched at first use.
template <typename T>
class Slab {
 public:
  explicit Slab(uint32_t capacity) : slots_(capacity), free_(capacity) {}
  ~Slab() {
    for (uint32_t i = 0; i < free_.fresh(); ++i) {
      if (slots_[i].live) object(i)->~T();
    }
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  /// An invalid handle when the slab is full. When T's constructor throws, the place stays free.
  template <typename... Args>
  Handle emplace(Args&&... args) {
    if (free_.empty()) return {};
    const uint32_t index = free_.next();
    new (slots_[index].storage) T(std::forward<Args>(args)...);
    free_.take();
    slots_[index].live = true;
    return {index, slots_[index].generation()};
  }

  /// nullptr for a stale or invalid handle.
  [[nodiscard]] T* get(Handle h) {
    if (h.index >= slots_.size() || !slots_[h.index].live) return nullptr;
    return slots_[h.index].generation() == h.generation ? object(h.index) : nullptr;
  }

  /// Precondition: the place is live.
  [[nodiscard]] T& at(uint32_t index) {
    RNIC_DCHECK(slots_[index].live);
    return *object(index);
  }
  [[nodiscard]] const T& at(uint32_t index) const {
    RNIC_DCHECK(slots_[index].live);
    return *std::launder(reinterpret_cast<const T*>(slots_[index].storage));
  }

  void erase(Handle h) {
    RNIC_CHECK(get(h) != nullptr);
    object(h.index)->~T();
    slots_[h.index].live = false;
    ++slots_[h.index].reuses;
    free_.give(h.index);
  }

  /// Erases an object again, unless it is kept: for what may still fail, or throw.
  class Tentative {
   public:
    Tentative(Slab& slab, Handle handle) : slab_(slab), handle_(handle) {}
    ~Tentative() {
      if (handle_.valid()) slab_.erase(handle_);
    }
    Tentative(const Tentative&) = delete;
    Tentative& operator=(const Tentative&) = delete;
    void keep() { handle_ = {}; }

   private:
    Slab& slab_;
    Handle handle_;
  };

  [[nodiscard]] uint32_t capacity() const { return free_.capacity(); }
  [[nodiscard]] uint32_t live() const { return free_.capacity() - free_.size(); }
  /// Octets of memory that a slab takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity) {
    return ZeroArray<Slot>::octets_for(capacity) + FreeNumbers::octets_for(capacity);
  }

  /// Calls f(handle, object) for each live object; f may erase the object it is given.
  template <typename F>
  void for_each(F&& f) {
    for (uint32_t i = 0; i < free_.fresh(); ++i) {
      if (slots_[i].live) f(Handle{i, slots_[i].generation()}, *object(i));
    }
  }

  /// Counts the live objects anew.
  void validate() const {
    free_.validate();
    uint32_t count = 0;
    for (uint32_t i = 0; i < free_.fresh(); ++i) count += slots_[i].live ? 1 : 0;
    RNIC_CHECK(count == live());
  }

 private:
  struct Slot {
    alignas(T) unsigned char storage[sizeof(T)];
    uint32_t reuses;
    bool live;

    // The handle of a place that was never used is no handle that somebody left at its default.
    [[nodiscard]] uint32_t generation() const { return reuses + 1; }
  };

  T* object(uint32_t i) { return std::launder(reinterpret_cast<T*>(slots_[i].storage)); }

  ZeroArray<Slot> slots_;
  FreeNumbers free_;
};

}  // namespace rnic::base
