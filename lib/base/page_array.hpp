/// \file
/// Memory for what is seldom needed, apart from what is needed always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/page_store.hpp"

namespace rnic::base {

/// An array in whole pages of its own, of which none is touched before an element in it is written:
/// until then an element is not to be read. So it costs address space, and no memory for the rest
/// of a page that something else has touched.
template <typename T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "T comes about without a constructor");

 public:
  static constexpr size_t kPage = PageStore::kPage;  ///< octets

  PageArray() = default;
  /// \param store where its pages come from; outlives it; nullptr: from the system
  /// \throw std::bad_alloc
  explicit PageArray(size_t size, PageStore* store = nullptr)
      : pages_(nullptr, GiveBack{pages_for(size) <= PageStore::kRunMax ? store : nullptr}) {
    if (size != 0) pages_.reset(make(pages_for(size), this->store()));
  }

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(pages_.get()); }
  [[nodiscard]] PageStore* store() const { return pages_.get_deleter().store; }

  /// Octets of memory that an array of that size takes at most.
  [[nodiscard]] static uint64_t octets_for(uint64_t size) { return size * sizeof(T) + kPage; }

 private:
  using Page = PageStore::Page;
  struct GiveBack {
    PageStore* store = nullptr;  // nullptr: the pages are the system's

    void operator()(const Page* pages) const {
      if (store != nullptr) return store->give(pages);
      delete[] pages;
    }
  };

  static Page* make(size_t pages, PageStore* store) {
    return store != nullptr ? store->take(pages) : new Page[pages];
  }
  [[nodiscard]] static size_t pages_for(size_t size) {
    return (size * sizeof(T) + kPage - 1) / kPage;
  }

  std::unique_ptr<Page[], GiveBack> pages_;
};

}  // namespace rnic::base
