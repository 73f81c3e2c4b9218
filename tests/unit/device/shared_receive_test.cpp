// Queue pairs that share a receive queue, over TCP: who gets which receive, the events about it,
// and the ends of each in any order.

#include <set>

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class SharedReceives : public DevicePair {
 protected:
  static constexpr uint32_t kOctets = 64;

  SharedReceives() : memory_(64 * kOctets), source_(octets(kOctets, 5)) {
    pd_ = *right().device->alloc_pd();
    cq_ = *right().device->create_cq(256);
    stag_ = right().add(memory_, pd_, Access::LocalWrite);
    srq_ = *right().device->create_srq({.pd = pd_, .depth = 32, .max_sges = 2});
  }

  QueuePairSpec spec() {
    QueuePairSpec spec;
    spec.pd = pd_;
    spec.send_cq = spec.receive_cq = cq_;
    spec.send_depth = 8;
    spec.receive_depth = 8;
    spec.srq = srq_;
    return spec;
  }
  struct Client {
    QueuePair* qp;
    mem::Stag stag;
    QueuePair* served_by;
  };
  Client make_client() {
    QueuePair* qp = left().make_qp();
    QueuePair* served_by = *right().device->create_qp(spec());
    connect(qp, served_by);
    return {qp, left().add(source_, qp->spec().pd, {}), served_by};
  }
  void send(const Client& client, uint64_t id = 1, uint32_t n = kOctets) {
    ASSERT_EQ(client.qp->post_send(work(Opcode::Send, id, source_, client.stag, n)),
              PostResult::Ok);
  }
  ReceiveRequest request(uint64_t id) {
    ReceiveRequest work{.id = id};
    work.sges = {{reinterpret_cast<uint64_t>(memory_.data()) + id * kOctets, kOctets, stag_.value}};
    return work;
  }
  void post(uint64_t first, uint64_t last) {
    for (uint64_t id = first; id <= last; ++id) {
      ASSERT_EQ(srq_->post_receive(request(id)), PostResult::Ok);
    }
  }
  /// \return what completes at the right until there are `n`
  std::vector<Completion> completions(size_t n) {
    std::vector<Completion> all;
    run_until([&] {
      const auto some = right().completions(cq_);
      all.insert(all.end(), some.begin(), some.end());
      return all.size() >= n;
    });
    EXPECT_EQ(all.size(), n);
    return all;
  }

  std::vector<uint8_t> memory_;
  std::vector<uint8_t> source_;
  uint32_t pd_ = 0;
  CompletionQueue* cq_ = nullptr;
  mem::Stag stag_;
  SharedReceiveQueue* srq_ = nullptr;
};

TEST_F(SharedReceives, ServesSeveralQueuePairs_VERBS_13) {
  const Client one = make_client();
  const Client two = make_client();
  post(1, 4);
  send(one);
  EXPECT_EQ(completions(1)[0].qp, one.served_by->number());
  send(two);
  send(two, 2);
  send(one, 2);
  const auto done = completions(3);
  std::set<uint64_t> ids;
  for (const Completion& each : done) {
    EXPECT_EQ(each.status, CompletionStatus::Success);
    EXPECT_EQ(each.length, kOctets);
    ids.insert(each.id);
    EXPECT_TRUE(std::equal(source_.begin(), source_.end(), memory_.begin() + each.id * kOctets));
  }
  EXPECT_EQ(ids, (std::set<uint64_t>{2, 3, 4}));
  const SrqInfo info = right().device->info(*srq_);
  EXPECT_EQ(info.posted, 0u);
  EXPECT_EQ(info.taken, 0u);
  EXPECT_EQ(info.depth, 32u);
  EXPECT_EQ(info.max_sges, 2u);
}

// RDMAP-8.1-01: RFC 5040 s.8.1.2(8)
TEST_F(SharedReceives, TellWhoTakesHowMuch_SEC_6_4_3_1_01) {
  const Client modest = make_client();
  const Client greedy = make_client();
  post(1, 20);
  send(modest);
  for (uint64_t id = 1; id <= 10; ++id) send(greedy, id);
  completions(11);
  const SrqInfo info = right().device->info(*srq_);
  ASSERT_EQ(info.queue_pairs.size(), 2u);
  EXPECT_EQ(info.queue_pairs[0].qp, modest.served_by->number());
  EXPECT_EQ(info.queue_pairs[0].taken, 1u);
  EXPECT_EQ(info.queue_pairs[1].qp, greedy.served_by->number());
  EXPECT_EQ(info.queue_pairs[1].taken, 10u);
  EXPECT_EQ(info.posted, 9u);
}

// A connection that takes more than its share is found in the list from which it can be aborted.
TEST_F(SharedReceives, TheListOfConnectionsTellsTheShareOfEach) {
  const Client modest = make_client();
  const Client greedy = make_client();
  QueuePair* const own = right().make_qp();
  QueuePair* const other = left().make_qp();
  connect(other, own);
  post(1, 11);
  send(modest);
  for (uint64_t id = 1; id <= 10; ++id) send(greedy, id);
  completions(11);
  std::vector<uint8_t> large = octets(100'000, 9);
  const mem::Stag stag = left().add(large, greedy.qp->spec().pd, {});
  std::vector<uint8_t> sink(large.size());
  ReceiveRequest receive{.id = 12};
  receive.sges = {{reinterpret_cast<uint64_t>(sink.data()), 100'000,
                   right().add(sink, pd_, Access::LocalWrite).value}};
  ASSERT_EQ(srq_->post_receive(receive), PostResult::Ok);
  ASSERT_EQ(greedy.qp->post_send(work(Opcode::Send, 11, large, stag, 100'000)), PostResult::Ok);
  ASSERT_TRUE(run_until([&] { return srq_->taken() != 0; }));

  const auto of = [&](const QueuePair* qp) {
    for (const ConnectionSummary& one : right().device->connections(now_)) {
      if (one.qp == qp->number()) return one;
    }
    ADD_FAILURE() << "no connection of " << qp->number();
    return ConnectionSummary{};
  };
  EXPECT_EQ(of(modest.served_by).srq, srq_->number());
  EXPECT_EQ(of(modest.served_by).srq_use.qp, modest.served_by->number());
  EXPECT_EQ(of(modest.served_by).srq_use.taken, 1u);
  EXPECT_EQ(of(modest.served_by).srq_use.in_progress, 0u);
  EXPECT_EQ(of(greedy.served_by).srq_use.taken, 11u);
  EXPECT_EQ(of(greedy.served_by).srq_use.in_progress, 1u);
  EXPECT_EQ(of(own).srq, 0u) << "it has receives of its own";
  EXPECT_EQ(of(own).srq_use.taken, 0u);

  // The stream of a queue pair that is destroyed lives on for a moment; its queue may be gone.
  ASSERT_TRUE(right().device->destroy_qp(greedy.served_by));
  ASSERT_TRUE(right().device->destroy_qp(modest.served_by));
  ASSERT_TRUE(right().device->destroy_srq(srq_));
  for (const ConnectionSummary& one : right().device->connections(now_)) {
    EXPECT_EQ(one.srq, 0u);
  }
}

TEST_F(SharedReceives, TheLimitIsAnEvent_SEC_6_4_3_1_02_VERBS_20_a) {
  const Client client = make_client();
  post(1, 4);
  srq_->arm_limit(3);
  send(client, 1);
  completions(1);
  EXPECT_FALSE(right().has<event::SrqLimitReached>());
  send(client, 2);
  completions(1);
  const auto told = right().take<event::SrqLimitReached>();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->srq, srq_->number());
  EXPECT_EQ(told->posted, 2u);
  EXPECT_FALSE(told->detail.empty());
  send(client, 3);
  completions(1);
  EXPECT_FALSE(right().has<event::SrqLimitReached>());
}

// The event of a queue that is gone may be read after another one has taken its place.
TEST_F(SharedReceives, AnEventOfAQueueThatIsGoneNamesNoOtherOne) {
  const uint32_t number = srq_->number();
  EXPECT_NE(number, 0u);
  srq_->arm_limit(3);
  ASSERT_TRUE(right().device->destroy_srq(srq_));
  std::set<uint32_t> numbers{number};
  for (int i = 0; i < 20; ++i) {
    srq_ = *right().device->create_srq({.pd = pd_, .depth = 32, .max_sges = 2});
    EXPECT_TRUE(numbers.insert(srq_->number()).second) << srq_->number() << " was another one's";
    EXPECT_EQ(right().device->limits().srqs, 1u);
    if (i != 19) {
      ASSERT_TRUE(right().device->destroy_srq(srq_));
    }
  }
  const auto told = right().take<event::SrqLimitReached>();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->srq, number);
}

// Only the stream that finds none ends; what it had is told before its end.
TEST_F(SharedReceives, ThatFindNoneEndTheirStreamOnly_VERBS_13_VERBS_20_a) {
  const Client one = make_client();
  const Client two = make_client();
  send(one);
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  const auto fault = right().take<event::TerminateSent>();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->qp, one.served_by->number());
  EXPECT_EQ(fault->fault.code, ddp::kUntaggedNoBuffer.code);
  const auto last = right().take<event::LastReceiveDone>();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->qp, one.served_by->number());
  EXPECT_EQ(last->srq, srq_->number());
  EXPECT_EQ(last->remote.address, left().device->config().net.address);
  post(1, 1);
  send(two);
  EXPECT_EQ(completions(1)[0].qp, two.served_by->number());
  EXPECT_FALSE(right().has<event::LastReceiveDone>());
}

TEST_F(SharedReceives, AreRefusedWhatTheyWereNotMadeFor) {
  ReceiveRequest work = request(1);
  work.sges.push_back(work.sges[0]);
  EXPECT_EQ(srq_->post_receive(work), PostResult::Ok);
  work.sges.push_back(work.sges[0]);
  EXPECT_EQ(srq_->post_receive(work), PostResult::TooManySge);
  post(2, 32);
  EXPECT_EQ(srq_->post_receive(request(33)), PostResult::Full);
  EXPECT_FALSE(right().device->resize_srq(*srq_, 31));
  EXPECT_FALSE(right().device->resize_srq(*srq_, 0));
  ASSERT_TRUE(right().device->resize_srq(*srq_, 33));
  EXPECT_EQ(srq_->post_receive(request(33)), PostResult::Ok);
  EXPECT_FALSE(right().device->create_srq({.pd = 99}));
  EXPECT_FALSE(right().device->create_srq({.pd = pd_, .depth = 0}));
  EXPECT_FALSE(right().device->create_srq({.pd = pd_, .max_sges = kMaxSge + 1}));
  QueuePairSpec foreign = spec();
  foreign.pd = *right().device->alloc_pd();
  const auto refused = right().device->create_qp(foreign);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
}

TEST_F(SharedReceives, GoWithTheLastThatStandsOnThem) {
  QueuePair* qp = *right().device->create_qp(spec());
  const auto refused = right().device->destroy_srq(srq_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::WrongState);
  right().device->release_srq(srq_);
  ASSERT_TRUE(right().device->deregister_memory(stag_));
  EXPECT_FALSE(right().device->free_pd(pd_));
  ASSERT_TRUE(right().device->destroy_qp(qp));
  EXPECT_TRUE(right().device->free_pd(pd_)) << "the shared receive queue has gone";
}

// The queue pair is destroyed inside a message; its stream lives on for a moment, without it.
TEST_F(SharedReceives, ADestroyedQueuePairLeavesNothingInProgress) {
  const Client one = make_client();
  const Client two = make_client();
  std::vector<uint8_t> large = octets(100'000, 9);
  const mem::Stag stag = left().add(large, one.qp->spec().pd, {});
  std::vector<uint8_t> sink(large.size());
  ReceiveRequest work{.id = 1};
  work.sges = {{reinterpret_cast<uint64_t>(sink.data()), 100'000,
                right().add(sink, pd_, Access::LocalWrite).value}};
  ASSERT_EQ(srq_->post_receive(work), PostResult::Ok);
  post(2, 2);
  ASSERT_EQ(one.qp->post_send(DevicePair::work(Opcode::Send, 1, large, stag, 100'000)),
            PostResult::Ok);
  ASSERT_TRUE(run_until([&] { return srq_->taken() == 1 && sink[20'000] != 0; }));
  ASSERT_TRUE(right().device->destroy_qp(one.served_by));
  EXPECT_EQ(srq_->taken(), 0u);
  std::fill(sink.begin(), sink.end(), uint8_t{0});
  send(two);
  const auto done = completions(1);
  EXPECT_EQ(done[0].id, 2u);
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(std::count(sink.begin(), sink.end(), 0), 100'000) << "nothing is placed any more";
  EXPECT_TRUE(right().device->destroy_qp(two.served_by));
  EXPECT_TRUE(right().device->destroy_srq(srq_));
}

}  // namespace
}  // namespace rnic::device
