// What the threads of a context cost where there is little to do: one exchange at a time between
// two devices of a context over a wire in memory, a Write of 64 octets that is posted and whose
// completion is polled for. Three contexts do the same, in interleaved slices:
//
//   inline                 the thread that polls drives both devices
//   inline, cores shared   the same, while an idle worker of another context spins on the other
//                          core: the two may be threads of one core, as they are in many machines
//                          that are rented, and then each slows the other down whatever it does
//   caller drives          threaded, one worker for both, which sleeps while the thread polls
//   worker drives          threaded, one worker for both on another core, which never sleeps
//
// Beside them stands what a cache line takes from one of the cores to the other and back.
//
//   threaded_cost [SLICES] [EXCHANGES]
//
// Slices are short and many, because a machine that others share changes its speed within a second:
// what stands side by side was measured a few milliseconds apart.
//
// Every completion is looked at, and the last Write of a slice is compared.

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pairs_world.hpp"

using namespace rnic;
using namespace rnic::perf;

namespace {

using Clock = std::chrono::steady_clock;

/// The two cores that the program may use: of the application and of the worker.
std::array<int, 2> cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::array<int, 2> found{-1, -1};
  size_t count = 0;
  for (int core = 0; core < CPU_SETSIZE && count < found.size(); ++core) {
    if (CPU_ISSET(core, &allowed)) found.at(count++) = core;
  }
  if (count != found.size()) fail("threaded_cost needs two cores");
  return found;
}

void run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) fail("cannot choose a core");
}

// A completion that was looked for so often in vain, for many seconds, is lost.
constexpr uint64_t kLooks = 1'000'000'000;

/// One way of driving the devices, with a connected pair.
class Exchange {
 public:
  explicit Exchange(const Config& config)
      : world_(config),
        memory_(2 * kMessage),
        source_(must(world_.client().pd().register_memory(
            std::span(memory_).first(kMessage), Access::LocalRead))),
        target_(must(world_.server().pd().register_memory(
            std::span(memory_).subspan(kMessage), Access::LocalWrite | Access::RemoteWrite))) {
    world_.connect(1, 16);
  }

  /// Nanoseconds of each of `count` exchanges, sorted.
  std::vector<double> times(uint32_t count) {
    std::vector<double> out;
    out.reserve(count);
    std::fill_n(memory_.begin(), kMessage, std::byte{++stamp_});
    for (uint32_t i = 0; i < count; ++i) {
      const auto begun = Clock::now();
      once();
      out.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begun).count());
    }
    if (memory_.back() != std::byte{stamp_}) fail("an octet is not what was written");
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  void once() {
    End& end = world_.client().ends().front();
    must(end.qp.post_write(1, {source_.sge(0, kMessage)}, {target_.stag(), target_.address()}));
    Completion done;
    for (uint64_t looks = 0; end.cq.poll({&done, 1}) == 0; ++looks) {
      world_.context().poll();
      if (looks == kLooks) fail("a completion is missing");
    }
    if (done.status != CompletionStatus::Success) fail(describe(done));
  }

  World world_;
  std::vector<std::byte> memory_;
  MemoryRegion source_;
  MemoryRegion target_;
  uint8_t stamp_ = 0;
};

/// The value that the machine disturbs least and that is no lucky one either.
double tenth_percentile(const std::vector<double>& sorted) { return sorted[sorted.size() / 10]; }

/// Nanoseconds that a cache line takes from one core to the other and back.
double round_trip_of_a_line(const std::array<int, 2>& cores) {
  constexpr uint32_t kTrips = 2000;
  alignas(64) std::atomic<uint32_t> there{0};
  alignas(64) std::atomic<uint32_t> back{0};
  std::thread other([&] {
    run_on({cores[1]});
    for (uint32_t i = 1; i <= kTrips; ++i) {
      while (there.load(std::memory_order_acquire) != i) __builtin_ia32_pause();
      back.store(i, std::memory_order_release);
    }
  });
  std::vector<double> times;
  for (uint32_t i = 1; i <= kTrips; ++i) {
    const auto begun = Clock::now();
    there.store(i, std::memory_order_release);
    while (back.load(std::memory_order_acquire) != i) __builtin_ia32_pause();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begun).count());
  }
  other.join();
  std::sort(times.begin(), times.end());
  return tenth_percentile(times);
}

enum class Way { Inline, Beside, Caller, Worker };
constexpr std::array kWays{Way::Inline, Way::Beside, Way::Caller, Way::Worker};
constexpr std::array kNames{"inline", "inline, cores shared", "caller drives", "worker drives"};

Config config_for(Way way, int worker_core) {
  Config config = with_room(Config::loopback(), 64);
  if (way == Way::Inline || way == Way::Beside) return config;
  config.set("worker.mode=threaded");
  config.set("worker.count=1");
  config.set("worker.cores=[" + std::to_string(worker_core) + "]");
  config.set(way == Way::Worker ? "worker.idle=spin" : "worker.idle=sleep");
  return config;
}

struct Row {
  std::vector<double> best;     // the tenth percentile of each slice
  std::vector<double> medians;  // of each slice
  std::vector<double> ratios;   // of its best to that of inline
};

std::string median_and_quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", values[values.size() / 2],
                     values[values.size() / 4], values[values.size() * 3 / 4]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// What `row` costs above `base` in ways of a cache line there and back, slice by slice.
std::vector<double> in_lines(const Row& row, const Row& base, const std::vector<double>& lines) {
  std::vector<double> out;
  for (size_t i = 0; i < lines.size(); ++i) {
    out.push_back((row.best.at(i) - base.best.at(i)) / lines.at(i));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t slices = argc > 1 ? number(argv[1], 1, 1000) : 100;
  const uint32_t exchanges = argc > 2 ? number(argv[2], 100, 10'000'000) : 1000;
  const std::array<int, 2> used = cores();
  std::array<Row, kWays.size()> rows;
  std::vector<double> lines;
  for (uint32_t slice = 0; slice < slices; ++slice) {
    run_on({used[0]});
    lines.push_back(round_trip_of_a_line(used));
    for (const Way way : kWays) {
      // A context of its own: a worker that spins would disturb the others. Its worker is given a
      // core that the thread which opens it may use.
      run_on({used[0], used[1]});
      std::optional<Exchange> idle;
      if (way == Way::Beside) idle.emplace(config_for(Way::Worker, used[1]));
      Exchange exchange(config_for(way, used[1]));
      run_on({used[0]});
      static_cast<void>(exchange.times(exchanges / 10 + 1));  // warms up
      const std::vector<double> times = exchange.times(exchanges);
      Row& row = rows.at(static_cast<size_t>(way));
      row.best.push_back(tenth_percentile(times));
      row.medians.push_back(times[times.size() / 2]);
      row.ratios.push_back(row.best.back() / rows[0].best.back());
    }
  }
  std::printf("%u exchanges in each of %u interleaved slices, ns; "
              "cores %d (application) and %d\n\n",
              exchanges, slices, used[0], used[1]);
  std::printf("%-21s %10s %10s %10s   %s\n", "", "10th perc.", "(least)", "median",
              "10th perc. / inline, median of slices (quartiles)");
  for (size_t way = 0; way < kWays.size(); ++way) {
    const Row& row = rows.at(way);
    std::printf("%-21s %10.0f %10.0f %10.0f   %s\n", kNames.at(way), median(row.best),
                *std::min_element(row.best.begin(), row.best.end()), median(row.medians),
                median_and_quartiles(row.ratios).c_str());
  }
  const Row& worker = rows.at(static_cast<size_t>(Way::Worker));
  std::printf("\na cache line there and back (two hops), 10th percentile: %s ns\n",
              median_and_quartiles(lines).c_str());
  for (const Way way : {Way::Inline, Way::Beside}) {
    const auto base = static_cast<size_t>(way);
    std::printf("the worker's driving costs %s times that above \"%s\"\n",
                median_and_quartiles(in_lines(worker, rows.at(base), lines)).c_str(),
                kNames.at(base));
  }
  return 0;
}
