// Messages that go as they are, one behind the other. A twin whose memory is looked up again for
// each of them never takes this way, and has to say and do the same.
#include <functional>
#include <random>

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

/// A segment that takes ULPDUs as long as they fit, or segments of one room for those of a message.
class SegmentWriter final : public llp::UlpduWriter {
 public:
  static constexpr uint32_t kLeast = 18;

  /// \param goes_on segments of the message came before: no other one shares its last segment
  SegmentWriter(uint32_t room, uint32_t places, bool goes_on)
      : room_(room), full_(room), places_(places), goes_on_(goes_on) {}

  void write(uint32_t ulpdu_length, base::ByteView header,
             std::span<const base::ByteSpan> payload) override {
    std::vector<uint8_t> octets(header.begin(), header.end());
    for (const base::ByteSpan piece : payload) {
      octets.insert(octets.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(octets.size(), ulpdu_length);
    EXPECT_LE(ulpdu_length, room_);
    room_ -= ulpdu_length;
    open_ = false;
    ulpdus.push_back({std::move(octets), {}, true});
  }
  llp::UlpduRoom next(const llp::PulledUlpdu& written) override {
    if (!follows(written)) return {};
    take(written);
    return {.max = room_, .whole_only = written.last, .lasts = !written.last};
  }
  bool append(const llp::PulledUlpdu& before, base::ByteView header,
              base::ByteSpan payload) override {
    const size_t length = header.size() + payload.size();
    const bool behind = !ulpdus.empty() && !open_;
    if (length > (behind && !before.last ? full_ : room_)) return false;
    if (behind && !follows(before)) return false;
    if (behind) take(before);
    write(static_cast<uint32_t>(length), header, {&payload, 1});
    ++appended;
    return true;
  }
  /// The ULPDU that was written last is complete. \param closed nothing follows
  void take(const llp::PulledUlpdu& written, bool closed = false) {
    test::SentUlpdu& last = ulpdus.back();
    EXPECT_EQ(last.octets.size(), written.length);
    last.tag = written.tag;
    last.last = written.last;
    open_ = !closed;
  }

  std::vector<test::SentUlpdu> ulpdus;
  uint32_t appended = 0;

 private:
  /// \return whether there is a place behind that ULPDU: in its segment, or in the next one
  bool follows(const llp::PulledUlpdu& before) {
    if ((before.last && (goes_on_ || room_ < kLeast)) || ulpdus.size() >= places_) return false;
    if (!before.last) {
      room_ = full_;
      goes_on_ = true;
    }
    return true;
  }

  uint32_t room_;
  const uint32_t full_;
  const uint32_t places_;
  bool goes_on_;
  bool open_ = false;  // next() has been called, and nothing was written since
};

/// Two ends of a connection.
struct World {
  explicit World(bool lasting, uint32_t depth = 32)
      : a({.qp = 9, .pd = 4}, 1, depth, depth, nullptr, lasting),
        b({.qp = 9, .pd = 4}, 2, depth, depth, nullptr, lasting) {
    pair.a.attach(a.endpoint.framing_user());
    pair.b.attach(b.endpoint.framing_user());
    a.endpoint.bind(pair.a);
    b.endpoint.bind(pair.b);
    a.fill(0, Node::kSize, 5);
  }

  /// \return ULPDUs that a gave, in a segment with that room; those of a message to its end
  std::vector<test::SentUlpdu> pull(uint32_t room = 4096, uint32_t places = 32,
                                    bool whole_only = false) {
    std::vector<test::SentUlpdu> pulled;
    bool begun = false;
    do {
      SegmentWriter writer(room, places - static_cast<uint32_t>(pulled.size()), begun);
      const llp::PulledUlpdu last = pair.a.user().pull_ulpdu(room, whole_only, writer, {});
      if (last.length != 0) writer.take(last, true);
      more = last.length != 0 && last.more;
      appended += writer.appended;
      begun = !writer.ulpdus.empty() && !writer.ulpdus.back().last;
      for (const test::SentUlpdu& ulpdu : writer.ulpdus) pulled.push_back(ulpdu);
    } while (begun && pulled.size() < places);
    for (const test::SentUlpdu& ulpdu : pulled) pair.a.sent.push_back(ulpdu);
    return pulled;
  }
  void exchange() {
    pair.b.arrive_rest(pair.a);
    while (pair.b.pull()) pair.a.arrive_rest(pair.b);
    pair.a.release_run();
    pair.b.release_run();
    a.endpoint.validate();
    b.endpoint.validate();
  }
  [[nodiscard]] SendRequest write(uint64_t id, uint32_t length, uint64_t from = 0) const {
    SendRequest w = a.work(id, Opcode::Write, from, length);
    w.remote = {b.all, 8 * id % 1024};
    return w;
  }

  test::FramingPair pair{4096};
  Node a;
  Node b;
  bool more = false;  ///< as the last pull has told
  uint32_t appended = 0;
};

/// What is done to one is done to both; what both sent, completed and counted has to be the same.
class DirectTest : public ::testing::Test {
 protected:
  void both(const std::function<void(World&)>& what) {
    what(fast);
    what(slow);
  }
  /// \return ULPDUs that were pulled
  size_t pull(uint32_t room = 4096, uint32_t places = 32, bool whole_only = false) {
    const auto one = fast.pull(room, places, whole_only);
    const auto other = slow.pull(room, places, whole_only);
    EXPECT_EQ(fast.more, slow.more);
    EXPECT_EQ(one.size(), other.size());
    for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
      EXPECT_EQ(one[i].octets, other[i].octets) << "ULPDU " << i;
      EXPECT_EQ(one[i].tag, other[i].tag) << "ULPDU " << i;
      EXPECT_EQ(one[i].last, other[i].last) << "ULPDU " << i;
    }
    return one.size();
  }
  void exchange() {
    both([](World& world) { world.exchange(); });
    compare(fast.a, slow.a);
    compare(fast.b, slow.b);
  }
  static void compare(const Node& one, const Node& other) {
    EXPECT_EQ(one.memory, other.memory);
    EXPECT_EQ(told(one.owner.sends), told(other.owner.sends));
    EXPECT_EQ(told(one.owner.receives), told(other.owner.receives));
    EXPECT_EQ(one.owner.events.size(), other.owner.events.size());
    EXPECT_EQ(counted(one.counters), counted(other.counters));
    EXPECT_EQ(one.endpoint.state(), other.endpoint.state());
  }
  static std::vector<std::array<uint64_t, 5>> told(const std::vector<Completion>& all) {
    std::vector<std::array<uint64_t, 5>> told;
    for (const Completion& c : all) {
      told.push_back({c.id, static_cast<uint64_t>(c.opcode), static_cast<uint64_t>(c.status),
                      c.length, c.qp});
    }
    return told;
  }
  static std::vector<uint64_t> counted(const Counters& counters) {
    std::vector<uint64_t> counted;
    counters.for_each([&](const base::CounterRow& row) { counted.push_back(row.value); });
    return counted;
  }
  /// How many went the direct way until now.
  [[nodiscard]] uint32_t direct() const {
    EXPECT_EQ(slow.appended, 0u) << "the twin takes the general way";
    return fast.appended;
  }
  void post(const SendRequest& request) {
    both([&](World& world) { world.a.send(request); });
  }
  /// Both worlds draw the same STags, so this is a request for either.
  [[nodiscard]] SendRequest write(uint64_t id, uint32_t length, uint64_t from = 0) const {
    return fast.write(id, length, from);
  }

  World fast{true};
  World slow{false};
};

// RDMAP-5.3-04
TEST_F(DirectTest, WritesAndSendsFollowEachOther) {
  both([](World& world) {
    for (uint64_t i = 0; i < 4; ++i) world.b.post_receive(50 + i, 2000 + 100 * i, 100);
  });
  for (uint64_t i = 0; i < 4; ++i) {
    post(write(2 * i, 64, 64 * i));
    SendRequest send = fast.a.work(2 * i + 1, Opcode::Send, 700 + i, 30);
    send.solicited = i % 2 == 1;
    post(send);
  }
  EXPECT_EQ(pull(), 8u);
  EXPECT_EQ(direct(), 8u);
  EXPECT_FALSE(fast.more);
  exchange();
  ASSERT_EQ(fast.b.owner.receives.size(), 4u);
  EXPECT_TRUE(fast.b.owner.receives[1].solicited);
  EXPECT_EQ(fast.a.counters.messages_out, 8u);
  EXPECT_EQ(fast.a.owner.sends.size(), 8u);
}

// What is behind them in the stream is numbered as if each had gone alone.
TEST_F(DirectTest, UnsignaledOnesAreRetiredInTheirOrder) {
  for (uint64_t i = 0; i < 6; ++i) {
    SendRequest work = write(i, 20);
    work.signaled = i % 3 == 2;
    post(work);
  }
  EXPECT_EQ(pull(), 6u);
  EXPECT_EQ(direct(), 6u);
  exchange();
  EXPECT_EQ(fast.a.owner.send_ids(), (std::vector<uint64_t>{2, 5}));
  EXPECT_EQ(fast.a.endpoint.sends_completed(), 6u);
}

// --- what keeps a message from going this way ---

TEST_F(DirectTest, NotBehindAMessageThatWasBegun) {
  post(write(1, 300));
  post(write(2, 10));
  EXPECT_EQ(pull(200, 1), 1u);
  EXPECT_EQ(pull(200, 1), 1u);
  EXPECT_EQ(direct(), 0u);
  EXPECT_EQ(pull(), 1u);
  EXPECT_EQ(direct(), 1u);
  exchange();
}

// RDMAP-5.5-08
TEST_F(DirectTest, NotWithAFenceNorWithTwoPiecesNorInlineNorAsARead) {
  SendRequest fenced = write(1, 10);
  fenced.fence = true;
  SendRequest two = write(2, 10);
  two.sges.push_back({100, 10, fast.a.all});
  static constexpr std::array<std::byte, 16> kOctets{};
  SendRequest kept = write(3, 0);
  kept.inline_data = kOctets;
  SendRequest read = fast.a.work(4, Opcode::Read, 3000, 10);
  read.remote = {fast.b.all, 0};
  SendRequest empty = write(5, 0);
  for (const SendRequest& work : {fenced, two, kept, read, empty}) post(work);
  EXPECT_EQ(pull(), 5u);
  EXPECT_EQ(direct(), 0u);
  exchange();
  EXPECT_EQ(fast.a.owner.sends.size(), 5u);
}

TEST_F(DirectTest, NotWhileAResponseWaits) {
  both([](World& world) {
    SendRequest read = world.b.work(1, Opcode::Read, 3000, 20);
    read.remote = {world.a.all, 0};
    world.b.send(read);
    world.pair.b.pull_all();
    world.pair.a.arrive_rest(world.pair.b);
  });
  post(write(1, 10));
  post(write(2, 10));
  EXPECT_EQ(pull(), 3u) << "a Write, the Response, a Write";
  EXPECT_LE(direct(), 1u) << "no more than the one behind the Response";
  exchange();
  EXPECT_EQ(fast.b.owner.sends.size(), 1u);
}

TEST_F(DirectTest, NotOnceItCloses) {
  post(write(1, 10));
  post(write(2, 10));
  both([](World& world) { world.a.endpoint.disconnect(); });
  EXPECT_EQ(pull(), 2u);
  EXPECT_EQ(direct(), 0u);
  EXPECT_EQ(fast.a.endpoint.state(), EndpointState::HalfClosed) << "the last one ends the sending";
  exchange();
}

// RDMAP-7.1-02
TEST_F(DirectTest, NotWithATerminatePlanned) {
  both([](World& world) {
    const PlannedFault fault{.kind = PlannedFaultKind::Terminate, .message = 2};
    EXPECT_TRUE(world.a.endpoint.commit(fault, {}));
  });
  for (uint64_t i = 0; i < 3; ++i) post(write(i, 10));
  EXPECT_EQ(pull(), 2u) << "a Write, and the Terminate in the place of the next";
  EXPECT_EQ(direct(), 0u);
  exchange();
  EXPECT_EQ(fast.a.counters.terminates_out, 1u);
}

TEST_F(DirectTest, NotWhenItIsRefusedBecauseTheEndpointCloses) {
  post(write(1, 10));
  both([](World& world) { world.a.endpoint.disconnect(); });
  post(write(2, 10));
  EXPECT_EQ(pull(), 1u);
  exchange();
  ASSERT_EQ(fast.a.owner.sends.size(), 2u);
  EXPECT_EQ(fast.a.owner.sends[1].status, CompletionStatus::Flushed);
}

TEST_F(DirectTest, AResponseHasItsTurnBehindThem) {
  post(write(1, 10));
  EXPECT_EQ(pull(), 1u);
  both([](World& world) {
    SendRequest read = world.b.work(1, Opcode::Read, 3000, 20);
    read.remote = {world.a.all, 0};
    world.b.send(read);
    world.pair.b.pull_all();
    world.pair.a.arrive_rest(world.pair.b);
  });
  post(write(2, 10));
  EXPECT_EQ(pull(), 2u);
  EXPECT_EQ(fast.pair.a.sent[1].octets[1] & 0x0f, 2) << "a Read Response";
  exchange();
}

// --- what a row of them ends at ---

TEST_F(DirectTest, WhatDoesNotFitWaitsForTheNextSegment) {
  for (uint64_t i = 0; i < 4; ++i) post(write(i, 60));
  EXPECT_EQ(pull(200), 2u);
  EXPECT_EQ(pull(200), 2u);
  EXPECT_EQ(direct(), 4u);
  exchange();
}

// A message was chosen when the segment had no room for it: it is the next, whatever comes.
TEST_F(DirectTest, AResponseComesBehindWhatDidNotFit) {
  post(write(1, 60));
  post(write(2, 60));
  EXPECT_EQ(pull(100), 1u);
  both([](World& world) {
    SendRequest read = world.b.work(1, Opcode::Read, 3000, 20);
    read.remote = {world.a.all, 0};
    world.b.send(read);
    world.pair.b.pull_all();
    world.pair.a.arrive_rest(world.pair.b);
  });
  EXPECT_EQ(pull(), 2u);
  EXPECT_EQ(direct(), 1u) << "the other one waits for no Response, but one waits for it";
  EXPECT_EQ(fast.pair.a.sent[1].octets[1] & 0x0f, 0) << "a Write";
  exchange();
}

TEST_F(DirectTest, ASegmentWithoutAnotherPlaceEndsIt) {
  for (uint64_t i = 0; i < 5; ++i) post(write(i, 60));
  EXPECT_EQ(pull(4096, 3), 3u);
  EXPECT_TRUE(fast.more);
  EXPECT_EQ(pull(4096, 3), 2u);
  EXPECT_EQ(direct(), 5u);
  exchange();
}

// A message that has to be cut goes the general way, and others follow it the short one.
TEST_F(DirectTest, ALongOneBetweenThemIsCut) {
  post(write(1, 50));
  post(write(2, 500));
  post(write(3, 50));
  EXPECT_EQ(pull(300), 1u) << "only what ends a message may share the segment";
  EXPECT_EQ(pull(300, 1), 1u);
  EXPECT_EQ(pull(300), 2u);
  EXPECT_EQ(direct(), 2u);
  exchange();
  EXPECT_EQ(fast.a.owner.sends.size(), 3u);
}

TEST_F(DirectTest, AnotherRegionIsLookedUp) {
  std::array<uint32_t, 2> other{};
  other[0] = fast.a.add(Access::LocalRead | Access::LocalWrite, 200);
  other[1] = slow.a.add(Access::LocalRead | Access::LocalWrite, 200);
  ASSERT_EQ(other[0], other[1]);
  for (uint64_t i = 0; i < 6; ++i) {
    SendRequest work = write(i, 40);
    if (i % 2 == 1) work.sges = {{0, 40, other[0]}};
    post(work);
  }
  EXPECT_EQ(pull(), 6u);
  EXPECT_EQ(direct(), 6u);
  exchange();
}

// RDMAP-7.1-01
TEST_F(DirectTest, NothingIsReadOfARegionThatHasEnded) {
  std::array<uint32_t, 2> gone{};
  gone[0] = fast.a.add(Access::LocalRead | Access::LocalWrite);
  gone[1] = slow.a.add(Access::LocalRead | Access::LocalWrite);
  SendRequest work = write(1, 40);
  work.sges = {{0, 40, gone[0]}};
  post(work);
  EXPECT_EQ(pull(), 1u);
  EXPECT_EQ(direct(), 1u);
  work.id = 2;
  post(work);
  both([&](World& world) { EXPECT_TRUE(world.a.table.remove(mem::Stag{gone[0]})); });
  pull();
  EXPECT_EQ(direct(), 1u);
  exchange();
  ASSERT_EQ(fast.a.owner.sends.size(), 2u);
  EXPECT_EQ(fast.a.owner.sends[1].status, CompletionStatus::LocalProtection);
}

// RDMAP-7.1-01
TEST_F(DirectTest, OctetsBehindTheRegionAreNotRead) {
  post(write(1, 40));
  post(write(2, 41, Node::kSize - 40));
  pull();
  EXPECT_EQ(direct(), 1u);
  exchange();
  ASSERT_EQ(fast.a.owner.sends.size(), 2u);
  EXPECT_EQ(fast.a.owner.sends[1].status, CompletionStatus::LocalProtection);
}

TEST_F(DirectTest, NothingIsReadOfAnStagOfNobody) {
  post(write(1, 40));
  SendRequest work = write(2, 40);
  work.sges = {{0, 40, fast.a.all ^ 1}};
  post(work);
  pull();
  EXPECT_EQ(direct(), 1u);
  exchange();
  EXPECT_EQ(fast.a.owner.sends.back().status, CompletionStatus::LocalProtection);
}

// A completion is told when the places of its request are free: the owner may post at once.
TEST_F(DirectTest, AnotherMayBePostedFromACompletion) {
  both([](World& world) {
    world.a.owner.on_send = [&world] {
      if (world.a.owner.sends.size() < 40) world.a.send(world.write(99, 10));
    };
  });
  for (uint64_t i = 0; i < 32; ++i) post(write(i, 10));
  for (int i = 0; i < 4; ++i) {
    pull();
    exchange();
  }
  EXPECT_GE(fast.a.owner.sends.size(), 40u);
}

// A flush from within a completion ends the row of completions.
TEST_F(DirectTest, AnAbortFromACompletionFlushesTheRest) {
  both([](World& world) {
    world.a.owner.on_send = [&world] {
      if (world.a.owner.sends.size() == 2) world.a.endpoint.abort();
    };
  });
  for (uint64_t i = 0; i < 5; ++i) post(write(i, 10));
  pull();
  exchange();
  ASSERT_EQ(fast.a.owner.sends.size(), 5u);
  EXPECT_EQ(fast.a.owner.sends[1].status, CompletionStatus::Success);
  EXPECT_EQ(fast.a.owner.sends[2].status, CompletionStatus::Flushed);
}

// Segments of a long message have the same header but for what tells their place, and the last one
// has L. They may end at each of them.
TEST_F(DirectTest, FullSegmentsOfALongMessageFollowEachOther) {
  both([](World& world) { world.b.post_receive(50, 2048, 2000); });
  post(write(1, 1000));
  post(fast.a.work(2, Opcode::Send, 0, 1018));
  post(write(3, 3 * 86));
  for (const uint32_t places : {7u, 5u, 6u, 1u}) pull(100, places);
  while (pull(100) != 0) {
  }
  EXPECT_EQ(fast.pair.a.sent.size(), 12u + 13u + 3u);
  exchange();
  EXPECT_EQ(fast.a.owner.sends.size(), 3u);
  EXPECT_EQ(fast.b.owner.receives.size(), 1u);
  EXPECT_GT(fast.appended, 10u);
}

// Any work, any segments, any time of ACKs.
TEST_F(DirectTest, AnyRowOfWorkIsTheSame) {
  std::mt19937 random(7);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  both([](World& world) {
    for (uint64_t i = 0; i < 32; ++i) world.b.post_receive(i, 2048, 1024);
  });
  uint64_t id = 0;
  for (int round = 0; round < 3000; ++round) {
    if (draw(3) != 0 && fast.a.sends.has_room()) {
      const uint32_t length = draw(8) == 0 ? draw(900) : draw(90);
      const uint32_t kind = draw(10);
      SendRequest work = write(id++, length, draw(64) * 8);
      if (kind == 0) work.fence = true;
      if (kind == 1 && length != 0) work.sges.push_back({0, 5, fast.a.all});
      if (kind == 2) work.opcode = Opcode::Send;
      if (kind == 3) {
        work.opcode = Opcode::Read;
        work.sges = {{4096, 100, fast.a.all}};
      }
      work.signaled = draw(4) != 0;
      post(work);
      if (kind == 2) {
        both([&](World& world) {
          if (world.b.receives.has_room()) world.b.post_receive(id, 2048, 1024);
        });
      }
    }
    if (draw(4) == 0) pull(100 + draw(draw(3) == 0 ? 200 : 1400), 1 + draw(20), draw(2) == 0);
    if (draw(8) == 0) exchange();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(direct(), 200u);
}

}  // namespace
}  // namespace rnic::rdmap
