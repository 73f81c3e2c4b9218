/// \file
/// Keeps forks away from what must not be seen half done.
#pragma once

namespace rnic::process {

/// While one exists, a fork() of another thread waits; a fork() of the same thread does not. For as
/// long as a system call takes: a descriptor is made and entered in the table, so that no child
/// gets one that it does not know of. May be nested. Nothing in it waits for a peer, a lock or
/// another thread.
///
/// An application may wait for a lock of its own in a handler of pthread_atfork(): no thread that
/// holds it waits for us, as our handlers are registered before main(), and so the last to lock.
class ForkPause {
 public:
  ForkPause();
  ~ForkPause();
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;
};

/// The same around what takes locks of others: DPDK opens a port. Any thread may begin a ForkPause
/// in the meantime. One that has a ForkPause begins no such delay.
class ForkDelay {
 public:
  ForkDelay();
  ~ForkDelay();
  ForkDelay(const ForkDelay&) = delete;
  ForkDelay& operator=(const ForkDelay&) = delete;
};

}  // namespace rnic::process
