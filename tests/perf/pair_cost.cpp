// What a message costs in instructions, from the work request to its completion, both ends taken
// together. ./scripts/bench instructions runs it under callgrind, which counts inside
// measured_turn(), poll_initiator() or poll_target() only. The way to the steady state goes through
// none of them:
//
//   pair_cost SCENARIO MESSAGES
//
// Two devices on a simulated link, in virtual time, so that every run takes the same way. CRC is
// on; the receiver's memory is compared with the sender's at the end. Scenarios:
//
//   write-1m       Writes of 1 MiB, 16 outstanding, MTU 1500
//   write-1m-9000  the same, MTU 9000
//   write-markers  the same, MTU 1500, with markers both ways
//   write-markers-9000  the same, MTU 9000
//   read-1m        Reads of 1 MiB, which the target of the others asks for, MTU 1500
//   send-1m        Sends of 1 MiB, MTU 1500
//   write-16k      Writes of 16 KiB on one queue pair, 16 outstanding, MTU 1500
//   write-16k-100  the same on each of 100 queue pairs
//   write-16k-1000  the same on each of 1,000 queue pairs, 4 outstanding
//   write-64       Writes of 64 octets, 64 outstanding, posted by the list and polled for
//   ping-pong      Sends of 64 octets to and fro, one at a time
//   idle           turns of both ends in which nothing happens; a "message" is a turn

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "counted.hpp"
#include "device/device.hpp"
#include "sim/sim.hpp"
#include "verbs/streams.hpp"

namespace {

using namespace rnic;

constexpr uint16_t kPort = 7471;
constexpr base::Duration kStep = std::chrono::microseconds(2);  // of virtual time, a turn
constexpr uint32_t kManySlots = 64;  // places in the memory that many queue pairs write to
constexpr uint32_t kWarmUp = 8;              // rounds of `depth` messages,
constexpr uint32_t kWarmUpOctets = 32 << 20;  // but no more octets
constexpr uint32_t kTurnsMax = 1'000'000;  // without a message that ends: something hangs

struct Scenario {
  std::string_view name;
  uint32_t size;   // octets of a message
  uint32_t depth;  // messages outstanding
  uint32_t mtu = 1500;
  bool markers = false;
  bool ping_pong = false;
  bool idle = false;  // once in the steady state
  Opcode opcode = Opcode::Write;
  bool lists = false;  // requests are made once, and posted by the list
  uint32_t qps = 0;  // with their messages posted by the list; 0: one, its messages one by one
  [[nodiscard]] uint32_t queue_pairs() const { return std::max(qps, 1u); }
  [[nodiscard]] uint32_t messages() const { return queue_pairs() * depth; }
};
constexpr std::array kScenarios{
    Scenario{"write-1m", 1u << 20, 16},
    Scenario{"write-1m-9000", 1u << 20, 16, 9000},
    Scenario{"write-markers", 1u << 20, 16, 1500, true},
    Scenario{"write-markers-9000", 1u << 20, 16, 9000, true},
    Scenario{"read-1m", 1u << 20, 16, 1500, false, false, false, Opcode::Read},
    Scenario{"send-1m", 1u << 20, 16, 1500, false, false, false, Opcode::Send},
    Scenario{"write-16k", 16u << 10, 16, 1500, false, false, false, Opcode::Write, false, 1},
    Scenario{"write-16k-100", 16u << 10, 16, 1500, false, false, false, Opcode::Write, false, 100},
    Scenario{"write-16k-1000", 16u << 10, 4, 1500, false, false, false, Opcode::Write, false,
             1000},
    Scenario{"write-64", 64, 64, 1500, false, false, false, Opcode::Write, true},
    Scenario{"ping-pong", 64, 1, 1500, false, true},
    Scenario{"idle", 64, 1, 1500, false, true, true},
};

/// Ends the program: what cannot be measured has no figure.
[[noreturn]] void fail(const char* what, int status = 1) {
  std::fprintf(stderr, "pair_cost: %s\n", what);
  std::exit(status);
}

template <typename T>
auto must(T&& result, const char* what) -> decltype(*std::forward<T>(result)) {
  if (!result) fail(what);
  return *std::forward<T>(result);
}

/// A device and what its application has: queue pairs, one region.
struct Host {
  Host(const device::DeviceConfig& config, port::Port& port, const Scenario& scenario,
       base::Now now)
      : device(config, port, now), memory(scenario.size * (scenario.qps != 0 ? kManySlots : 1)) {
    const uint32_t pd = must(device.alloc_pd(), "no protection domain");
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = pd;
    spec.send_cq = send_cq = must(device.create_cq(2 * scenario.messages()), "no completion queue");
    spec.receive_cq = receive_cq =
        must(device.create_cq(2 * scenario.messages()), "no completion queue");
    spec.send_depth = spec.receive_depth = scenario.depth;
    for (uint32_t i = 0; i < scenario.queue_pairs(); ++i) {
      qps.push_back(must(device.create_qp(spec), "no queue pair"));
    }
    qp = qps.front();
    mem::RegionSpec region;
    region.address = memory.data();
    region.length = memory.size();
    region.pd = pd;
    region.rights = AccessSet::all().without(Access::RemoteInvalidate);
    stag = must(device.register_memory(region), "no region");
  }

  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(memory.data()); }
  [[nodiscard]] Sge sge() const {
    return {address(), static_cast<uint32_t>(memory.size()), stag.value};
  }
  void post(const SendRequest& request) {
    if (qp->post_send(request) != device::PostResult::Ok) fail("a post was refused");
  }
  void post_receive() {
    ReceiveRequest request;
    request.sges = {sge()};
    if (qp->post_receive(request) != device::PostResult::Ok) {
      fail("a receive was refused");
    }
  }
  /// \return completions taken
  static uint32_t reap(device::CompletionQueue& cq) {
    static std::array<Completion, 32> batch;  // made once, as an application does
    const uint32_t got = cq.poll(batch);
    for (uint32_t i = 0; i < got; ++i) {
      if (batch[i].status != CompletionStatus::Success) fail("a completion tells of an error");
    }
    return got;
  }

  device::Device device;
  std::vector<uint8_t> memory;
  device::CompletionQueue* send_cq = nullptr;
  device::CompletionQueue* receive_cq = nullptr;
  std::vector<device::QueuePair*> qps;
  device::QueuePair* qp = nullptr;  // the first
  mem::Stag stag;
};

struct World {
  explicit World(const Scenario& what)
      : scenario(what),
        link(link_config(what)),
        left(config(0), link.a(), what, now),
        right(config(1), link.b(), what, now) {
    for (size_t i = 0; i < left.memory.size(); ++i) {
      left.memory[i] = static_cast<uint8_t>(i * 7 + i / 251);
    }
  }

  static sim::LinkConfig link_config(const Scenario& scenario) {
    sim::LinkConfig config;
    config.mtu = scenario.mtu;
    config.checksum = port::ChecksumMode::Trusted;  // what is counted is not the software's sum
    return config;
  }
  [[nodiscard]] device::DeviceConfig config(uint32_t side) const {
    device::DeviceConfig made;
    made.net.mtu = scenario.mtu;
    made.net.address = IpAddress::v4(0x0a000001u + side);
    made.seed = side + 1;
    made.mpa.markers_receive = scenario.markers;
    made.limits.max_connections = made.tcp.max_connections = std::max(16u, scenario.qps);
    made.limits.max_qps = std::max(made.limits.max_qps, scenario.qps);
    return made;
  }

  void turn();
  template <typename Kind>
  Kind await(Host& host) {
    for (uint32_t i = 0; i < kTurnsMax; ++i) {
      if (auto event = host.device.poll_event()) {
        if (auto* found = std::get_if<Kind>(&*event)) return std::move(*found);
        fail("another event than awaited");
      }
      turn();
    }
    fail("an event did not come");
  }
  void connect() {
    const Endpoint far{IpAddress::v4(0x0a000002u), kPort};
    if (!right.device.listen(kPort)) fail("cannot listen");
    for (uint32_t i = 0; i < scenario.queue_pairs(); ++i) {
      if (!left.device.connect(*left.qps[i], far, {}, now)) fail("cannot connect");
      const auto request = await<event::ConnectRequest>(right);
      if (!right.device.accept(request.request, *right.qps[i], {}, now)) fail("cannot accept");
      await<event::Established>(left);
      await<event::Established>(right);
    }
  }

  Scenario scenario;
  base::Now now = base::from_nanos(1'000'000);
  sim::Link link;
  Host left;
  Host right;
  bool measured = false;
  uint64_t posted = 0;
  uint64_t to_post = 0;
  uint64_t done = 0;
  std::vector<SendRequest> list;  // of as many as may be outstanding, made by the first turn
};

}  // namespace

// What callgrind tells apart: the two ends' shares of a turn.
extern "C" {
RNIC_COUNTED void poll_initiator(World* world) { world->left.device.poll(world->now); }
RNIC_COUNTED void poll_target(World* world) { world->right.device.poll(world->now); }
}

namespace {

void World::turn() {
  now += kStep;
  if (measured) {
    poll_initiator(this);
    poll_target(this);
  } else {
    left.device.poll(now);
    right.device.poll(now);
  }
}

SendRequest write_request(const World& world) {
  SendRequest request;
  request.opcode = Opcode::Write;
  request.sges = {world.left.sge()};
  request.remote = {world.right.stag.value, world.right.address()};
  return request;
}

/// Octets go from the left to the right, whoever asks for that. The right sends nothing before it
/// has had an FPDU (RFC 5044 s.7.1.2, rule 4), so the first message is always a Write.
void post_message(World& world) {
  const bool read = world.scenario.opcode == Opcode::Read && world.posted != 0;
  Host& from = read ? world.right : world.left;
  const Host& to = read ? world.left : world.right;
  SendRequest request;
  request.id = world.posted;
  request.opcode = read ? Opcode::Read : Opcode::Write;
  request.sges = {from.sge()};
  request.remote = {to.stag.value, to.address()};
  from.post(request);
}

/// Posts as many messages as may be outstanding.
void post_list(World& world) {
  const Scenario& scenario = world.scenario;
  if (world.list.empty()) world.list.assign(scenario.depth, write_request(world));
  const uint64_t room = scenario.depth - (world.posted - world.done);
  const auto count = std::min(room, world.to_post - world.posted);
  if (count == 0) return;
  for (uint64_t i = 0; i < count; ++i) world.list[i].id = world.posted + i;
  const auto posted = world.left.qp->post_sends({world.list.data(), count});
  if (posted.taken != count) fail("a post was refused");
  world.posted += count;
}

void post_send(Host& from, uint64_t id) {
  SendRequest request;
  request.id = id;
  request.sges = {from.sge()};
  from.post(request);
}

void turn_of_one_way(World& world) {
  if (world.scenario.lists) post_list(world);
  for (; world.posted < world.to_post && world.posted - world.done < world.scenario.depth;
       ++world.posted) {
    if (world.scenario.opcode == Opcode::Send) {
      world.right.post_receive();
      post_send(world.left, world.posted);
    } else {
      post_message(world);
    }
  }
  world.turn();
  world.done += Host::reap(*world.left.send_cq) + Host::reap(*world.right.send_cq);
  Host::reap(*world.right.receive_cq);
}

/// A message of one of many queue pairs, each of which uses the places of the memory in turn.
SendRequest message_of(World& world, uint32_t lane) {
  const uint64_t offset = (world.posted++ % kManySlots) * world.scenario.size;
  SendRequest request;
  request.id = lane;
  request.opcode = Opcode::Write;
  request.sges = {{world.left.address() + offset, world.scenario.size, world.left.stag.value}};
  request.remote = {world.right.stag.value, world.right.address() + offset};
  return request;
}

void post_of_many(World& world, uint32_t lane, uint32_t count) {
  static std::vector<SendRequest> list;  // made once, as an application does
  list.clear();
  for (uint32_t i = 0; i < count && world.posted < world.to_post; ++i) {
    list.push_back(message_of(world, lane));
  }
  if (world.left.qps[lane]->post_sends(list).taken != list.size()) fail("a post was refused");
}

/// Each queue pair gets as many messages as have completed.
void turn_of_many(World& world) {
  static std::array<Completion, 64> batch;
  const auto count = static_cast<uint32_t>(world.left.qps.size());
  if (world.posted == world.done) {
    for (uint32_t lane = 0; lane < count; ++lane) post_of_many(world, lane, world.scenario.depth);
  }
  world.turn();
  const uint32_t got = world.left.send_cq->poll(batch);
  for (uint32_t i = 0, end = 0; i < got; i = end) {
    for (; end < got && batch[end].id == batch[i].id; ++end) {
      if (batch[end].status != CompletionStatus::Success) fail("a completion tells of an error");
    }
    world.done += end - i;
    post_of_many(world, static_cast<uint32_t>(batch[i].id), end - i);
  }
}

/// A message is one there and one back.
void turn_of_ping_pong(World& world) {
  if (world.posted < world.to_post && world.posted == world.done) {
    world.right.post_receive();
    world.left.post_receive();
    post_send(world.left, world.posted++);
  }
  world.turn();
  if (Host::reap(*world.right.receive_cq) != 0) post_send(world.right, world.posted);
  Host::reap(*world.left.send_cq);
  Host::reap(*world.right.send_cq);
  world.done += Host::reap(*world.left.receive_cq);
}

void any_turn(World& world) {
  if (world.scenario.idle && world.measured) {
    world.turn();
    ++world.done;
  } else if (world.scenario.ping_pong) {
    turn_of_ping_pong(world);
  } else if (world.scenario.qps != 0) {
    turn_of_many(world);
  } else {
    turn_of_one_way(world);
  }
}

}  // namespace

extern "C" {
RNIC_COUNTED void measured_turn(World* world) { any_turn(*world); }
}

namespace {

void carry_out(World& world, uint64_t messages) {
  world.to_post += messages;
  uint64_t last = world.done;
  for (uint32_t idle = 0; world.done < world.to_post; ++idle) {
    if (world.measured) {
      measured_turn(&world);
    } else {
      any_turn(world);
    }
    if (world.done != last) idle = 0;
    if (idle == kTurnsMax) fail("messages do not end");
    last = world.done;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const Scenario* scenario = nullptr;
  for (const Scenario& row : kScenarios) {
    if (row.name == name) scenario = &row;
  }
  if (scenario == nullptr || argc != 3) fail("usage: pair_cost SCENARIO MESSAGES", 2);
  const auto world = std::make_unique<World>(*scenario);
  world->connect();
  carry_out(*world, std::min(kWarmUp * scenario->messages(),
                             std::max(kWarmUpOctets / scenario->size, scenario->messages())));
  world->measured = true;
  const auto before = world->left.device.tcp_counters();
  carry_out(*world, std::strtoull(argv[2], nullptr, 10));
  const auto& after = world->left.device.tcp_counters();
  if (world->left.memory != world->right.memory) fail("the memories differ");
  if (after.retransmitted_segments != 0 || after.timeouts != 0) fail("segments were lost");
  std::printf("segments %llu\n",
              static_cast<unsigned long long>(after.data_segments_out - before.data_segments_out));
  return 0;
}
