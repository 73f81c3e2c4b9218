// Completion queues: whom an overrun ends, another depth with completions in it, and what may come
// at once.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class CompletionQueues : public DevicePair {
 protected:
  CompletionQueues() : memory_(64) {
    pd_ = *right().device->alloc_pd();
    stag_ = right().add(memory_, pd_, Access::LocalWrite);
  }
  CompletionQueue* make_cq(uint32_t depth, bool fits_all = false) {
    return *right().device->create_cq(depth, {.fits_all = fits_all});
  }
  QueuePairSpec spec(CompletionQueue* send_cq, CompletionQueue* receive_cq) {
    QueuePairSpec spec;
    spec.pd = pd_;
    spec.send_cq = send_cq;
    spec.receive_cq = receive_cq;
    spec.send_depth = 8;
    spec.receive_depth = 16;
    return spec;
  }
  QueuePair* make_server(CompletionQueue* send_cq, CompletionQueue* receive_cq) {
    QueuePair* qp = *right().device->create_qp(spec(send_cq, receive_cq));
    return qp;
  }
  /// Zero-length Sends to a queue pair with as many receives.
  void send(QueuePair* client, QueuePair* server, uint64_t first, uint64_t last) {
    for (uint64_t id = first; id <= last; ++id) {
      ASSERT_EQ(server->post_receive({.id = id}), PostResult::Ok);
      ASSERT_EQ(client->post_send({.id = id, .signaled = false}), PostResult::Ok);
    }
    run_for(std::chrono::milliseconds(50));
  }
  [[nodiscard]] std::vector<uint64_t> poll(CompletionQueue* cq) {
    std::vector<uint64_t> ids;
    for (const Completion& done : right().completions(cq)) ids.push_back(done.id);
    return ids;
  }

  std::vector<uint8_t> memory_;
  uint32_t pd_ = 0;
  mem::Stag stag_;
};

// Two queue pairs complete in one queue that overruns, a third one in another: the two end, one
// event tells it, and the third goes on.
TEST_F(CompletionQueues, AnOverrunEndsItsQueuePairsAndNoOther_VERBS_16_VERBS_20_a) {
  CompletionQueue* small = make_cq(4);
  CompletionQueue* other = make_cq(64);
  QueuePair* const clients[] = {left().make_qp(), left().make_qp(), left().make_qp()};
  QueuePair* const servers[] = {make_server(small, small), make_server(other, small),
                                make_server(other, other)};
  for (int i = 0; i < 3; ++i) connect(clients[i], servers[i]);
  send(clients[0], servers[0], 1, 5);
  const auto told = right().take<event::CompletionOverrun>();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->qp, servers[0]->number());
  EXPECT_EQ(told->cq, small->number());
  EXPECT_FALSE(right().has<event::CompletionOverrun>());
  for (int i = 0; i < 2; ++i) {
    const auto ended = right().take<event::Disconnected>();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->end, StreamEnd::Aborted);
  }
  EXPECT_FALSE(right().has<event::Disconnected>());
  EXPECT_EQ(poll(small), (std::vector<uint64_t>{1, 2, 3, 4})) << "what was in it stays";
  EXPECT_TRUE(right().device->info(*small).overrun);
  EXPECT_FALSE(right().device->info(*other).overrun);
  send(clients[2], servers[2], 1, 5);
  EXPECT_EQ(poll(other), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

// RDMAP-8.1-01: RFC 5040 s.8.1.1(10)
TEST_F(CompletionQueues, OfSomebodyElseAreNotHarmed_SEC_6_4_6_01) {
  CompletionQueue* small = make_cq(1);
  CompletionQueue* other = make_cq(64);
  QueuePair* flooded = left().make_qp();
  QueuePair* calm = left().make_qp();
  QueuePair* flooded_server = make_server(small, small);
  QueuePair* calm_server = make_server(other, other);
  connect(flooded, flooded_server);
  connect(calm, calm_server);
  send(flooded, flooded_server, 1, 8);
  EXPECT_TRUE(right().has<event::CompletionOverrun>());
  send(calm, calm_server, 1, 8);
  EXPECT_EQ(poll(other).size(), 8u);
  EXPECT_EQ(right().count<event::Disconnected>(), 1u);
}

// One that was given up has no completions that anybody could miss: its queue pairs go on.
TEST_F(CompletionQueues, WithoutAHandleOverrunNoMore) {
  CompletionQueue* unheard = make_cq(2);
  CompletionQueue* other = make_cq(64);
  QueuePair* client = left().make_qp();
  QueuePair* server = make_server(other, unheard);
  connect(client, server);
  send(client, server, 1, 2);
  right().device->release_cq(unheard);
  for (uint64_t id = 3; id <= 20; id += 2) send(client, server, id, id + 1);
  EXPECT_FALSE(right().has<event::CompletionOverrun>());
  EXPECT_FALSE(right().has<event::Disconnected>() || left().has<event::Disconnected>());
  EXPECT_EQ(server->state(), QueuePairState::Rts);
}

// In error it takes no queue pairs and no connections; another depth ends that.
TEST_F(CompletionQueues, InErrorAreUsedAgainWhenResized_VERBS_16) {
  CompletionQueue* cq = make_cq(2);
  QueuePair* spoiler = make_server(cq, cq);
  QueuePair* waiting = make_server(cq, cq);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(spoiler->post_send({.id = id}), PostResult::Ok);  // flushed: it is not connected
  }
  run_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(right().has<event::CompletionOverrun>());
  const auto made = right().device->create_qp(spec(cq, cq));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::WrongState);
  const Endpoint there{left().device->config().net.address, kPort};
  const auto connected = right().device->connect(*waiting, there, {}, now_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::WrongState);
  ASSERT_TRUE(right().device->resize_cq(*cq, 16));
  EXPECT_TRUE(right().device->create_qp(spec(cq, cq)));
  EXPECT_EQ(poll(cq), (std::vector<uint64_t>{1, 2}));
  connect(left().make_qp(), waiting);
}

TEST_F(CompletionQueues, AreResizedWithCompletionsInThem_VERBS_17) {
  CompletionQueue* cq = make_cq(4);
  QueuePair* client = left().make_qp();
  QueuePair* server = make_server(cq, cq);
  connect(client, server);
  send(client, server, 1, 4);
  Completion first;
  ASSERT_EQ(cq->poll({&first, 1}), 1u);
  EXPECT_EQ(first.id, 1u);
  EXPECT_FALSE(right().device->resize_cq(*cq, 2)) << "three are in it";
  ASSERT_TRUE(right().device->resize_cq(*cq, 9));
  EXPECT_GE(cq->depth(), 9u);
  send(client, server, 5, 10);
  EXPECT_EQ(poll(cq), (std::vector<uint64_t>{2, 3, 4, 5, 6, 7, 8, 9, 10}));
  ASSERT_TRUE(right().device->resize_cq(*cq, 4));
  EXPECT_EQ(cq->depth(), 4u);
  send(client, server, 11, 14);
  EXPECT_EQ(poll(cq), (std::vector<uint64_t>{11, 12, 13, 14}));
  EXPECT_FALSE(right().has<event::CompletionOverrun>());
  EXPECT_FALSE(right().device->resize_cq(*cq, 0));
  EXPECT_FALSE(
      right().device->resize_cq(*cq, 2 * right().device->config().limits.max_work_depth + 1));
}

// Sends and receives of each queue pair, and a shared receive queue once.
TEST_F(CompletionQueues, TellWhatMayComeAtOnce_SEC_6_4_3_2_02) {
  CompletionQueue* both = make_cq(64);
  CompletionQueue* sends = make_cq(64);
  EXPECT_EQ(right().device->info(*both).demand, 0u);
  make_server(both, both);
  make_server(sends, both);
  EXPECT_EQ(right().device->info(*both).demand, 8u + 16u + 16u);
  EXPECT_EQ(right().device->info(*both).users, 3u);
  EXPECT_EQ(right().device->info(*sends).demand, 8u);
  SharedReceiveQueue* srq = *right().device->create_srq({.pd = pd_, .depth = 100});
  QueuePairSpec shared = spec(sends, both);
  shared.srq = srq;
  QueuePair* qp = *right().device->create_qp(shared);
  ASSERT_TRUE(right().device->create_qp(shared));
  EXPECT_EQ(right().device->info(*both).demand, 40u + 100u);
  EXPECT_EQ(right().device->info(*sends).demand, 3u * 8u);
  ASSERT_TRUE(right().device->destroy_qp(qp));
  EXPECT_EQ(right().device->info(*both).demand, 40u + 100u);
}

TEST_F(CompletionQueues, ThatAreToFitAllRefuseMore_SEC_6_4_3_2_02) {
  CompletionQueue* cq = make_cq(64, true);
  CompletionQueue* loose = make_cq(1);
  SharedReceiveQueue* srq = *right().device->create_srq({.pd = pd_, .depth = 30});
  QueuePairSpec shared = spec(cq, cq);
  shared.srq = srq;
  ASSERT_TRUE(right().device->create_qp(shared));                   // 8 + 30
  ASSERT_TRUE(right().device->create_qp(shared));                   // 8
  ASSERT_TRUE(right().device->create_qp(spec(cq, loose)));          // 8
  const auto refused = right().device->create_qp(spec(loose, cq));  // 16
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(refused.error().message.find("70 completions"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(right().device->create_qp(spec(cq, loose)));  // 8: 62
  EXPECT_FALSE(right().device->create_qp(shared));
  EXPECT_FALSE(right().device->resize_srq(*srq, 33));
  EXPECT_TRUE(right().device->resize_srq(*srq, 32));
  EXPECT_FALSE(right().device->resize_cq(*cq, 32));
  ASSERT_TRUE(right().device->resize_cq(*cq, 128));
  EXPECT_TRUE(right().device->resize_srq(*srq, 64));
}

TEST_F(CompletionQueues, StampWhatIsAddedWhereThatIsAskedFor) {
  CompletionQueue* const stamping = *right().device->create_cq(8, {.timestamps = true});
  CompletionQueue* const plain = make_cq(8);
  QueuePair* const server = make_server(plain, stamping);
  ASSERT_EQ(server->post_send({.id = 1}), PostResult::Ok);  // flushed: there is no connection
  right().device->poll(now_);
  Completion done;
  ASSERT_EQ(plain->poll({&done, 1}), 1u);
  EXPECT_EQ(done.time.count(), 0);
  connect(left().make_qp(), server);

  const base::Now before = now_;
  ASSERT_EQ(server->post_receive({.id = 2}), PostResult::Ok);
  right().device->poll(now_);
  right().device->begin_call(before + std::chrono::microseconds(7));
  ASSERT_TRUE(right().device->modify_qp(*server, {.state = QueuePairState::Error}, now_));
  ASSERT_EQ(stamping->poll({&done, 1}), 1u);
  EXPECT_EQ(done.id, 2u);
  EXPECT_EQ(done.time.count(), base::nanos(before) + 7000);
}

TEST_F(CompletionQueues, StampTheTurn) {
  CompletionQueue* const cq = *right().device->create_cq(8, {.timestamps = true});
  QueuePair* const server = make_server(make_cq(8), cq);
  QueuePair* const client = left().make_qp();
  connect(client, server);
  const base::Now before = now_;
  send(client, server, 1, 1);
  Completion done;
  ASSERT_EQ(cq->poll({&done, 1}), 1u);
  EXPECT_GE(done.time.count(), base::nanos(before) + 20'000) << "the link's delay";
  EXPECT_LE(done.time.count(), base::nanos(before) + 100'000);
}

TEST_F(CompletionQueues, AModerationBeyondItsLimitsIsRefused) {
  CompletionQueue* const cq = make_cq(8);
  using std::chrono::nanoseconds;
  const NotifyModeration bad[] = {{0, nanoseconds(0)},
                                  {2, nanoseconds(0)},
                                  {2, nanoseconds(-1)},
                                  {1, nanoseconds(-1)},
                                  {kMaxNotifyCount + 1, nanoseconds(1)},
                                  {2, kMaxNotifyPeriod + nanoseconds(1)}};
  for (const NotifyModeration& how : bad) {
    const auto status = cq->moderate(how);
    ASSERT_FALSE(status) << how.count << " " << how.period.count();
    EXPECT_EQ(status.error().code, ErrorCode::InvalidArgument);
    EXPECT_FALSE(right().device->create_cq(8, {.moderation = how}));
  }
  EXPECT_TRUE(cq->moderate({kMaxNotifyCount, kMaxNotifyPeriod}));
  EXPECT_TRUE(cq->moderate({}));
}

// A success of which there is nothing to tell besides is added by a shorter way: it is the same
// completion, counted, stamped and lost alike.
TEST(PushedSuccess, IsTheCompletionThatItStandsFor) {
  for (const bool stamps : {false, true}) {
    NotifyTimers timers(base::from_nanos(77));
    const CompletionQueueOptions options{.timestamps = stamps};
    CompletionQueue one(1, 4, options, timers, 0);
    CompletionQueue other(2, 4, options, timers, 0);
    for (uint64_t i = 0; i < 6; ++i) {
      const auto opcode = i % 2 == 0 ? Opcode::Write : Opcode::Send;
      const auto length = static_cast<uint32_t>(0xfffffff0u + i);
      const uint64_t id = ~i;
      const bool fits = one.push_success(id, opcode, length, 9);
      EXPECT_EQ(other.push({.id = id, .opcode = opcode, .length = length, .qp = 9}), fits);
      EXPECT_EQ(fits, i < 4);
    }
    EXPECT_EQ(one.added(), 4u);
    EXPECT_EQ(one.lost(), 2u);
    EXPECT_EQ(one.failed(), 0u);
    std::array<Completion, 5> got;
    std::array<Completion, 5> expected;
    ASSERT_EQ(one.poll(got), 4u);
    ASSERT_EQ(other.poll(expected), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got[i].id, expected[i].id);
      EXPECT_EQ(got[i].opcode, expected[i].opcode);
      EXPECT_EQ(got[i].status, CompletionStatus::Success);
      EXPECT_EQ(got[i].cause, CompletionCause::None);
      EXPECT_EQ(got[i].fault, expected[i].fault);
      EXPECT_FALSE(got[i].solicited || got[i].has_immediate);
      EXPECT_EQ(got[i].length, expected[i].length);
      EXPECT_EQ(got[i].qp, 9u);
      EXPECT_EQ(got[i].time.count(), stamps ? 77 : 0);
    }
    one.release();
    EXPECT_TRUE(one.push_success(1, Opcode::Write, 1, 9));
    EXPECT_EQ(one.added(), 4u) << "nobody can poll it any more";
  }
}

}  // namespace
}  // namespace rnic::device
