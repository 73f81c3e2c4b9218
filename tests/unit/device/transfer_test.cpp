// Data between whole devices.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class Transfer : public DevicePair {
 protected:
  Transfer() {
    a_ = left().make_qp();
    b_ = right().make_qp();
    connect(a_, b_);
    source_ = octets(kSize, 11);
    target_.assign(kSize, 0);
    source_stag_ = left().add(source_, a_->spec().pd, Access::LocalWrite);
    target_stag_ = right().add(target_, b_->spec().pd,
                               Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead);
  }

  std::vector<Completion> await(Host& host, CompletionQueue* cq, size_t count) {
    std::vector<Completion> all;
    run_until([&] {
      for (const auto& c : host.completions(cq)) all.push_back(c);
      return all.size() >= count;
    });
    return all;
  }

  SendRequest aimed(Opcode opcode, uint64_t id, uint32_t length) {
    auto w = work(opcode, id, source_, source_stag_, length);
    w.remote = {target_stag_.value, reinterpret_cast<uint64_t>(target_.data())};
    return w;
  }

  static constexpr uint32_t kSize = 300'000;
  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  mem::Stag source_stag_;
  mem::Stag target_stag_;
};

TEST_F(Transfer, WriteIsThereWhenItCompletes) {
  ASSERT_EQ(a_->post_send(aimed(Opcode::Write, 1, kSize)), PostResult::Ok);
  const auto done = await(left(), a_->spec().send_cq, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CompletionStatus::Success);
  EXPECT_EQ(target_, source_);
}

TEST_F(Transfer, ReadFetches) {
  const auto content = octets(kSize, 200);
  std::copy(content.begin(), content.end(), target_.begin());  // stays where it is registered
  ASSERT_EQ(a_->post_send(aimed(Opcode::Read, 2, kSize)), PostResult::Ok);
  const auto done = await(left(), a_->spec().send_cq, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CompletionStatus::Success);
  EXPECT_EQ(done[0].length, kSize);
  EXPECT_EQ(source_, target_);
}

// UNH-RDMAP-03 UNH-RDMAP-08
TEST_F(Transfer, SendCarriesSolicitationAndInvalidation) {
  std::vector<uint8_t> window(16);
  const mem::Stag stag = right().add(window, b_->spec().pd, Access::RemoteInvalidate, b_->stream());
  ASSERT_EQ(b_->post_receive(receive(7, target_, target_stag_, kSize)), PostResult::Ok);
  auto w = work(Opcode::SendInvalidate, 3, source_, source_stag_, 5000);
  w.solicited = true;
  w.invalidate_stag = stag.value;
  ASSERT_EQ(a_->post_send(w), PostResult::Ok);
  const auto got = await(right(), b_->spec().receive_cq, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].id, 7u);
  EXPECT_EQ(got[0].length, 5000u);
  EXPECT_TRUE(got[0].solicited);
  EXPECT_EQ(got[0].invalidated_stag, stag.value);
  EXPECT_TRUE(std::equal(source_.begin(), source_.begin() + 5000, target_.begin()));
  EXPECT_EQ(target_[5000], 0);
}

// The initiator sends first; only then may the responder (RFC 5044 s.7.1.2 rule 4).
// UNH-MPA-1-12
TEST_F(Transfer, ResponderWaitsForTheFirstFpdu) {
  auto w = work(Opcode::Send, 1, target_, target_stag_, 10);
  ASSERT_EQ(b_->post_send(w), PostResult::Ok);
  ASSERT_EQ(a_->post_receive(receive(1, source_, source_stag_, 100)), PostResult::Ok);
  run_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(left().completions(a_->spec().receive_cq).empty());
  ASSERT_EQ(a_->post_send(aimed(Opcode::Write, 1, 0)), PostResult::Ok);
  EXPECT_EQ(await(left(), a_->spec().receive_cq, 1).size(), 1u);
}

// A receive that is posted before the peer sends is there when the Send arrives, also when the
// device was not polled in between.
TEST_F(Transfer, ReceivePostedBeforeAFrameIsSeenIsUsed) {
  auto w = work(Opcode::Send, 1, source_, source_stag_, 10);
  ASSERT_EQ(a_->post_send(w), PostResult::Ok);
  for (int i = 0; i < 5; ++i) left().device->poll(now_ += std::chrono::microseconds(100));
  ASSERT_EQ(b_->post_receive(receive(1, target_, target_stag_, 10)), PostResult::Ok);
  const auto got = await(right(), b_->spec().receive_cq, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, CompletionStatus::Success);
}

TEST_F(Transfer, QueueDepthIsALimit) {
  for (uint64_t i = 0; i < 64; ++i) {
    ASSERT_EQ(a_->post_send(aimed(Opcode::Write, i, 10)), PostResult::Ok);
  }
  EXPECT_EQ(a_->post_send(aimed(Opcode::Write, 64, 10)), PostResult::Full);
  EXPECT_EQ(await(left(), a_->spec().send_cq, 64).size(), 64u);
  EXPECT_EQ(a_->post_send(aimed(Opcode::Write, 64, 10)), PostResult::Ok);
}

// A receive that has completed leaves its place to another one, as often as one likes.
TEST_F(Transfer, AReceiveQueueIsFilledAgainAndAgain) {
  constexpr uint64_t kDepth = 4;
  QueuePair* from = left().make_qp(kDepth);
  QueuePair* to = right().make_qp(kDepth);
  connect(from, to);
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < kDepth; ++i) ASSERT_EQ(to->post_receive({.id = i}), PostResult::Ok);
    EXPECT_EQ(to->post_receive({.id = kDepth}), PostResult::Full);
    for (uint64_t i = 0; i < kDepth; ++i) ASSERT_EQ(from->post_send({.id = i}), PostResult::Ok);
    const auto got = await(right(), to->spec().receive_cq, kDepth);
    ASSERT_EQ(got.size(), kDepth) << round;
    for (uint64_t i = 0; i < kDepth; ++i) EXPECT_EQ(got[i].id, i);
    EXPECT_EQ(await(left(), from->spec().send_cq, kDepth).size(), kDepth);
  }
}

// All receives that the queue's depth allows are there for the peer, however deep it is.
TEST_F(Transfer, ADeepReceiveQueueIsUsedAsAWhole) {
  constexpr uint32_t kDepth = 300;
  QueuePair* from = left().make_qp(kDepth, 2 * kDepth);
  QueuePair* to = right().make_qp(kDepth, 2 * kDepth);
  connect(from, to);
  for (uint64_t i = 0; i < kDepth; ++i) ASSERT_EQ(to->post_receive({.id = i}), PostResult::Ok);
  right().device->poll(now_);
  for (uint64_t i = 0; i < kDepth; ++i) ASSERT_EQ(from->post_send({.id = i}), PostResult::Ok);
  const auto got = await(right(), to->spec().receive_cq, kDepth);
  ASSERT_EQ(got.size(), kDepth);
  for (uint64_t i = 0; i < kDepth; ++i) {
    EXPECT_EQ(got[i].id, i);
    EXPECT_EQ(got[i].status, CompletionStatus::Success);
  }
}

// UNH-SEC-01
TEST_F(Transfer, RevokedSourceAbortsTheStreamAndNotTheDevice) {
  QueuePair* c = left().make_qp();
  QueuePair* d = right().make_qp();
  connect(c, d);
  ASSERT_EQ(a_->post_send(aimed(Opcode::Write, 1, kSize)), PostResult::Ok);
  left().device->poll(now_);
  ASSERT_TRUE(left().device->deregister_memory(source_stag_).has_value());
  const auto sent = source_;
  std::fill(source_.begin(), source_.end(), 0xee);  // nobody reads it any more
  ASSERT_TRUE(run_until([&] { return left().has<event::Disconnected>(); }));
  for (uint32_t i = 0; i < kSize; ++i) ASSERT_TRUE(target_[i] == 0 || target_[i] == sent[i]) << i;
  EXPECT_NE(left().completions(a_->spec().send_cq)[0].status, CompletionStatus::Success);
  std::vector<uint8_t> other = octets(100, 5);
  const mem::Stag stag = left().add(other, c->spec().pd, {});
  auto w = work(Opcode::Write, 9, other, stag, 0);
  ASSERT_EQ(c->post_send(w), PostResult::Ok);
  EXPECT_EQ(await(left(), c->spec().send_cq, 1)[0].status, CompletionStatus::Success);
}

// UNH-SEC-03
TEST_F(Transfer, CompletionOverrunIsToldAndEndsOnlyItsQueuePair) {
  QueuePair* c = left().make_qp(64, 2);
  QueuePair* d = right().make_qp();
  connect(c, d);
  std::vector<uint8_t> memory(100);
  const mem::Stag stag = left().add(memory, c->spec().pd, {});
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(c->post_send(work(Opcode::Write, i, memory, stag, 0)), PostResult::Ok);
  }
  ASSERT_TRUE(run_until([&] { return left().has<event::CompletionOverrun>(); }));
  const auto event = left().take<event::CompletionOverrun>();
  EXPECT_EQ(event->qp, c->number());
  EXPECT_FALSE(event->detail.empty());
  ASSERT_EQ(a_->post_send(aimed(Opcode::Write, 1, 1000)), PostResult::Ok);
  EXPECT_EQ(await(left(), a_->spec().send_cq, 1)[0].status, CompletionStatus::Success);
}

TEST_F(Transfer, ADeviceThatGoesReturnsItsBuffers) {
  ASSERT_EQ(a_->post_send(aimed(Opcode::Write, 1, kSize)), PostResult::Ok);
  for (int i = 0; i < 4; ++i) left().device->poll(now_ += std::chrono::microseconds(1));
  hosts_[0].reset();
  // What is underway arrives, and the reset with it.
  for (int i = 0; i < 1000; ++i) right().device->poll(now_ += std::chrono::microseconds(10));
  EXPECT_TRUE(right().has<event::Disconnected>());
  hosts_[1].reset();
  EXPECT_EQ(link_.held(), 0u);
}

}  // namespace
}  // namespace rnic::device
