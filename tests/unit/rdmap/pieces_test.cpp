// Regions of several pieces under every operation: what goes over the wire does not show where the
// pieces end.

#include <numeric>

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class PiecesTest : public TwoNodes {
 protected:
  static constexpr uint32_t kOctets = 900;  // several segments

  /// A region of `count` pieces of `octets` each, which lie in a node's memory in the reverse order
  /// and `gap` octets apart from each other.
  static uint32_t scatter(Node& node, uint32_t count, uint32_t octets, uint32_t gap,
                          AccessSet rights) {
    std::vector<base::ByteSpan> pieces;
    for (uint32_t i = 0; i < count; ++i) {
      pieces.emplace_back(node.at(place_of(count, octets, gap, i)), octets);
    }
    return node.table.add({.pd = node.pd, .rights = rights, .pieces = pieces}).value().value;
  }
  static uint64_t place_of(uint32_t count, uint32_t octets, uint32_t gap, uint32_t piece) {
    return uint64_t{count - 1 - piece} * (octets + gap);
  }
  /// The octets of that region in the order of their offsets.
  static std::vector<uint8_t> gathered(Node& node, uint32_t count, uint32_t octets, uint32_t gap) {
    std::vector<uint8_t> all;
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t* const from = node.at(place_of(count, octets, gap, i));
      all.insert(all.end(), from, from + octets);
    }
    return all;
  }
  /// No octet between the pieces is another one than `value`.
  static bool gaps_are(Node& node, uint32_t count, uint32_t octets, uint32_t gap, uint8_t value) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t* const behind = node.at(place_of(count, octets, gap, i) + octets);
      if (std::any_of(behind, behind + gap, [&](uint8_t o) { return o != value; })) return false;
    }
    return true;
  }
  std::vector<uint8_t> pattern() {
    a->fill(0, Node::kSize, 11);
    return {a->at(0), a->at(0) + kOctets};
  }
  /// Runs everything and expects `sends` of a to have ended well.
  void expect_done(size_t sends) {
    pair.pump();
    ASSERT_EQ(a->owner.sends.size(), sends);
    for (const Completion& done : a->owner.sends) {
      EXPECT_EQ(done.status, CompletionStatus::Success);
    }
  }
};

// Placed whole, whatever the pieces are: longer than a segment, shorter, and so many that one
// segment goes to more of them than a list has places for.
TEST_F(PiecesTest, AWriteIsPlacedAcrossTheirBorders) {
  for (const uint32_t octets : {450u, 100u, 9u, 3u, 1u}) {
    restart();
    const auto wanted = pattern();
    const uint32_t count = kOctets / octets;
    const uint32_t target = scatter(*b, count, octets, 2, Access::RemoteWrite);
    SendRequest w = a->work(1, Opcode::Write, 0, kOctets);
    w.remote = {target, 0};
    a->send(w);
    expect_done(1);
    EXPECT_EQ(gathered(*b, count, octets, 2), wanted) << octets;
    EXPECT_TRUE(gaps_are(*b, count, octets, 2, Node::kGuard)) << octets;
  }
}

// Refused whole: a segment that begins inside and ends one octet behind the last piece writes none.
TEST_F(PiecesTest, AWriteBehindTheLastOneWritesNothing) {
  const uint32_t target = scatter(*b, 20, 3, 2, Access::RemoteWrite);
  inject(ulpdu(wire::DdpTaggedHeader{.last = true, .rsvd_ulp = 0x40, .stag = target, .to = 1}, 60));
  expect_terminate(1, 1, 0x01);
  EXPECT_TRUE(gaps_are(*b, 20, 3, 2, Node::kGuard));
  EXPECT_EQ(gathered(*b, 20, 3, 2), std::vector<uint8_t>(60, Node::kGuard));
}

TEST_F(PiecesTest, ASendIsGatheredAndReceived) {
  for (const uint32_t octets : {100u, 9u, 1u}) {
    restart();
    const uint32_t count = kOctets / octets;
    a->fill(0, Node::kSize, 11);
    const uint32_t source = scatter(*a, count, octets, 1, Access::LocalRead);
    const uint32_t target = scatter(*b, count, octets, 2, Access::LocalWrite);
    ReceiveRequest receive{.id = 1};
    // Two elements of one list, so that it begins anew in the middle of the region.
    receive.sges = {{0, 301, target}, {301, kOctets - 301, target}};
    b->receive(receive);
    SendRequest w{.id = 1, .opcode = Opcode::Send};
    w.sges = {{0, 500, source}, {500, kOctets - 500, source}};
    a->send(w);
    expect_done(1);
    ASSERT_EQ(b->owner.receives.size(), 1u);
    EXPECT_EQ(b->owner.receives[0].length, kOctets);
    EXPECT_EQ(gathered(*b, count, octets, 2), gathered(*a, count, octets, 1)) << octets;
    EXPECT_TRUE(gaps_are(*b, count, octets, 2, Node::kGuard)) << octets;
  }
}

// A list of sixteen elements, each of which has more pieces than a list has places.
TEST_F(PiecesTest, AListOfRegionsOfPieces) {
  a->fill(0, Node::kSize, 5);
  const uint32_t source = scatter(*a, 800, 1, 1, Access::LocalRead);
  const uint32_t target = scatter(*b, 800, 1, 1, Access::LocalWrite);
  SendRequest w{.id = 1, .opcode = Opcode::Send};
  ReceiveRequest receive{.id = 1};
  for (uint32_t i = 0; i < kMaxSge; ++i) {
    w.sges.push_back({i * 50, 50, source});
    receive.sges.push_back({(kMaxSge - 1 - i) * 50, 50, target});
  }
  b->receive(receive);
  a->send(w);
  expect_done(1);
  const auto from = gathered(*a, 800, 1, 1);
  const auto to = gathered(*b, 800, 1, 1);
  for (uint32_t i = 0; i < kMaxSge; ++i) {
    EXPECT_TRUE(std::equal(from.begin() + i * 50, from.begin() + (i + 1) * 50,
                           to.begin() + (kMaxSge - 1 - i) * 50));
  }
}

TEST_F(PiecesTest, AReadHasThemAtBothEnds) {
  for (const uint32_t octets : {100u, 9u, 1u}) {
    restart();
    const uint32_t count = kOctets / octets;
    b->fill(0, Node::kSize, 23);
    const uint32_t source = scatter(*b, count, octets, 1, Access::RemoteRead);
    const uint32_t sink = scatter(*a, count, octets, 2, Access::LocalWrite);
    SendRequest w{.id = 1, .opcode = Opcode::Read};
    w.sges = {{0, kOctets, sink}};
    w.remote = {source, 0};
    a->send(w);
    expect_done(1);
    EXPECT_EQ(gathered(*a, count, octets, 2), gathered(*b, count, octets, 1)) << octets;
    EXPECT_TRUE(gaps_are(*a, count, octets, 2, Node::kGuard)) << octets;
  }
}

// An atomic is one access to one word, which lies in one piece; its result may lie in several.
TEST_F(PiecesTest, AnAtomicIsCarriedOutWithinOnePiece) {
  const uint32_t sink = scatter(*a, 8, 1, 1, Access::LocalWrite);
  b->set_word(0, 40);
  std::vector<base::ByteSpan> words{{b->at(64), 4}, {b->at(0), 8}, {b->at(68), 8}};
  const auto add = [&](uint64_t to) {
    SendRequest w{.id = 1, .opcode = Opcode::FetchAdd};
    w.sges = {{0, 8, sink}};
    w.remote = {b->table.add({.pd = 4, .rights = Access::RemoteAtomic, .pieces = words})->value,
                to};
    w.atomic = {.data = 2};
    a->send(w);
  };
  add(4);
  expect_done(1);
  EXPECT_EQ(b->word(0), 42u);
  uint64_t original = 0;
  std::memcpy(&original, gathered(*a, 8, 1, 1).data(), sizeof original);
  EXPECT_EQ(original, 40u);
  // Four octets of the first piece and four of the second, though both have all that is asked for.
  const auto before = b->memory;
  add(0);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  EXPECT_EQ(b->memory, before);
  expect_terminate(0, 1, 0x01);
}

// The right to write is none to read; a Read of nothing asks for no right.
TEST_F(PiecesTest, WhoMayWriteMayNotRead_SEC_6_3_5_01) {
  const uint32_t target = b->add(AccessSet::all().without(Access::RemoteRead));
  inject(read_request(1, {.sink_stag = 7, .size = 0, .source_stag = target}));
  EXPECT_TRUE(pair.b.pull());
  EXPECT_EQ(pair.b.sent.back().octets.size(), 14u) << "a Response without payload";
  inject(ulpdu(wire::DdpTaggedHeader{.last = true, .rsvd_ulp = 0x40, .stag = target}, 8));
  EXPECT_EQ(*b->at(0), 0xee);
  EXPECT_TRUE(b->owner.events.empty());
  inject(read_request(2, {.sink_stag = 7, .size = 1, .source_stag = target}));
  expect_terminate(0, 1, 0x02);
}

// What a peer may invalidate is for one stream; one that all streams share it cannot end, with the
// right or without it.
TEST_F(PiecesTest, ASharedRegionIsNotInvalidatedByAPeer_SEC_6_4_5_01) {
  const uint32_t shared = b->add(AccessSet::all().without(Access::RemoteInvalidate));
  b->post_receive(1, 0, 8);
  SendRequest w = a->work(1, Opcode::SendInvalidate, 0, 8);
  w.invalidate_stag = shared;
  a->send(w);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(0, 1, 0x09);
  EXPECT_EQ(b->table.access({mem::Stag{shared}, 0, 1, {}, 4, 0}).fault, mem::AccessFault::None);
}

}  // namespace
}  // namespace rnic::rdmap
