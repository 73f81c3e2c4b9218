// A counter that many share: each draws numbers from one word in a server's memory by Fetch and
// Add, and keeps the largest of something there by Compare and Swap. The server's program does
// nothing.
//
//   counter [CONFIG]     CONFIG has devices rnic0 and rnic1; without: two in memory

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rnic/blocking.hpp"

namespace {

using rnic::blocking::Adapter;
using rnic::blocking::Connection;

constexpr uint16_t kPort = 7471;
constexpr uint64_t kClients = 4;
constexpr uint64_t kEach = 500;  // numbers that each client draws

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);  // other threads may be under way
}

template <typename T>
T must(rnic::Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}

/// The worker threads move the devices, so that both ends may wait.
rnic::Context open(const char* file) {
  auto config = file == nullptr ? rnic::Config::loopback() : must(rnic::Config::from_file(file));
  config.set("worker.mode=threaded");
  return must(rnic::Context::open(config));
}

/// Raises the word at `remote` to `value`, unless it is larger already.
void raise(Connection& server, const rnic::RemoteAddress& remote, uint64_t value) {
  uint64_t seen = 0;
  while (seen < value) {
    const uint64_t before = must(server.compare_swap(remote, seen, value)).original;
    if (before == seen) return;
    seen = before;  // another client was there
  }
}

/// What client `number` draws.
std::vector<uint64_t> draw(Connection& server, const rnic::RemoteAddress& counter,
                           const rnic::RemoteAddress& largest, uint64_t number) {
  std::vector<uint64_t> drawn;
  for (uint64_t i = 0; i < kEach; ++i) {
    drawn.push_back(must(server.fetch_add(counter, 1)).original);
    if (i % 50 == 0) raise(server, largest, number * 1000 + i);
  }
  return drawn;
}

}  // namespace

int main(int argc, char** argv) {
  auto context = open(argc > 1 ? argv[1] : nullptr);
  auto near = must(Adapter::open(context, "rnic0"));
  auto far = must(Adapter::open(context, "rnic1"));
  alignas(8) std::array<uint64_t, 2> words{};
  auto region = must(far.register_memory(std::as_writable_bytes(std::span(words)),
                                         rnic::Access::LocalWrite | rnic::Access::RemoteAtomic));
  const rnic::RemoteAddress counter{region.stag(), region.address()};
  const rnic::RemoteAddress largest{region.stag(), region.address() + sizeof(uint64_t)};

  std::vector<std::pair<Connection, Connection>> ends;
  for (uint64_t i = 0; i < kClients; ++i) ends.push_back(must(near.connect_pair(far, kPort)));
  std::vector<std::vector<uint64_t>> drawn(kClients);
  std::vector<std::thread> clients;
  for (uint64_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] { drawn[i] = draw(ends[i].first, counter, largest, i); });
  }
  for (std::thread& client : clients) client.join();

  std::vector<uint64_t> all;
  for (const auto& of_one : drawn) all.insert(all.end(), of_one.begin(), of_one.end());
  std::ranges::sort(all);
  for (uint64_t i = 0; i < all.size(); ++i) {
    if (all[i] != i) fail("number " + std::to_string(i) + " was not drawn once");
  }
  if (words[0] != kClients * kEach) fail("the counter is at " + std::to_string(words[0]));
  const uint64_t most = (kClients - 1) * 1000 + (kEach - 1) / 50 * 50;
  if (words[1] != most) fail("the largest is " + std::to_string(words[1]));
  std::printf("%zu numbers, each drawn once, by %zu clients; the largest is %zu\n", all.size(),
              clients.size(), static_cast<size_t>(words[1]));
  return 0;
}
