/// \file
/// An epoll that tells whether one of several descriptors is readable.
#pragma once

#include <utility>

#include "base/fail.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::wakeup {

class Poller {
 public:
  /// ResourceExhausted when the system has no descriptor left.
  static Result<Poller> open();
  /// It is readable, too, while `descriptor` is. ResourceExhausted likewise.
  Status add(int descriptor) const;
  /// The same for who needs no words, and may have no memory for them.
  [[nodiscard]] bool watch(int descriptor) const noexcept;
  [[nodiscard]] int fd() const { return descriptor_.get(); }

 private:
  explicit Poller(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace rnic::wakeup
