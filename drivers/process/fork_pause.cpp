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

// With each lock: how often this thread has it. A fork of its own finds it taken already.
constinit std::mutex delays;
constinit thread_local uint32_t delayed = 0;
constinit std::mutex pauses;
constinit thread_local uint32_t paused = 0;

void take(std::mutex& lock, uint32_t& taken) {
  if (taken++ == 0) lock.lock();
}
void give_back(std::mutex& lock, uint32_t& taken) {
  if (--taken == 0) lock.unlock();
}

void before_fork() {
  // Whoever delays forks may need a pause to come to his end.
  take(delays, delayed);
  take(pauses, paused);
}

void behind_fork() {
  give_back(pauses, paused);
  give_back(delays, delayed);
}

/// Runs between fork() and whatever the child does. It allocates nothing and waits for nothing: of
/// the parent's threads only this one is here, and what the others held stays held.
void drop_the_parents() {
  const int before = errno;
  Generation::begin_in_child();
  base::renew_log();
  descriptors().close_all();
  behind_fork();
  errno = before;
}

// Before main(), so that it is the last to lock before a fork and the first to run in a child. When
// there is no memory for it, there is none to start a program with.
[[maybe_unused]] const int installed = pthread_atfork(before_fork, behind_fork, drop_the_parents);

}  // namespace

ForkPause::ForkPause() { take(pauses, paused); }
ForkPause::~ForkPause() { give_back(pauses, paused); }
ForkDelay::ForkDelay() { take(delays, delayed); }
ForkDelay::~ForkDelay() { give_back(delays, delayed); }

}  // namespace rnic::process
