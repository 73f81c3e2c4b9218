// Queue pairs without a send queue, or without a receive queue.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class ZeroDepth : public DevicePair {
 protected:
  static constexpr uint32_t kOctets = 5000;

  static QueuePair* make_qp(Host& host, uint32_t sends, uint32_t receives) {
    QueuePairSpec spec;
    spec.pd = *host.device->alloc_pd();
    spec.send_cq = spec.receive_cq = *host.device->create_cq(64);
    spec.send_depth = sends;
    spec.receive_depth = receives;
    return *host.device->create_qp(spec);
  }
  std::optional<Completion> completion(Host& host, QueuePair* qp) {
    std::vector<Completion> done;
    run_until([&] { return !(done = host.completions(qp->spec().send_cq)).empty(); });
    if (done.size() != 1) return std::nullopt;
    return done[0];
  }
};

// The one only sends, the other only receives, and serves Reads.
TEST_F(ZeroDepth, OneWayWorksAndTheOtherIsRefused_BUG_08) {
  QueuePair* sender = make_qp(left(), 4, 0);
  QueuePair* receiver = make_qp(right(), 0, 4);
  connect(sender, receiver);
  std::vector<uint8_t> near = octets(kOctets, 1), far(kOctets), back(kOctets);
  const mem::Stag from = left().add(near, sender->spec().pd, {});
  const mem::Stag sink = left().add(back, sender->spec().pd, Access::LocalWrite);
  const mem::Stag to = right().add(far, receiver->spec().pd,
                                   Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite);
  EXPECT_EQ(sender->post_receive({.id = 1}), PostResult::Full);
  EXPECT_EQ(receiver->post_send({.id = 1}), PostResult::Full);

  ASSERT_EQ(receiver->post_receive(receive(2, far, to, kOctets)), PostResult::Ok);
  ASSERT_EQ(sender->post_send(work(Opcode::Send, 3, near, from, kOctets)), PostResult::Ok);
  const auto received = completion(right(), receiver);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->id, 2u);
  EXPECT_EQ(received->status, CompletionStatus::Success);
  EXPECT_EQ(far, near);
  EXPECT_EQ(completion(left(), sender)->id, 3u);

  SendRequest read = work(Opcode::Read, 4, back, sink, kOctets);
  read.remote = {to.value, reinterpret_cast<uint64_t>(far.data())};
  ASSERT_EQ(sender->post_send(read), PostResult::Ok);
  const auto answered = completion(left(), sender);
  ASSERT_TRUE(answered);
  EXPECT_EQ(answered->status, CompletionStatus::Success);
  EXPECT_EQ(back, near);
}

TEST_F(ZeroDepth, NoMessageIsReceivedWithoutAReceiveQueue_BUG_08) {
  QueuePair* sender = make_qp(left(), 4, 4);
  QueuePair* mute = make_qp(right(), 4, 0);
  connect(sender, mute);
  ASSERT_EQ(sender->post_send({.id = 1}), PostResult::Ok);
  ASSERT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
  const auto told = left().take<event::TerminateReceived>();
  EXPECT_EQ(told->fault.code, ddp::kUntaggedNoBuffer.code);
}

}  // namespace
}  // namespace rnic::device
