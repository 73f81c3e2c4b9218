#include "verbs/worker.hpp"

#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <system_error>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "dpdk/eal.hpp"

namespace rnic::verbs {

namespace {

using Idle = settings::WorkerSettings::Idle;

// Sends that follow each other so fast are served together.
constexpr base::Duration kTogether = std::chrono::microseconds(60);

void pin_to(uint32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    base::log(base::LogLevel::Warning, "verbs", [core] {
      return "worker could not be pinned to core " + std::to_string(core) + ": it runs anywhere";
    });
  }
}

/// While it lives, threads that are made are not interrupted by signals to the process, which are
/// for the application's own threads. Those that a thread brings upon itself it still takes.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigfillset(&held);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&held, own);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

uint32_t turn(device::Device& device, base::Now now, device::Turn what) {
  uint32_t work = 0;
  if (!base::attempt([&] { work = device.poll(now, what); })) device.count_starved_turn();
  return work;
}

Result<std::unique_ptr<Worker>> Worker::start(const Options& options, Clock clock,
                                              std::vector<device::Device*> devices,
                                              Activity& activity) {
  auto sleeper = Sleeper::open(devices);
  if (!sleeper) return tl::unexpected(sleeper.error());
  const SignalsHeld held;
  try {
    return std::unique_ptr<Worker>(
        new Worker(options, std::move(clock), std::move(devices), activity, std::move(*sleeper)));
  } catch (const std::system_error& error) {
    return base::fail(ErrorCode::ResourceExhausted,
                      std::string("a worker's thread: ") + error.what() +
                          "; raise the limits of threads and memory (ulimit -u, ulimit -v), or set "
                          "worker.mode = inline");
  }
}

Worker::Worker(const Options& options, Clock clock, std::vector<device::Device*> devices,
               Activity& activity, std::unique_ptr<Sleeper> sleeper)
    : options_(options),
      clock_(std::move(clock)),
      devices_(std::move(devices)),
      activity_(activity),
      spin_(options.longest_spin),
      sleeper_(std::move(sleeper)),
      thread_([this] { loop(); }) {}

Worker::~Worker() {
  stop_.store(true);
  wake();
  thread_.join();
}

void Worker::hand_over(Call& call) {
  std::unique_lock lock(mutex_);
  (first_call_ == nullptr ? first_call_ : last_call_->next) = &call;
  last_call_ = &call;
  has_calls_.store(true);
  wake();
  call_done_.wait(lock, [&] { return call.done; });
  if (call.thrown) std::rethrow_exception(call.thrown);
}

bool Worker::serve_calls(base::Now now) {
  if (!has_calls_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  has_calls_.store(false, std::memory_order_relaxed);
  while (Call* call = first_call_) {
    first_call_ = call->next;
    try {
      call->carry_out(call->what, now);
    } catch (const std::exception&) {
      call->thrown = std::current_exception();
    }
    call->done = true;
  }
  call_done_.notify_all();
  return true;
}

uint32_t Worker::turn_all(base::Now now) {
  uint32_t work = 0;
  for (device::Device* device : devices_) work += turn(*device, now);
  if (work != 0) activity_.happened();
  return work;
}

void Worker::posted(Posted what) {
  if (what == Posted::FirstSends && is_served_at_once() && turn_of_other()) return;
  // A worker whose pause ends after this look finds the work before it sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (pauses_.is_on()) {
    // Receives are seldom waited for: the next poll sees to them, or the end of the pause.
    if (what == Posted::Receives) return;
    if (is_left_to_others()) return;
  }
  sleeper_->ring_fenced();
}

/// While the worker pauses one post behind a poll is, which is an answer as a rule. More are likely
/// to come behind it.
bool Worker::is_served_at_once() {
  return !pauses_.is_on() || serves_next_post_.exchange(false, std::memory_order_relaxed);
}

/// Sends behind others while the worker pauses: threads that poll see to them, many at once. To
/// call the worker would take the devices away from such a thread in the middle of its work.
bool Worker::is_left_to_others() {
  const base::Now driven_at = driven_at_.load(std::memory_order_relaxed);
  return clock_() - driven_at < kTogether || turn_of_other();
}

bool Worker::drive() {
  if (turn_of_other()) {
    serves_next_post_.store(true, std::memory_order_relaxed);
    return true;
  }
  pauses_.looked_in_vain();
  // The one who drives may have the other half of this core.
  __builtin_ia32_pause();
  return false;
}

/// \return false: somebody else drives
bool Worker::turn_of_other() {
  const AtHelm here(*this);
  if (!here.is_taken()) return false;
  pauses_.driven();
  driven_at_.store(here.now(), std::memory_order_relaxed);
  turns_of_others_.store(turns_of_others() + 1, std::memory_order_relaxed);
  turn_all(here.now());
  return true;
}

void Worker::take_over() {
  if (pauses_.take_over()) sleeper_->ring();
}

void Worker::loop() {
  if (options_.core) pin_to(*options_.core);
  const bool registered = dpdk::Eal::started() && dpdk::Eal::register_thread().has_value();
  core_wait_ = wakeup::CoreWait::of_this_thread();
  helm_.take();
  while (!stop_.load(std::memory_order_relaxed)) {
    const base::Now now = clock_();
    const bool called = serve_calls(now);
    if (called) activity_.happened();
    const bool worked = turn_all(now) != 0;
    standby_.drove(worked);
    if (gives_way()) continue;
    if (called || worked) {
      spin_.worked();
    } else {
      rest(now);
    }
  }
  serve_calls(clock_());
  helm_.leave();
  if (registered) dpdk::Eal::unregister_thread();
}

void Worker::rest(base::Now now) {
  switch (options_.idle) {
    case Idle::Spin: __builtin_ia32_pause(); break;
    case Idle::Yield: sched_yield(); break;
    case Idle::Sleep:
    case Idle::Auto:
      if (!spin_.looks_again(now)) sleep(now);
      break;
  }
}

void Worker::sleep(base::Now now) {
  const bool nothing = sleeper_->arm(now);
  const bool called = has_calls_.load(std::memory_order_relaxed) || stop_.load();
  if (nothing && !called) {
    const base::Now until = sleeper_->begin_sleep();
    helm_.leave();
    sleeper_->sleep_until(now, until);
    stand_by();
    helm_.take();
    const base::Now woken = clock_();
    spin_.slept(woken - now);
    if (core_wait_.has_waited(woken)) spin_.core_lost();
  }
  sleeper_->disarm();
}

/// Leaves the devices to a thread that looks for work in vain, for as long as it goes on. Work that
/// is there needs no look before: that thread serves it, or the worker behind its first pause.
/// \return whether it has
bool Worker::gives_way() {
  if (!sleeps()) return false;
  const uint32_t looks = pauses_.vain_looks();
  if (looks == 0) return false;
  const base::Now now = clock_();
  if (!standby_.gives_way(now, looks)) return false;
  pauses_.forget_looks();
  static_cast<void>(sleeper_->arm(now));
  if (!has_calls_.load(std::memory_order_relaxed) && !stop_.load()) {
    static_cast<void>(sleeper_->begin_sleep());
    driven_at_.store(now, std::memory_order_relaxed);  // by the other thread, from now on
    helm_.leave();
    stand_by();
    helm_.take();
    standby_.came_back(clock_());
  }
  sleeper_->disarm();
  spin_.worked();
  return true;
}

/// Pauses while other threads drive and nobody has called for the worker.
void Worker::stand_by() {
  while (!sleeper_->was_rung()) {
    const base::Duration pause =
        standby_.next(clock_(), driven_at_.load(std::memory_order_relaxed));
    if (pause == base::Duration(0)) return;
    if (!pauses_.begin()) break;
    // A bell that was rung late is armed again by now, and its descriptor ends each further pause.
    const bool rung = sleeper_->pause(pause);
    pauses_.end();
    if (rung) break;
  }
  standby_.called();
}

}  // namespace rnic::verbs
