// RFC 7306 section 7: each pair of operations, in every order of placement, with each part of the
// answers held back in turn.

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

enum class Op { Immediate, Send, Write, Read, Atomic };
constexpr std::array kAll{Op::Immediate, Op::Send, Op::Write, Op::Read, Op::Atomic};

bool delivers(Op op) { return op == Op::Immediate || op == Op::Send; }
bool responds(Op op) { return op == Op::Read || op == Op::Atomic; }

class OrderingTest : public TwoNodes {
 protected:
  void post(uint64_t id, Op op) {
    switch (op) {
      case Op::Immediate: immediate(id, {static_cast<uint8_t>(id)}); break;
      case Op::Send: send(id, 0, 16); break;
      case Op::Write: write(id, 0, 16, 2048); break;
      case Op::Read: read(id, 1024 + 64 * id, 16, 2048); break;
      case Op::Atomic: fetch_add(id, 2048, 1); break;
    }
  }
  /// What b did so far, in order: 'c' a receive completed, 'r' a response was generated.
  std::string seen() {
    std::string log;
    const size_t completed = b->owner.receives.size();
    for (; completions_ < completed; ++completions_) log += 'c';
    pair.b.pull_all();
    for (; responses_ < pair.b.sent.size(); ++responses_) log += 'r';
    return log;
  }
  void begin() {
    restart();
    completions_ = responses_ = 0;
    b->set_word(2048, 0);
    for (uint64_t i = 0; i < 2; ++i) b->post_receive(i, 4096 + 64 * i, 16);
  }
  size_t completions_ = 0;
  size_t responses_ = 0;
};

// R7306-6-04 R7306-5-12 RDMAP-5.5-12 RDMAP-5.5-07: the guarantees at the remote
// peer. Nothing of the second is completed or generated before the first, whichever arrives first.
// UNH-RDMAP-07 UNH-RDMAP-08
TEST_F(OrderingTest, EveryPairInEveryOrderOfArrival_R7306_7_01) {
  for (const Op first : kAll) {
    for (const Op second : kAll) {
      for (const bool reversed : {false, true}) {
        begin();
        a->set_word(0, 1000);
        post(1, first);
        post(2, second);
        pair.a.pull_all();
        ASSERT_EQ(pair.a.sent.size(), 2u);
        const auto mark = [](Op op) -> std::string {
          return delivers(op) ? "c" : responds(op) ? "r" : "";
        };
        pair.b.arrive(pair.a, reversed ? 1 : 0);
        EXPECT_EQ(seen(), reversed ? "" : mark(first));
        if (reversed && second == Op::Atomic) {
          EXPECT_EQ(b->word(2048), 0u) << "an atomic starts when it is delivered";
        }
        pair.b.arrive(pair.a, reversed ? 0 : 1);
        std::string expected = mark(second);
        if (reversed) expected = mark(first) + mark(second);
        std::string got = seen();
        // Completions are told before responses are pulled; a Send behind a Read or an atomic may
        // complete before the response is generated (RFC 5040 s.5.5(12), RFC 7306 s.5.4(6)).
        if (responds(first) && delivers(second) && reversed) expected = "cr";
        EXPECT_EQ(got, expected) << static_cast<int>(first) << static_cast<int>(second) << reversed;
        // The data says it, too.
        pair.a.release_all();
        pair.pump();
        EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
        if (second == Op::Atomic && first == Op::Write) {
          EXPECT_EQ(a->owner.sends[1].original, 1000u) << "the Write was placed before";
        }
        if (second == Op::Read && first == Op::Write) {
          EXPECT_EQ(a->word(1024 + 128), 1000u);
        }
        if (second == Op::Atomic && first == Op::Atomic) {
          EXPECT_EQ(a->owner.sends[0].original, 0u);
          EXPECT_EQ(a->owner.sends[1].original, 1u);
        }
      }
    }
  }
}

// RDMAP-5.5-14: a Read and an atomic of the same place while nothing can be sent: the
// atomic is not done before the Read Response in front of it was generated, so the Read brings what
// was there before, and a Read behind an atomic brings what is there after.
TEST_F(OrderingTest, ReadsAndAtomicsOfOnePlace_R7306_7_01) {
  begin();
  b->set_word(2048, 7);
  read(1, 1024, 8, 2048);
  fetch_add(2, 2048, 10);
  read(3, 1032, 8, 2048);
  fetch_add(4, 2048, 100);
  read(5, 1040, 8, 2048);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);  // all five are delivered, none is answered
  EXPECT_EQ(b->word(2048), 7u);
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(a->word(1024), 7u);
  EXPECT_EQ(a->owner.sends[1].original, 7u);
  EXPECT_EQ(a->word(1032), 17u);
  EXPECT_EQ(a->owner.sends[3].original, 17u);
  EXPECT_EQ(a->word(1040), 117u);
}

// R7306-7-01: responses of mixed kinds in every order of placement complete in the
// order of the requests.
TEST_F(OrderingTest, ResponsesInEveryOrderOfPlacement_RDMAP_5_5_06) {
  std::array<size_t, 4> order{0, 1, 2, 3};
  do {
    begin();
    b->set_word(2048, 3);
    read(1, 1024, 8, 2048);
    fetch_add(2, 2048, 1);
    fetch_add(3, 2048, 1);
    read(4, 1032, 8, 2048);
    pair.a.pull_all();
    pair.a.release_all();
    pair.b.arrive_rest(pair.a);
    pair.b.pull_all();
    ASSERT_EQ(pair.b.sent.size(), 4u);
    for (const size_t i : order) pair.a.arrive(pair.b, i);
    ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3, 4}));
    EXPECT_EQ(a->word(1024), 3u);
    EXPECT_EQ(a->owner.sends[2].original, 4u);
    EXPECT_EQ(a->word(1032), 5u);
    EXPECT_TRUE(a->owner.events.empty());
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace rnic::rdmap
