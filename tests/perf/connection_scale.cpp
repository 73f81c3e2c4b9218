// Many connections on one core: how many octets an idle one takes, and how many can be opened and
// closed in a second. Two stacks in one thread pass segments through memory; checksums are left
// open. No limit is asserted on time: the figures are printed.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bare_user.hpp"
#include "tcp/tcp.hpp"

namespace {

using namespace rnic;

constexpr uint16_t kFirstPort = 4000;
constexpr uint16_t kPorts = 16;  // of the server: each has ephemeral ports of its own

IpAddress address_of(uint32_t side) { return IpAddress::v4(0x0a000001 + side); }

base::Now clock_now() {
  return base::Now(std::chrono::duration_cast<base::Duration>(
      std::chrono::steady_clock::now().time_since_epoch()));
}

uint64_t resident_octets() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// A ring of segments towards the other stack.
class Wire final : public tcp::Egress {
 public:
  static constexpr uint32_t kSlots = 4096;
  static constexpr uint32_t kOctets = 1500;

  Wire() : octets_(size_t{kSlots} * kOctets), lengths_(kSlots) {}
  bool begin(const IpAddress&, const IpAddress&, tcp::TxSlot& slot, base::Now) override {
    if (end_ - first_ == kSlots) return false;
    slot = {.tcp = at(end_), .room = kOctets - 20, .checksum_open = true};
    return true;
  }
  void send(tcp::TxSlot&, uint32_t length, base::Now) override {
    lengths_[end_++ % kSlots] = length;
  }
  void cancel(tcp::TxSlot&) override {}
  [[nodiscard]] uint32_t path_mtu(IpAddress, base::Now) const override { return 1500; }
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return 1500; }
  void reduce_path_mtu(IpAddress, uint32_t, base::Now) override {}

  /// Hands what waits to `to`. \return segments
  uint64_t deliver(uint32_t from, tcp::Stack& to, base::Now now) {
    const uint64_t n = end_ - first_;
    for (uint64_t i = 0; i < n; ++i, ++first_) {
      to.input({.source = address_of(from),
                .destination = address_of(1 - from),
                .tcp = {at(first_), lengths_[first_ % kSlots]},
                .checksum_verified = true},
               now);
    }
    return n;
  }

 private:
  uint8_t* at(uint64_t i) { return &octets_[(i % kSlots) * kOctets]; }

  std::vector<uint8_t> octets_;
  std::vector<uint32_t> lengths_;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
};

/// One end of one connection of the second part: closes as soon as it can.
class Visitor final : public perf::BareUser {
 public:
  void established(uint32_t emss, base::Now now) override {
    BareUser::established(emss, now);
    if (closes_first) stream->close();
  }
  void peer_finished(base::Now) override { stream->close(); }

  llp::Stream* stream = nullptr;
  bool closes_first = false;
};

struct Server final : llp::Acceptor {
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                          base::Now) override {
    if (idle != nullptr) return idle;
    visitors.push_back(std::make_unique<Visitor>());
    visitors.back()->stream = &stream;
    return visitors.back().get();
  }
  perf::BareUser* idle = nullptr;  // everybody's user in the first part
  std::deque<std::unique_ptr<Visitor>> visitors;
};

class World {
 public:
  explicit World(const tcp::Config& config)
      : client(config, to_server, {1, 2}, 3, clock_now()),
        server(config, to_client, {4, 5}, 6, clock_now()) {
    for (uint16_t i = 0; i < kPorts; ++i) {
      if (!server.listen({address_of(1), static_cast<uint16_t>(kFirstPort + i)}, acceptor)) {
        std::abort();
      }
    }
  }
  uint64_t turn() {
    const base::Now now = clock_now();
    const uint64_t n = to_server.deliver(0, server, now) + to_client.deliver(1, client, now);
    client.on_timers(now);
    server.on_timers(now);
    client.output(now);
    server.output(now);
    return n;
  }
  llp::Stream* connect(llp::StreamUser& user, uint64_t number) {
    const Endpoint remote{address_of(1), static_cast<uint16_t>(kFirstPort + number % kPorts)};
    const auto stream = client.connect({address_of(0), 0}, remote, user, clock_now());
    return stream ? *stream : nullptr;
  }

  Wire to_server;
  Wire to_client;
  Server acceptor;
  tcp::Stack client;
  tcp::Stack server;
};

bool hold(uint32_t connections) {
  tcp::Config config;
  config.max_connections = connections;
  config.max_half_open = config.max_half_open_per_listener = 1024;
  const uint64_t before = resident_octets();
  perf::BareUser users[2];
  auto world = std::make_unique<World>(config);
  world->acceptor.idle = &users[1];
  std::vector<llp::Stream*> streams;
  const base::Now start = clock_now();
  for (uint32_t i = 0; i < connections; ++i) {
    llp::Stream* stream = world->connect(users[0], i);
    if (stream == nullptr) return std::printf("connect %u was refused\n", i), false;
    streams.push_back(stream);
    if (i % 256 == 255) {
      while (world->turn() != 0) {
      }
    }
  }
  while (users[1].established_count < connections) world->turn();
  const double seconds = static_cast<double>((clock_now() - start).count()) * 1e-9;
  const uint64_t resident = resident_octets() - before;
  std::printf(
      "%u idle connections opened in %.2f s; resident memory per end of a connection: "
      "%llu octets\n",
      connections, seconds, static_cast<unsigned long long>(resident / (2ull * connections)));
  std::printf("live: %u and %u\n", world->client.live_connections(),
              world->server.live_connections());
  for (size_t i = 0; i < streams.size(); ++i) {
    streams[i]->abort();
    if (i % 32 == 31) world->turn();  // a stack keeps few RSTs at a time
  }
  while (users[1].ended_count < connections) world->turn();
  while (world->turn() != 0) {
  }
  const bool returned = world->client.quiescent() && world->server.quiescent() &&
                        world->client.live_connections() == 0 &&
                        world->server.live_connections() == 0;
  std::printf("all reset: %s\n", returned ? "everything returned" : "SOMETHING IS LEFT");
  return returned;
}

bool churn(double seconds, uint32_t at_once) {
  tcp::Config config;
  config.max_connections = 4 * at_once;
  config.max_half_open = config.max_half_open_per_listener = 4 * at_once;
  config.max_time_wait = 65'536;
  World world(config);
  std::deque<std::unique_ptr<Visitor>> visitors;
  uint64_t opened = 0;
  uint64_t closed = 0;
  uint64_t refused = 0;
  bool clean = true;
  const base::Now start = clock_now();
  const base::Now end = start + base::Duration(static_cast<int64_t>(seconds * 1e9));
  const auto drop_ended = [&](auto& list, bool count) {
    while (!list.empty() && list.front()->ended_count != 0) {
      clean = clean && list.front()->closed_count == 1;
      if (count) ++closed;
      list.pop_front();
    }
  };
  for (bool open = true; open || !visitors.empty() || !world.acceptor.visitors.empty();) {
    open = clock_now() < end;
    while (open && visitors.size() < at_once) {
      auto visitor = std::make_unique<Visitor>();
      visitor->closes_first = true;
      visitor->stream = world.connect(*visitor, opened);
      if (visitor->stream == nullptr) {
        ++refused;
        break;
      }
      ++opened;
      visitors.push_back(std::move(visitor));
    }
    world.turn();
    drop_ended(visitors, true);
    drop_ended(world.acceptor.visitors, false);
  }
  const double took = static_cast<double>((clock_now() - start).count()) * 1e-9;
  const uint32_t waiting = world.client.live_connections();
  const base::Now limit = clock_now() + std::chrono::seconds(10);
  while (world.client.live_connections() + world.server.live_connections() != 0 &&
         clock_now() < limit) {
    world.turn();
  }
  const bool returned = world.client.quiescent() && world.server.quiescent() &&
                        world.client.live_connections() == 0 &&
                        world.server.live_connections() == 0;
  std::printf("%llu connections opened and closed in %.2f s, %u at once: %.0f a second\n",
              static_cast<unsigned long long>(closed), took, at_once,
              static_cast<double>(closed) / took);
  std::printf(
      "ended clean: %s; connects refused (no port, no room): %llu; in TIME-WAIT at the end: "
      "%u, then %s\n",
      clean ? "all" : "NOT ALL", static_cast<unsigned long long>(refused), waiting,
      returned ? "everything returned" : "SOMETHING IS LEFT");
  return clean && returned && opened == closed;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto number = [&](int i, double otherwise) {
    return argc > i ? std::atof(argv[i]) : otherwise;
  };
  const bool held = hold(static_cast<uint32_t>(number(1, 100'000)));
  const bool turned = churn(number(2, 5), static_cast<uint32_t>(number(3, 64)));
  return held && turned ? 0 : 1;
}
