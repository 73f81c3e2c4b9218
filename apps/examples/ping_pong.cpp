// Messages to and fro: a server gives back what it gets, a client looks at what comes and at how
// long it took.
//
//   ping-pong [CONFIG]     CONFIG has devices rnic0 and rnic1; without: two in memory

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rnic/blocking.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using rnic::blocking::Adapter;
using rnic::blocking::Connection;
using rnic::blocking::Listener;

constexpr uint16_t kPort = 7471;
constexpr int kRounds = 1000;
constexpr size_t kOctets = 64;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);  // other threads may be under way
}

template <typename T>
T must(rnic::Result<T> result) {
  if (!result) fail(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The worker threads move the devices, so that both ends may wait.
rnic::Context open(const char* file) {
  auto config = file == nullptr ? rnic::Config::loopback() : must(rnic::Config::from_file(file));
  config.set("worker.mode=threaded");
  return must(rnic::Context::open(config));
}

/// Gives back each message, until the client has closed.
void serve(Listener& listener) {
  Connection client = must(listener.accept());
  std::vector<std::byte> buffer(kOctets);
  for (;;) {
    const auto got = client.receive(buffer);
    if (!got && client.peer_closed()) break;
    const size_t length = must(got).length;
    must(client.send(std::span(buffer).first(length)));
  }
  must(client.close());
}

/// What round `round` sends: no two are alike.
std::vector<std::byte> ping(int round) {
  std::vector<std::byte> octets(kOctets);
  for (size_t i = 0; i < kOctets; ++i) {
    octets[i] = static_cast<std::byte>(static_cast<size_t>(round) * 31 +
                                       (i * static_cast<size_t>(round) >> 4) + i);
  }
  return octets;
}

/// \return the time of each round
std::vector<std::chrono::nanoseconds> play(Connection& server) {
  std::vector<std::chrono::nanoseconds> times;
  std::vector<std::byte> pong(kOctets);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<std::byte> sent = ping(round);
    const auto begin = Clock::now();
    must(server.send(sent));
    const uint32_t length = must(server.receive(pong)).length;
    times.push_back(Clock::now() - begin);
    if (length != kOctets || pong != sent)
      fail("round " + std::to_string(round) + " came back changed");
  }
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  auto context = open(argc > 1 ? argv[1] : nullptr);
  auto near = must(Adapter::open(context, "rnic0"));
  auto far = must(Adapter::open(context, "rnic1"));
  auto listener = must(far.listen({far.device().address(), kPort}));
  std::thread server([&listener] { serve(listener); });
  auto connection = must(near.connect({far.device().address(), kPort}));
  auto times = play(connection);
  must(connection.close());
  server.join();
  std::ranges::sort(times);
  const auto microseconds = [](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1000;
  };
  std::printf("%d round trips of %zu octets came back unchanged; median %.1f us, longest %.1f us\n",
              kRounds, kOctets, microseconds(times[times.size() / 2]), microseconds(times.back()));
  return 0;
}
