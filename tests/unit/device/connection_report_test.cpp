// What a device and its queue pairs tell of themselves: limits, connections, and what limits one.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class Reports : public DevicePair {
 protected:
  Reports()
      : DevicePair([](DeviceConfig& config) {
          config.limits.max_qps = 3;
          config.limits.max_cqs = 8;
          config.limits.max_pds = 4;
          config.limits.max_regions = 5;
          config.limits.max_work_depth = 64;
          config.limits.max_reads = 16;
          config.limits.max_connections = 4;
        }) {}

  /// Two queue pairs with their memory, connected.
  void start() {
    near_.assign(kOctets, 1), far_.assign(kOctets, 2);
    qp_ = left().make_qp(16, 64);
    peer_ = right().make_qp(16, 64);
    here_ = left().add(near_, qp_->spec().pd, Access::LocalWrite);
    there_ = right().add(far_, peer_->spec().pd, Access::LocalWrite | Access::RemoteWrite);
    connect(qp_, peer_, {}, {});
  }
  void write(uint64_t id, uint32_t length) {
    auto request = work(Opcode::Write, id, near_, here_, length);
    request.remote = {there_.value, reinterpret_cast<uint64_t>(far_.data())};
    ASSERT_EQ(qp_->post_send(request), PostResult::Ok);
  }
  [[nodiscard]] QueuePairInfo info() { return left().device->info(*qp_, now_); }

  static constexpr size_t kOctets = 4u << 20;
  std::vector<uint8_t> near_, far_;
  QueuePair* qp_ = nullptr;
  QueuePair* peer_ = nullptr;
  mem::Stag here_, there_;
};

void expect_names(const Error& error, const char* key, uint32_t limit) {
  EXPECT_NE(error.message.find(key), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(std::to_string(limit)), std::string::npos) << error.message;
}

TEST_F(Reports, TheLimitOfConsumersIsToldAndHolds) {
  Device& device = *left().device;
  const DeviceLimits told = device.limits();
  EXPECT_EQ(told.consumers, 0u);
  for (uint32_t i = 1; i <= told.max_consumers; ++i) {
    ASSERT_TRUE(device.consumers().create({.name = "one"}).has_value());
    EXPECT_EQ(device.limits().consumers, i);
  }
  const auto more = device.consumers().create({.name = "one"});
  ASSERT_FALSE(more.has_value());
  expect_names(more.error(), "limits.max_consumers", told.max_consumers);
}

// Each limit that is told is the one that holds: as many are given, and the next is refused with
// the limit's key and number.
TEST_F(Reports, LimitsAreToldAndHold_VERBS_22) {
  Device& device = *left().device;
  const DeviceLimits told = device.limits();
  EXPECT_EQ(told.qps + told.cqs + told.pds + told.regions + told.connections, 0u);
  uint32_t pds = 0, cqs = 0, qps = 0, regions = 0;
  while (true) {
    const auto pd = device.alloc_pd();
    if (!pd) {
      expect_names(pd.error(), "limits.max_pds", told.max_pds);
      break;
    }
    ++pds;
  }
  CompletionQueue* cq = nullptr;
  while (true) {
    const auto made = device.create_cq(told.max_cq_depth);
    if (!made) {
      expect_names(made.error(), "limits.max_cqs", told.max_cqs);
      break;
    }
    cq = *made;
    ++cqs;
  }
  QueuePairSpec spec;
  spec.pd = 1;
  spec.send_cq = spec.receive_cq = cq;
  spec.send_depth = spec.receive_depth = told.max_work_depth;
  spec.ird = spec.ord = told.max_reads;
  while (true) {
    const auto qp = device.create_qp(spec);
    if (!qp) {
      expect_names(qp.error(), "limits.max_qps", told.max_qps);
      break;
    }
    ++qps;
  }
  std::vector<uint8_t> memory(8);
  mem::RegionSpec region;
  region.address = memory.data();
  region.length = memory.size();
  region.pd = 1;
  while (true) {
    const auto stag = device.register_memory(region);
    if (!stag) {
      EXPECT_EQ(stag.error().code, ErrorCode::ResourceExhausted);
      EXPECT_NE(stag.error().message.find("limits.max_regions"), std::string::npos)
          << stag.error().message;
      break;
    }
    ++regions;
  }
  const DeviceLimits full = device.limits();
  EXPECT_EQ(pds, told.max_pds);
  EXPECT_EQ(full.pds, pds);
  EXPECT_EQ(cqs, told.max_cqs);
  EXPECT_EQ(full.cqs, cqs);
  EXPECT_EQ(qps, told.max_qps);
  EXPECT_EQ(full.qps, qps);
  EXPECT_EQ(regions, told.max_regions);
  EXPECT_EQ(full.regions, regions);
}

TEST_F(Reports, WhatIsDeeperThanALimitIsRefused_VERBS_22) {
  Device& device = *left().device;
  const DeviceLimits told = device.limits();
  const auto deep = device.create_cq(told.max_cq_depth + 1);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::InvalidArgument);
  expect_names(deep.error(), "limits.max_work_depth", told.max_cq_depth);
  QueuePairSpec spec;
  spec.pd = *device.alloc_pd();
  spec.send_cq = spec.receive_cq = *device.create_cq(4);
  spec.send_depth = told.max_work_depth + 1;
  const auto queue = device.create_qp(spec);
  ASSERT_FALSE(queue);
  expect_names(queue.error(), "limits.max_work_depth", told.max_work_depth);
  spec.send_depth = 4;
  spec.receive_depth = 4;
  spec.ord = told.max_reads + 1;
  const auto reads = device.create_qp(spec);
  ASSERT_FALSE(reads);
  expect_names(reads.error(), "limits.max_reads", told.max_reads);
}

TEST_F(Reports, AnIdleQueuePairHasNothingToTell) {
  qp_ = left().make_qp(16, 64);
  const QueuePairInfo told = info();
  EXPECT_EQ(told.state, QueuePairState::Idle);
  EXPECT_FALSE(told.connected);
  EXPECT_EQ(told.limit, SendLimit::Application);
}

// What limits a sender: the start-up, nothing, the congestion window, and the peer's window.
TEST_F(Reports, WhatLimitsAQueuePairIsTold) {
  start();
  QueuePairInfo told = info();
  EXPECT_EQ(told.state, QueuePairState::Rts);
  EXPECT_TRUE(told.connected);
  EXPECT_EQ(told.remote, right_end());
  EXPECT_EQ(told.limit, SendLimit::Application);
  EXPECT_EQ(right().device->info(*peer_, now_).limit, SendLimit::Rtr)
      << "a responder waits for the first FPDU";
  write(1, kOctets);
  bool congestion = false, window = false;
  run_until([&] {
    const SendLimit limit = info().limit;
    congestion |= limit == SendLimit::Congestion;
    window |= limit == SendLimit::ReceiverWindow;
    return near_ == far_;
  });
  EXPECT_TRUE(congestion || window);
  run_for(std::chrono::milliseconds(10));
  told = info();
  EXPECT_EQ(told.limit, SendLimit::Application);
  EXPECT_EQ(told.sends_completed, 1u);
  EXPECT_GE(told.transport.rtt, std::chrono::microseconds(40)) << "the link's delay";
  EXPECT_LT(told.transport.rtt, std::chrono::milliseconds(10));
  EXPECT_GE(told.transport.rto, told.transport.rtt);
  EXPECT_GT(told.transport.cwnd, told.transport.mss);
  EXPECT_EQ(told.transport.mss, 1460u - 12u) << "with timestamps";
  EXPECT_LT(told.mulpdu, told.transport.mss);
  EXPECT_EQ(told.transport.in_flight, 0u);
  EXPECT_EQ(told.transport.retransmitted, 0u);
  EXPECT_GE(right().device->info(*peer_, now_).received.arrived, kOctets);
}

// Per connection: what was sent again, what came out of order, how long a peer is silent.
TEST_F(Reports, ALossIsSeenAtBothEnds_SEC_6_4_4_01) {
  start();
  write(1, 100'000);
  sim::Direction router = link_config().a_to_b;
  router.bits_per_second = 1'000'000'000;
  router.queue_limit = 10;
  router.drop_when_full = true;
  link_.set_a_to_b(router);
  write(2, kOctets);
  run_for(std::chrono::seconds(5));
  ASSERT_EQ(near_, far_);
  const QueuePairInfo sender = info();
  EXPECT_GT(sender.transport.retransmitted, 0u);
  EXPECT_EQ(sender.transport.retransmitted, left().device->tcp_counters().retransmitted_segments);
  EXPECT_LT(sender.transport.ssthresh, UINT32_MAX);
  const ReceivePaths receiver = right().device->info(*peer_, now_).received;
  // Without markers what comes out of order has no known place: it is held.
  EXPECT_GT(receiver.held, 0u);
  EXPECT_EQ(receiver.placed_early, right().device->mpa_counters().placed_early_octets);
  EXPECT_EQ(receiver.held, right().device->mpa_counters().held_octets);
  EXPECT_EQ(receiver.held_now, 0u);
  EXPECT_GE(receiver.slow_share(), 0.0);
  EXPECT_LE(receiver.slow_share(), 1.0);
}

// An administrator finds the connection that is idle, and ends it; others are not touched, and its
// queue pair learns why.
TEST_F(Reports, AnIdleConnectionIsFoundAndEnded_SEC_6_4_2_01) {
  start();
  QueuePair* other = left().make_qp(16, 64);
  QueuePair* others_peer = right().make_qp(16, 64);
  run_for(std::chrono::seconds(5));
  connect(other, others_peer, {}, {});
  int mine = 0;
  ASSERT_TRUE(right().device->modify_qp(*peer_, {.context = &mine}, now_));
  const auto all = right().device->connections(now_);
  ASSERT_EQ(all.size(), 2u);
  const auto idle = std::max_element(all.begin(), all.end(),
                                     [](const auto& a, const auto& b) { return a.idle < b.idle; });
  EXPECT_GE(idle->idle, std::chrono::seconds(4));
  EXPECT_EQ(idle->qp, peer_->number());
  EXPECT_EQ(idle->context, &mine);
  EXPECT_TRUE(idle->inbound);
  EXPECT_TRUE(idle->running);
  EXPECT_EQ(idle->local, right_end());
  ASSERT_TRUE(right().device->abort(idle->id));
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  const auto gone = right().take<event::Disconnected>();
  EXPECT_EQ(gone->qp, peer_->number());
  EXPECT_NE(gone->detail.find("administrator"), std::string::npos) << gone->detail;
  EXPECT_EQ(right().device->device_counters().connections_aborted, 1u);
  run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(right().device->abort(idle->id).error().code, ErrorCode::NotFound);
  EXPECT_EQ(right().device->connections(now_).size(), 1u);
  EXPECT_EQ(others_peer->state(), QueuePairState::Rts);
}

}  // namespace
}  // namespace rnic::device
