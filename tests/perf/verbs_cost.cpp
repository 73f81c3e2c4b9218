// What the calls of the public API cost, on two devices in one thread over a wire in memory.
// ./scripts/bench post-poll and ./scripts/bench regions run it:
//
//   verbs_cost post [SLICES]           post and poll of a Write of 64 octets, the devices apart
//   verbs_cost regions [SLICES] [MANY] Writes between random ones of 100 regions, and of MANY
//   verbs_cost count-post N            the same work N times, for callgrind
//   verbs_cost count-regions REGIONS N
//
// Every Write has a completion that is looked at, and what it has placed is compared.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "pairs_world.hpp"

using namespace rnic;
using namespace rnic::perf;

namespace {

constexpr uint32_t kDepth = 64;  // Writes under way at once
constexpr uint32_t kTurns = 64;  // times kDepth Writes of a slice

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// Octets in regions of kMessage each.
class Regions {
 public:
  Regions(Side& side, uint32_t count, AccessSet rights) : memory_(size_t{count} * kMessage) {
    for (uint32_t i = 0; i < count; ++i) {
      regions_.push_back(must(side.pd().register_memory(octets(i), rights)));
    }
  }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(regions_.size()); }
  [[nodiscard]] const MemoryRegion& operator[](uint32_t i) const { return regions_[i]; }
  [[nodiscard]] std::span<std::byte> octets(uint32_t i) {
    return std::span(memory_).subspan(size_t{i} * kMessage, kMessage);
  }

 private:
  std::vector<std::byte> memory_;
  std::vector<MemoryRegion> regions_;
};

/// A connected pair, and regions at both ends between which it writes.
class Writer {
 public:
  /// \param several the queues are for several threads
  explicit Writer(uint32_t regions, bool several = false)
      : world_(with_regions(regions, several)),
        from_(world_.client(), regions, Access::LocalRead),
        to_(world_.server(), regions, Access::LocalWrite | Access::RemoteWrite) {
    world_.connect(1, kDepth);
  }

  /// Chooses what the next kDepth Writes read and write, from a sequence that repeats.
  void choose() {
    for (Write& write : writes_) {
      write.from = next();
      write.to = next();
      std::ranges::fill(from_.octets(write.from), std::byte{static_cast<uint8_t>(++stamp_)});
      write.source = {from_[write.from].sge(0, kMessage)};
      write.target = {to_[write.to].stag(), to_[write.to].address()};
    }
  }
  [[gnu::noinline]] void post_all();
  /// Turns the devices until all that was posted has completed.
  void drive() {
    while (must(cq().info()).waiting != kDepth) world_.context().poll();
  }
  [[gnu::noinline]] void poll_all();
  void compare() {
    const Write& last = writes_.back();  // earlier ones may be overwritten by later ones
    if (!std::ranges::equal(to_.octets(last.to), from_.octets(last.from))) {
      fail("an octet is not what was written");
    }
  }
  /// Posts, drives and polls together.
  [[gnu::noinline]] void write_all();

 private:
  struct Write {
    uint32_t from = 0;
    uint32_t to = 0;
    SgeList source{};
    RemoteAddress target{};
  };
  static Config with_regions(uint32_t regions, bool several) {
    Config config = with_room(Config::loopback(), 64);
    config.set("limits.max_regions=" + std::to_string(regions + 16));
    if (several) config.set("device.*.several_threads=true");
    return config;
  }
  [[nodiscard]] CompletionQueue& cq() { return world_.client().ends().front().cq; }
  [[nodiscard]] QueuePair& qp() { return world_.client().ends().front().qp; }
  uint32_t next() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((random_ >> 33) % from_.count());
  }

  World world_;
  Regions from_;
  Regions to_;
  std::array<Write, kDepth> writes_;
  uint64_t random_ = 1;
  uint64_t stamp_ = 0;
};

void Writer::post_all() {
  for (const Write& write : writes_) must(qp().post_write(1, write.source, write.target));
}

void Writer::poll_all() {
  Completion done;
  for (uint32_t i = 0; i < kDepth; ++i) {
    if (cq().poll({&done, 1}) != 1) fail("a completion is missing");
    if (done.status != CompletionStatus::Success) fail(describe(done));
  }
}

void Writer::write_all() {
  post_all();
  drive();
  poll_all();
}

struct Spread {
  explicit Spread(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    least = values.front();
    median = values[values.size() / 2];
    most = values.back();
  }
  double least, median, most;
};

struct PostPoll {
  double post = 0;
  double poll = 0;
};

/// \return nanoseconds of one post and of one poll
PostPoll slice_of(Writer& writer) {
  PostPoll spent;
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    writer.choose();
    auto begin = Clock::now();
    writer.post_all();
    spent.post += nanoseconds_since(begin);
    writer.drive();
    begin = Clock::now();
    writer.poll_all();
    spent.poll += nanoseconds_since(begin);
    writer.compare();
  }
  spent.post /= kTurns * kDepth;
  spent.poll /= kTurns * kDepth;
  return spent;
}

void measure_post(uint32_t slices) {
  Writer alone(100);
  Writer several(100, true);
  struct Kind {
    const char* name;
    Writer& writer;
    std::vector<double> post{}, poll{}, both{};
  };
  std::array kinds{Kind{"one thread", alone}, Kind{"several_threads", several}};
  for (uint32_t i = 0; i < slices; ++i) {
    for (Kind& kind : kinds) {
      const PostPoll spent = slice_of(kind.writer);
      kind.post.push_back(spent.post);
      kind.poll.push_back(spent.poll);
      kind.both.push_back(spent.post + spent.poll);
    }
  }
  std::printf("a Write of %zu octets, ns in %u interleaved slices of %u: least, median, most\n",
              kMessage, slices, kTurns * kDepth);
  for (const Kind& kind : kinds) {
    const Spread post(kind.post), poll(kind.poll), both(kind.both);
    std::printf("%-16s post_write %5.1f %5.1f %5.1f   poll %5.1f %5.1f %5.1f   both %5.1f %5.1f "
                "%5.1f\n",
                kind.name, post.least, post.median, post.most, poll.least, poll.median, poll.most,
                both.least, both.median, both.most);
  }
}

double writes_a_second(Writer& writer) {
  double spent = 0;
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    writer.choose();
    const auto begin = Clock::now();
    writer.write_all();
    spent += nanoseconds_since(begin);
    writer.compare();
  }
  return kTurns * kDepth * 1e9 / spent;
}

void measure_regions(uint32_t slices, uint32_t many) {
  constexpr uint32_t kFew = 100;
  Writer few(kFew);
  Writer more(many);
  std::vector<double> of_few, of_more, ratios;
  for (uint32_t i = 0; i < slices; ++i) {
    of_few.push_back(writes_a_second(few));
    of_more.push_back(writes_a_second(more));
    ratios.push_back(of_more.back() / of_few.back());
  }
  std::printf("Writes of %zu octets a second, each between two random regions, both ends on one "
              "core, %u interleaved slices of %u: least, median, most\n",
              kMessage, slices, kTurns * kDepth);
  const auto print = [](uint32_t regions, const Spread& rate) {
    std::printf("%7u regions at each end: %10.0f %10.0f %10.0f\n", regions, rate.least, rate.median,
                rate.most);
  };
  print(kFew, Spread(of_few));
  print(many, Spread(of_more));
  const Spread ratio(ratios);
  std::printf("ratio: %.3f %.3f %.3f (memory of %u regions does not fit the caches that hold that "
              "of %u)\n",
              ratio.least, ratio.median, ratio.most, many, kFew);
}

void count(uint32_t regions, uint32_t writes) {
  Writer writer(regions);
  for (uint32_t done = 0; done < writes; done += kDepth) {
    writer.choose();
    writer.write_all();
    writer.compare();
  }
  std::printf("%u Writes\n", (writes + kDepth - 1) / kDepth * kDepth);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto at = [&](int i, uint32_t otherwise, uint32_t most) {
    return argc > i ? number(argv[i], 1, most) : otherwise;
  };
  if (what == "post" && argc <= 3) {
    measure_post(at(2, 31, 100'000));
  } else if (what == "regions" && argc <= 4) {
    measure_regions(at(2, 15, 100'000), at(3, 100'000, 4'000'000));
  } else if (what == "count-post" && argc <= 3) {
    count(100, at(2, 1000, 10'000'000));
  } else if (what == "count-regions" && argc == 4) {
    count(at(2, 100, 4'000'000), at(3, 1000, 10'000'000));
  } else {
    fail("usage: verbs_cost post [SLICES] | regions [SLICES] [MANY] | count-post N | "
         "count-regions REGIONS N");
  }
  return 0;
}
