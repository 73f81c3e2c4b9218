/// \file
/// start_quiet_thread(): a thread of the plugin's own, of which the program knows nothing.
#pragma once

#include <pthread.h>

#include <csignal>
#include <exception>
#include <thread>
#include <utility>

namespace rnic::run {

/// Carries `work` out on a thread of its own, which no signal to the process interrupts: those are
/// for the program's own threads. \return false: the system gives no thread
template <typename Work>
[[nodiscard]] bool start_quiet_thread(Work&& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = false;
  try {
    std::thread(std::forward<Work>(work)).detach();
    started = true;
  } catch (const std::exception&) {
    // std::system_error, or std::bad_alloc
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace rnic::run
