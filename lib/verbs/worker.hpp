/// \file
/// One worker: the thread that runs devices, and the calls that the application hands to it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/time.hpp"
#include "rnic/device.hpp"
#include "verbs/settings.hpp"

namespace rnic::verbs {

/// Where a worker's time comes from.
using Clock = std::function<base::Now()>;

class Worker {
 public:
  struct Options {
    WorkerSettings::Idle idle = WorkerSettings::Idle::Sleep;
    std::optional<uint32_t> core;  ///< pin to it
  };

  Worker(const Options& options, Clock clock, std::vector<nic::Device*> devices);
  /// Stops the thread and waits for it.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Carries `call` out between two turns of the loop and waits for it. Not from the worker's own
  /// thread.
  void run(const std::function<void(base::Now)>& call);

  /// After a doorbell: wakes the thread if it sleeps. Cheap when it does not.
  void wake();

 private:
  void loop();
  bool serve_calls(base::Now now);
  void rest(uint32_t idle_turns, base::Now now);

  Options options_;
  Clock clock_;
  std::vector<nic::Device*> devices_;

  std::mutex mutex_;  // guards calls_; control path only
  std::condition_variable call_done_;
  std::vector<const std::function<void(base::Now)>*> calls_;
  uint64_t calls_made_ = 0;  // guarded by mutex_
  uint64_t calls_done_ = 0;  // guarded by mutex_
  std::atomic<bool> has_calls_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> sleeping_{false};
  int wake_fd_ = -1;
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace rnic::verbs
