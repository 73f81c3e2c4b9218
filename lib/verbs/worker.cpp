#include "verbs/worker.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "dpdk/eal.hpp"

namespace rnic::verbs {

namespace {

constexpr uint32_t kTurnsBeforeRest = 256;
// A port cannot wake us, so a sleeping worker looks at it this often.
constexpr base::Duration kLongestSleep = std::chrono::microseconds(50);

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
                                              std::vector<device::Device*> devices) {
  auto signal = EventSignal::open();
  if (!signal) return tl::unexpected(signal.error());
  try {
    return std::unique_ptr<Worker>(
        new Worker(options, std::move(clock), std::move(devices), std::move(*signal)));
  } catch (const std::system_error& error) {
    return base::fail(ErrorCode::ResourceExhausted,
                      std::string("a worker's thread: ") + error.what() +
                          "; raise the limits of threads and memory (ulimit -u, ulimit -v), or set "
                          "worker.mode = inline");
  }
}

Worker::Worker(const Options& options, Clock clock, std::vector<device::Device*> devices,
               EventSignal signal)
    : options_(options),
      clock_(std::move(clock)),
      devices_(std::move(devices)),
      bell_(std::move(signal)),
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
  uint32_t idle_turns = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const base::Now now = clock_();
    uint32_t work = serve_calls(now) ? 1 : 0;
    for (device::Device* device : devices_) work += turn(*device, now);
    idle_turns = work == 0 ? idle_turns + 1 : 0;
    if (idle_turns > kTurnsBeforeRest) rest(idle_turns, now);
  }
  serve_calls(clock_());
  if (registered) dpdk::Eal::unregister_thread();
}

void Worker::rest(uint32_t, base::Now now) {
  if (options_.idle == settings::WorkerSettings::Idle::Spin) {
    __builtin_ia32_pause();
    return;
  }
  if (options_.idle == settings::WorkerSettings::Idle::Yield) {
    sched_yield();
    return;
  }
  base::Duration longest = kLongestSleep;
  for (device::Device* device : devices_) {
    const base::Now next = device->next_deadline();
    if (next != base::kNever) longest = std::min(longest, std::max(next - now, base::Duration(0)));
  }
  bell_.arm();
  const bool called = has_calls_.load(std::memory_order_relaxed) || stop_.load() ||
                      std::any_of(devices_.begin(), devices_.end(),
                                  [](device::Device* d) { return d->doorbell_ringing(); });
  if (!called && longest.count() > 0) {
    pollfd descriptor{bell_.signal().fd(), POLLIN, 0};
    const timespec timeout{0, static_cast<long>(longest.count())};
    ppoll(&descriptor, 1, &timeout, nullptr);
  }
  bell_.disarm();
}

}  // namespace rnic::verbs
