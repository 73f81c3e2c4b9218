/// \file
/// The descriptor that a bell raises.
#pragma once

#include <utility>

#include "base/bell.hpp"
#include "base/fail.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::wakeup {

/// A descriptor that is readable from raise() until clear(): an eventfd.
class EventSignal {
 public:
  /// ResourceExhausted when the system has no descriptor left.
  static Result<EventSignal> open();

  /// Any thread.
  void raise();
  void clear();
  /// For poll() and epoll: readable while it is raised. Nobody else reads or writes it.
  [[nodiscard]] int fd() const { return descriptor_.get(); }

 private:
  explicit EventSignal(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

using Bell = base::BellOver<base::BellWord, EventSignal>;

}  // namespace rnic::wakeup
