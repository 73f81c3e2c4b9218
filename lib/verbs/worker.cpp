#include "verbs/worker.hpp"

#include <pthread.h>
#include <sched.h>

#include <system_error>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "dpdk/eal.hpp"

namespace rnic::verbs {

namespace {

using Idle = settings::WorkerSettings::Idle;

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

}  // namespace

uint32_t turn(device::Device& device, base::Now now) {
  uint32_t work = 0;
  if (!base::attempt([&] { work = device.poll(now); })) device.count_starved_turn();
  return work;
}

Result<std::unique_ptr<Worker>> Worker::start(const Options& options, Clock clock,
                                              std::vector<device::Device*> devices,
                                              Activity& activity) {
  auto sleeper = Sleeper::open(devices);
  if (!sleeper) return tl::unexpected(sleeper.error());
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
      spin_(options.idle == Idle::Auto ? options.longest_spin : SpinWindow::kFirst),
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

void Worker::loop() {
  if (options_.core) pin_to(*options_.core);
  const bool registered = dpdk::Eal::started() && dpdk::Eal::register_thread().has_value();
  while (!stop_.load(std::memory_order_relaxed)) {
    const base::Now now = clock_();
    uint32_t work = serve_calls(now) ? 1 : 0;
    for (device::Device* device : devices_) work += turn(*device, now);
    if (work != 0) {
      activity_.happened();
      spin_.worked();
    } else {
      rest(now);
    }
  }
  serve_calls(clock_());
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
    sleeper_->sleep(now, base::kNever);
    spin_.slept(clock_() - now);
  }
  sleeper_->disarm();
}

}  // namespace rnic::verbs
