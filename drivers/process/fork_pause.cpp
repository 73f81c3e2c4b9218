#include "process/fork_pause.hpp"

#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <mutex>

#include "base/log.hpp"
#include "process/descriptor_table.hpp"
#include "process/generation.hpp"

namespace rnic::process {

namespace {

// Beside each lock stands how often this thread has it: its own fork finds the lock taken already.
// The counts are in the block that a thread begins with, although a library may be loaded late:
// of one that is allocated later LeakSanitizer guesses the size, and may die of that.
constinit std::mutex delays;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint32_t delayed = 0;
constinit std::mutex pauses;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint32_t paused = 0;

void take(std::mutex& lock, uint32_t& taken) {
  if (taken++ == 0) lock.lock();
}
void give_back(std::mutex& lock, uint32_t& taken) {
  if (--taken == 0) lock.unlock();
}

void before_fork() {
  // A thread that delays forks may need a pause to finish.
  take(delays, delayed);
  take(pauses, paused);
}

void behind_fork() {
  const int before = errno;
  give_back(pauses, paused);
  give_back(delays, delayed);
  // Not the locks last: the call would be a jump, and ThreadSanitizer take it for one of libc's.
  errno = before;
}

/// Runs in the child before anything else. It allocates nothing and waits for nothing: of the
/// parent's threads only this one is here, and locks that the others held stay held.
void drop_the_parents() {
  const int before = errno;
  Generation::begin_in_child();
  base::renew_log();
  descriptors().close_all();
  behind_fork();
  errno = before;
}

// The handlers are registered before main(), so that they lock last before a fork and run first in
// a child. If there is no memory for that, there is none to start a program with.
[[maybe_unused]] const int installed = pthread_atfork(before_fork, behind_fork, drop_the_parents);

}  // namespace

ForkPause::ForkPause() { take(pauses, paused); }
ForkPause::~ForkPause() { give_back(pauses, paused); }
ForkDelay::ForkDelay() { take(delays, delayed); }
ForkDelay::~ForkDelay() { give_back(delays, delayed); }

}  // namespace rnic::process
