#include "wakeup/event_signal.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace rnic::wakeup {

Result<EventSignal> EventSignal::open() {
  Descriptor descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!descriptor.is_open()) return no_descriptor("an eventfd");
  return EventSignal(std::move(descriptor));
}

void EventSignal::raise() {
  const uint64_t one = 1;
  // It fails only where the count is at its end, which leaves it readable.
  [[maybe_unused]] const ssize_t written = write(fd(), &one, sizeof one);
}

void EventSignal::clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd(), &count, sizeof count);
}

}  // namespace rnic::wakeup
