#include "wakeup/event_signal.hpp"

#include <sys/eventfd.h>

namespace rnic::wakeup {

Result<EventSignal> EventSignal::open() {
  auto descriptor = Descriptor::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!descriptor.is_open()) return no_descriptor("an eventfd");
  return EventSignal(std::move(descriptor));
}

void EventSignal::raise() {
  // The write fails only if the count is at its maximum, which leaves the descriptor readable.
  eventfd_write(fd(), 1);
}

void EventSignal::clear() {
  eventfd_t count = 0;
  eventfd_read(fd(), &count);
}

}  // namespace rnic::wakeup
