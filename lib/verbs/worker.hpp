/// \file
/// One worker: the thread that runs devices, and the calls that the application hands to it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "settings/settings.hpp"
#include "verbs/activity.hpp"
#include "verbs/sleeper.hpp"
#include "verbs/spin_window.hpp"

namespace rnic::verbs {

/// The source of a worker's time.
using Clock = std::function<base::Now()>;

/// Does one turn of a device's loop. It throws nothing: a turn that ends early for want of memory
/// is counted (`device.starved_turns`).
uint32_t turn(device::Device& device, base::Now now);

class Worker {
 public:
  struct Options {
    settings::WorkerSettings::Idle idle = settings::WorkerSettings::Idle::Auto;
    base::Duration longest_spin = SpinWindow::kLongest;  ///< Auto: before it sleeps
    std::optional<uint32_t> core;  ///< the core to pin the thread to
  };

  /// ResourceExhausted when the system gives no descriptor or no thread.
  /// \param devices, activity outlive it
  static Result<std::unique_ptr<Worker>> start(const Options& options, Clock clock,
                                               std::vector<device::Device*> devices,
                                               Activity& activity);
  /// Stops the thread and waits for it.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Carries `call(now)` out between two turns of the loop and waits for it; throws what `call`
  /// throws. Must not be called from the worker's own thread. Needs no memory.
  template <typename F>
  void run(F&& call) {
    using Body = std::remove_reference_t<F>;
    Call mine;
    mine.what = &call;
    mine.carry_out = [](void* what, base::Now now) { (*static_cast<Body*>(what))(now); };
    hand_over(mine);
  }

  /// After a doorbell: wakes the thread if it sleeps. Cheap when it does not.
  void wake() { sleeper_->ring(); }

 private:
  /// A call on its way. It lives on the stack of its caller, which waits for it.
  struct Call {
    void* what = nullptr;
    void (*carry_out)(void* what, base::Now now) = nullptr;
    std::exception_ptr thrown;
    Call* next = nullptr;
    bool done = false;
  };

  Worker(const Options& options, Clock clock, std::vector<device::Device*> devices,
         Activity& activity, std::unique_ptr<Sleeper> sleeper);
  void hand_over(Call& call);
  void loop();
  bool serve_calls(base::Now now);
  void rest(base::Now now);
  void sleep(base::Now now);

  Options options_;
  Clock clock_;
  std::vector<device::Device*> devices_;
  Activity& activity_;
  SpinWindow spin_;  // the thread's

  std::mutex mutex_;  // control path only
  std::condition_variable call_done_;
  Call* first_call_ = nullptr;  // guarded by mutex_
  Call* last_call_ = nullptr;   // guarded by mutex_
  std::atomic<bool> has_calls_{false};
  std::atomic<bool> stop_{false};
  std::unique_ptr<Sleeper> sleeper_;
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace rnic::verbs
