/// \file
/// is_readable(): what an application learns of a descriptor by poll().
#pragma once

#include <poll.h>

#include <cerrno>

namespace rnic::test {

/// Waits until the descriptor can be read, at most for `timeout_ms`; 0: not at all.
[[nodiscard]] inline bool is_readable(int fd, int timeout_ms = 0) {
  pollfd descriptor{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&descriptor, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

}  // namespace rnic::test
