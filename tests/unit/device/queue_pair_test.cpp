// A queue pair: its numbers, what the events of its end say, and how a peer's close is answered.

#include "device/queue_pair_numbers.hpp"
#include "device_pair.hpp"

namespace rnic::device {
namespace {

TEST(QueuePairNumbers, ASlotHasAnotherNumberInEachLife) {
  QueuePairNumbers numbers(3);
  EXPECT_EQ(numbers.take(), 1u);
  EXPECT_EQ(numbers.take(), 2u);
  EXPECT_EQ(numbers.take(), 3u);
  EXPECT_EQ(numbers.take(), std::nullopt);
  numbers.give_back(2);
  numbers.give_back(1);
  EXPECT_EQ(numbers.take(), 6u) << "slot 2 was free first";
  EXPECT_EQ(numbers.after(6), 10u);
  numbers.give_back(10);  // renewed in between
  EXPECT_EQ(numbers.take(), 5u);
  EXPECT_EQ(numbers.take(), 14u);
  EXPECT_EQ(numbers.take(), std::nullopt);
  for (const uint32_t number : {2u, 6u, 10u, 14u}) EXPECT_EQ(numbers.slot_of(number), 2u);
}

// 2^32 / 4 lives are all different, and none has a number that means something else.
TEST(QueuePairNumbers, NumbersWrapWithoutZeroAndTheLast) {
  const QueuePairNumbers numbers(3);
  EXPECT_EQ(numbers.after(UINT32_MAX - 4), 3u) << "UINT32_MAX stands for any stream";
  EXPECT_EQ(numbers.after(UINT32_MAX - 5), UINT32_MAX - 1);
  EXPECT_EQ(numbers.after(UINT32_MAX - 1), 2u);
}

class QueuePairs : public DevicePair {
 protected:
  QueuePairs() {
    near_.assign(64, 1), far_.assign(64, 2);
    qp_ = left().make_qp(8, 32);
    peer_ = right().make_qp(8, 32);
    here_ = left().add(near_, qp_->spec().pd, Access::LocalWrite);
    there_ = right().add(far_, peer_->spec().pd, Access::LocalWrite);
    join(qp_, peer_);
  }
  /// Connects them; an empty Write lets the responder send, too (RFC 5044 s.7.1.2).
  void join(QueuePair* from, QueuePair* to) {
    connect(from, to, {}, {}, {.exchange_reads = true});
    auto first = work(Opcode::Write, 0, near_, {}, 0);
    first.signaled = false;
    first.sges = {};
    ASSERT_EQ(from->post_send(first), PostResult::Ok);
    run_for(std::chrono::milliseconds(1));
  }
  void post_receives(uint64_t n) {
    for (uint64_t id = 0; id < n; ++id) {
      ASSERT_EQ(qp_->post_receive(receive(id, near_, here_, 64)), PostResult::Ok);
    }
  }
  /// Until the left device tells of it; then all that is in the receive queue's CQ is taken, at
  /// once.
  template <typename Kind>
  std::optional<Kind> await(std::vector<Completion>& there_by_then) {
    std::optional<Kind> told;
    run_until([&] { return (told = left().take<Kind>()).has_value(); });
    there_by_then = left().completions(qp_->spec().receive_cq);
    return told;
  }

  std::vector<uint8_t> near_, far_;
  QueuePair* qp_ = nullptr;
  QueuePair* peer_ = nullptr;
  mem::Stag here_, there_;
};

/// What the peer may do wrong, and what comes of it.
struct Offence {
  Opcode opcode;
  bool receives;  // are there any for it?
  QueuePairError error;
};

// Access and request errors are told apart; the event comes behind the completions of all that was
// posted, and Disconnected comes last and says the same.
TEST_F(QueuePairs, ErrorsOfThePeerAreClassed_VERBS_19_VERBS_20_a) {
  for (const Offence& offence : {Offence{Opcode::Write, true, QueuePairError::Access},
                                 Offence{Opcode::Read, true, QueuePairError::Access},
                                 Offence{Opcode::Send, false, QueuePairError::Request}}) {
    SCOPED_TRACE(to_string(offence.opcode));
    int mine = 0;
    ASSERT_TRUE(left().device->modify_qp(*qp_, {.context = &mine}, now_));
    const uint64_t posted = offence.receives ? 4 : 0;
    post_receives(posted);
    auto wrong = work(offence.opcode, 1, far_, there_, 8);
    wrong.remote.stag = here_.value ^ 0x5500;
    ASSERT_EQ(peer_->post_send(wrong), PostResult::Ok);
    std::vector<Completion> by_then;
    const auto told = await<event::TerminateSent>(by_then);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->error, offence.error);
    EXPECT_EQ(told->context, &mine);
    EXPECT_EQ(by_then.size(), posted);
    const auto gone = await<event::Disconnected>(by_then);
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->error, offence.error);
    EXPECT_EQ(gone->context, &mine);
    ASSERT_TRUE(gone->fault);
    EXPECT_EQ(gone->fault->code, told->fault.code);
    run_for(std::chrono::seconds(1));
    left().collect();
    EXPECT_TRUE(left().events.empty()) << "Disconnected is the last";
    EXPECT_EQ(right().take<event::Disconnected>()->error, QueuePairError::Fatal);
    for (auto& [host, qp] : {std::pair{&left(), qp_}, std::pair{&right(), peer_}}) {
      ASSERT_TRUE(host->device->modify_qp(*qp, {.state = QueuePairState::Idle}, now_));
      host->events.clear();
    }
    join(qp_, peer_);
  }
}

TEST_F(QueuePairs, ALostConnectionIsFatalAndAnOrderlyEndNoError_VERBS_20_a) {
  post_receives(3);
  ASSERT_TRUE(right().device->destroy_qp(peer_));
  std::vector<Completion> by_then;
  auto gone = await<event::Disconnected>(by_then);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->error, QueuePairError::Fatal);
  EXPECT_EQ(gone->end, StreamEnd::PeerReset);
  EXPECT_EQ(by_then.size(), 3u);

  ASSERT_TRUE(
      left().device->modify_qp(*qp_, {.state = QueuePairState::Idle, .answer_close = true}, now_));
  peer_ = right().make_qp(8, 32);
  join(qp_, peer_);
  ASSERT_TRUE(right().device->disconnect(*peer_));
  gone = await<event::Disconnected>(by_then);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->error, QueuePairError::None);
  EXPECT_EQ(gone->end, StreamEnd::Closed);
  EXPECT_FALSE(gone->fault);
}

// The receives before a peer's close are delivered, the close is told, and then answered, behind
// what was posted here.
TEST_F(QueuePairs, APeersCloseIsAnsweredByDefault) {
  ASSERT_TRUE(left().device->modify_qp(*qp_, {.answer_close = true}, now_));
  post_receives(4);
  for (uint64_t id = 0; id < 4; ++id) {
    ASSERT_EQ(peer_->post_receive(receive(id, far_, there_, 64)), PostResult::Ok);
  }
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(peer_->post_send(work(Opcode::Send, id, far_, there_, 8)), PostResult::Ok);
  }
  ASSERT_EQ(qp_->post_send(work(Opcode::Send, 9, near_, here_, 8)), PostResult::Ok);
  ASSERT_TRUE(right().device->disconnect(*peer_));
  std::vector<Completion> by_then;
  ASSERT_TRUE(await<event::PeerClosed>(by_then));
  ASSERT_EQ(by_then.size(), 3u);
  for (const Completion& done : by_then) EXPECT_EQ(done.status, CompletionStatus::Success);
  const auto gone = await<event::Disconnected>(by_then);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->error, QueuePairError::None);
  ASSERT_EQ(by_then.size(), 1u);
  EXPECT_EQ(by_then[0].status, CompletionStatus::Flushed);
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  const auto got = right().completions(peer_->spec().receive_cq);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].status, CompletionStatus::Success) << "what was posted went before the close";
}

TEST_F(QueuePairs, TheApplicationMayAnswerACloseItself) {
  ASSERT_TRUE(right().device->disconnect(*peer_));
  std::vector<Completion> by_then;
  ASSERT_TRUE(await<event::PeerClosed>(by_then));
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(qp_->state(), QueuePairState::Rts);
  EXPECT_FALSE(left().has<event::Disconnected>());
  ASSERT_TRUE(left().device->disconnect(*qp_));
  EXPECT_TRUE(await<event::Disconnected>(by_then));
}

// IRD and ORD are changed in Idle; receives that were posted before stay.
TEST_F(QueuePairs, ReadsAreChangedInIdle) {
  const auto refused = left().device->modify_qp(*qp_, {.ord = 4}, now_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::WrongState);
  QueuePair* fresh = left().make_qp(8, 32);
  ASSERT_EQ(fresh->post_receive(receive(7, near_, here_, 64)), PostResult::Ok);
  run_for(std::chrono::microseconds(1));
  const auto beyond = left().device->modify_qp(*fresh, {.ird = 129}, now_);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(beyond.error().message.find("limits.max_reads (128)"), std::string::npos);
  ASSERT_TRUE(left().device->modify_qp(*fresh, {.ird = 3, .ord = 5}, now_));
  EXPECT_EQ(fresh->attributes().ird, 3u);
  EXPECT_EQ(fresh->attributes().ord, 5u);
  QueuePair* other = right().make_qp(8, 32);
  join(fresh, other);
  EXPECT_EQ(fresh->attributes().ord, 5u);
  EXPECT_EQ(other->attributes().ord, 3u) << "what was agreed";
  auto memory = right().add(far_, other->spec().pd, Access::LocalWrite);
  ASSERT_EQ(other->post_send(work(Opcode::Send, 1, far_, memory, 8)), PostResult::Ok);
  run_for(std::chrono::milliseconds(10));
  const auto got = left().completions(fresh->spec().receive_cq);
  ASSERT_EQ(got.size(), 1u);
  // Its region is another domain's: the receive that was posted before is found, and refused.
  EXPECT_EQ(got[0].id, 7u);
  EXPECT_EQ(got[0].status, CompletionStatus::LocalProtection);
}

}  // namespace
}  // namespace rnic::device
