// What a peer must not do: the right Terminate code, zero octets written, other connections
// unharmed.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

constexpr AccessSet kAll = Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead;

class Violations : public DevicePair {
 protected:
  static constexpr uint32_t kSize = 4096;
  static constexpr uint8_t kUntouched = 0x5a;

  Violations() {
    a_ = left().make_qp();
    b_ = right().make_qp();
    connect(a_, b_);
    healthy_a_ = left().make_qp();
    healthy_b_ = right().make_qp();
    connect(healthy_a_, healthy_b_);
    source_ = octets(kSize, 1);
    target_.assign(kSize, kUntouched);
    source_stag_ = left().add(source_, a_->spec().pd, Access::LocalWrite);
  }

  void share(AccessSet rights) { target_stag_ = right().add(target_, b_->spec().pd, rights); }

  SendRequest aimed(Opcode opcode, uint32_t length) {
    auto w = work(opcode, 1, source_, source_stag_, length);
    w.remote = {target_stag_.value, reinterpret_cast<uint64_t>(target_.data())};
    return w;
  }

  /// Posts the offence and checks all that must follow.
  void expect_terminate(const SendRequest& offence, uint8_t layer, uint8_t type, uint8_t code) {
    const auto before = source_;
    ASSERT_EQ(a_->post_send(offence), PostResult::Ok);
    ASSERT_TRUE(run_until([&] {
      return right().has<event::TerminateSent>() && left().has<event::TerminateReceived>() &&
             left().has<event::Disconnected>() && right().has<event::Disconnected>();
    }));
    const auto expect_code = [&](const auto& event, uint32_t qp) {
      EXPECT_EQ(static_cast<int>(event.fault.layer), layer);
      EXPECT_EQ(event.fault.type, type);
      EXPECT_EQ(event.fault.code, code);
      EXPECT_EQ(event.qp, qp);
      EXPECT_FALSE(event.detail.empty());
    };
    expect_code(*right().take<event::TerminateSent>(), b_->number());
    expect_code(*left().take<event::TerminateReceived>(), a_->number());
    EXPECT_EQ(target_, std::vector<uint8_t>(kSize, kUntouched));
    if (offence.opcode == Opcode::Read) {
      EXPECT_EQ(source_, before);
      const auto done = left().completions(a_->spec().send_cq);
      ASSERT_EQ(done.size(), 1u);
      EXPECT_NE(done[0].status, CompletionStatus::Success);
    }
    expect_healthy();
  }

  void expect_healthy() {
    std::vector<uint8_t> from = octets(20'000, 42);
    std::vector<uint8_t> to(20'000);
    const mem::Stag from_stag = left().add(from, healthy_a_->spec().pd, {});
    const mem::Stag to_stag = right().add(to, healthy_b_->spec().pd, Access::RemoteWrite);
    auto w = work(Opcode::Write, 1, from, from_stag, 20'000);
    w.remote = {to_stag.value, reinterpret_cast<uint64_t>(to.data())};
    ASSERT_EQ(healthy_a_->post_send(w), PostResult::Ok);
    std::vector<Completion> done;
    ASSERT_TRUE(run_until([&] {
      done = left().completions(healthy_a_->spec().send_cq);
      return !done.empty();
    }));
    EXPECT_EQ(done[0].status, CompletionStatus::Success);
    EXPECT_EQ(from, to);
    ASSERT_TRUE(left().device->deregister_memory(from_stag).has_value());
    ASSERT_TRUE(right().device->deregister_memory(to_stag).has_value());
  }

  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  QueuePair* healthy_a_ = nullptr;
  QueuePair* healthy_b_ = nullptr;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  mem::Stag source_stag_;
  mem::Stag target_stag_;
};

// DDP-7.1-08 SEC-6.2.1-01
TEST_F(Violations, WriteOneOctetPastTheRegion) {
  share(kAll);
  auto w = aimed(Opcode::Write, 100);
  w.remote.offset += kSize - 99;
  expect_terminate(w, 1, 1, 0x01);
}

// DDP-7.1-08
TEST_F(Violations, WriteOutsideTheRegion) {
  share(kAll);
  auto w = aimed(Opcode::Write, kSize);
  w.remote.offset += kSize + 5;
  expect_terminate(w, 1, 1, 0x01);
}

// DDP-7.1-10
TEST_F(Violations, WriteThatWraps) {
  share(kAll);
  auto w = aimed(Opcode::Write, 100);
  w.remote.offset = UINT64_MAX - 10;
  expect_terminate(w, 1, 1, 0x03);
}

// DDP-7.1-07
// UNH-MPA-2-16 UNH-DDP-03 UNH-DDP-12
TEST_F(Violations, WriteWithTheWrongKey) {
  share(kAll);
  auto w = aimed(Opcode::Write, 3000);
  w.remote.stag ^= 0x01;
  expect_terminate(w, 1, 1, 0x00);
}

// DDP-7.1-07
TEST_F(Violations, WriteToAnStagThatNobodyHas) {
  share(kAll);
  auto w = aimed(Opcode::Write, 1);
  w.remote.stag = 0xffff'ff00u;
  expect_terminate(w, 1, 1, 0x00);
}

// DDP-7.1-07
// UNH-DDP-03
TEST_F(Violations, WriteToARevokedRegion) {
  share(kAll);
  ASSERT_TRUE(right().device->deregister_memory(target_stag_).has_value());
  expect_terminate(aimed(Opcode::Write, 3000), 1, 1, 0x00);
}

// DDP-7.1-09 SEC-6.1.1-02
// UNH-DDP-03
TEST_F(Violations, WriteIntoAnotherDomain) {
  target_stag_ = right().add(target_, healthy_b_->spec().pd, kAll);
  expect_terminate(aimed(Opcode::Write, 3000), 1, 1, 0x02);
}

// RFC 5040 s.4.8: access rights violation.
TEST_F(Violations, WriteWithoutTheRight) {
  share(Access::LocalWrite | Access::RemoteRead);
  expect_terminate(aimed(Opcode::Write, 3000), 0, 1, 0x02);
}

// DDP-7.1-02
TEST_F(Violations, SendWithoutAReceive) {
  share(kAll);
  expect_terminate(work(Opcode::Send, 1, source_, source_stag_, 10), 1, 2, 0x02);
}

// DDP-7.1-05
TEST_F(Violations, SendLongerThanTheReceive) {
  share(kAll);
  ASSERT_EQ(b_->post_receive(receive(1, target_, target_stag_, 99)), PostResult::Ok);
  expect_terminate(work(Opcode::Send, 1, source_, source_stag_, 100), 1, 2, 0x05);
}

// SEC-6.3.1-01
TEST_F(Violations, ReadOutsideTheRegion) {
  share(kAll);
  auto w = aimed(Opcode::Read, 100);
  w.remote.offset += kSize - 99;
  expect_terminate(w, 0, 1, 0x01);
}

// RFC 5040 s.4.8
TEST_F(Violations, ReadWithoutTheRight) {
  share(Access::LocalWrite | Access::RemoteWrite);
  expect_terminate(aimed(Opcode::Read, 3000), 0, 1, 0x02);
}

// RFC 5040 s.4.8
TEST_F(Violations, ReadWithTheWrongKey) {
  share(kAll);
  auto w = aimed(Opcode::Read, 10);
  w.remote.stag ^= 0x80;
  expect_terminate(w, 0, 1, 0x00);
}

TEST_F(Violations, EverythingIsReturnedAfterATerminate) {
  share(kAll);
  auto w = aimed(Opcode::Write, 10);
  w.remote.stag ^= 1;
  expect_terminate(w, 1, 1, 0x00);
  ASSERT_TRUE(left().device->destroy_qp(a_).has_value());
  ASSERT_TRUE(right().device->destroy_qp(b_).has_value());
  ASSERT_TRUE(left().device->destroy_qp(healthy_a_).has_value());
  ASSERT_TRUE(run_until([&] { return right().device->live_connections() == 0; }));
  ASSERT_TRUE(right().device->destroy_qp(healthy_b_).has_value());
  ASSERT_TRUE(left().device->deregister_memory(source_stag_).has_value());
  ASSERT_TRUE(right().device->deregister_memory(target_stag_).has_value());
  EXPECT_EQ(left().device->memory().live(), 0u);
  EXPECT_EQ(right().device->memory().live(), 0u);
  expect_all_returned();
}

// DDP-6.2.1-02: behind our own FIN no Terminate can leave. The stream is reset at
// once and both ends hear of it; nothing is told as sent that was not.
TEST_F(Violations, BehindOurOwnFinTheStreamIsReset_RDMAP_7_1_03) {
  share(Access::RemoteWrite);
  ASSERT_EQ(a_->post_send(aimed(Opcode::Write, 100)), PostResult::Ok);
  ASSERT_TRUE(run_until([&] { return !left().completions(a_->spec().send_cq).empty(); }));
  ASSERT_TRUE(right().device->disconnect(*b_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::PeerClosed>(); }));
  auto bad = aimed(Opcode::Write, 100);
  bad.remote.stag = 0x7777;
  const base::Now from = now_;
  ASSERT_EQ(a_->post_send(bad), PostResult::Ok);
  ASSERT_TRUE(run_until(
      [&] { return left().has<event::Disconnected>() && right().has<event::Disconnected>(); }));
  EXPECT_LT(now_ - from, std::chrono::seconds(1));
  EXPECT_FALSE(right().has<event::TerminateSent>());
  EXPECT_EQ(right().device->rdmap_counters().terminates_out, 0u);
  const auto told = right().take<event::Disconnected>();
  EXPECT_EQ(told->fault.value().layer, FaultLayer::Ddp);
  EXPECT_EQ(told->fault.value().type, 1);
  EXPECT_EQ(told->fault.value().code, 0);
  const auto lost = left().take<event::Disconnected>();  // MPA-8-01: RST
  EXPECT_EQ(lost->end, StreamEnd::PeerReset);
  EXPECT_EQ(lost->fault.value().layer, FaultLayer::Llp);
  EXPECT_EQ(lost->fault.value().code, 1);
}

}  // namespace
}  // namespace rnic::device
