#include "wakeup/event_signal.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rnic::wakeup {

Result<EventSignal> EventSignal::open() {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd >= 0) return EventSignal(fd);
  return base::fail(ErrorCode::ResourceExhausted,
                    "an eventfd: " + std::generic_category().message(errno) +
                        "; raise the limit of descriptors (ulimit -n)");
}

EventSignal::~EventSignal() {
  if (fd_ >= 0) close(fd_);
}

void EventSignal::raise() {
  const uint64_t one = 1;
  // It fails only where the count is at its end, which leaves it readable.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

void EventSignal::clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd_, &count, sizeof count);
}

}  // namespace rnic::wakeup
