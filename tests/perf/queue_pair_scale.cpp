// Many queue pairs on one device: how many octets a connected one takes, and how many connections
// are set up and ended in a second. Two devices in one thread over memory rings, by the public API.
// ./scripts/bench queue-pairs runs it:
//
//   queue_pair_scale [QUEUE_PAIRS] [DEPTH] [SECONDS]
//
// Every queue pair has a completion queue of its own, and has sent and received a whole queue of
// messages, whose octets are compared, before memory is looked at: nothing is left out that fills
// later. No limit is asserted: the figures are printed.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/completion_queue.hpp"
#include "device/queue_pair.hpp"
#include "rnic/verbs.hpp"

namespace {

using namespace rnic;

constexpr uint16_t kFirstPort = 7471;
constexpr uint16_t kPorts = 64;  // of the listener: each has ephemeral ports of its own
constexpr size_t kMessage = 64;   // octets
constexpr uint32_t kAtOnce = 64;  // connections that are being made or ended together
constexpr std::chrono::seconds kPatience(10);  // without any progress: something hangs

/// Ends the program: what cannot be measured has no figure.
[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "queue_pair_scale: %s\n", what.c_str());
  std::exit(2);
}

template <typename T>
T must(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
void must(const Status& status) {
  if (!status) fail(status.error().message);
}

uint64_t resident_octets() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One queue pair with its completion queue.
struct End {
  CompletionQueue cq;
  QueuePair qp;
};

/// A device with its queue pairs, and one region that all of them use: what is sent stands in its
/// first half, what arrives in its second.
class Side {
 public:
  Side(Context& context, const std::string& name, uint8_t octet)
      : device_(must(context.device(name))),
        pd_(must(device_.alloc_pd())),
        memory_(2 * kMessage, std::byte{octet}),
        region_(must(pd_.register_memory(memory_, Access::LocalRead | Access::LocalWrite))) {}

  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] std::vector<End>& ends() { return ends_; }
  void make(uint32_t depth) {
    auto cq = must(device_.create_cq(2 * depth));
    QueuePairOptions options;
    options.send_depth = options.receive_depth = depth;
    auto qp = must(pd_.create_qp(cq, cq, options));
    ends_.push_back({std::move(cq), std::move(qp)});
  }
  void post_receive(size_t i) {
    must(ends_[i].qp.post_receive(1, SgeList{region_.sge(kMessage, kMessage)}));
  }
  void post_send(size_t i) { must(ends_[i].qp.post_send(2, SgeList{region_.sge(0, kMessage)})); }
  /// Takes what has completed on queue pair i. \return completions
  uint32_t reap(size_t i) {
    std::array<Completion, 32> done;
    const uint32_t got = ends_[i].cq.poll(done);
    for (uint32_t n = 0; n < got; ++n) {
      if (done[n].status != CompletionStatus::Success) fail(describe(done[n]));
    }
    return got;
  }
  /// What has arrived is gone, so that it has to arrive again.
  void expect_and_clear(uint8_t octet) {
    for (size_t at = kMessage; at < 2 * kMessage; ++at) {
      if (memory_[at] != std::byte{octet}) fail("an octet is not what was sent");
      memory_[at] = std::byte{0};
    }
  }

 private:
  Device device_;
  ProtectionDomain pd_;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  std::vector<End> ends_;
};

/// Two devices, of which the first connects and the second accepts.
class World {
 public:
  explicit World(uint32_t pairs)
      : context_(must(Context::open(config_of(pairs)))),
        client_(context_, "rnic0", 1),
        server_(context_, "rnic1", 2) {
    for (uint16_t i = 0; i < kPorts; ++i) {
      must(server_.device().listen(static_cast<uint16_t>(kFirstPort + i)));
    }
  }

  /// Makes queue pairs until there are `total` on each side, and connects them.
  void connect(size_t total, uint32_t depth) {
    size_t up = 2 * client_.ends().size();
    for (size_t i = client_.ends().size(); i < total; ++i) {
      client_.make(depth);
      server_.make(depth);
      const auto port = static_cast<uint16_t>(kFirstPort + connects_++ % kPorts);
      // Requests do not arrive in the order of the connects: each says whose it is.
      std::array<uint8_t, sizeof i> whose;
      std::memcpy(whose.data(), &i, sizeof i);
      must(client_.ends()[i].qp.connect({server_.device().address(), port}, whose));
    }
    turn_until("connections did not come up", [&] { return up == 2 * total; },
               [&](Side& side, const Event& event) {
                 if (const auto* request = std::get_if<event::ConnectRequest>(&event)) {
                   size_t whose = 0;
                   std::memcpy(&whose, request->private_data.data(), sizeof whose);
                   must(side.ends().at(whose).qp.accept(request->request));
                 } else if (std::holds_alternative<event::Established>(event)) {
                   ++up;
                 } else {
                   fail(std::string("while connecting: ") + event::to_string(event));
                 }
               });
  }
  /// `count` messages each way on every queue pair, each compared with what was sent.
  void talk(uint32_t count) {
    for (size_t i = 0; i < client_.ends().size(); ++i) {
      for (uint32_t n = 0; n < count; ++n) {
        exchange(client_, 1, server_, i);
        exchange(server_, 2, client_, i);
      }
    }
  }
  /// Ends all connections gracefully and destroys the queue pairs.
  void end_all() {
    size_t left = 2 * client_.ends().size();
    for (End& end : client_.ends()) must(end.qp.disconnect());
    turn_until("connections did not end", [&] { return left == 0; },
               [&](Side&, const Event& event) {
                 if (std::holds_alternative<event::Disconnected>(event)) --left;
               });
    for (Side* side : {&client_, &server_}) {
      for (End& end : side->ends()) {
        must(end.qp.destroy());
        must(end.cq.destroy());
      }
      side->ends().clear();
    }
  }
  [[nodiscard]] bool quiescent() {
    return context_.wait_until(
        [&] { return client_.device().quiescent() && server_.device().quiescent(); }, kPatience);
  }

 private:
  static Config config_of(uint32_t pairs) {
    const std::string most = std::to_string(pairs);
    Config config = Config::loopback();
    config.set("limits.max_connections=" + most);
    config.set("limits.max_qps=" + most);
    config.set("limits.max_pending_requests=" + std::to_string(std::min(pairs, kAtOnce)));
    return config;
  }
  void exchange(Side& from, uint8_t octet, Side& to, size_t i) {
    to.post_receive(i);
    from.post_send(i);
    uint32_t arrived = 0;
    uint32_t sent = 0;
    const bool both = context_.wait_until(
        [&] {
          arrived += to.reap(i);
          sent += from.reap(i);
          return arrived == 1 && sent == 1;
        },
        kPatience);
    if (!both) fail("a message did not arrive");
    to.expect_and_clear(octet);
  }
  /// Turns both devices, and hands each event to `on(side, event)`, until `done()`.
  template <typename Done, typename On>
  void turn_until(const char* what, Done&& done, On&& on) {
    const bool in_time = context_.wait_until(
        [&] {
          for (Side* side : {&client_, &server_}) {
            while (const auto event = side->device().poll_event()) on(*side, *event);
          }
          return done();
        },
        kPatience);
    if (!in_time) fail(what);
  }

  Context context_;
  Side client_;
  Side server_;
  uint64_t connects_ = 0;
};

/// What the slots of a queue pair and its completion queue take.
uint64_t slot_octets(uint32_t depth) {
  using device::QueuePair;
  const auto octets = [](uint32_t send, uint32_t receive) {
    return QueuePair::octets_for({.send_depth = send, .receive_depth = receive});
  };
  const uint64_t send = octets(2, 1) - octets(1, 1);
  const uint64_t receive = octets(1, 2) - octets(1, 1);
  const uint64_t completion =
      device::CompletionQueue::octets_for(4) - device::CompletionQueue::octets_for(2);
  return depth * (send + receive) + 2 * depth * (completion / 2);
}

void hold(uint32_t pairs, uint32_t depth) {
  World world(pairs);
  const uint64_t before = resident_octets();
  const auto begin = std::chrono::steady_clock::now();
  for (size_t total = kAtOnce; total < pairs; total += kAtOnce) world.connect(total, depth);
  world.connect(pairs, depth);
  const double took = seconds_since(begin);
  world.talk(depth);
  const uint64_t each = (resident_octets() - before) / (2ull * pairs);
  const uint64_t slots = slot_octets(depth);
  std::printf("%u connected queue pairs on each of two devices, depth %u/%u, in %.2f s\n", pairs,
              depth, depth, took);
  std::printf("resident memory of each: %llu octets, of which slots of SQ, RQ and CQ %llu, "
              "the rest %lld\n",
              static_cast<unsigned long long>(each), static_cast<unsigned long long>(slots),
              static_cast<long long>(each) - static_cast<long long>(slots));
  world.end_all();
  if (!world.quiescent()) fail("something is left");
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

uint32_t number(const char* text, uint32_t least, uint32_t most) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (end == text || *end != 0 || value < least || value > most) {
    fail(std::string("not a number of ") + std::to_string(least) + " to " + std::to_string(most) +
         ": " + text);
  }
  return static_cast<uint32_t>(value);
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
