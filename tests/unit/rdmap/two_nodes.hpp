/// \file
/// Two endpoints joined by a FramingPair, each with registered memory between guards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rdmap/rdmap.hpp"
#include "rdmap/requests.hpp"
#include "support/framing_pair.hpp"
#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

class RecordingOwner final : public EndpointOwner {
 public:
  void send_completed(const Completion& completion) override {
    if (completion.status != CompletionStatus::Success) {
      EXPECT_EQ(completion.length, 0u) << "nothing is said to have gone of work that failed";
      EXPECT_EQ(completion.original, 0u);
    }
    sends.push_back(completion);
    if (on_send) on_send();
  }
  void receive_completed(const Completion& completion) override {
    receives.push_back(completion);
    if (on_receive) on_receive();
  }
  void last_receive_done() override { ++last_receives; }
  void rtr_sent(base::Now) override { ++rtrs; }
  void event(Event event, base::Now) override { events.push_back(std::move(event)); }
  /// What the event of that number tells, which has a fault.
  [[nodiscard]] const Fault& fault(size_t number) const { return *event::fault(events.at(number)); }
  [[nodiscard]] const event::Disconnected& disconnected(size_t number) const {
    return std::get<event::Disconnected>(events.at(number));
  }

  [[nodiscard]] std::vector<uint64_t> send_ids() const {
    std::vector<uint64_t> ids;
    for (const Completion& c : sends) ids.push_back(c.id);
    return ids;
  }

  std::vector<Completion> sends;
  std::vector<Completion> receives;
  std::vector<Event> events;
  int rtrs = 0;
  int last_receives = 0;
  std::function<void()> on_send;
  std::function<void()> on_receive;
};

/// One side: 8 KB of memory, of which [1024, 7168) is the region with all rights.
struct Node {
  static constexpr uint64_t kFirst = 1024;
  static constexpr uint64_t kSize = 6144;
  static constexpr uint8_t kGuard = 0x5a;

  Node(const EndpointConfig& config, uint64_t seed, uint32_t send_depth = 128,
       uint32_t receive_depth = 128, SharedReceiveQueue* shared = nullptr, bool lasting = true)
      : pd(config.pd),
        stream(config.stream),
        table(mem::TableLimits{.stags = 64, .lasting = lasting}, {seed, 2}),
        sends(send_depth),
        receives(make_receives(config.qp, receive_depth, shared)),
        endpoint(config, table, counters, owner, {sends, receives, requests}) {
    memory.fill(kGuard);
    all = add(Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead |
              Access::RemoteInvalidate | Access::RemoteAtomic);
  }
  static ReceiveQueue make_receives(uint32_t qp, uint32_t depth, SharedReceiveQueue* shared) {
    if (shared == nullptr) return ReceiveQueue(depth);
    return {*shared, qp, depth};
  }
  uint32_t add(AccessSet rights, uint64_t length = kSize) {
    return table
        .add({.address = memory.data() + kFirst,
              .length = length,
              .pd = pd,
              .rights = rights,
              .offset = 0,
              .stream = stream_for(rights)})
        .value()
        .value;
  }
  /// What a peer may invalidate is for this stream alone.
  [[nodiscard]] std::optional<uint64_t> stream_for(AccessSet rights) const {
    if (!rights.contains(Access::RemoteInvalidate)) return std::nullopt;
    return stream;
  }
  uint8_t* at(uint64_t to) { return memory.data() + kFirst + to; }
  void fill(uint64_t to, uint32_t n, uint8_t seed) {
    for (uint32_t i = 0; i < n; ++i) at(to)[i] = static_cast<uint8_t>(seed + i * 7);
  }
  /// Only with room in the queue.
  void send(const SendRequest& request) {
    RNIC_CHECK(sends.has_room());
    sends.post(request, work_row(request.opcode));
    endpoint.serve();
  }
  void receive(const ReceiveRequest& request) {
    RNIC_CHECK(receives.has_room());
    receives.post(request);
    endpoint.serve();
  }
  void post_receive(uint64_t id, uint64_t to, uint32_t n) {
    ReceiveRequest work{.id = id};
    work.sges = {{to, n, all}};
    receive(work);
  }
  SendRequest work(uint64_t id, Opcode opcode, uint64_t to, uint32_t n) const {
    SendRequest w{.id = id, .opcode = opcode};
    if (n != 0) w.sges = {{to, n, all}};
    return w;
  }
  /// The 64-bit number at `to`, in host order.
  [[nodiscard]] uint64_t word(uint64_t to) const {
    uint64_t value = 0;
    std::memcpy(&value, memory.data() + kFirst + to, sizeof value);
    return value;
  }
  void set_word(uint64_t to, uint64_t value) { std::memcpy(at(to), &value, sizeof value); }
  /// Guards in front of and behind the region are whole.
  [[nodiscard]] bool guarded() const {
    const auto whole = [](uint8_t o) { return o == kGuard; };
    return std::all_of(memory.begin(), memory.begin() + kFirst, whole) &&
           std::all_of(memory.begin() + kFirst + kSize, memory.end(), whole);
  }

  uint32_t pd;
  uint64_t stream;
  alignas(64) std::array<uint8_t, 8192> memory;
  mem::StagTable table;
  Counters counters;
  RecordingOwner owner;
  SendQueue sends;
  ReceiveQueue receives;
  RequestStore requests;
  Endpoint endpoint;
  uint32_t all = 0;
};

class TwoNodes : public ::testing::Test {
 protected:
  static constexpr uint32_t kMulpdu = 256;

  struct Depths {
    uint32_t send = 128;
    uint32_t receive = 128;
  };

  void start(EndpointConfig config = {.qp = 9, .pd = 4}) { start(config, {}); }
  void start(EndpointConfig config, Depths depths) {
    a = std::make_unique<Node>(config, 1, depths.send, depths.receive);
    b = std::make_unique<Node>(config, 2, depths.send, depths.receive);
    pair.a.attach(a->endpoint.framing_user());
    pair.b.attach(b->endpoint.framing_user());
    a->endpoint.bind(pair.a);
    b->endpoint.bind(pair.b);
  }
  void SetUp() override { start(); }
  void TearDown() override {
    EXPECT_TRUE(a->guarded());
    EXPECT_TRUE(b->guarded());
  }

  void send(uint64_t id, uint64_t to, uint32_t n) { a->send(a->work(id, Opcode::Send, to, n)); }
  void write(uint64_t id, uint64_t from, uint32_t n, uint64_t to) {
    SendRequest w = a->work(id, Opcode::Write, from, n);
    w.remote = {b->all, to};
    a->send(w);
  }
  void read(uint64_t id, uint64_t sink, uint32_t n, uint64_t source, bool fence = false) {
    SendRequest w = a->work(id, Opcode::Read, sink, n);
    w.remote = {b->all, source};
    w.fence = fence;
    a->send(w);
  }
  void fetch_add(uint64_t id, uint64_t to, uint64_t data, uint64_t mask = 0) {
    SendRequest w = a->work(id, Opcode::FetchAdd, 0, 0);
    w.remote = {b->all, to};
    w.atomic = {.data = data, .mask = mask};
    a->send(w);
  }
  void compare_swap(uint64_t id, uint64_t to, const AtomicOperands& operands) {
    SendRequest w = a->work(id, Opcode::CompareSwap, 0, 0);
    w.remote = {b->all, to};
    w.atomic = operands;
    a->send(w);
  }
  void immediate(uint64_t id, const std::array<uint8_t, 8>& octets, bool solicited = false) {
    SendRequest w = a->work(id, Opcode::Immediate, 0, 0);
    w.immediate = octets;
    w.solicited = solicited;
    a->send(w);
  }
  /// New framings and endpoints.
  void restart(EndpointConfig config = {.qp = 9, .pd = 4}) { restart(config, {}); }
  void restart(EndpointConfig config, Depths depths) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start(config, depths);
  }
  /// The ULPDU goes to b as if a had sent it.
  void inject(std::vector<uint8_t> ulpdu) {
    pair.a.sent.push_back({std::move(ulpdu), {}, true});
    pair.b.arrive_rest(pair.a);
  }
  static std::vector<uint8_t> ulpdu(const wire::DdpTaggedHeader& header, size_t payload) {
    std::vector<uint8_t> octets(14 + payload, 0xee);
    wire::write_ddp(octets.data(), header);
    return octets;
  }
  static std::vector<uint8_t> ulpdu(const wire::DdpUntaggedHeader& header, size_t payload) {
    std::vector<uint8_t> octets(18 + payload, 0xee);
    wire::write_ddp(octets.data(), header);
    return octets;
  }
  static std::vector<uint8_t> read_request(uint32_t msn, const wire::RdmapReadRequest& request) {
    auto octets =
        ulpdu(wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x41, .qn = 1, .msn = msn}, 28);
    wire::write_rdmap(octets.data() + 18, request);
    return octets;
  }
  static std::vector<uint8_t> atomic_request(uint32_t msn,
                                             const wire::RdmapAtomicRequest& request) {
    auto octets =
        ulpdu(wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x4a, .qn = 1, .msn = msn}, 52);
    wire::write_rdmap(octets.data() + 18, request);
    return octets;
  }
  static std::vector<uint8_t> atomic_response(uint32_t msn,
                                              const wire::RdmapAtomicResponse& response) {
    auto octets =
        ulpdu(wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x4b, .qn = 3, .msn = msn}, 12);
    wire::write_rdmap(octets.data() + 18, response);
    return octets;
  }
  static uint8_t opcode(const test::SentUlpdu& sent) { return sent.octets[1] & 0x0f; }
  /// What b sends as its Terminate, decoded; fails the test when it is not the last it sends.
  wire::Terminate terminate_of_b() {
    pair.b.pull_all();
    EXPECT_FALSE(pair.b.sent.empty());
    if (pair.b.sent.empty()) return {};
    const auto& octets = pair.b.sent.back().octets;
    const auto header = wire::parse_ddp_untagged(octets);
    EXPECT_EQ(header, (wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}));
    const auto t =
        wire::parse_terminate(base::ByteView(octets).subspan(18), wire::TerminateBitOrder::Rfc);
    EXPECT_TRUE(t && t->exact);
    EXPECT_TRUE(pair.b.discarding);
    EXPECT_EQ(pair.b.close_calls, 1u);
    EXPECT_EQ(b->endpoint.state(), EndpointState::Error);
    return t.value_or(wire::Terminate{});
  }
  void expect_terminate(uint8_t layer, uint8_t type, uint8_t code) {
    const auto t = terminate_of_b();
    EXPECT_EQ(t.layer, layer);
    EXPECT_EQ(t.type, type);
    EXPECT_EQ(t.code, code);
    ASSERT_EQ(b->owner.events.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<event::TerminateSent>(b->owner.events[0]));
    EXPECT_FALSE(event::common(b->owner.events[0]).detail.empty());
  }

  test::FramingPair pair{kMulpdu};
  std::unique_ptr<Node> a;
  std::unique_ptr<Node> b;
};

}  // namespace rnic::rdmap
