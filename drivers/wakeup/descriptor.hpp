/// \file
/// A descriptor that is closed with whoever has it.
#pragma once

#include <string>
#include <utility>

#include "base/fail.hpp"

namespace rnic::wakeup {

class Descriptor {
 public:
  Descriptor() = default;
  /// \param number of the descriptor, or -1: none
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_ = -1;
};

/// What the system said last (errno) of a descriptor that it did not give. \param what "an eventfd"
[[nodiscard]] tl::unexpected<Error> no_descriptor(const char* what);

}  // namespace rnic::wakeup
