/// \file
/// Single-producer single-consumer ring whose places say by themselves whether they are full.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/page_array.hpp"

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

/// What the elements of a StampedRing have seldom: nothing.
struct NothingSeldom {};

/// As SpscRing, for a consumer that waits for the next element: it looks at one word beside the
/// element, not at a mark of the producer's. So an element that fits a cache line with that word
/// comes to the consumer's core by one way of one line, where a mark would cost a second one, after
/// the first.
///
/// When the producer finds that all has been taken it may begin again at the first place
/// (rewind()), so that the memory touched, and held in caches, is that of the elements which wait
/// at once and not that of all places.
///
/// \tparam Seldom a part of an element that few have; its
/// memory is touched by those alone \tparam Word SharedWord, or that of a model of the machine
template <typename T, typename Seldom = NothingSeldom, typename Word = SharedWord>
class StampedRing {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_copyable_v<Seldom>,
                "elements are copied, and never destroyed");

 public:
  /// \param capacity elements that fit; rounded up to a power of two.
  /// \param store as for a PageArray
  explicit StampedRing(size_t capacity, PageStore* store = nullptr)
      : mask_(capacity_for(capacity) - 1),
        places_(std::make_unique_for_overwrite<Place[]>(mask_ + 1)),
        seldom_(mask_ + 1, store) {
    places_[0].stamp = 0;
  }
  StampedRing(const StampedRing&) = delete;
  StampedRing& operator=(const StampedRing&) = delete;

  /// Producer: false when full. \param value what T is made of \param seldom nullptr: the element
  /// has none, and says so itself
  template <typename Value = T>
  bool push(const Value& value, const Seldom* seldom = nullptr) {
    const size_t tail = Word::load(tail_);
    if (tail - cached_head_ > mask_) {
      cached_head_ = Word::load(head_);
      if (tail - cached_head_ > mask_) return false;
    }
    const size_t at = (tail - begin_) & mask_;
    Place& place = places_[at];
    place.value = T(value);
    if (at == cleared_) [[unlikely]] clear_next();
    if (seldom != nullptr) [[unlikely]] seldom_.data()[at] = *seldom;
    // The count comes first, so that whoever has taken the element sees it counted (size()).
    Word::store(tail_, tail + 1);
    Word::store(place.stamp, tail + 1);
    return true;
  }
  /// Producer: the next element goes to the first place if all before it have been taken.
  void rewind() {
    if (Word::load(tail_) - begin_ < kRewound) return;
    cached_head_ = Word::load(head_);
    if (cached_head_ == Word::load(tail_)) begin_ = cached_head_;
  }

  /// Consumer: gives up to `most` elements to take(value, seldom), oldest first. `seldom` is
  /// meaningless where the element has none. \return how many there were
  template <typename F>
  size_t consume(size_t most, F&& take) {
    const size_t head = Word::load(head_);
    size_t taken = 0;
    for (; taken < most; ++taken) {
      const size_t at = full_place(head + taken);
      if (at == kNone) break;
      take(elements_[at].value, seldom_of_[at]);
    }
    if (taken != 0) Word::store(head_, head + taken);
    return taken;
  }
  /// Consumer: false when empty.
  bool pop(T& out) {
    return consume(1, [&](const T& value, const Seldom&) { out = value; }) == 1;
  }
  /// Consumer: the oldest element without taking it, or nullptr.
  [[nodiscard]] const T* front() {
    const size_t at = full_place(Word::load(head_));
    return at != kNone ? &elements_[at].value : nullptr;
  }

  /// Room for at least `capacity` elements, and for those that are in it: they stay. Neither side
  /// is at work meanwhile.
  /// \throw std::bad_alloc, and nothing has changed
  void resize(size_t capacity) {
    const size_t mask = std::bit_ceil(std::max({capacity, size(), size_t{1}})) - 1;
    auto places = std::make_unique<Place[]>(mask + 1);
    PageArray<Seldom> seldom(mask + 1, seldom_.store());
    for (size_t position = head_; position != tail_; ++position) {
      const size_t from = (position - begin_) & mask_;
      const size_t to = (position - begin_) & mask;
      places[to] = places_[from];
      seldom.data()[to] = seldom_.data()[from];
    }
    places_ = std::move(places);
    seldom_ = std::move(seldom);
    mask_ = read_mask_ = mask;
    elements_ = places_.get();
    seldom_of_ = seldom_.data();
    read_begin_ = begin_;
    cleared_ = mask;
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
    const uint64_t places = capacity_for(capacity);
    return places * sizeof(Place) + PageArray<Seldom>::octets_for(places);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  // So many places are used before rewind() looks at the consumer's line, which may be in another
  // core's cache.
  static constexpr size_t kRewound = 16;
  // A place that fits a cache line does not lie across two.
  static constexpr size_t kOctets = std::bit_ceil(sizeof(T) + sizeof(size_t));
  static constexpr size_t kAlignment =
      kOctets <= 64 ? kOctets : std::max(alignof(T), alignof(size_t));

  struct alignas(kAlignment) Place {
    T value;
    size_t stamp;  // one more than the position of its element; another number: it is empty
  };

  /// Producer: the place behind the last one that was ever used is about to be looked at.
  void clear_next() {
    if (cleared_ != mask_) Word::store(places_[++cleared_].stamp, 0);
  }
  /// Consumer: the place of the element at that position, if it is there. No two elements ever have
  /// the same stamp, so that one at the first place tells that the producer has begun again.
  [[nodiscard]] size_t full_place(size_t position) {
    const size_t at = (position - read_begin_) & read_mask_;
    if (Word::load(elements_[at].stamp) == position + 1) return at;
    if (at == 0 || Word::load(elements_[0].stamp) != position + 1) return kNone;
    read_begin_ = position;
    return 0;
  }

  // Each side has a cache line, with a copy of what it needs of the other's that only resize()
  // changes. Positions start at 0 and never wrap.
  alignas(64) size_t mask_;           // producer
  std::unique_ptr<Place[]> places_;   // producer
  PageArray<Seldom> seldom_;          // producer
  size_t tail_ = 0;                   // producer; any side may look at it
  size_t cached_head_ = 0;            // producer's last reading of head_
  // The position of the element that went to the first place; the next go behind it.
  size_t begin_ = 0;                                    // producer
  // The place up to which stamps mean something: the others have memory that nobody has touched.
  size_t cleared_ = 0;                                  // producer
  alignas(64) const Place* elements_ = places_.get();  // consumer
  const Seldom* seldom_of_ = seldom_.data();            // consumer
  size_t read_mask_ = mask_;                            // consumer
  size_t read_begin_ = 0;                               // consumer's copy of begin_
  size_t head_ = 0;                                     // consumer; any side may look at it
};

}  // namespace rnic::base
