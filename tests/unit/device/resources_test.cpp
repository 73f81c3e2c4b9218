// Domains, regions, queues: what fails leaves nothing behind.

#include "device/memory_use.hpp"
#include "device_pair.hpp"
#include "support/live_memory.hpp"

namespace rnic::device {
namespace {

/// A device with few of everything, so that each limit can be reached.
class Resources : public DevicePair {
 protected:
  static constexpr uint32_t kPds = 4;  // domain 0 is never given out
  static constexpr uint32_t kCqs = 4;
  static constexpr uint32_t kQps = 3;
  static constexpr uint32_t kRegions = 5;
  static constexpr uint32_t kPieces = 3;
  static constexpr uint32_t kDepth = 16;
  static constexpr uint32_t kSrqs = 2;
  static constexpr uint32_t kConnections = 2;

  Resources()
      : DevicePair([](DeviceConfig& config) {
          config.limits.max_pds = kPds;
          config.limits.max_cqs = kCqs;
          config.limits.max_qps = kQps;
          config.limits.max_regions = kRegions;
          config.limits.max_pieces = kPieces;
          config.limits.max_work_depth = kDepth;
          config.limits.max_srqs = kSrqs;
          config.limits.max_connections = kConnections;
          config.limits.max_reads = 8;
        }) {}

  Device& device() { return *left().device; }

  [[nodiscard]] mem::RegionSpec region(uint32_t pd) {
    mem::RegionSpec spec;
    spec.address = memory_.data();
    spec.length = memory_.size();
    spec.pd = pd;
    spec.rights = Access::LocalWrite;
    return spec;
  }
  static QueuePairSpec queues(uint32_t pd, CompletionQueue* cq) {
    QueuePairSpec spec;
    spec.pd = pd;
    spec.send_cq = spec.receive_cq = cq;
    spec.send_depth = spec.receive_depth = kDepth;
    spec.ird = spec.ord = 8;
    return spec;
  }

  /// Takes everything that the limits allow, sees each limit, and gives it back.
  void take_all_and_return() {
    std::vector<uint32_t> pds;
    std::vector<CompletionQueue*> cqs;
    std::vector<QueuePair*> qps;
    std::vector<mem::Stag> regions;
    while (auto pd = device().alloc_pd()) pds.push_back(*pd);
    while (auto cq = device().create_cq(kDepth)) cqs.push_back(*cq);
    ASSERT_FALSE(pds.empty() || cqs.empty());
    while (auto qp = device().create_qp(queues(pds[0], cqs[0]))) qps.push_back(*qp);
    while (auto stag = device().register_memory(region(pds[0]))) regions.push_back(*stag);
    EXPECT_EQ(pds.size(), kPds);
    EXPECT_EQ(cqs.size(), kCqs);
    EXPECT_EQ(qps.size(), kQps);
    EXPECT_EQ(regions.size(), kRegions);
    EXPECT_EQ(device().memory().live(), kRegions);
    EXPECT_FALSE(device().free_pd(pds[0]));
    EXPECT_FALSE(device().destroy_cq(cqs[0]));
    for (QueuePair* qp : qps) EXPECT_TRUE(device().destroy_qp(qp));
    for (const mem::Stag stag : regions) EXPECT_TRUE(device().deregister_memory(stag));
    for (CompletionQueue* cq : cqs) EXPECT_TRUE(device().destroy_cq(cq));
    for (const uint32_t pd : pds) EXPECT_TRUE(device().free_pd(pd));
    EXPECT_EQ(device().memory().live(), 0u);
  }

  /// Every way in which a region or a queue pair cannot be made.
  void fail_in_every_way(uint32_t pd, CompletionQueue* cq) {
    constexpr uint32_t kNoPd = 1000;
    EXPECT_FALSE(device().register_memory(region(kNoPd)));
    auto bad_region = region(pd);
    bad_region.address = nullptr;
    EXPECT_FALSE(device().register_memory(bad_region));
    bad_region = region(pd);
    bad_region.length = UINT64_MAX;  // passes the end of the address space
    EXPECT_FALSE(device().register_memory(bad_region));
    bad_region = region(pd);
    bad_region.offset = UINT64_MAX;  // passes the last offset
    EXPECT_FALSE(device().register_memory(bad_region));
    bad_region = region(pd);
    bad_region.rights = Access::RemoteInvalidate;  // and no queue pair of its own
    EXPECT_FALSE(device().register_memory(bad_region));
    EXPECT_FALSE(device().reregister_memory(mem::Stag{7}, region(pd)));
    const std::vector<base::ByteSpan> pieces(kPieces + 1, {memory_.data(), 1});
    EXPECT_FALSE(device().register_memory({.pd = pd, .pieces = pieces}));
    const mem::Stag good = *device().register_memory(region(pd));
    EXPECT_FALSE(device().reregister_memory(good, bad_region));
    EXPECT_FALSE(device().reregister_memory(good, region(kNoPd)));
    EXPECT_TRUE(device().deregister_memory(good));
    EXPECT_FALSE(device().create_cq(0));
    EXPECT_FALSE(device().create_cq(2 * kDepth + 1));
    for (uint32_t QueuePairSpec::*field :
         {&QueuePairSpec::send_depth, &QueuePairSpec::receive_depth, &QueuePairSpec::ird,
          &QueuePairSpec::ord}) {
      auto spec = queues(pd, cq);
      spec.*field = kDepth + 1;
      EXPECT_FALSE(device().create_qp(spec));
    }
    for (CompletionQueue* QueuePairSpec::*field :
         {&QueuePairSpec::send_cq, &QueuePairSpec::receive_cq}) {
      auto spec = queues(pd, cq);
      spec.*field = nullptr;
      EXPECT_FALSE(device().create_qp(spec));
    }
    EXPECT_FALSE(device().create_qp(queues(kNoPd, cq)));
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4096);
};

// A failed call counts no user of its domain or completion queue, and takes no place: both can be
// removed at once, and as many regions, queues and domains can be made as before.
TEST_F(Resources, WhatFailsLeavesNothingBehind_BUG_10) {
  const auto registered = [&] {
    const DeviceCounters& counters = device().device_counters();
    return counters.regions_registered - counters.regions_deregistered;
  };
  for (int i = 0; i < 20; ++i) {  // more often than any limit here
    const auto pd = device().alloc_pd();
    const auto cq = device().create_cq(kDepth);
    ASSERT_TRUE(pd && cq);
    fail_in_every_way(*pd, *cq);
    EXPECT_EQ(device().memory().live(), 0u);
    EXPECT_TRUE(device().destroy_cq(*cq));
    EXPECT_TRUE(device().free_pd(*pd));
  }
  EXPECT_EQ(registered(), 0u);
  // The limits themselves are ways to fail: twice, so that the second time sees the first.
  take_all_and_return();
  take_all_and_return();
}

template <typename Result>
void expect_limit(const Result& result, const char* key) {
  ASSERT_FALSE(result.has_value()) << key;
  EXPECT_EQ(result.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(result.error().message.find(key), std::string::npos) << result.error().message;
}

// Domains, queue pairs, completion queues and regions; then STags, which regions, windows and fast
// registrations share, shared receive queues and connections.
TEST_F(Resources, EachScarceKindHasItsLimit_SEC_6_4_1_01) {
  take_all_and_return();
  const uint32_t pd = *device().alloc_pd();
  CompletionQueue* cq = *device().create_cq(kDepth);
  ASSERT_TRUE(device().register_memory(region(pd)).has_value());
  for (uint32_t stags = 1; stags < kRegions; stags += 2) {
    ASSERT_TRUE(device().allocate_window(pd, WindowType::Domain).has_value());
    ASSERT_TRUE(device().allocate_region(pd, 1).has_value());
  }
  expect_limit(device().register_memory(region(pd)), "limits.max_regions");
  expect_limit(device().allocate_window(pd, WindowType::QueuePair), "limits.max_regions");
  expect_limit(device().allocate_region(pd, 1), "limits.max_regions");
  const SharedReceiveSpec receives{.pd = pd, .depth = 1, .max_sges = 1};
  for (uint32_t i = 0; i < kSrqs; ++i) ASSERT_TRUE(device().create_srq(receives).has_value());
  expect_limit(device().create_srq(receives), "limits.max_srqs");
  for (uint32_t i = 0; i < kConnections; ++i) {
    QueuePair* qp = *device().create_qp(queues(pd, cq));
    ASSERT_TRUE(device().connect(*qp, right_end(), {}, now_).has_value());
  }
  QueuePair* qp = *device().create_qp(queues(pd, cq));
  expect_limit(device().connect(*qp, right_end(), {}, now_), "limits.max_connections");
}

/// One of each is made and given back, in the only order in which that is allowed. \return all of
/// it went as it is to
bool make_and_return(Device& device, QueuePairSpec spec, mem::RegionSpec region) {
  const auto pd = device.alloc_pd();
  const auto cq = device.create_cq(1);
  if (!pd || !cq) return false;
  spec.pd = region.pd = *pd;
  spec.send_cq = spec.receive_cq = *cq;
  const auto srq = device.create_srq({.pd = *pd, .depth = 1, .max_sges = 1});
  if (!srq) return false;
  spec.srq = *srq;
  const auto qp = device.create_qp(spec);
  const auto stag = device.register_memory(region);
  const auto window = device.allocate_window(*pd, WindowType::Domain);
  if (!qp || !stag || !window || !device.listen(kPort)) return false;
  if (device.free_pd(*pd) || device.destroy_cq(*cq) || device.destroy_srq(*srq)) return false;
  device.free_window(*window);
  return device.unlisten({{}, kPort}) && device.deregister_memory(*stag) &&
         device.destroy_qp(*qp) && device.destroy_srq(*srq) && device.destroy_cq(*cq) &&
         device.free_pd(*pd);
}

// Nothing is used up, and no memory is kept, however often.
TEST_F(Resources, AHundredThousandCyclesLeaveNothing_VERBS_23) {
  QueuePairSpec spec;
  spec.send_depth = spec.receive_depth = 1;
  spec.ird = spec.ord = 1;
  const mem::RegionSpec memory = region(0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(make_and_return(device(), spec, memory)) << i;
  const int64_t before = test::live_octets();
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(make_and_return(device(), spec, memory)) << i;
  EXPECT_EQ(test::live_octets(), before);
  EXPECT_EQ(device().memory().live(), 0u);
  take_all_and_return();
}

// The same of what removes: a name that is gone takes nothing from what has its place now.
TEST_F(Resources, RemovingTwiceTakesNothing_BUG_10) {
  const uint32_t pd = *device().alloc_pd();
  CompletionQueue* cq = *device().create_cq(kDepth);
  QueuePair* qp = *device().create_qp(queues(pd, cq));
  const mem::Stag old = *device().register_memory(region(pd));
  ASSERT_TRUE(device().deregister_memory(old));
  EXPECT_FALSE(device().deregister_memory(old));
  const mem::Stag stag = *device().register_memory(region(pd));
  EXPECT_FALSE(device().deregister_memory(old));
  EXPECT_EQ(device().memory().live(), 1u);
  EXPECT_FALSE(device().free_pd(pd)) << "its region and its queue pair are still there";
  EXPECT_TRUE(device().destroy_qp(qp));
  EXPECT_FALSE(device().destroy_qp(qp));
  EXPECT_FALSE(device().free_pd(pd)) << "its region is still there";
  EXPECT_TRUE(device().deregister_memory(stag));
  EXPECT_TRUE(device().destroy_cq(cq));
  EXPECT_FALSE(device().destroy_cq(cq));
  EXPECT_TRUE(device().free_pd(pd));
  EXPECT_FALSE(device().free_pd(pd));
  take_all_and_return();
}

// An active open that cannot begin gives its connection back, and the queue pair stays unused.
TEST_F(Resources, AConnectThatCannotBeginLeavesNothing_BUG_10) {
  QueuePair* qp = *device().create_qp(queues(*device().alloc_pd(), *device().create_cq(kDepth)));
  const Endpoint nowhere{IpAddress{0xfd00000000000000, 7}, kPort};  // no such family here
  for (uint32_t i = 0; i < 2 * device().config().limits.max_connections; ++i) {
    EXPECT_FALSE(device().connect(*qp, nowhere, {}, now_));
    EXPECT_FALSE(device().connect(*qp, {right_end().address, 0}, {}, now_));
    EXPECT_FALSE(device().connect(*qp, right_end(), octets(600, 1), now_));
  }
  EXPECT_EQ(device().live_connections(), 0u);
  EXPECT_TRUE(device().connect(*qp, right_end(), {}, now_, {.source = {{}, 50000}}));
  // TCP refuses a second connection between the same two ends, behind all other checks.
  QueuePair* second =
      *device().create_qp(queues(*device().alloc_pd(), *device().create_cq(kDepth)));
  for (uint32_t i = 0; i < 2 * device().config().limits.max_connections; ++i) {
    const auto taken = device().connect(*second, right_end(), {}, now_, {.source = {{}, 50000}});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, ErrorCode::AlreadyExists);
  }
  EXPECT_EQ(device().live_connections(), 1u);
  EXPECT_TRUE(device().connect(*second, right_end(), {}, now_, {.source = {{}, 50001}}));
}

// What is not a queue pair of this device is none, and is not looked into.
TEST_F(Resources, OnlyOnesOwnQueuePairsAreDestroyed) {
  const auto nobody = device().destroy_qp(nullptr);
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().code, ErrorCode::NotFound);
  QueuePair* mine = *device().create_qp(queues(*device().alloc_pd(), *device().create_cq(kDepth)));
  const auto spec = queues(*right().device->alloc_pd(), *right().device->create_cq(kDepth));
  for (uint32_t i = 0; i < kQps; ++i) {  // those of numbers that are taken here, and are not
    const auto other = right().device->create_qp(spec);
    ASSERT_TRUE(other.has_value());
    EXPECT_FALSE(device().destroy_qp(*other).has_value()) << i;
  }
  EXPECT_TRUE(device().destroy_qp(mine).has_value());
}

uint64_t memory_of(uint32_t connections, uint32_t of_a_peer = 0) {
  return ConnectionTable::octets_for(
      {.max_connections = connections, .peer_connections = of_a_peer});
}

// Connections that yield have 64 places beside those of the limit, and there is nothing else.
TEST_F(Resources, MemoryOfConnectionsIsToldByTheConnection) {
  const uint64_t each = memory_of(1) - memory_of(0);
  for (const uint32_t most : {0u, 1u, 1000u}) {
    EXPECT_EQ(memory_of(most), (most + 64) * each) << most;
    EXPECT_EQ(memory_of(most, 2) - memory_of(most), llp::Admission::octets_for(most + 64)) << most;
  }
}

// A connection has its place, and an entry in each list of what ends, is orphaned or dialled again.
TEST_F(Resources, MemoryOfAConnectionHoldsItsEntriesToo) {
  const uint64_t each = memory_of(1) - memory_of(0);
  EXPECT_GE(each, sizeof(Connection) + sizeof(base::Handle) + 2 * sizeof(void*));
}

// Queues cost as much as their entries, here powers of two of them, and less than one more of each.
TEST_F(Resources, MemoryOfAQueuePairIsToldByTheEntry) {
  const auto octets = [](uint32_t send_depth, uint32_t receive_depth) {
    return QueuePair::octets_for({{.send_depth = send_depth, .receive_depth = receive_depth}});
  };
  const uint64_t send = octets(2, 1) - octets(1, 1);
  const uint64_t receive = octets(1, 2) - octets(1, 1);
  using rdmap::PostedReceive;
  using rdmap::PostedSend;
  EXPECT_GE(send, PostedSend::kNear + PostedSend::kFar + sizeof(rdmap::SendSlot));
  EXPECT_GE(receive, PostedReceive::kNear + PostedReceive::kFar + sizeof(rdmap::ReceiveSlot));
  const uint64_t beside = octets(1, 1) - send - receive;
  EXPECT_LT(beside, send + receive + 2 * base::PageArray<std::byte>::kPage);
  for (const uint32_t depth : {1u, 16u, 4096u}) {
    EXPECT_EQ(octets(depth, 2 * depth), beside + depth * (send + 2 * receive)) << depth;
    EXPECT_EQ(octets(2 * depth, depth), beside + depth * (2 * send + receive)) << depth;
  }
}

// What is refused is told with the range that would have done: a completion queue serves a send and
// a receive queue of the longest kind.
// SEC-6.4.3.2-01
TEST_F(Resources, ACompletionQueueIsAsDeepAsTwoQueues) {
  const auto deepest = device().create_cq(2 * kDepth);
  ASSERT_TRUE(deepest.has_value());
  for (const uint32_t depth : {0u, 2 * kDepth + 1}) {
    const auto resized = device().resize_cq(**deepest, depth);
    ASSERT_FALSE(resized.has_value());
    EXPECT_EQ(resized.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(device().info(**deepest).depth, 2 * kDepth);
    const auto refused = device().create_cq(depth);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message,
              "create_cq: a depth of " + std::to_string(depth) +
                  " is outside 1..32 (limits.max_cq_depth, or twice limits.max_work_depth): raise "
                  "one of them, or use several queues");
  }
}

class DeepCompletionQueues : public DevicePair {
 protected:
  DeepCompletionQueues()
      : DevicePair([](DeviceConfig& config) {
          config.limits.max_work_depth = 16;
          config.limits.max_cq_depth = 200;
        }) {}
};

// SEC-6.4.3.2-01
TEST_F(DeepCompletionQueues, AreAsDeepAsTheirOwnLimitAllows) {
  Device& device = *left().device;
  EXPECT_EQ(device.limits().max_cq_depth, 200u);
  EXPECT_EQ(device.limits().max_work_depth, 16u);
  EXPECT_TRUE(device.create_cq(200).has_value());
  const auto refused = device.create_cq(201);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(refused.error().message.find("outside 1..200 (limits.max_cq_depth"), std::string::npos)
      << refused.error().message;
}

/// What one limit costs, by the limits of a device with a port of its own.
uint64_t cost(const std::string& key, const Limits& limits) {
  DeviceConfig config;
  config.limits = limits;
  for (const base::MemoryUse& use : memory_use(config, true)) {
    if (use.key == key) return use.octets;
  }
  ADD_FAILURE() << key;
  return 0;
}

// Longer rings cost their octets and nothing beside them, more rings of a length as much again.
TEST_F(Resources, MemoryOfRingsIsToldByTheOctet) {
  for (const uint32_t buffer : {1024u, 65'536u}) {
    for (const uint32_t streams : {1u, 8u, 1000u}) {
      Limits limits;
      limits.framed_buffer = limits.stream_buffer = buffer;
      limits.max_framed_streams = streams;
      limits.stream_octets = uint64_t{streams} * buffer;
      const uint64_t framed = cost("limits.framed_buffer", limits);
      const uint64_t plain = cost("limits.stream_octets", limits);
      limits.max_framed_streams *= 2;
      limits.stream_octets *= 2;
      EXPECT_EQ(cost("limits.framed_buffer", limits), 2 * framed);
      EXPECT_EQ(cost("limits.stream_octets", limits), 2 * plain);
      limits.max_framed_streams = streams;
      limits.framed_buffer = limits.stream_buffer = 2 * buffer;
      EXPECT_EQ(cost("limits.framed_buffer", limits), framed + uint64_t{2} * streams * buffer)
          << "a ring for each direction";
      EXPECT_EQ(cost("limits.stream_octets", limits), plain + uint64_t{streams} * buffer);
    }
  }
}

}  // namespace
}  // namespace rnic::device
