// A worker by itself: where it runs, what becomes of a call that throws, and who drives while it
// sleeps.

#include "verbs/worker.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "../../support/logged.hpp"

namespace rnic::verbs {
namespace {

using rnic::test::Logged;
using Idle = settings::WorkerSettings::Idle;

/// The cores that a worker with these options may run on, as its thread sees them.
cpu_set_t cores_of(const Worker::Options& options) {
  Activity activity;
  auto worker = Worker::start(
      options, [] { return base::Now(); }, {}, activity);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  (*worker)->run([&](base::Now) { pthread_getaffinity_np(pthread_self(), sizeof cores, &cores); });
  return cores;
}

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

TEST(AWorker, RunsOnItsCoreOnly) {
  const cpu_set_t all = cores_of_this_thread();
  for (uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all)) continue;
    Logged logged;
    const cpu_set_t its = cores_of({.idle = Idle::Spin, .core = core});
    EXPECT_EQ(CPU_COUNT(&its), 1) << core;
    EXPECT_TRUE(CPU_ISSET(core, &its)) << core;
    EXPECT_EQ(logged.take(), "");
  }
  const cpu_set_t anywhere = cores_of({.idle = Idle::Spin});
  EXPECT_TRUE(CPU_EQUAL(&anywhere, &all)) << "nobody has asked for a core";
}

TEST(AWorker, LeavesSignalsToTheApplicationsThreads) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Activity activity;
  auto worker = Worker::start(
      {.idle = Idle::Spin}, [] { return base::Now(); }, {}, activity);
  sigset_t its;
  sigset_t after;
  (*worker)->run([&](base::Now) { pthread_sigmask(SIG_SETMASK, nullptr, &its); });
  for (const int sent : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPIPE, SIGRTMIN, SIGRTMAX}) {
    EXPECT_EQ(sigismember(&its, sent), 1) << sent;
  }
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_EQ(sigismember(&its, own), 0) << own;
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int each = 1; each <= SIGRTMAX; ++each) {
    EXPECT_EQ(sigismember(&after, each), sigismember(&before, each)) << each;
  }
}

TEST(AWorker, RunsAnywhereWhereItsCoreIsNotThere) {
  const cpu_set_t all = cores_of_this_thread();
  Logged logged;
  // No set of cores has this one.
  const cpu_set_t its = cores_of({.idle = Idle::Spin, .core = CPU_SETSIZE});
  EXPECT_TRUE(CPU_EQUAL(&its, &all));
  EXPECT_NE(logged.take().find("worker could not be pinned to core 1024: it runs anywhere"),
            std::string::npos);
}

class AWorkerThat : public ::testing::TestWithParam<Idle> {
 protected:
  static std::unique_ptr<Worker> start(Activity& activity) {
    // A worker that finds nothing to do at two looks so far apart sleeps.
    const auto clock = [looks = std::make_shared<std::atomic<int64_t>>(3000)] {
      return base::Now(std::chrono::milliseconds(++*looks));
    };
    auto worker = Worker::start({.idle = GetParam()}, clock, {}, activity);
    if (GetParam() == Idle::Sleep) await_sleep(**worker);
    return std::move(*worker);
  }
  /// Returns when the worker has begun to sleep.
  static void await_sleep(Worker& worker) {
    while (!worker.drive()) std::this_thread::yield();
  }
};
INSTANTIATE_TEST_SUITE_P(SleepsOrNot, AWorkerThat, ::testing::Values(Idle::Spin, Idle::Sleep),
                         [](const auto& idle) {
                           return idle.param == Idle::Spin ? "Spins" : "Sleeps";
                         });

TEST_P(AWorkerThat, LetsOthersDriveWhileItSleeps) {
  Activity activity;
  auto worker = start(activity);
  const bool sleeps = GetParam() == Idle::Sleep;
  const uint64_t turns = worker->turns_of_others();
  std::thread::id carried_out_by;
  worker->run([&](base::Now) { carried_out_by = std::this_thread::get_id(); });
  EXPECT_EQ(carried_out_by == std::this_thread::get_id(), sleeps);
  EXPECT_EQ(worker->drive(), sleeps);
  EXPECT_EQ(worker->turns_of_others(), turns + (sleeps ? 1 : 0));
}

// One thread at a time drives: a call waits for the turn that another thread does.
TEST_P(AWorkerThat, CarriesOutOneCallAtATime) {
  Activity activity;
  auto worker = start(activity);
  int inside = 0;
  int calls = 0;
  const auto call_often = [&] {
    for (int i = 0; i < 2000; ++i) {
      worker->run([&](base::Now) {
        EXPECT_EQ(++inside, 1);
        ++calls;
        --inside;
      });
      static_cast<void>(worker->drive());
    }
  };
  std::thread first(call_often), second(call_often);
  first.join();
  second.join();
  EXPECT_EQ(calls, 4000);
}

// A thread that cannot drive, because another one does, has its work done by the worker.
TEST_P(AWorkerThat, ServesWhomTheHelmIsTakenFrom) {
  Activity activity;
  auto worker = start(activity);
  std::promise<void> is_in, may_go;
  std::thread first([&] {
    worker->run([&](base::Now) {
      is_in.set_value();
      may_go.get_future().wait();
    });
  });
  is_in.get_future().wait();
  EXPECT_FALSE(worker->drive());
  std::thread::id carried_out_by;
  std::thread second(
      [&] { worker->run([&](base::Now) { carried_out_by = std::this_thread::get_id(); }); });
  const std::thread::id callers = second.get_id();
  may_go.set_value();
  first.join();
  second.join();
  EXPECT_NE(carried_out_by, std::thread::id());
  EXPECT_TRUE(GetParam() == Idle::Sleep || carried_out_by != callers);
}

TEST_P(AWorkerThat, GivesBackWhatACallThrows) {
  Activity activity;
  auto worker = start(activity);
  try {
    worker->run([](base::Now) { throw std::runtime_error("no"); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no");
  }
  base::Now seen;
  worker->run([&](base::Now now) { seen = now; });
  EXPECT_GT(seen, base::Now(std::chrono::seconds(3))) << "it serves on";
}

}  // namespace
}  // namespace rnic::verbs
