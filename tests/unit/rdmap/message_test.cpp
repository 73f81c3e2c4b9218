// What each message looks like and does, beyond the error cases.

#include <sys/mman.h>

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;

class MessageTest : public TwoNodes {
 protected:
  SendRequest aimed(uint64_t id, Opcode opcode, uint64_t local, uint32_t n, uint64_t remote) {
    SendRequest w = a->work(id, opcode, local, n);
    w.remote = {b->all, remote};
    return w;
  }
};

// RDMAP-5.1-04 DDP-5.3-01 RDMAP-3-01 RDMAP-6.1-01 RDMAP-3-02
// DDP-4.1-07-b, RDMAP-5.2.1-01: one DDP message for each, in the order of posting, on its queue,
// with the next MSN of that queue.
// UNH-RDMAP-03
TEST_F(MessageTest, OneMessageEachInOrder_RDMAP_5_5_09) {
  for (uint64_t i = 0; i < 8; ++i) b->post_receive(i, 0, 600);
  struct Row {
    SendRequest work;
    uint8_t control;
    bool tagged;
    uint32_t qn, msn;
    size_t octets;  // of all its ULPDUs
  };
  SendRequest invalidate = a->work(3, Opcode::SendInvalidate, 0, 20);
  invalidate.invalidate_stag = b->add(Access::RemoteInvalidate);
  SendRequest solicited = a->work(6, Opcode::Send, 0, 0);
  solicited.solicited = true;
  const std::vector<Row> rows{
      {a->work(0, Opcode::Send, 0, 500), 0x43, false, 0, 1, 500 + 3 * 18},
      {aimed(1, Opcode::Write, 0, 500, 0), 0x40, true, 0, 0, 500 + 3 * 14},
      {aimed(2, Opcode::Read, 2000, 500, 0), 0x41, false, 1, 1, 46},
      {invalidate, 0x44, false, 0, 2, 38},
      {aimed(4, Opcode::FetchAdd, 0, 0, 512), 0x4a, false, 1, 2, 70},
      {aimed(5, Opcode::Immediate, 0, 0, 0), 0x48, false, 0, 3, 26},
      {solicited, 0x45, false, 0, 4, 18},
      {aimed(7, Opcode::ReadInvalidate, 2600, 8, 0), 0x41, false, 1, 3, 46},
      {aimed(8, Opcode::CompareSwap, 0, 0, 512), 0x4a, false, 1, 4, 70},
  };
  for (const Row& row : rows) a->send(row.work);
  pair.a.pull_all();
  size_t at = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.work.id);
    size_t octets = 0;
    uint32_t next = 0;
    for (bool last = false; !last; ++at) {
      ASSERT_LT(at, pair.a.sent.size());
      const auto& sent = pair.a.sent[at];
      octets += sent.octets.size();
      last = sent.last;
      EXPECT_EQ(sent.octets[1], row.control);
      EXPECT_EQ(sent.octets[0] & 0x3f, 1) << "reserved bits are zero, DV is 1";
      EXPECT_EQ((sent.octets[0] & 0x40) != 0, last);
      if (row.tagged) {
        const auto header = wire::parse_ddp_tagged(sent.octets);
        ASSERT_TRUE(header);
        EXPECT_EQ(header->to, next);
        next += static_cast<uint32_t>(sent.octets.size()) - 14;
      } else {
        const auto header = wire::parse_ddp_untagged(sent.octets);
        ASSERT_TRUE(header);
        EXPECT_EQ(header->qn, row.qn);
        EXPECT_EQ(header->msn, row.msn);
        EXPECT_EQ(header->mo, next);
        EXPECT_EQ(header->rsvd_ulp_tail,
                  row.work.opcode == Opcode::SendInvalidate ? invalidate.invalidate_stag : 0u);
        next += static_cast<uint32_t>(sent.octets.size()) - 18;
      }
    }
    EXPECT_EQ(octets, row.octets);
  }
  EXPECT_EQ(at, pair.a.sent.size());
}

// RDMAP-4.2-01-a, RDMAP-4.2-01-b: payload in the six messages that may carry it arrives; a Read
// Request and a Terminate end with their headers.
TEST_F(MessageTest, WhichMessagesHavePayload_RDMAP_4_2_01) {
  constexpr uint32_t kOctets = 10;
  for (const bool solicited : {false, true}) {
    for (const bool invalidates : {false, true}) {
      restart();
      a->fill(0, kOctets, 3);
      b->post_receive(1, 2000, kOctets);
      SendRequest w = a->work(1, invalidates ? Opcode::SendInvalidate : Opcode::Send, 0, kOctets);
      w.solicited = solicited;
      w.invalidate_stag = b->add(Access::RemoteInvalidate);
      a->send(w);
      pair.pump();
      ASSERT_EQ(b->owner.receives.size(), 1u);
      EXPECT_EQ(b->owner.receives[0].status, CompletionStatus::Success);
      EXPECT_EQ(b->owner.receives[0].length, kOctets);
      EXPECT_TRUE(std::equal(a->at(0), a->at(kOctets), b->at(2000)));
      EXPECT_EQ(opcode(pair.a.sent.back()), 3 + (invalidates ? 1 : 0) + (solicited ? 2 : 0));
    }
  }
  restart();
  a->fill(0, kOctets, 4);
  write(1, 0, kOctets, 500);
  read(2, 3000, kOctets, 500);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(0), a->at(kOctets), b->at(500)));
  EXPECT_TRUE(std::equal(a->at(0), a->at(kOctets), a->at(3000)));
  // RDMAP-4.4-01: sink STag and TO, size, source STag and TO.
  std::vector<uint8_t> request(28);
  base::store_be32(&request[0], a->all);
  base::store_be64(&request[4], 3000);
  base::store_be32(&request[12], kOctets);
  base::store_be32(&request[16], b->all);
  base::store_be64(&request[20], 500);
  const auto& sent = pair.a.sent.back().octets;
  EXPECT_EQ(std::vector<uint8_t>(sent.begin() + 18, sent.end()), request) << "Read Request";
  inject(read_request(9, {.size = 8, .source_stag = b->all}));  // no such MSN
  const auto t = terminate_of_b();                              // sees to it that nothing follows
  EXPECT_EQ(pair.b.sent.back().octets.size(), 18u + 4 + 2 + 18);
  EXPECT_FALSE(t.has_rdma_header);
}

// RDMAP-4.4-01: the sink comes back as it was sent, whatever it says.
TEST_F(MessageTest, SinkIsCopiedWithoutInterpretation_RDMAP_4_4_02) {
  uint32_t msn = 1;
  for (const uint32_t stag : {0u, 1u, 0xdeadbeefu, UINT32_MAX}) {
    for (const uint64_t to : {uint64_t{0}, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 100}) {
      inject(read_request(
          msn++,
          {.sink_stag = stag, .sink_to = to, .size = 300, .source_stag = b->all, .source_to = 5}));
      pair.b.sent.clear();
      pair.b.check_rebuild = false;
      pair.b.pull_all();
      ASSERT_EQ(pair.b.sent.size(), 2u);
      const auto first = wire::parse_ddp_tagged(pair.b.sent[0].octets);
      const auto second = wire::parse_ddp_tagged(pair.b.sent[1].octets);
      EXPECT_EQ(*first, (DdpTaggedHeader{.rsvd_ulp = 0x42, .stag = stag, .to = to}));
      EXPECT_EQ(*second,
                (DdpTaggedHeader{.last = true, .rsvd_ulp = 0x42, .stag = stag, .to = to + 242}));
    }
  }
}

// The whole source is looked at before the first octet of it is read: whatever is
// wrong with its far end, no Response leaves, not even of what there is.
TEST_F(MessageTest, SourcesAreValidatedBeforeTheyAreRead_RDMAP_5_2_1_03) {
  constexpr uint32_t kMost = UINT32_MAX;
  void* huge =
      mmap(nullptr, size_t{1} << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(huge, MAP_FAILED);
  const auto region = [&](uint32_t length, AccessSet rights, uint32_t pd = 4) {
    return b->table
        .add({.address = static_cast<uint8_t*>(huge),
              .length = length,
              .pd = pd,
              .rights = rights,
              .offset = 0,
              .stream = b->stream_for(rights)})
        ->value;
  };
  struct Case {
    uint32_t length;  // of the region
    AccessSet rights;
    uint32_t pd;
    uint32_t stag_xor;
    uint64_t to;
    uint32_t size;
    int code;  // of a remote protection error; -1: the Read is served
  };
  const AccessSet read = Access::RemoteRead;
  for (const Case& c : {
           Case{kMost, read, 4, 0, 0, kMost, -1},
           Case{kMost, read, 4, 0, 1, kMost, 0x01},  // one octet too far
           Case{kMost, read, 4, 0, 1, kMost - 1, -1},
           Case{kMost - 1, read, 4, 0, 0, kMost, 0x01},
           Case{2000, read, 4, 0, 0, 2001, 0x01},
           Case{2000, read, 4, 0, 0, 2000, -1},
           Case{2000, read, 4, 0, 1999, 1, -1},
           Case{2000, read, 4, 0, 2000, 1, 0x01},
           Case{2000, read, 4, 0, uint64_t{1} << 32, 1, 0x01},
           Case{2000, read, 4, 0, UINT64_MAX - 10, 300, 0x04},
           Case{2000, read, 4, 1, 0, 1, 0x00},
           Case{2000, AccessSet::all().without(read), 4, 0, 0, 1, 0x02},
           Case{2000, read, 5, 0, 0, 1, 0x03},
       }) {
    SCOPED_TRACE(c.to);
    SCOPED_TRACE(c.size);
    restart();
    inject(read_request(1, {.sink_stag = 7,
                            .size = c.size,
                            .source_stag = region(c.length, c.rights, c.pd) ^ c.stag_xor,
                            .source_to = c.to}));
    for (int i = 0; i < 3; ++i) pair.b.pull();
    ASSERT_FALSE(pair.b.sent.empty());
    if (c.code < 0) {
      EXPECT_EQ(opcode(pair.b.sent[0]), 2) << "a Response";
      EXPECT_TRUE(b->owner.events.empty());
      b->endpoint.abort();
    } else {
      ASSERT_EQ(pair.b.sent.size(), 1u) << "the Terminate alone";
      expect_terminate(0, 1, static_cast<uint8_t>(c.code));
    }
  }
  munmap(huge, size_t{1} << 32);
}

// The longest Read there is, from both ends.
TEST_F(MessageTest, ReadOf4GigaoctetsLessOne_RDMAP_4_4_03) {
  constexpr uint32_t kMost = UINT32_MAX;
  void* huge =
      mmap(nullptr, size_t{1} << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(huge, MAP_FAILED);
  const auto region = [&](Node& node, AccessSet rights) {
    return node.table
        .add({.address = static_cast<uint8_t*>(huge),
              .length = kMost,
              .pd = node.pd,
              .rights = rights,
              .offset = 0,
              .stream = b->stream_for(rights)})
        ->value;
  };
  SendRequest w{.id = 1, .opcode = Opcode::Read};
  w.sges = {{0, kMost, region(*a, Access::LocalWrite)}};
  w.remote.stag = region(*b, Access::RemoteRead);
  a->send(w);
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(base::load_be32(&pair.a.sent[0].octets[18 + 12]), kMost);
  pair.b.arrive_rest(pair.a);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pair.b.pull());
  EXPECT_TRUE(b->owner.events.empty());
  EXPECT_EQ(wire::parse_ddp_tagged(pair.b.sent[2].octets)->to, 2u * 242);
  b->endpoint.abort();
  a->endpoint.abort();
  munmap(huge, size_t{1} << 32);
}

// The longest Send and the longest Write leave where the region has all of their octets; where it
// has one less nothing of them does.
TEST_F(MessageTest, TheLongestMessagesLeaveFromMemoryThatIsThere_VERBS_21) {
  constexpr uint32_t kMost = UINT32_MAX;
  void* huge =
      mmap(nullptr, size_t{1} << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(huge, MAP_FAILED);
  for (const Opcode kind : {Opcode::Send, Opcode::Write}) {
    for (const uint32_t length : {kMost, kMost - 1}) {
      SCOPED_TRACE(std::string(to_string(kind)) + " from " + std::to_string(length));
      restart();
      const auto stag = a->table.add(
          {.address = static_cast<uint8_t*>(huge), .length = length, .pd = a->pd, .offset = 0});
      SendRequest w{.id = 1, .opcode = kind};
      w.sges = {{0, kMost, stag->value}};
      w.remote.stag = b->all;
      a->send(w);
      for (int i = 0; i < 3; ++i) pair.a.pull();
      if (length == kMost) {
        ASSERT_EQ(pair.a.sent.size(), 3u);
        EXPECT_TRUE(a->owner.sends.empty()) << "it is under way";
        const auto& third = pair.a.sent[2].octets;
        const uint64_t at = kind == Opcode::Send ? wire::parse_ddp_untagged(third)->mo
                                                 : wire::parse_ddp_tagged(third)->to;
        EXPECT_EQ(at, kind == Opcode::Send ? 2u * 238 : 2u * 242);
      } else {
        ASSERT_EQ(a->owner.sends.size(), 1u);
        EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
        ASSERT_EQ(pair.a.sent.size(), 1u);
        EXPECT_EQ(opcode(pair.a.sent[0]), 7) << "the Terminate alone";
      }
      a->endpoint.abort();
    }
  }
  munmap(huge, size_t{1} << 32);
}

// RDMAP-5.2.1-01 RDMAP-5.2.1-02 RDMAP-5.5-14 RDMAP-5.5-06: as many Reads as the
// IRD are taken at once, each with a buffer of queue 1 and without the user's help; Responses leave
// and are delivered in the order of the Requests.
// UNH-RDMAP-05
TEST_F(MessageTest, AsManyReadsAsTheIrd_RDMAP_5_2_2_03) {
  for (const uint32_t ird : {1u, 2u, 7u, 16u}) {
    restart({.qp = 9, .pd = 4, .ird = ird});
    b->fill(0, 2000, 3);
    for (uint32_t i = 0; i < ird; ++i) {
      inject(read_request(
          i + 1, {.sink_stag = i, .size = 10 + i, .source_stag = b->all, .source_to = 16 * i}));
    }
    EXPECT_TRUE(b->owner.events.empty());
    EXPECT_TRUE(b->owner.receives.empty());
    pair.b.pull_all();
    ASSERT_EQ(pair.b.sent.size(), ird);
    for (uint32_t i = 0; i < ird; ++i) {
      const auto header = wire::parse_ddp_tagged(pair.b.sent[i].octets);
      EXPECT_EQ(header->stag, i);
      EXPECT_EQ(pair.b.sent[i].octets.size(), 14u + 10 + i);
      EXPECT_TRUE(std::equal(pair.b.sent[i].octets.begin() + 14, pair.b.sent[i].octets.end(),
                             b->at(16 * i)));
    }
    // One more than that, while the first is not answered.
    restart({.qp = 9, .pd = 4, .ird = ird});
    for (uint32_t i = 0; i <= ird; ++i) {
      inject(read_request(i + 1, {.size = 8, .source_stag = b->all}));
    }
    expect_terminate(1, 2, 0x02);
  }
}

// RDMAP-5.3-07: only an STag that is valid, of this protection domain and stream,
// with the right; otherwise nothing is invalidated and nothing completes.
// UNH-RDMAP-03
TEST_F(MessageTest, WhatASendMayInvalidate_RDMAP_7_2_02) {
  struct Case {
    bool known;
    uint32_t pd;
    std::optional<uint64_t> stream;
    AccessSet rights;
    bool allowed;
  };
  for (const Case& c :
       {Case{true, 4, 0, Access::RemoteInvalidate, true},
        Case{true, 4, 8, Access::RemoteInvalidate, false},
        Case{true, 5, 0, Access::RemoteInvalidate, false},
        Case{true, 4, 0, AccessSet::all().without(Access::RemoteInvalidate), false},
        Case{true, 4, {}, AccessSet::all().without(Access::RemoteInvalidate), false},
        Case{false, 4, 0, Access::RemoteInvalidate, false}}) {
    restart();
    b->post_receive(1, 0, 8);
    const auto stag = b->table.add({.address = b->at(0),
                                    .length = 64,
                                    .pd = c.pd,
                                    .rights = c.rights,
                                    .offset = 0,
                                    .stream = c.stream});
    SendRequest w = a->work(1, Opcode::SendInvalidate, 0, 8);
    w.invalidate_stag = c.known ? stag->value : stag->value ^ 0x40;
    a->send(w);
    pair.a.pull_all();
    pair.b.arrive_rest(pair.a);
    const auto still = b->table.access({.stag = *stag,
                                        .to = 0,
                                        .length = 1,
                                        .rights = {},
                                        .pd = c.pd,
                                        .stream = c.stream.value_or(0)});
    EXPECT_EQ(still.fault == mem::AccessFault::None, !c.allowed);
    ASSERT_EQ(b->owner.receives.size(), 1u);
    EXPECT_EQ(b->owner.receives[0].status,
              c.allowed ? CompletionStatus::Success : CompletionStatus::Flushed);
    if (!c.allowed) expect_terminate(0, 1, 0x09);
  }
}

// RDMAP-5.5-01-a: the two directions wait for each other in nothing: what one end sends is complete
// although nothing of the other's arrives, nor is it complete by that.
TEST_F(MessageTest, DirectionsAreIndependent_RDMAP_5_5_01) {
  for (const bool a_first : {true, false}) {
    restart();
    for (uint64_t i = 0; i < 3; ++i) {
      a->post_receive(i, 0, 100);
      b->post_receive(i, 0, 100);
      send(i, 0, 50);
      b->send(b->work(i, Opcode::Send, 0, 50));
    }
    pair.a.pull_all();
    pair.b.pull_all();
    auto& first = a_first ? pair.a : pair.b;
    (a_first ? pair.b : pair.a).arrive_rest(first);
    Node& from = a_first ? *a : *b;
    Node& to = a_first ? *b : *a;
    EXPECT_TRUE(from.owner.sends.empty());
    first.release_all();
    EXPECT_EQ(from.owner.sends.size(), 3u);
    EXPECT_EQ(to.owner.receives.size(), 3u);
    EXPECT_TRUE(from.owner.receives.empty());
    EXPECT_TRUE(to.owner.sends.empty());
    pair.pump();
    EXPECT_EQ(from.owner.receives.size(), 3u);
  }
}

// RDMAP-5.5-01-b: a stream whose Read and Sends wait holds up no other stream.
TEST_F(MessageTest, StreamsAreIndependent_RDMAP_5_5_01) {
  read(1, 0, 100, 0);
  send(2, 0, 50);
  pair.a.pull_all();  // and nothing arrives
  test::FramingPair other{kMulpdu};
  Node c({.qp = 10, .pd = 4}, 3), d({.qp = 10, .pd = 4}, 4);
  other.a.attach(c.endpoint.framing_user());
  other.b.attach(d.endpoint.framing_user());
  c.endpoint.bind(other.a);
  d.endpoint.bind(other.b);
  d.post_receive(1, 0, 100);
  for (const Opcode opcode : {Opcode::Read, Opcode::Send}) {
    SendRequest w = c.work(7, opcode, 0, 50);
    w.remote.stag = d.all;
    c.send(w);
  }
  other.pump();
  EXPECT_EQ(c.owner.sends.size(), 2u);
  EXPECT_EQ(d.owner.receives.size(), 1u);
  EXPECT_TRUE(a->owner.sends.empty());
  b->post_receive(1, 0, 100);
  pair.pump();
  EXPECT_EQ(a->owner.sends.size(), 2u);
}

// A Read with Local Invalidate: the sink is revoked when the user hears of it, and not before.
TEST_F(MessageTest, ReadWithLocalInvalidate_RDMAP_5_2_2_05) {
  b->fill(0, 600, 1);
  const uint32_t sink = a->add(Access::LocalWrite);
  const auto valid = [&] {
    return a->table.access({mem::Stag{sink}, 0, 1, {}, a->pd, a->stream}).fault ==
           mem::AccessFault::None;
  };
  SendRequest w = aimed(1, Opcode::ReadInvalidate, 0, 600, 0);
  w.sges[0].stag = sink;
  a->send(w);
  bool revoked = false;
  a->owner.on_send = [&] { revoked = !valid(); };
  pair.a.pull_all();
  pair.a.release_all();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.arrive(pair.b, 0);
  EXPECT_TRUE(valid());
  pair.a.arrive_rest(pair.b);
  EXPECT_TRUE(revoked);
  EXPECT_TRUE(std::equal(b->at(0), b->at(600), a->at(0)));
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Success);
  EXPECT_EQ(a->counters.local_invalidations, 1u);
  a->owner.on_send = nullptr;
}

// Its user has taken the sink away himself while the response was on its way up.
TEST_F(MessageTest, ASinkThatIsGoneCannotBeInvalidated_RDMAP_7_1_01) {
  const uint32_t sink = a->add(Access::LocalWrite);
  SendRequest w = aimed(1, Opcode::ReadInvalidate, 0, 100, 0);
  w.sges[0].stag = sink;
  a->send(w);
  pair.a.pull_all();
  pair.a.release_all();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  ASSERT_EQ(pair.b.sent.size(), 1u);
  const base::ByteView response = pair.b.sent[0].octets;
  const test::CutView cut(response);
  ASSERT_EQ(pair.a.user().place_ulpdu(cut.view(), true, {}), llp::PlaceVerdict::Placed);
  ASSERT_TRUE(a->table.remove(mem::Stag{sink}).has_value());
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.user().deliver_ulpdu(response.first(14), static_cast<uint32_t>(response.size()), {});
  pair.a.pull_all();
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
  EXPECT_EQ(a->counters.local_invalidations, 0u);
  ASSERT_EQ(a->owner.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<event::TerminateSent>(a->owner.events[0]));
  EXPECT_STREQ(a->owner.fault(0).rule, "RDMAP-7.1-01");
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
}

TEST(Words, EachStatusHasItsOwn) {
  EXPECT_STREQ(to_string(CompletionStatus::Success), "success");
  EXPECT_STREQ(to_string(CompletionStatus::LocalProtection), "local protection error");
  EXPECT_STREQ(to_string(CompletionStatus::LocalLength), "local length error");
  EXPECT_STREQ(to_string(CompletionStatus::RemoteAccess), "remote access error");
  EXPECT_STREQ(to_string(CompletionStatus::RemoteInvalidRequest), "remote invalid request");
  EXPECT_STREQ(to_string(CompletionStatus::RemoteOperation), "remote operation error");
  EXPECT_STREQ(to_string(CompletionStatus::Lost), "connection lost");
  EXPECT_STREQ(to_string(CompletionStatus::Flushed), "flushed");
  EXPECT_STREQ(to_string(static_cast<CompletionStatus>(200)), "unknown");
}

// Local Invalidate waits until everything before it is complete, then what follows goes on.
TEST_F(MessageTest, LocalInvalidateIsABarrier_RDMAP_7_1_01) {
  const uint32_t source = a->add(Access::LocalRead);
  SendRequest w = aimed(1, Opcode::Write, 0, 600, 0);
  w.sges[0].stag = source;
  a->send(w);
  SendRequest invalidate{.id = 2, .opcode = Opcode::LocalInvalidate};
  invalidate.invalidate_stag = source;
  a->send(invalidate);
  write(3, 0, 8, 0);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 3u) << "the Write behind it waits";
  pair.a.release_up_to(2);
  EXPECT_FALSE(pair.a.rebuild(2).empty()) << "a retransmission still finds its memory";
  const uint32_t before = pair.a.ready_calls;
  pair.a.release_up_to(3);
  EXPECT_GT(pair.a.ready_calls, before);
  pair.a.pull_all();
  pair.a.release_all();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[1].opcode, Opcode::LocalInvalidate);
  EXPECT_EQ(a->counters.local_invalidations, 1u);
  EXPECT_EQ(a->table.access({mem::Stag{source}, 0, 1, {}, a->pd, a->stream}).fault,
            mem::AccessFault::InvalidStag);
  // The work behind it that names the STag fails; so does a second invalidation.
  a->send(invalidate);
  pair.a.pull_all();
  EXPECT_EQ(a->owner.sends.at(3).status, CompletionStatus::LocalProtection);
  EXPECT_TRUE(std::holds_alternative<event::TerminateSent>(a->owner.events.at(0)));
}

// The last thing of a queue that is being closed.
TEST_F(MessageTest, CloseBehindALocalInvalidate_DDP_6_2_1_01) {
  write(1, 0, 8, 0);
  SendRequest invalidate{.id = 2, .opcode = Opcode::LocalInvalidate};
  invalidate.invalidate_stag = a->add(Access::LocalRead);
  a->send(invalidate);
  a->endpoint.disconnect();
  pair.pump();
  EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::Success);
  EXPECT_EQ(pair.a.close_calls, 1u);
}

}  // namespace
}  // namespace rnic::rdmap
