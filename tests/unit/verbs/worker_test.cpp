// A worker by itself: where it runs, and what becomes of a call that throws.

#include "verbs/worker.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <stdexcept>

#include "../../support/logged.hpp"

namespace rnic::verbs {
namespace {

using rnic::test::Logged;

/// The cores that a worker with these options may run on, as its thread sees them.
cpu_set_t cores_of(const Worker::Options& options) {
  Activity activity;
  auto worker = Worker::start(options, [] { return base::Now(); }, {}, activity);
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
    const cpu_set_t its = cores_of({.core = core});
    EXPECT_EQ(CPU_COUNT(&its), 1) << core;
    EXPECT_TRUE(CPU_ISSET(core, &its)) << core;
    EXPECT_EQ(logged.take(), "");
  }
  const cpu_set_t anywhere = cores_of({});
  EXPECT_TRUE(CPU_EQUAL(&anywhere, &all)) << "nobody has asked for a core";
}

TEST(AWorker, RunsAnywhereWhereItsCoreIsNotThere) {
  const cpu_set_t all = cores_of_this_thread();
  Logged logged;
  const cpu_set_t its = cores_of({.core = CPU_SETSIZE});  // no set of cores has it
  EXPECT_TRUE(CPU_EQUAL(&its, &all));
  EXPECT_NE(logged.take().find("worker could not be pinned to core 1024: it runs anywhere"),
            std::string::npos);
}

TEST(AWorker, GivesBackWhatACallThrows) {
  Activity activity;
  auto worker = Worker::start({}, [] { return base::Now(std::chrono::seconds(3)); }, {}, activity);
  ASSERT_TRUE(worker);
  try {
    (*worker)->run([](base::Now) { throw std::runtime_error("no"); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no");
  }
  base::Now seen;
  (*worker)->run([&](base::Now now) { seen = now; });
  EXPECT_EQ(seen, base::Now(std::chrono::seconds(3))) << "it serves on";
}

}  // namespace
}  // namespace rnic::verbs
