// Many queue pairs on one device: how many octets a connected one takes, and how many connections
// are set up and ended in a second. Two devices in one thread over memory rings, by the public API.
// ./scripts/bench queue-pairs runs it:
//
//   queue_pair_scale [QUEUE_PAIRS] [DEPTH] [SECONDS]
//
// Every queue pair has a completion queue of its own, and has sent and received as many messages as
// its queues hold, whose octets are compared, before memory is looked at: first one at a time, then
// with both queues full. It is the memory of those behind the first ones, all of whose queues were
// full before. No limit is asserted: the figures are printed.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "pairs_world.hpp"

namespace {

using namespace rnic;
using namespace rnic::perf;

uint64_t resident_octets() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// What each of so many pairs has taken at both ends since `before`.
long long octets_of_each(int64_t before, uint32_t pairs) {
  const int64_t grown = static_cast<int64_t>(resident_octets()) - before;
  return std::max<int64_t>(grown, 0) / (2 * int64_t{pairs});
}

void hold(uint32_t pairs, uint32_t depth) {
  World world(pairs);
  const auto empty = static_cast<int64_t>(resident_octets());
  // The first ones bring what all have together: the pages of the program, and what DPDK keeps.
  const uint32_t first = std::min(kAtOnce, pairs / 2);
  world.connect(first, depth);
  world.talk_at_once(depth);
  const auto begin = std::chrono::steady_clock::now();
  const auto before = static_cast<int64_t>(resident_octets());
  for (size_t total = first + kAtOnce; total < pairs; total += kAtOnce) world.connect(total, depth);
  world.connect(pairs, depth);
  const double took = seconds_since(begin);
  const auto each = [&] {
    return octets_of_each(before, pairs - first);
  };
  world.talk(depth);
  const long long one_by_one = each();
  world.talk_at_once(depth);
  std::printf("%u connected queue pairs on each of two devices, depth %u/%u, in %.2f s behind "
              "the first %u\n",
              pairs, depth, depth, took, first);
  std::printf("resident memory of each: %lld octets, and %lld once its queues were full; %lld with "
              "what the first ones bring\n",
              one_by_one, each(), octets_of_each(empty, pairs));
  world.end_all();
  if (!world.quiescent()) fail("something is left", 1);
  std::printf("all ended: everything returned\n");
}

void churn(double seconds) {
  World world(kAtOnce);
  uint64_t ended = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (seconds_since(begin) < seconds) {
    world.connect(kAtOnce, 1);
    world.end_all();
    ended += kAtOnce;
  }
  const double took = seconds_since(begin);
  std::printf("%llu connections set up and ended in %.2f s, %u at once, both ends on one core: "
              "%.0f a second\n",
              static_cast<unsigned long long>(ended), took, kAtOnce,
              static_cast<double>(ended) / took);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 4) fail("usage: queue_pair_scale [QUEUE_PAIRS] [DEPTH] [SECONDS]");
  const uint32_t pairs = argc > 1 ? number(argv[1], 1, 65'535) : 10'000;
  const uint32_t depth = argc > 2 ? number(argv[2], 1, 1024) : 16;
  const uint32_t seconds = argc > 3 ? number(argv[3], 1, 3600) : 5;
  hold(pairs, depth);
  churn(seconds);
  return 0;
}
