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

/// Sixteen pieces of a's region in the reverse order: 0, 1, 2, ... times 13 octets, one of nothing
/// among them.
SgeList scattered_sink(uint32_t stag) {
  SgeList sink;
  for (uint32_t i = 0; i < kMaxSge; ++i) sink.push_back({(kMaxSge - 1 - i) * 220, i * 13, stag});
  return sink;
}

class ReadIntoPieces : public PiecesTest {
 protected:
  /// a reads into `sink` what b has at `source`.
  void read_into(uint64_t id, const SgeList& sink, uint64_t source = 0) {
    SendRequest w{.id = id, .opcode = Opcode::Read};
    w.sges = sink;
    w.remote = {b->all, source};
    a->send(w);
  }
  /// The Read Request that a has sent as its FPDU of that number.
  [[nodiscard]] wire::RdmapReadRequest request(size_t sent) const {
    const auto& octets = pair.a.sent.at(sent).octets;
    return *wire::parse_rdmap_read_request(base::ByteView(octets).subspan(18));
  }
  /// The ULPDU goes to a as if b had sent it.
  void reply(std::vector<uint8_t> ulpdu) {
    pair.b.sent.push_back({std::move(ulpdu), {}, true});
    pair.a.arrive_rest(pair.b);
    pair.a.pull_all();
  }
  /// The octets of `sink` in the order of its pieces.
  std::vector<uint8_t> in_order(const SgeList& sink) {
    std::vector<uint8_t> all;
    for (const Sge& piece : sink.view()) {
      all.insert(all.end(), a->at(piece.address), a->at(piece.address) + piece.length);
    }
    return all;
  }
  std::vector<uint8_t> source(uint64_t at, size_t octets) {
    return {b->at(at), b->at(at) + octets};
  }
  /// What a Response to it carries from `to` on.
  std::vector<uint8_t> response(const wire::RdmapReadRequest& asked, uint64_t to, uint32_t octets) {
    return ulpdu(
        wire::DdpTaggedHeader{.last = false, .rsvd_ulp = 0x42, .stag = asked.sink_stag, .to = to},
        octets);
  }
};

TEST_F(ReadIntoPieces, OneRequestFillsThemInTheirOrder_VERBS_26) {
  b->fill(0, Node::kSize, 23);
  const SgeList sink = scattered_sink(a->add(Access::LocalWrite));
  const auto octets = static_cast<uint32_t>(sink.length());
  read_into(1, sink, 100);
  read_into(2, sink, 2500);
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 2u) << "one Read Request each";
  EXPECT_EQ(request(0).size, octets);
  pair.b.arrive_rest(pair.a);
  pair.a.release_all();
  pair.b.pull_all();
  ASSERT_GT(pair.b.sent.size(), 10u) << "of several segments each";
  const size_t half = pair.b.sent.size() / 2;
  for (size_t i = half; i-- > 0;) pair.a.arrive(pair.b, i);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(in_order(sink), source(100, octets));
  for (size_t i = half; i < 2 * half; ++i) pair.a.arrive(pair.b, i);
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(in_order(sink), source(2500, octets));
  for (const Sge& piece : sink.view()) {
    EXPECT_EQ(*a->at(piece.address + piece.length), Node::kGuard);
  }
  EXPECT_TRUE(a->owner.events.empty());
  EXPECT_TRUE(b->owner.events.empty());
}

// The pieces of one list may be regions of several pieces themselves.
TEST_F(ReadIntoPieces, OfRegionsOfPieces_VERBS_26) {
  b->fill(0, Node::kSize, 23);
  const uint32_t region = scatter(*a, 800, 1, 1, Access::LocalWrite);
  read_into(1, {{400, 400, region}, {0, 400, region}});
  expect_done(1);
  const auto got = gathered(*a, 800, 1, 1);
  const auto wanted = source(0, 800);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.begin() + 400, got.begin() + 400));
  EXPECT_TRUE(std::equal(wanted.begin() + 400, wanted.end(), got.begin()));
  EXPECT_TRUE(gaps_are(*a, 800, 1, 1, Node::kGuard));
}

// The STag of the list is no region's, and no use to a Write, a Send with Invalidate or a Read of
// the peer.
TEST_F(ReadIntoPieces, ItsStagIsForNothingElse_VERBS_25) {
  for (int use = 0; use < 3; ++use) {
    restart();
    read_into(1, {{0, 100, a->all}, {200, 100, a->all}});
    pair.a.pull_all();
    const wire::RdmapReadRequest asked = request(0);
    EXPECT_NE(asked.sink_stag, a->all);
    EXPECT_NE(asked.sink_stag, 0u);
    a->post_receive(7, 4000, 100);
    const auto before = a->memory;
    std::vector<uint8_t> bad;
    if (use == 0) {
      bad = ulpdu(
          wire::DdpTaggedHeader{
              .last = true, .rsvd_ulp = 0x40, .stag = asked.sink_stag, .to = asked.sink_to},
          10);
    } else if (use == 1) {
      bad = ulpdu(
          wire::DdpUntaggedHeader{
              .last = true, .rsvd_ulp = 0x44, .rsvd_ulp_tail = asked.sink_stag, .qn = 0, .msn = 1},
          0);
    } else {
      bad = read_request(
          1,
          {.sink_stag = 7, .size = 10, .source_stag = asked.sink_stag, .source_to = asked.sink_to});
    }
    reply(bad);
    ASSERT_FALSE(a->owner.events.empty()) << use;
    EXPECT_TRUE(std::holds_alternative<event::TerminateSent>(a->owner.events[0])) << use;
    EXPECT_EQ(a->memory, before) << use;
  }
}

// Not one octet before the first piece or behind the last is placed, nor one for a Read that has
// its Response. The region of a sink that is one piece goes on at either end of it.
TEST_F(ReadIntoPieces, OnlyWhatWasAskedForIsPlaced_VERBS_25) {
  struct Wrong {
    int64_t offset;
    uint32_t octets;
  };
  for (const Wrong wrong : {Wrong{-1, 2}, Wrong{199, 2}, Wrong{200, 1}, Wrong{0, 201}}) {
    for (const uint32_t pieces : {1u, 2u}) {
      restart();
      read_into(1, pieces == 1 ? SgeList{{300, 200, a->all}}
                               : SgeList{{0, 100, a->all}, {200, 100, a->all}});
      pair.a.pull_all();
      const auto before = a->memory;
      const wire::RdmapReadRequest asked = request(0);
      reply(response(asked, asked.sink_to + static_cast<uint64_t>(wrong.offset), wrong.octets));
      ASSERT_FALSE(a->owner.events.empty()) << pieces;
      EXPECT_EQ(a->memory, before) << pieces;
    }
  }
  restart();
  read_into(1, {{0, 100, a->all}, {200, 100, a->all}});
  expect_done(1);
  const auto before = a->memory;
  const wire::RdmapReadRequest asked = request(0);
  reply(response(asked, asked.sink_to, 10));
  ASSERT_FALSE(a->owner.events.empty());
  EXPECT_EQ(a->memory, before);
}

// A piece whose region is revoked while the Read is outstanding is not written to any more.
TEST_F(ReadIntoPieces, APieceIsRevoked) {
  const uint32_t other = a->add(Access::LocalWrite);
  read_into(1, {{0, 100, a->all}, {200, 100, other}});
  pair.a.pull_all();
  ASSERT_TRUE(a->table.remove(mem::Stag{other}));
  const auto before = a->memory;
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.arrive_rest(pair.b);
  ASSERT_FALSE(a->owner.events.empty());
  EXPECT_EQ(a->memory, before);
  EXPECT_EQ(a->owner.sends.size(), 1u);
}

TEST_F(ReadIntoPieces, LocalWriteIsEnoughUnlessItIsStrict_VERBS_25) {
  for (const bool strict : {false, true}) {
    for (const uint32_t pieces : {1u, 2u}) {
      restart({.qp = 9, .pd = 4, .strict_sinks = strict});
      b->fill(0, 200, 3);
      const uint32_t weak = a->add(Access::LocalWrite);
      const uint32_t both = a->add(Access::LocalWrite | Access::RemoteWrite);
      SgeList first{{0, 50, both}};
      SgeList second{{100, 50, weak}};
      if (pieces == 2) {
        first.push_back({50, 50, both});
        second.push_back({150, 50, both});
      }
      read_into(1, first);
      pair.pump();
      read_into(2, second);
      pair.pump();
      ASSERT_EQ(a->owner.sends.size(), 2u);
      EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Success);
      EXPECT_EQ(a->owner.sends[1].status,
                strict ? CompletionStatus::LocalProtection : CompletionStatus::Success);
      if (!strict) {
        EXPECT_EQ(in_order(second), source(0, second.length()));
      }
    }
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
