/// \file
/// Keeps forks away from steps that must not be seen half done.
#pragma once

namespace rnic::process {

/// While a ForkPause exists, a fork() of another thread waits; a fork() of the same thread does
/// not. It lasts as long as a system call: a descriptor is made and entered in the table, so that
/// no child gets one that it does not know of. Pauses may be nested. Code within one waits for no
/// peer, no lock and no other thread.
///
/// An application may wait for a lock of its own in a handler of pthread_atfork(): no thread that
/// holds it waits for us, since our handlers are registered before main() and so lock last.
class ForkPause {
 public:
  ForkPause();
  ~ForkPause();
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;
};

/// Delays forks, as ForkPause does, around code that takes other locks, such as DPDK's opening of a
/// port. Any thread may begin a ForkPause in the meantime. A thread that has a ForkPause must not
/// begin a ForkDelay.
class ForkDelay {
 public:
  ForkDelay();
  ~ForkDelay();
  ForkDelay(const ForkDelay&) = delete;
  ForkDelay& operator=(const ForkDelay&) = delete;
};

}  // namespace rnic::process
