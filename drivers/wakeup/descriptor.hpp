/// \file
/// A descriptor that is closed with its owner, and at once in a child of this process.
#pragma once

#include <string>
#include <utility>

#include "base/fail.hpp"
#include "process/descriptor_table.hpp"

namespace rnic::wakeup {

class Descriptor {
 public:
  Descriptor() = default;
  /// \param make returns a descriptor that is closed on exec, or -1 and errno: then there is none
  template <typename F>
  static Descriptor open(F&& make) {
    return Descriptor(process::descriptors().open(std::forward<F>(make)));
  }
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  [[nodiscard]] int get() const { return number_; }

 private:
  explicit Descriptor(int number) : number_(number) {}

  int number_ = -1;
};

/// The error for a descriptor that the system did not give, from errno. \param what "an eventfd"
[[nodiscard]] tl::unexpected<Error> no_descriptor(const char* what);

}  // namespace rnic::wakeup
