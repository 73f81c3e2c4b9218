/// \file
/// Memory for what is seldom needed, apart from what is needed always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace rnic::base {

/// An array in whole pages of its own, of which none is touched before an element in it is written:
/// until then an element is not to be read. So it costs address space, and no memory for the rest
/// of a page that something else has touched.
template <typename T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "T comes about without a constructor");

 public:
  static constexpr size_t kPage = 4096;  ///< octets

  PageArray() = default;
  /// \throw std::bad_alloc
  explicit PageArray(size_t size)
      : pages_(size == 0 ? nullptr : std::make_unique_for_overwrite<Page[]>(pages_for(size))) {}

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(pages_.get()); }

  /// Octets of memory that an array of that size takes at most.
  [[nodiscard]] static uint64_t octets_for(uint64_t size) { return size * sizeof(T) + kPage; }

 private:
  struct alignas(kPage) Page {
    std::byte octets[kPage];
  };

  [[nodiscard]] static size_t pages_for(size_t size) {
    return (size * sizeof(T) + kPage - 1) / kPage;
  }

  std::unique_ptr<Page[]> pages_;
};

}  // namespace rnic::base
