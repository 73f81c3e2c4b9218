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
#include "verbs/helm.hpp"
#include "verbs/pauses.hpp"
#include "verbs/sleeper.hpp"
#include "verbs/spin_window.hpp"
#include "verbs/standby.hpp"
#include "wakeup/core_wait.hpp"

namespace rnic::verbs {

/// The source of a worker's time.
using Clock = std::function<base::Now()>;

/// Does one turn of a device's loop. It throws nothing: a turn that ends early for want of memory
/// is counted (`device.starved_turns`).
uint32_t turn(device::Device& device, base::Now now, device::Turn what = device::Turn::Whole);

/// What an application has posted.
enum class Posted : uint8_t {
  Receives,
  SpareReceives,  ///< inline: nothing completes before the peer sends
  Sends,
  FirstSends,  ///< nothing else is under way on the queue pair
};

/// While the thread sleeps, threads of the application drive the devices in its place: one that
/// polls and finds nothing, one that posts and has nothing else under way, one that makes a call.
/// So where there is little to do no thread waits for another. Where there is more the thread is
/// woken, and keeps the helm for as long as it looks for work, or until it gives way to a thread
/// that polls in vain.
class Worker {
 public:
  struct Options {
    settings::WorkerSettings::Idle idle = settings::WorkerSettings::Idle::Auto;
    base::Duration longest_spin = SpinWindow::kLongest;  ///< before it sleeps
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

  /// Carries `call(now)` out between two turns: in this thread while the worker sleeps, otherwise
  /// in the worker's, which this one waits for. Throws what `call` throws. Must not be called from
  /// the worker's own thread. Needs no memory.
  template <typename F>
  void run(F&& call) {
    if (const AtHelm here(*this); here.is_taken()) {
      call(here.now());
      static_cast<void>(turn_all(here.now()));
      return;
    }
    using Body = std::remove_reference_t<F>;
    Call mine;
    mine.what = &call;
    mine.carry_out = [](void* what, base::Now now) { (*static_cast<Body*>(what))(now); };
    hand_over(mine);
  }

  /// After a doorbell: wakes the thread if it sleeps. Cheap when it does not.
  void wake() { sleeper_->ring(); }
  /// A guess, for any thread. \return whether posted() may do a turn: the thread sleeps
  [[nodiscard]] bool may_serve_post() const { return helm_.is_left(); }
  /// After a doorbell of a queue pair: does a turn if that is all there is to do, or as wake().
  void posted(Posted what);
  /// Does a turn for a thread of the application that waits for work. Nothing happens while
  /// another thread drives. \return whether a turn was done
  bool drive();
  /// A thread of the application, which may have driven, is about to sleep: the worker has to look
  /// after what comes. The thread may look for work once more in between.
  void take_over();
  /// Turns that other threads have done.
  [[nodiscard]] uint64_t turns_of_others() const {
    return turns_of_others_.load(std::memory_order_relaxed);
  }

 private:
  /// A thread of the application drives, as long as this lives.
  class AtHelm {
   public:
    explicit AtHelm(Worker& worker) : worker_(worker), held_(worker.helm_.try_take()) {
      if (is_taken()) now_ = worker_.clock_();
    }
    ~AtHelm() {
      // A worker that pauses looks at all deadlines soon.
      if (is_taken() && !worker_.pauses_.is_on()) worker_.sleeper_->keep_deadline(now_);
    }
    AtHelm(const AtHelm&) = delete;
    AtHelm& operator=(const AtHelm&) = delete;
    [[nodiscard]] bool is_taken() const { return held_.owns_lock(); }
    [[nodiscard]] base::Now now() const { return now_; }

   private:
    Worker& worker_;
    std::unique_lock<std::mutex> held_;  // until the end of the destructor
    base::Now now_{};
  };

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
  uint32_t turn_all(base::Now now);
  void rest(base::Now now);
  void sleep(base::Now now);
  void stand_by();
  [[nodiscard]] bool sleeps() const {
    return options_.idle == settings::WorkerSettings::Idle::Sleep ||
           options_.idle == settings::WorkerSettings::Idle::Auto;
  }
  bool gives_way();
  bool turn_of_other();
  bool is_served_at_once();
  bool is_left_to_others();

  Options options_;
  Clock clock_;
  std::vector<device::Device*> devices_;  // driven by whoever has the helm
  Activity& activity_;
  SpinWindow spin_;             // the thread's
  wakeup::CoreWait core_wait_;  // the thread's
  Standby standby_;             // the thread's

  // What the thread writes in each turn, what others write in each look in vain, and what the
  // thread looks at in each turn share no cache line.
  alignas(64) Helm helm_;
  std::atomic<base::Now> driven_at_{base::Now()};  // the latest turn of another thread
  std::atomic<uint64_t> turns_of_others_{0};            // written at the helm
  std::atomic<bool> serves_next_post_{false};  // a thread has polled since it posted
  Pauses pauses_;

  alignas(64) std::mutex mutex_;  // control path only
  std::condition_variable call_done_;
  Call* first_call_ = nullptr;  // guarded by mutex_
  Call* last_call_ = nullptr;   // guarded by mutex_
  std::atomic<bool> has_calls_{false};
  std::atomic<bool> stop_{false};
  std::unique_ptr<Sleeper> sleeper_;
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace rnic::verbs
