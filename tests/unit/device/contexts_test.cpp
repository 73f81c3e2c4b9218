// The application's own pointers: every event bears those of what it names.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class Contexts : public DevicePair {
 protected:
  Contexts()
      : DevicePair([](DeviceConfig& config) {
          config.limits.max_srqs = 4;
          config.mpa.markers_receive = true;  // what comes early is placed, and begins its receive
        }) {
    right().device->set_context(&device_);
    pd_ = *right().device->alloc_pd();
    cq_ = *right().device->create_cq(4, {.context = &of_cq_});
    srq_ = *right().device->create_srq({.pd = pd_, .depth = 8, .context = &of_srq_});
  }
  QueuePair* make_server(bool shared) {
    QueuePairSpec spec;
    spec.pd = pd_;
    spec.send_cq = spec.receive_cq = cq_;
    spec.send_depth = spec.receive_depth = 8;
    spec.context = &of_qp_;
    if (shared) spec.srq = srq_;
    return *right().device->create_qp(spec);
  }

  // What they point to is nobody's business: only their addresses are looked at.
  int device_ = 0, of_cq_ = 0, of_srq_ = 0, of_qp_ = 0, of_listener_ = 0, of_any_ = 0;
  uint32_t pd_ = 0;
  CompletionQueue* cq_ = nullptr;
  SharedReceiveQueue* srq_ = nullptr;
};

TEST_F(Contexts, ARequestNamesItsListener) {
  constexpr uint16_t kOther = 7472;
  const Endpoint any{{}, kOther}, own = right_end(kOther);
  ASSERT_TRUE(right().device->listen(any, {.context = &of_any_}));
  const auto ask = [&] {
    QueuePair* const qp = left().make_qp();
    EXPECT_TRUE(left().device->connect(*qp, own, {}, now_));
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    return std::pair(qp, *right().take<event::ConnectRequest>());
  };
  const auto first = ask().second;
  EXPECT_EQ(first.listener, any);
  EXPECT_EQ(first.listener_context, &of_any_);
  EXPECT_EQ(first.context, &of_any_);
  EXPECT_EQ(first.device_context, &device_);

  // The listener of that very address comes first.
  ASSERT_TRUE(right().device->listen(own, {.context = &of_listener_}));
  auto [qp, second] = ask();
  EXPECT_EQ(second.listener, own);
  EXPECT_EQ(second.listener_context, &of_listener_);
  ASSERT_TRUE(left().device->destroy_qp(qp));
  ASSERT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  const auto gone = right().take<event::RequestWithdrawn>();
  EXPECT_EQ(gone->listener, own);
  EXPECT_EQ(gone->listener_context, &of_listener_);

  // Of a listener that is no more nothing is told: what it pointed to may be gone.
  const auto third = ask().first;
  ASSERT_TRUE(right().device->unlisten(own));
  ASSERT_TRUE(right().device->unlisten(any));
  ASSERT_TRUE(left().device->destroy_qp(third));
  ASSERT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  const auto late = right().take<event::RequestWithdrawn>();
  EXPECT_EQ(late->listener.port, 0);
  EXPECT_EQ(late->listener_context, nullptr);
  EXPECT_EQ(late->context, nullptr);
}

TEST_F(Contexts, AnOverrunBearsThoseOfItsQueueAndQueuePair) {
  QueuePair* const server = make_server(false);
  for (uint64_t id = 1; id <= 5; ++id) {  // without a connection they are flushed at once
    ASSERT_EQ(server->post_send({.id = id}), PostResult::Ok);
  }
  run_for(std::chrono::milliseconds(1));
  const auto told = right().take<event::CompletionOverrun>();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->cq_context, &of_cq_);
  EXPECT_EQ(told->context, &of_qp_);
  EXPECT_EQ(told->device_context, &device_);
}

TEST_F(Contexts, EventsOfASharedReceiveQueueBearItsOwn) {
  QueuePair* const client = left().make_qp();
  connect(client, make_server(true));
  ASSERT_EQ(srq_->post_receive({.id = 1}), PostResult::Ok);
  srq_->arm_limit(2);
  run_for(std::chrono::milliseconds(1));
  const auto limit = right().take<event::SrqLimitReached>();
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->srq_context, &of_srq_);
  EXPECT_EQ(limit->context, &of_srq_);
  EXPECT_EQ(limit->device_context, &device_);

  ASSERT_TRUE(left().device->destroy_qp(client));
  ASSERT_TRUE(run_until([&] { return right().has<event::LastReceiveDone>(); }));
  const auto last = right().take<event::LastReceiveDone>();
  EXPECT_EQ(last->srq_context, &of_srq_);
  EXPECT_EQ(last->context, &of_qp_);
}

TEST_F(Contexts, TheHighWaterOfASharedReceiveQueueBearsTheQueuePairs) {
  QueuePair* const client = left().make_qp();
  connect(client, make_server(true));
  constexpr uint32_t kLength = 1000;  // a marker in each: it has a place when it comes early
  std::vector<uint8_t> memory(kLength);
  const mem::Stag sink = right().add(memory, pd_, Access::LocalWrite);
  const mem::Stag source = left().add(memory, client->spec().pd, {});
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(srq_->post_receive(receive(id, memory, sink, kLength)), PostResult::Ok);
  }
  srq_->arm_high_water(1);
  // The first segment is lost, and the messages behind it begin.
  const sim::Direction whole = link_config().a_to_b;
  sim::Direction broken = whole;
  broken.queue_limit = 0;
  broken.drop_when_full = true;
  for (uint64_t id = 1; id <= 4; ++id) {
    link_.set_a_to_b(id == 1 ? broken : whole);
    ASSERT_EQ(client->post_send(work(Opcode::Send, id, memory, source, kLength)), PostResult::Ok);
    left().device->poll(now_);
  }
  ASSERT_TRUE(run_until([&] { return right().has<event::SrqHighWater>(); }));
  const auto told = right().take<event::SrqHighWater>();
  EXPECT_EQ(told->srq_context, &of_srq_);
  EXPECT_EQ(told->context, &of_qp_);
}

}  // namespace
}  // namespace rnic::device
