// Receives that several streams share: who takes which, ahead of the order and in it, and what
// becomes of them when a stream ends.

#include <array>
#include <memory>
#include <vector>

#include "rdmap/shared_receive_queue.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

struct RecordingSharedOwner final : SharedReceiveOwner {
  struct HighWater {
    uint32_t stream;
    uint32_t in_progress;
    friend bool operator==(const HighWater&, const HighWater&) = default;
  };
  void limit_reached(uint32_t posted) override { limits.push_back(posted); }
  void high_water_passed(uint32_t stream, uint32_t in_progress) override {
    high_waters.push_back({stream, in_progress});
  }
  std::vector<uint32_t> limits;
  std::vector<HighWater> high_waters;
};

class SharedQueue : public ::testing::Test {
 protected:
  static ReceiveRequest request(uint64_t id, uint32_t sges = 1) {
    ReceiveRequest work{.id = id};
    for (uint32_t i = 0; i < sges; ++i) work.sges.push_back({id * 100 + i, 8, i});
    return work;
  }
  void post(uint64_t first, uint64_t last) {
    for (uint64_t id = first; id <= last; ++id) ASSERT_TRUE(queue.post(request(id)));
  }
  uint64_t take() {
    taken.push_back(&queue.take());
    queue.validate();
    return taken.back()->id;
  }
  void give_back(size_t i) {
    queue.give_back(*taken[i]);
    taken.erase(taken.begin() + static_cast<ptrdiff_t>(i));
    queue.validate();
  }

  RecordingSharedOwner owner;
  SharedReceiveQueue queue{4, kMaxSge, owner};
  std::vector<const PostedReceive*> taken;
};

TEST_F(SharedQueue, PlacesComeBackInAnyOrder_VERBS_13) {
  post(1, 4);
  EXPECT_FALSE(queue.post(request(5)));
  EXPECT_EQ(take(), 1u);
  EXPECT_EQ(take(), 2u);
  EXPECT_EQ(take(), 3u);
  EXPECT_FALSE(queue.post(request(5))) << "one that is in progress has its place";
  give_back(1);
  post(5, 5);
  EXPECT_FALSE(queue.post(request(6)));
  EXPECT_EQ(taken[0]->id, 1u) << "what was taken stays as it was posted";
  EXPECT_EQ(taken[1]->id, 3u);
  EXPECT_EQ(take(), 4u);
  EXPECT_EQ(take(), 5u);
  EXPECT_EQ(queue.posted(), 0u);
  EXPECT_EQ(queue.taken(), 4u);
}

TEST_F(SharedQueue, KeepsAllPiecesOfTheLongestList) {
  ASSERT_TRUE(queue.post(request(1, kMaxSge)));
  ASSERT_TRUE(queue.post(request(2, kMaxSge)));
  take();
  take();
  for (uint64_t id = 1; id <= 2; ++id) {
    const auto sges = taken[id - 1]->sges();
    ASSERT_EQ(sges.size(), kMaxSge);
    for (uint32_t i = 0; i < kMaxSge; ++i) {
      EXPECT_EQ(sges[i].address, id * 100 + i);
      EXPECT_EQ(sges[i].stag, i);
    }
  }
}

TEST_F(SharedQueue, TheLimitIsToldOnceAndAtOnceWhereItIsReached_VERBS_13) {
  post(1, 4);
  queue.arm_limit(3);
  take();
  EXPECT_TRUE(owner.limits.empty()) << "three are not fewer than three";
  take();
  EXPECT_EQ(owner.limits, std::vector<uint32_t>{2});
  take();
  EXPECT_EQ(owner.limits.size(), 1u) << "it is not armed any more";
  queue.arm_limit(2);
  EXPECT_EQ(owner.limits, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(queue.limit(), 0u);
  queue.arm_limit(1);
  EXPECT_EQ(queue.limit(), 1u);
  queue.arm_limit(0);
  take();
  EXPECT_EQ(owner.limits.size(), 2u) << "it was taken back";
}

TEST_F(SharedQueue, ResizesWithReceivesInIt_VERBS_13) {
  post(1, 4);
  EXPECT_EQ(take(), 1u);
  EXPECT_FALSE(queue.resize(3)) << "it has four";
  EXPECT_EQ(queue.depth(), 4u);
  ASSERT_TRUE(queue.resize(7));
  post(5, 7);
  EXPECT_FALSE(queue.post(request(8)));
  for (uint64_t id = 2; id <= 7; ++id) EXPECT_EQ(take(), id);
  for (uint64_t id = 1; id <= 7; ++id) EXPECT_EQ(taken[id - 1]->id, id);
  while (taken.size() > 2) give_back(0);
  ASSERT_TRUE(queue.resize(3));
  post(8, 8);
  EXPECT_FALSE(queue.post(request(9)));
  ASSERT_TRUE(queue.resize(7)) << "places that were spare are used again";
  post(9, 12);
  EXPECT_FALSE(queue.post(request(13)));
  EXPECT_EQ(taken[0]->id, 6u);
  EXPECT_EQ(take(), 8u);
}

/// One stream, whose side b takes its receives from a queue that it may share.
struct SharedStream {
  static constexpr uint32_t kMulpdu = 256;

  SharedStream(uint32_t qp, SharedReceiveQueue& shared, uint32_t ahead)
      : pair(kMulpdu), a({.qp = qp, .pd = 4}, 1), b({.qp = qp, .pd = 4}, 2, 128, ahead, &shared) {
    pair.a.attach(a.endpoint.framing_user());
    pair.b.attach(b.endpoint.framing_user());
    a.endpoint.bind(pair.a);
    b.endpoint.bind(pair.b);
  }
  /// Messages of `n` octets, pulled and not yet arrived.
  void send(uint32_t count, uint32_t n = 8) {
    for (uint32_t i = 0; i < count; ++i) a.send(a.work(i, Opcode::Send, 0, n));
    pair.a.pull_all();
  }
  [[nodiscard]] std::vector<uint64_t> received() const {
    std::vector<uint64_t> ids;
    for (const Completion& c : b.owner.receives) ids.push_back(c.id);
    return ids;
  }
  void validate() const { b.endpoint.validate(); }

  test::FramingPair pair;
  Node a;
  Node b;
};

using Ids = std::vector<uint64_t>;

class SharedStreams : public ::testing::Test {
 protected:
  SharedStreams() { start(8); }
  void start(uint32_t ahead) {
    one.reset();
    two.reset();
    queue = std::make_unique<SharedReceiveQueue>(8, kMaxSge, owner);
    one = std::make_unique<SharedStream>(1, *queue, ahead);
    two = std::make_unique<SharedStream>(2, *queue, ahead);
  }
  /// Both streams know memory at the same offsets by the same STag.
  void post(uint64_t first, uint64_t last) {
    ASSERT_EQ(one->b.all, two->b.all);
    for (uint64_t id = first; id <= last; ++id) {
      ReceiveRequest work{.id = id};
      work.sges = {{(id % 8) * 64, 64, one->b.all}};
      ASSERT_TRUE(queue->post(work));
    }
  }
  void arrive(SharedStream& stream, size_t i) {
    stream.pair.b.arrive(stream.pair.a, i);
    one->validate();
    two->validate();
    queue->validate();
  }
  [[nodiscard]] static llp::PlaceVerdict last_verdict(const SharedStream& stream) {
    return stream.pair.b.verdicts.back();
  }

  RecordingSharedOwner owner;
  std::unique_ptr<SharedReceiveQueue> queue;
  std::unique_ptr<SharedStream> one;
  std::unique_ptr<SharedStream> two;
};

TEST_F(SharedStreams, EachTakesTheOldestWhenAMessageBegins_VERBS_13) {
  post(1, 4);
  one->send(2);
  two->send(2);
  arrive(*one, 0);
  arrive(*two, 0);
  arrive(*two, 1);
  arrive(*one, 1);
  EXPECT_EQ(one->received(), (Ids{1, 4}));
  EXPECT_EQ(two->received(), (Ids{2, 3}));
  EXPECT_EQ(queue->taken(), 0u);
  EXPECT_EQ(one->b.receives.claimed(), 2u);
}

// A long message has its receive from its first segment to its last, whatever others do meanwhile.
TEST_F(SharedStreams, AMessageOfSeveralSegmentsTakesOne_VERBS_13) {
  ReceiveRequest large{.id = 1};
  large.sges = {{0, 2000, one->b.all}};
  ASSERT_TRUE(queue->post(large));
  post(2, 2);
  one->a.fill(0, 700, 3);
  one->send(1, 700);
  two->send(1);
  arrive(*one, 0);
  arrive(*two, 0);
  arrive(*one, 1);
  arrive(*one, 2);
  EXPECT_EQ(one->received(), Ids{1});
  EXPECT_EQ(two->received(), Ids{2});
  EXPECT_EQ(one->b.owner.receives[0].length, 700u);
  EXPECT_EQ(std::memcmp(one->b.at(0), one->a.at(0), 700), 0);
}

// What comes ahead of the order takes the receives of the messages before it, too: they never wait
// for it, and receives come in the order of the messages.
TEST_F(SharedStreams, AheadOfTheOrderTheMessagesBetweenHaveTheirs_VERBS_13) {
  post(1, 4);
  one->send(3);
  two->send(2);
  arrive(*one, 2);
  EXPECT_EQ(last_verdict(*one), llp::PlaceVerdict::Placed);
  EXPECT_EQ(queue->posted(), 1u);
  EXPECT_EQ(one->b.receives.in_progress(), 3u);
  arrive(*two, 0);
  arrive(*one, 0);
  arrive(*one, 1);
  EXPECT_EQ(one->received(), (Ids{1, 2, 3}));
  EXPECT_EQ(two->received(), Ids{4});
}

TEST_F(SharedStreams, AheadOfTheOrderNoMoreThanMayAreTaken_SEC_6_4_3_1_03) {
  start(2);
  post(1, 4);
  one->send(3);
  arrive(*one, 2);
  EXPECT_EQ(last_verdict(*one), llp::PlaceVerdict::Hold);
  EXPECT_EQ(queue->posted(), 4u);
  arrive(*one, 1);
  EXPECT_EQ(last_verdict(*one), llp::PlaceVerdict::Placed);
  EXPECT_EQ(queue->posted(), 2u);
  arrive(*one, 0);
  EXPECT_EQ(one->received(), (Ids{1, 2, 3}));
  EXPECT_EQ(queue->posted(), 1u);
}

TEST_F(SharedStreams, AheadOfTheOrderNothingIsTakenWhereNotAllAreThere) {
  post(1, 2);
  one->send(3);
  arrive(*one, 2);
  EXPECT_EQ(last_verdict(*one), llp::PlaceVerdict::Hold);
  EXPECT_EQ(queue->posted(), 2u);
  post(3, 3);
  arrive(*one, 0);
  arrive(*one, 1);
  EXPECT_EQ(one->received(), (Ids{1, 2, 3}));
}

TEST_F(SharedStreams, ThatFindsNoneEndsAndNoOther_VERBS_13) {
  post(1, 1);
  one->send(2);
  arrive(*one, 0);
  arrive(*one, 1);
  EXPECT_EQ(one->b.endpoint.state(), EndpointState::Terminating);
  EXPECT_EQ(one->b.owner.fault(0).code, ddp::kUntaggedNoBuffer.code);
  EXPECT_EQ(one->b.owner.last_receives, 1);
  post(2, 2);
  two->send(1);
  arrive(*two, 0);
  EXPECT_EQ(two->received(), Ids{2});
  EXPECT_EQ(two->b.endpoint.state(), EndpointState::Connected);
  EXPECT_EQ(two->b.owner.last_receives, 0);
}

// In order a message has the next number, or a rule is broken; that takes nothing.
TEST_F(SharedStreams, ANumberThatLeavesSomeOutTakesNothingInOrder_VERBS_13) {
  post(1, 4);
  one->send(3);
  one->pair.a.sent.erase(one->pair.a.sent.begin());
  arrive(*one, 0);
  EXPECT_EQ(one->b.endpoint.state(), EndpointState::Terminating);
  EXPECT_EQ(one->b.owner.fault(0).code, ddp::kUntaggedMsnRange.code);
  EXPECT_EQ(queue->posted(), 4u);
}

TEST_F(SharedStreams, AnEndGivesBackWhatWasInProgress_VERBS_13) {
  ReceiveRequest large{.id = 1};
  large.sges = {{0, 2000, one->b.all}};
  ASSERT_TRUE(queue->post(large));
  post(2, 4);
  one->send(1, 700);
  one->send(1);
  arrive(*one, 0);
  arrive(*one, 3);
  EXPECT_EQ(queue->taken(), 2u);
  one->b.endpoint.abort();
  one->validate();
  EXPECT_EQ(queue->taken(), 0u);
  ASSERT_EQ(one->received(), (Ids{1, 2}));
  for (const Completion& done : one->b.owner.receives) {
    EXPECT_EQ(done.status, CompletionStatus::Flushed);
    EXPECT_EQ(done.qp, 1u);
  }
  EXPECT_EQ(one->b.owner.last_receives, 1);
  EXPECT_EQ(queue->posted(), 2u) << "what it had not taken is the others'";
  one->b.endpoint.framing_user().ended(StreamEnd::Aborted, {});
  EXPECT_EQ(one->b.owner.last_receives, 1) << "once";
}

// Behind an end nothing is taken, though segments may still come.
TEST_F(SharedStreams, BehindAnEndNothingIsTaken) {
  post(1, 4);
  one->send(2);
  one->b.endpoint.abort();
  arrive(*one, 0);
  arrive(*one, 1);
  EXPECT_EQ(queue->posted(), 4u);
}

TEST_F(SharedStreams, HighWaterIsToldOnceAStream_SEC_6_4_3_1_03) {
  post(1, 8);
  queue->arm_high_water(2);
  one->send(4);
  two->send(3);
  arrive(*one, 1);
  EXPECT_TRUE(owner.high_waters.empty()) << "two are not more than two";
  arrive(*one, 2);
  EXPECT_EQ(owner.high_waters, (std::vector<RecordingSharedOwner::HighWater>{{1, 3}}));
  arrive(*one, 3);
  EXPECT_EQ(owner.high_waters.size(), 1u);
  arrive(*two, 2);
  EXPECT_EQ(owner.high_waters.back(), (RecordingSharedOwner::HighWater{2, 3}));
  queue->arm_high_water(3);
  two->send(1);
  arrive(*two, 3);
  EXPECT_EQ(owner.high_waters.back(), (RecordingSharedOwner::HighWater{2, 4}));
  EXPECT_EQ(owner.high_waters.size(), 3u);
}

// Each stream counts the receives that it takes of a shared queue.
TEST_F(SharedStreams, EachHasItsStatistics_SEC_6_4_3_1_01) {
  post(1, 8);
  one->send(5);
  two->send(1);
  for (size_t i = 0; i < 4; ++i) arrive(*one, i);
  arrive(*two, 0);
  EXPECT_EQ(one->b.receives.claimed(), 4u);
  EXPECT_EQ(one->b.receives.in_progress(), 0u);
  EXPECT_EQ(two->b.receives.claimed(), 1u);
}

}  // namespace
}  // namespace rnic::rdmap
