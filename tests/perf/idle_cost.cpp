// The processor time of connections on which nothing happens, on each port that can be slept on.
// ./scripts/bench idle runs it:
//
//   idle_cost [CONNECTIONS] [SECONDS]
//
// Both ends of all connections are in one process, so that its time is that of both. Packet sockets
// and taps need root: they have a network namespace of their own. Where that is not to be had, it
// is said.

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "pairs_world.hpp"

using namespace rnic;
using namespace rnic::perf;

namespace {

struct Place {
  const char* name;
  bool threaded;
  const char* devices;  // nullptr: those of Config::loopback()
  const char* before;   // commands of the shell before the devices are opened; nullptr: none, and
                        // no network namespace
  const char* after;    // and behind that
};

constexpr const char* kSockets = R"(
[[device]]
name = "rnic0"
port = "socket"
address = "127.77.0.1/8"
[[device]]
name = "rnic1"
port = "socket"
address = "127.77.0.2/8"
)";
constexpr const char* kPackets = R"(
[[device]]
name = "rnic0"
port = "net_af_packet0,iface=left"
address = "10.77.0.1/24"
[[device]]
name = "rnic1"
port = "net_af_packet1,iface=right"
address = "10.77.0.2/24"
)";
constexpr const char* kVeth =
    "ip link add left type veth peer name right && ip link set left up && ip link set right up";
constexpr const char* kTaps = R"(
[[device]]
name = "rnic0"
port = "net_tap0,iface=left"
address = "10.77.1.1/24"
gateway = "10.77.1.254"
[[device]]
name = "rnic1"
port = "net_tap1,iface=right"
address = "10.77.2.1/24"
gateway = "10.77.2.254"
)";
constexpr const char* kForward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
constexpr const char* kTapsUp =
    "ip addr add 10.77.1.254/24 dev left && ip link set left up && "
    "ip addr add 10.77.2.254/24 dev right && ip link set right up";

constexpr std::array kPlaces{
    Place{"memory wire, inline", false, nullptr, nullptr, nullptr},
    Place{"memory wire, threaded", true, nullptr, nullptr, nullptr},
    Place{"sockets, inline", false, kSockets, nullptr, nullptr},
    Place{"sockets, threaded", true, kSockets, nullptr, nullptr},
    Place{"packet sockets, inline", false, kPackets, kVeth, nullptr},
    Place{"packet sockets, threaded", true, kPackets, kVeth, nullptr},
    Place{"taps, inline", false, kTaps, kForward, kTapsUp},
    Place{"taps, threaded", true, kTaps, kForward, kTapsUp},
};

void shell(const char* commands) {
  if (commands != nullptr && std::system(commands) != 0) fail(std::string("failed: ") + commands);
}

/// Both ends of a connection over sockets are descriptors.
void allow_descriptors(uint32_t connections) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4ull * connections + 256);
  setrlimit(RLIMIT_NOFILE, &limit);
}

Config config_of(const Place& place, uint32_t connections) {
  Config config = place.devices == nullptr ? Config::loopback() : Config::from_text(place.devices);
  if (place.threaded) config.set("worker.mode=threaded");
  return with_room(std::move(config), connections);
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Waits as an application's loop does.
void wait_asleep(World& world, std::chrono::seconds length) {
  Context& context = world.context();
  if (context.threaded()) return std::this_thread::sleep_for(length);
  pollfd descriptor{must(context.fd()), POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + length;
  for (;;) {
    while (!context.arm()) context.poll();
    for (Side* side : {&world.client(), &world.server()}) {
      if (const auto event = side->device().poll_event()) fail(event::to_string(*event));
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    ::poll(&descriptor, 1, static_cast<int>(left.count()));
    context.poll();
  }
}

void measure(const Place& place, uint32_t connections, uint32_t seconds) {
  if (place.before != nullptr && unshare(CLONE_NEWNET) != 0) {
    std::printf("%-26s not measured: a network namespace needs root\n", place.name);
    return;
  }
  shell(place.before);
  allow_descriptors(connections);
  World world(config_of(place, connections));
  shell(place.after);
  for (size_t total = kAtOnce; total < connections; total += kAtOnce) world.connect(total, 1);
  world.connect(connections, 1);
  wait_asleep(world, std::chrono::seconds(1));  // what is still going on ends
  const double before = processor_seconds();
  wait_asleep(world, std::chrono::seconds(seconds));
  const double used = processor_seconds() - before;
  std::printf("%-26s %7.3f s of a processor, %6.3f %% of a core\n", place.name, used,
              used / seconds * 100);
  std::fflush(stdout);
  world.end_all();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3) fail("usage: idle_cost [CONNECTIONS] [SECONDS]");
  const uint32_t connections = argc > 1 ? number(argv[1], 1, 20'000) : 1000;
  const uint32_t seconds = argc > 2 ? number(argv[2], 1, 3600) : 60;
  std::printf("%u connections, silent for %u s, both ends in one process:\n", connections, seconds);
  std::fflush(stdout);
  bool good = true;
  for (const Place& place : kPlaces) {
    const pid_t child = fork();
    if (child == 0) {
      measure(place, connections, seconds);
      std::fflush(stdout);
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) continue;
    std::printf("%-26s failed\n", place.name);
    good = false;
  }
  return good ? 0 : 1;
}
