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
  /// Adds a descriptor: the poller is readable while it is. ResourceExhausted as for open().
  Status add(int descriptor) const;
  /// As add(), for a caller that needs no error text and may have no memory for one.
  [[nodiscard]] bool watch(int descriptor) const noexcept;
  [[nodiscard]] int fd() const { return descriptor_.get(); }

 private:
  explicit Poller(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace rnic::wakeup
