// Consumers: what each may have of a device, and that what belongs to two of them never meets.

#include "device_pair.hpp"
#include "support/live_memory.hpp"

namespace rnic::device {
namespace {

class ConsumersTest : public DevicePair {
 protected:
  ConsumersTest() = default;
  explicit ConsumersTest(const Tweak& tweak) : DevicePair(tweak) {}

  Device& device() { return *right().device; }
  Consumers& consumers() { return device().consumers(); }
  uint32_t make(const ResourceCounts& quotas, const std::string& name = "one") {
    return *consumers().create({.name = name, .quotas = quotas});
  }
  ResourceCounts used(uint32_t consumer) { return consumers().info(consumer)->used; }

  mem::RegionSpec region(uint32_t pd, uint64_t length) {
    return {.address = memory_.data(), .length = length, .pd = pd, .rights = Access::RemoteWrite};
  }
  static QueuePairSpec queues(uint32_t pd, CompletionQueue* cq, uint32_t ird = 2,
                              uint32_t ord = 3) {
    QueuePairSpec spec;
    spec.pd = pd;
    spec.send_cq = spec.receive_cq = cq;
    spec.send_depth = spec.receive_depth = 8;
    spec.ird = ird;
    spec.ord = ord;
    return spec;
  }
  /// What a consumer has to have for a connection.
  struct Party {
    uint32_t consumer;
    uint32_t pd;
    CompletionQueue* cq;
    QueuePair* qp;
  };
  Party party(const std::string& name, const ResourceCounts& quotas = {}) {
    const uint32_t consumer = make(quotas, name);
    const uint32_t pd = *device().alloc_pd(consumer);
    CompletionQueue* const cq = *device().create_cq(64, {}, consumer);
    return {consumer, pd, cq, *device().create_qp(queues(pd, cq))};
  }

  template <typename T>
  void expect_error(const T& result, ErrorCode code, const std::string& word) {
    ASSERT_FALSE(result.has_value()) << word;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(word), std::string::npos) << result.error().message;
    device().validate();
  }
  template <typename T>
  void expect_beyond(const T& result, const std::string& key) {
    expect_error(result, ErrorCode::ResourceExhausted, key);
  }
  void expect_nothing_used(uint32_t consumer) {
    EXPECT_EQ(used(consumer), ResourceCounts{});
    EXPECT_TRUE(consumers().destroy(consumer).has_value());
    device().validate();
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4096);
};

TEST_F(ConsumersTest, DomainsAndRegionsEndAtTheirQuota_DDP_8_3_2_03) {
  const uint32_t one = make({.pds = 2, .regions = 3, .registered_octets = 1000});
  const uint32_t pd = *device().alloc_pd(one);
  const uint32_t other = *device().alloc_pd(one);
  expect_beyond(device().alloc_pd(one), "quotas.pds");
  EXPECT_TRUE(device().free_pd(other).has_value());

  const mem::Stag first = *device().register_memory(region(pd, 600));
  expect_beyond(device().register_memory(region(pd, 401)), "quotas.registered_octets");
  const mem::Stag second = *device().register_memory(region(pd, 400));
  expect_beyond(device().reregister_memory(second, region(pd, 401)), "quotas.registered_octets");
  const mem::Stag smaller = *device().reregister_memory(second, region(pd, 300));
  EXPECT_EQ(used(one).registered_octets, 900u);
  const mem::Stag window = *device().allocate_window(pd, WindowType::Domain);
  expect_beyond(device().allocate_window(pd, WindowType::QueuePair), "quotas.regions");
  expect_beyond(device().allocate_region(pd, 4), "quotas.regions");
  expect_beyond(device().register_memory(region(pd, 0)), "quotas.regions");
  device().free_window(window);
  const mem::Stag allocated = *device().allocate_region(pd, 4);
  EXPECT_EQ(used(one),
            (ResourceCounts{.pds = 1, .regions = 3, .registered_octets = 900, .pieces = 4}));
  for (const mem::Stag stag : {first, smaller, allocated}) {
    EXPECT_TRUE(device().deregister_memory(stag).has_value());
  }
  EXPECT_TRUE(device().free_pd(pd).has_value());
  EXPECT_EQ(consumers().info(one)->refused, 6u);
  expect_nothing_used(one);
}

TEST_F(ConsumersTest, QueuesEndAtTheirQuota_DDP_8_3_2_03) {
  const uint32_t one = make({.cqs = 2, .cq_entries = 96, .srqs = 1, .qps = 2, .reads = 12});
  const uint32_t pd = *device().alloc_pd(one);
  CompletionQueue* const cq = *device().create_cq(64, {}, one);
  expect_beyond(device().create_cq(33, {}, one), "quotas.cq_entries");
  CompletionQueue* const second = *device().create_cq(32, {}, one);
  expect_beyond(device().create_cq(1, {}, one), "quotas.cqs");
  expect_beyond(device().resize_cq(*second, 64), "quotas.cq_entries");
  EXPECT_TRUE(device().resize_cq(*cq, 16).has_value());
  EXPECT_TRUE(device().resize_cq(*second, 64).has_value());
  EXPECT_EQ(used(one).cq_entries, 80u);
  const SharedReceiveSpec receives{.pd = pd, .depth = 8};
  SharedReceiveQueue* const srq = *device().create_srq(receives);
  expect_beyond(device().create_srq(receives), "quotas.srqs");
  QueuePair* const qp = *device().create_qp(queues(pd, cq, 2, 3));
  expect_beyond(device().create_qp(queues(pd, cq, 4, 4)), "quotas.reads");
  QueuePair* const last = *device().create_qp(queues(pd, second, 3, 4));
  expect_beyond(device().create_qp(queues(pd, cq, 0, 0)), "quotas.qps");
  expect_beyond(device().modify_qp(*qp, {.ird = 3}, now_), "quotas.reads");
  EXPECT_EQ(qp->attributes().ird, 2u);
  EXPECT_TRUE(device().modify_qp(*last, {.ord = 1}, now_).has_value());
  EXPECT_TRUE(device().modify_qp(*qp, {.ird = 3}, now_).has_value());
  EXPECT_EQ(used(one).reads, 10u);
  device().validate();
  for (QueuePair* each : {qp, last}) EXPECT_TRUE(device().destroy_qp(each).has_value());
  EXPECT_TRUE(device().destroy_srq(srq).has_value());
  for (CompletionQueue* each : {cq, second}) EXPECT_TRUE(device().destroy_cq(each).has_value());
  EXPECT_TRUE(device().free_pd(pd).has_value());
  expect_nothing_used(one);
}

// A consumer that has taken all that it may leaves to the others what they may have.
// RDMAP-8.1-01: s.8.1.2(2), (5), (6)
TEST_F(ConsumersTest, OneThatTakesEverythingStarvesNobody_DDP_8_3_2_03_SEC_3_01) {
  const ResourceCounts few{.pds = 1, .regions = 4, .cqs = 1, .qps = 2, .listeners = 1};
  const uint32_t greedy = make(few, "greedy");
  const uint32_t modest = make(few, "modest");
  for (const uint32_t each : {greedy, modest}) {
    const auto pd = device().alloc_pd(each);
    const auto cq = device().create_cq(16, {}, each);
    ASSERT_TRUE(pd && cq);
    uint32_t regions = 0, pairs = 0, listeners = 0;
    while (device().register_memory(region(*pd, 8))) ++regions;
    while (device().create_qp(queues(*pd, *cq))) ++pairs;
    for (uint16_t port = 1; port < 9; ++port) {
      listeners +=
          device().listen(Endpoint{{}, uint16_t(8000 + 10 * each + port)}, {}, each).has_value()
              ? 1
              : 0;
    }
    EXPECT_EQ(regions, 4u);
    EXPECT_EQ(pairs, 2u);
    EXPECT_EQ(listeners, 1u);
  }
  EXPECT_EQ(consumers().refused(), 2u * 9u);
  device().validate();
}

// Pieces of memory are asked for by the caller, so that a consumer of one region could have all.
TEST_F(ConsumersTest, PiecesEndAtTheirQuota_DDP_8_3_2_03) {
  const uint32_t one = make({.pieces = 6});
  const uint32_t pd = *device().alloc_pd(one);
  std::vector<base::ByteSpan> pieces;
  const auto in_pieces = [&](size_t count) {
    pieces.clear();
    for (size_t i = 0; i < count; ++i) pieces.emplace_back(memory_.data() + 2 * i, 1);
    return mem::RegionSpec{.pd = pd, .rights = Access::RemoteWrite, .pieces = pieces};
  };
  expect_beyond(device().allocate_region(pd, 7), "quotas.pieces");
  expect_beyond(device().register_memory(in_pieces(7)), "quotas.pieces");
  const mem::Stag allocated = *device().allocate_region(pd, 2);
  const mem::Stag region = *device().register_memory(in_pieces(3));
  EXPECT_EQ(used(one).pieces, 5u);
  expect_beyond(device().reregister_memory(region, in_pieces(5)), "quotas.pieces");
  expect_beyond(device().allocate_region(pd, 2), "quotas.pieces");
  EXPECT_TRUE(device().register_memory(in_pieces(1)).has_value()) << "its octets follow each other";
  const mem::Stag wider = *device().reregister_memory(region, in_pieces(4));
  EXPECT_EQ(used(one).pieces, 6u);
  const mem::Stag whole = *device().reregister_memory(wider, this->region(pd, 8));
  EXPECT_EQ(used(one).pieces, 2u);
  EXPECT_TRUE(device().deregister_memory(allocated).has_value());
  EXPECT_EQ(used(one).pieces, 0u);
  device().validate();
  const mem::Stag again = *device().reregister_memory(whole, in_pieces(6));
  EXPECT_TRUE(device().deregister_memory(again).has_value());
  EXPECT_EQ(device().limits().pieces, 0u);
  device().validate();
}

// With all quotas small, whatever a consumer asks for, nothing that the device limits is used up.
TEST_F(ConsumersTest, NoLimitOfTheDeviceIsReachedByOneWithQuotas_SEC_3_01) {
  const uint32_t one = make({.pds = 2,
                             .regions = 2,
                             .registered_octets = 2,
                             .pieces = 2,
                             .cqs = 2,
                             .cq_entries = 64,
                             .srqs = 2,
                             .qps = 2,
                             .reads = 20,
                             .listeners = 2});
  const DeviceLimits most = device().limits();
  const uint32_t pd = *device().alloc_pd(one);
  CompletionQueue* const cq = *device().create_cq(16, {}, one);
  while (device().alloc_pd(one)) continue;
  for (const auto pieces : {static_cast<uint32_t>(most.max_pieces), uint32_t{2}, uint32_t{1}}) {
    while (device().allocate_region(pd, pieces)) continue;
  }
  while (device().register_memory(region(pd, 4096))) continue;
  while (device().allocate_window(pd, WindowType::Domain)) continue;
  for (const uint32_t depth : {most.max_cq_depth, 1u}) {
    while (device().create_cq(depth, {}, one)) continue;
  }
  while (device().create_srq({.pd = pd, .depth = most.max_work_depth})) continue;
  while (device().create_qp(queues(pd, cq, most.max_reads, most.max_reads))) continue;
  while (device().create_qp(queues(pd, cq))) continue;
  const DeviceLimits now = device().limits();
  EXPECT_LT(now.pds, now.max_pds);
  EXPECT_LT(now.regions, now.max_regions);
  EXPECT_LT(now.registered_octets, now.max_registered_octets);
  EXPECT_LT(now.pieces, now.max_pieces);
  EXPECT_LT(now.cqs, now.max_cqs);
  EXPECT_LT(now.cq_entries, now.max_cq_entries);
  EXPECT_LT(now.srqs, now.max_srqs);
  EXPECT_LT(now.qps, now.max_qps);
  EXPECT_LT(now.total_reads, now.max_total_reads);
  // Another one still gets of each.
  const Party other = party("other");
  EXPECT_TRUE(device().allocate_region(other.pd, 2).has_value());
  EXPECT_TRUE(device().create_srq({.pd = other.pd, .depth = 1}).has_value());
  device().validate();
}

// The quotas of the configuration are those of each consumer that sets none, and of the
// application.
class ConfiguredQuotas : public ConsumersTest {
 protected:
  ConfiguredQuotas()
      : ConsumersTest([](DeviceConfig& config) {
          config.quotas = {.pds = 2, .cqs = 3};
          config.limits.max_consumers = 2;
        }) {}
};

TEST_F(ConfiguredQuotas, AreThoseOfWhoSetsNone_SEC_3_02) {
  const uint32_t usual = make({}, "usual");
  const uint32_t own = make({.pds = 3, .cqs = kNoQuota}, "own");
  const auto most = [this](uint32_t consumer) {
    uint32_t pds = 0;
    while (device().alloc_pd(consumer)) ++pds;
    return pds;
  };
  EXPECT_EQ(most(usual), 2u);
  EXPECT_EQ(most(own), 3u);
  EXPECT_EQ(most(0), 2u);
  EXPECT_EQ(consumers().info(usual)->quotas.cqs, 3u);
  EXPECT_EQ(consumers().info(own)->quotas.cqs, kNoQuota);
  EXPECT_EQ(consumers().info(own)->quotas.qps, kNoQuota);
  expect_error(consumers().create({.name = "third"}), ErrorCode::ResourceExhausted,
               "limits.max_consumers");
  expect_error(consumers().create({}), ErrorCode::InvalidArgument, "name");
}

/// What all consumers may have together is less than what their quotas allow.
class Together : public ConsumersTest {
 protected:
  Together()
      : ConsumersTest([](DeviceConfig& config) {
          config.limits.registered_octets = 1000;
          config.limits.cq_entries = 128;
          config.limits.total_reads = 12;
        }) {}
};

TEST_F(Together, AllConsumersEndAtTheDevicesLimits_DDP_8_3_2_03) {
  const Party a = party("a", {.registered_octets = 700});
  const Party b = party("b", {.reads = 7});
  const mem::Stag first = *device().register_memory(region(a.pd, 700));
  expect_beyond(device().register_memory(region(a.pd, 1)), "quotas.registered_octets");
  expect_beyond(device().register_memory(region(b.pd, 301)), "limits.registered_octets");
  const mem::Stag second = *device().register_memory(region(b.pd, 300));
  expect_beyond(device().reregister_memory(second, region(b.pd, 301)), "limits.registered_octets");
  expect_beyond(device().create_cq(1, {}, a.consumer), "limits.cq_entries");
  expect_beyond(device().resize_cq(*a.cq, 65), "limits.cq_entries");
  EXPECT_TRUE(device().resize_cq(*a.cq, 32).has_value());
  EXPECT_TRUE(device().create_cq(32, {}, b.consumer).has_value());
  expect_beyond(device().create_qp(queues(a.pd, a.cq, 2, 1)), "limits.total_reads");
  expect_beyond(device().modify_qp(*b.qp, {.ird = 6}, now_), "quotas.reads");
  expect_beyond(device().modify_qp(*a.qp, {.ird = 5}, now_), "limits.total_reads");
  EXPECT_TRUE(device().modify_qp(*a.qp, {.ird = 4}, now_).has_value());
  const DeviceLimits told = device().limits();
  EXPECT_EQ(told.max_registered_octets, 1000u);
  EXPECT_EQ(told.registered_octets, 1000u);
  EXPECT_EQ(told.max_cq_entries, 128u);
  EXPECT_EQ(told.cq_entries, 128u);
  EXPECT_EQ(told.max_total_reads, 12u);
  EXPECT_EQ(told.total_reads, 12u);
  EXPECT_EQ(consumers().refused(), 8u);
  for (const mem::Stag stag : {first, second}) {
    EXPECT_TRUE(device().deregister_memory(stag).has_value());
  }
  EXPECT_TRUE(device().register_memory(region(b.pd, 1000)).has_value());
}

/// One address may have two inbound connections.
class Peers : public DevicePair {
 protected:
  Peers() : DevicePair([](DeviceConfig& config) { config.limits.peer_connections = 2; }) {}

  QueuePair* ask() {
    QueuePair* const qp = left().make_qp();
    EXPECT_TRUE(left().device->connect(*qp, right_end(), {}, now_).has_value());
    return qp;
  }
  bool is_asked(size_t times) {
    return run_until([&] { return right().count<event::ConnectRequest>() == times; });
  }
};

// Those that ask and those that are established count, to their ends.
TEST_F(Peers, AnAddressEndsAtItsConnections_DDP_8_3_2_03_SEC_3_01) {
  QueuePair* const first = left().make_qp();
  connect(first, right().make_qp());
  ask();
  ASSERT_TRUE(is_asked(1));
  ask();
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(right().device->device_counters().requests_beyond_peer, 2u)
      << "with the second attempt (RFC 6581 s.10)";
  const auto failed = right().take<event::RequestFailed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_NE(failed->detail.find("limits.peer_connections"), std::string::npos) << failed->detail;
  EXPECT_EQ(right().count<event::ConnectRequest>(), 1u);
  EXPECT_EQ(right().device->limits().max_peer_connections, 2u);
  ASSERT_TRUE(left().device->modify_qp(*first, {.state = QueuePairState::Error}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  ask();
  EXPECT_TRUE(is_asked(2));
}

// What this side has asked for is not the peer's.
TEST_F(Peers, WhatWeAskForDoesNotCount) {
  ASSERT_TRUE(left().device->listen(8000).has_value());
  const Endpoint there{left().device->config().net.address, 8000};
  QueuePair* const back[] = {right().make_qp(), right().make_qp()};
  for (QueuePair* const qp : back) {
    ASSERT_TRUE(right().device->connect(*qp, there, {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
    const auto request = left().take<event::ConnectRequest>()->request;
    ASSERT_TRUE(left().device->accept(request, *left().make_qp(), {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return right().has<event::Established>(); }));
    right().take<event::Established>();
  }
  ask();
  ask();
  EXPECT_TRUE(is_asked(2));
}

// RFC 5042 s.7.1, s.3: nothing of two consumers is used together unless they are one.
// RDMAP-8.1-01: RFC 5040 s.8.1.1(9), s.8.1.2(1), (3)
TEST_F(ConsumersTest, NothingOfTwoOfThemMeets_SEC_7_1_01_SEC_3_02) {
  const Party a = party("a");
  const Party b = party("b");
  QueuePairSpec mixed = queues(a.pd, a.cq);
  mixed.receive_cq = b.cq;
  expect_error(device().create_qp(mixed), ErrorCode::PermissionDenied, "completion queue");
  mixed = queues(a.pd, a.cq);
  mixed.send_cq = b.cq;
  expect_error(device().create_qp(mixed), ErrorCode::PermissionDenied, "completion queue");
  mixed = queues(a.pd, a.cq);
  mixed.srq = *device().create_srq({.pd = b.pd, .depth = 8});
  expect_error(device().create_qp(mixed), ErrorCode::InvalidArgument, "shared receive queue");
  CompletionQueue* const applications = *device().create_cq(16);
  expect_error(device().create_qp(queues(a.pd, applications)), ErrorCode::PermissionDenied,
               "completion queue");
  const mem::Stag stag = *device().register_memory(region(a.pd, 8));
  expect_error(device().reregister_memory(stag, region(b.pd, 8)), ErrorCode::PermissionDenied,
               "another consumer");
  EXPECT_EQ(device().memory().pd_of(stag), a.pd);
  const uint32_t more = *device().alloc_pd(a.consumer);
  EXPECT_TRUE(device().reregister_memory(stag, region(more, 8)).has_value());
}

TEST_F(ConsumersTest, ListenersAndTheirRequestsAreOfOneOfThem_SEC_3_01_DDP_8_3_2_01) {
  constexpr uint16_t kOwnPort = 9000;
  const Party a = party("a", {.listeners = 1});
  const Party b = party("b");
  const Endpoint here{{}, kOwnPort};
  ASSERT_TRUE(device().listen(here, {}, a.consumer).has_value());
  expect_beyond(device().listen(Endpoint{{}, kOwnPort + 1}, {}, a.consumer), "quotas.listeners");
  expect_error(device().unlisten(here, b.consumer), ErrorCode::PermissionDenied, "consumer");
  expect_error(device().unlisten(here), ErrorCode::PermissionDenied, "consumer");
  expect_error(device().listen(Endpoint{{}, kOwnPort + 1}, {}, 63), ErrorCode::NotFound,
               "no consumer 63");
  QueuePair* const near = left().make_qp();
  ASSERT_TRUE(left().device->connect(*near, right_end(kOwnPort), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto request = right().take<event::ConnectRequest>()->request;
  EXPECT_EQ(used(a.consumer).requests, 1u);
  expect_error(device().accept(request, *b.qp, {}, now_), ErrorCode::PermissionDenied, "consumer");
  expect_error(device().accept(request, *right().make_qp(), {}, now_), ErrorCode::PermissionDenied,
               "consumer");
  // The one that listened has gone meanwhile: what comes of its requests is still its own.
  EXPECT_TRUE(device().unlisten(here, a.consumer).has_value());
  consumers().release(a.consumer);
  EXPECT_EQ(used(a.consumer).requests, 1u);
  EXPECT_TRUE(device().accept(request, *a.qp, {}, now_).has_value());
  EXPECT_EQ(used(a.consumer).requests, 0u);
  ASSERT_TRUE(run_until([&] { return left().has<event::Established>(); }));
}

// Requests beyond the quota are reset, and those of others still come.
TEST_F(ConsumersTest, UnansweredRequestsEndAtTheirQuota_DDP_8_3_2_03_SEC_3_01) {
  const Party few = party("few", {.requests = 1});
  ASSERT_TRUE(device().listen(Endpoint{{}, 9000}, {}, few.consumer).has_value());
  const auto ask = [this](uint16_t port) {
    ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(port), {}, now_).has_value());
  };
  ask(9000);
  ASSERT_TRUE(run_until([&] { return right().count<event::ConnectRequest>() == 1; }));
  ask(9000);
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(device().device_counters().requests_beyond_quota, 2u)
      << "with the second attempt (RFC 6581 s.10)";
  const auto failed = right().take<event::RequestFailed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_NE(failed->detail.find("quotas.requests"), std::string::npos) << failed->detail;
  EXPECT_EQ(right().count<event::ConnectRequest>(), 1u);
  ask(kPort);
  ASSERT_TRUE(run_until([&] { return right().count<event::ConnectRequest>() == 2; }));
  // The answer gives the place to the next one.
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(device().reject(request->request, {}, now_).has_value());
  EXPECT_EQ(used(few.consumer).requests, 0u);
  ask(9000);
  EXPECT_TRUE(run_until([&] { return right().count<event::ConnectRequest>() == 2; }));
}

// A listener of streams is no listener of anybody's RDMA connections, and stays.
TEST_F(ConsumersTest, UnlistenLeavesTheListenersOfStreams) {
  const Endpoint here{{}, 9000};
  StreamListener* const listener = *device().listen_stream(here, 4);
  const uint32_t one = make({});
  for (const uint32_t consumer : {0u, one}) {
    expect_error(device().unlisten(here, consumer), ErrorCode::NotFound, "for RDMA connections");
  }
  const auto dialled = left().device->connect_stream(right_end(9000), {}, now_);
  ASSERT_TRUE(dialled.has_value());
  EXPECT_TRUE(run_until([&] { return (*dialled)->is_established(); }));
  listener->stop(now_);
  expect_nothing_used(one);
}

// What a released consumer listens on is nobody's to end but the application's.
TEST_F(ConsumersTest, TheApplicationEndsTheListenersOfOneThatWasReleased_SEC_3_01) {
  const uint32_t one = make({});
  const uint32_t other = make({}, "other");
  const Endpoint here{{}, 9000};
  ASSERT_TRUE(device().listen(here, {}, one).has_value());
  expect_error(device().unlisten(here), ErrorCode::PermissionDenied, "handle");
  consumers().release(one);
  expect_error(device().unlisten(here, other), ErrorCode::PermissionDenied, "another consumer");
  EXPECT_TRUE(consumers().exist(one));
  EXPECT_TRUE(device().unlisten(here).has_value());
  EXPECT_FALSE(consumers().exist(one));
  EXPECT_TRUE(device().listen(here, {}, other).has_value());
  EXPECT_EQ(used(other).listeners, 1u);
  device().validate();
}

TEST_F(ConsumersTest, GoWithTheLastThatTheyHave) {
  const Party a = party("a");
  const auto region_of_a = device().register_memory(region(a.pd, 8));
  expect_error(consumers().destroy(a.consumer), ErrorCode::WrongState,
               "\"a\" still has 1 protection domain, 1 region or window, 1 completion queue and 1 "
               "queue pair:");
  EXPECT_TRUE(device().deregister_memory(*region_of_a).has_value());
  consumers().release(a.consumer);
  EXPECT_TRUE(consumers().exist(a.consumer));
  EXPECT_TRUE(device().destroy_qp(a.qp).has_value());
  EXPECT_TRUE(device().destroy_cq(a.cq).has_value());
  EXPECT_TRUE(consumers().exist(a.consumer));
  device().release_pd(a.pd);
  EXPECT_FALSE(consumers().exist(a.consumer));
  expect_error(consumers().destroy(a.consumer), ErrorCode::NotFound, "no consumer");
  expect_error(consumers().info(a.consumer), ErrorCode::NotFound, "no consumer");
  expect_error(device().alloc_pd(a.consumer), ErrorCode::NotFound, "no consumer");
  expect_error(device().create_cq(1, {}, a.consumer), ErrorCode::NotFound, "no consumer");
  consumers().release(a.consumer);
}

// A call that finds no memory takes nothing of a quota.
TEST_F(ConsumersTest, TakeNothingForWhatCouldNotBeMade) {
  const uint32_t one = make({.cqs = 1, .srqs = 1, .qps = 1});
  const uint32_t pd = *device().alloc_pd(one);
  const auto made = [](auto&& call) {
    try {
      return call().has_value();
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  const auto try_until_made = [&](auto&& call) {
    bool done = false;
    for (int64_t n = 0; !done && n < 1000; ++n) {
      test::refuse_memory_after(n);
      done = made(call);
      test::refuse_no_more();
      device().validate();
    }
    EXPECT_TRUE(done);
  };
  CompletionQueue* cq = nullptr;
  try_until_made([&] {
    auto queue = device().create_cq(8, {}, one);
    if (queue) cq = *queue;
    return queue;
  });
  try_until_made([&] { return device().create_srq({.pd = pd, .depth = 8}); });
  try_until_made([&] { return device().create_qp(queues(pd, cq)); });
  try_until_made([&] { return device().listen(Endpoint{{}, 9000}, {}, one); });
  EXPECT_EQ(used(one).cqs, 1u);
  EXPECT_EQ(used(one).listeners, 1u);
}

/// Two consumers whose messages wait for receives, so that what comes behind them is held.
class HoldSpace : public ConsumersTest {
 protected:
  static constexpr uint32_t kSize = 16 * 1024;
  static constexpr uint32_t kCount = 4;

  /// A connection of a consumer with this quota, on which kCount messages come without receives.
  Party flooded(const std::string& name, uint64_t held_octets, uint16_t port) {
    Party made = party(name, {.held_octets = held_octets});
    QueuePairSpec spec = queues(made.pd, made.cq);
    spec.receive_wait = std::chrono::seconds(10);
    made.qp = *device().create_qp(spec);
    EXPECT_TRUE(device().listen(Endpoint{{}, port}, {}, made.consumer).has_value());
    QueuePair* const near = left().make_qp();
    EXPECT_TRUE(left().device->connect(*near, right_end(port), {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto request = right().take<event::ConnectRequest>()->request;
    EXPECT_TRUE(device().accept(request, *made.qp, {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return left().has<event::Established>(); }));
    left().take<event::Established>();
    const mem::Stag source = left().add(sent_, near->spec().pd, Access::LocalRead);
    for (uint32_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(near->post_send(work(Opcode::Send, i, sent_, source, kSize)), PostResult::Ok);
    }
    return made;
  }
  uint64_t held(const Party& party) { return used(party.consumer).held_octets; }
  /// Posts the receives, and expects all messages.
  void receive_all(const Party& party) {
    std::vector<uint8_t> into(kSize);
    const mem::Stag sink = right().add(into, party.pd, Access::LocalWrite);
    for (uint32_t i = 0; i < kCount; ++i) {
      std::ranges::fill(into, uint8_t{0});
      ASSERT_EQ(party.qp->post_receive(receive(i, into, sink, kSize)), PostResult::Ok);
      std::vector<Completion> done;
      ASSERT_TRUE(run_until([&] { return !(done = right().completions(party.cq)).empty(); }));
      ASSERT_EQ(done.size(), 1u);
      EXPECT_EQ(done[0].length, kSize);
      EXPECT_EQ(into, sent_);
    }
    EXPECT_EQ(held(party), 0u);
  }

  std::vector<uint8_t> sent_ = octets(kSize, 7);
};

// A consumer that posts no receives leaves the others their hold space.
TEST_F(HoldSpace, EndsAtTheQuotaOfAConsumer_DDP_8_3_2_03) {
  constexpr uint64_t kQuota = 8 * 1024;
  const Party few = flooded("few", kQuota, 9000);
  const Party other = flooded("other", 0, 9001);
  ASSERT_TRUE(run_until([&] { return held(few) != 0 && held(other) > 2 * kSize; }));
  run_for(std::chrono::milliseconds(50));
  EXPECT_GT(held(few), kQuota / 2);
  EXPECT_LE(held(few), kQuota);
  EXPECT_GT(device().mpa_counters().hold_refused, 0u);
  device().validate();
  receive_all(few);
  receive_all(other);
  device().validate();
}

// What is held for a queue pair that is gone is its consumer's until the connection has ended.
TEST_F(HoldSpace, OutlivesItsQueuePair) {
  const Party gone = flooded("gone", 0, 9000);
  ASSERT_TRUE(run_until([&] { return held(gone) > kSize; }));
  ASSERT_TRUE(device().destroy_qp(gone.qp).has_value());
  consumers().release(gone.consumer);
  expect_all_returned();
}

}  // namespace
}  // namespace rnic::device
