#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;

class InboundTest : public TwoNodes {};

// RDMAP-5.5-02 RDMAP-5.5-03 RDMAP-5.5-11 DDP-5.3-04: all orders of placement of
// Write, Send, Read.
// UNH-RDMAP-08
TEST_F(InboundTest, EveryOrderOfPlacementDeliversTheSame_RDMAP_5_5_05) {
  std::array<size_t, 5> order{0, 1, 2, 3, 4};
  do {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    a->fill(0, 1000, 5);
    b->post_receive(50, 2000, 400);
    write(1, 0, 300, 0);    // two segments
    send(2, 500, 300);      // two segments
    read(3, 3000, 100, 0);  // must return what the Write put there
    pair.a.pull_all();
    ASSERT_EQ(pair.a.sent.size(), 5u);
    for (size_t k = 0; k < 5; ++k) {
      pair.b.arrive(pair.a, order[k]);
      const auto arrived_up_to = [&](size_t n) {
        return std::all_of(&order[0], &order[5], [&](const size_t& i) {
          return i >= n || static_cast<size_t>(&i - &order[0]) <= k;
        });
      };
      // Not before every earlier octet is there, and then at once.
      EXPECT_EQ(b->owner.receives.size(), arrived_up_to(4) ? 1u : 0u);
      pair.b.pull_all();
      EXPECT_EQ(pair.b.sent.size(), arrived_up_to(5) ? 1u : 0u);
    }
    EXPECT_TRUE(std::equal(a->at(500), a->at(800), b->at(2000)));
    pair.a.release_all();
    pair.pump();
    EXPECT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
    EXPECT_TRUE(std::equal(a->at(0), a->at(100), a->at(3000)));
    EXPECT_TRUE(b->owner.events.empty());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(InboundTest, UlpdusInPiecesOfEverySize_BUG_03) {
  for (size_t piece = 1; piece < 50; ++piece) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    pair.a.piece = pair.b.piece = piece;
    a->fill(0, 300, 5);
    b->post_receive(50, 2000, 400);
    send(2, 0, 300);
    read(3, 1000, 100, 2000);
    pair.pump();
    EXPECT_TRUE(std::equal(a->at(0), a->at(300), b->at(2000)));
    EXPECT_TRUE(std::equal(a->at(0), a->at(100), a->at(1000)));
  }
}

// UNH-RDMAP-03 UNH-RDMAP-08
TEST_F(InboundTest, SolicitedSend_RDMAP_5_3_05) {
  b->post_receive(1, 0, 10);
  SendRequest w = a->work(1, Opcode::Send, 0, 4);
  w.solicited = true;
  a->send(w);
  pair.pump();
  ASSERT_EQ(b->owner.receives.size(), 1u);
  EXPECT_TRUE(b->owner.receives[0].solicited);
  EXPECT_EQ(opcode(pair.a.sent[0]), 5);
}

// RDMAP-5.3-08 DDP-5.4-03
// UNH-RDMAP-03
TEST_F(InboundTest, SendWithInvalidate_RDMAP_5_3_06) {
  for (const bool solicited : {false, true}) {
    const uint32_t victim = b->add(Access::RemoteWrite | Access::RemoteInvalidate);
    bool dead_at_completion = false;
    b->owner.on_receive = [&] {
      dead_at_completion = b->table.access({mem::Stag{victim}, 0, 1, {}, b->pd, b->stream}).fault ==
                           mem::AccessFault::InvalidStag;
    };
    b->post_receive(1, 0, 10);
    SendRequest w = a->work(1, Opcode::SendInvalidate, 0, 4);
    w.invalidate_stag = victim;
    w.solicited = solicited;
    a->send(w);
    pair.pump();
    ASSERT_FALSE(b->owner.receives.empty());
    EXPECT_EQ(b->owner.receives.back().invalidated_stag, victim);
    EXPECT_EQ(b->owner.receives.back().solicited, solicited);
    EXPECT_TRUE(dead_at_completion);
  }
  b->owner.on_receive = nullptr;
}

// Where no STag is to be invalidated, octets 2 to 5 of RsvdULP are zero on send ...
TEST_F(InboundTest, InvalidateStagIsZeroElsewhere_RDMAP_4_1_05) {
  const uint32_t victim = b->add(Access::RemoteInvalidate);
  for (uint32_t i = 0; i < 3; ++i) b->post_receive(i, 0, 400);
  const auto aimed = [&](Opcode opcode, bool solicited) {
    SendRequest w = a->work(1, opcode, 0, 300);
    w.remote.stag = b->all;
    w.invalidate_stag = victim;
    w.solicited = solicited;
    a->send(w);
  };
  for (const bool solicited : {false, true}) {
    aimed(Opcode::Send, solicited);
    aimed(Opcode::Read, solicited);
    aimed(Opcode::SendInvalidate, solicited);
  }
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 10u);  // two segments each, but for the Read Requests
  uint32_t with_invalidate = 0;
  for (const auto& sent : pair.a.sent) {
    const bool carries = opcode(sent) == 4 || opcode(sent) == 6;
    with_invalidate += carries;
    EXPECT_EQ(wire::parse_ddp_untagged(sent.octets)->rsvd_ulp_tail, carries ? victim : 0u);
  }
  EXPECT_EQ(with_invalidate, 4u);
  restart();
  inject(ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = 0x40, .stag = b->all ^ 1}, 4));
  expect_terminate(1, 1, 0x00);  // whose RsvdULP is looked at there
}

// ... and ignored on receipt, with an STag that could be invalidated and with none.
TEST_F(InboundTest, InvalidateStagIsIgnoredElsewhere_RDMAP_4_1_05) {
  const uint32_t victim = b->add(Access::RemoteWrite | Access::RemoteInvalidate);
  const auto valid = [&] {
    return b->table.access({mem::Stag{victim}, 0, 1, {}, b->pd, b->stream}).fault ==
           mem::AccessFault::None;
  };
  uint32_t msn = 0;
  for (const uint32_t tail : {victim, 0xdeadbeefu, UINT32_MAX}) {
    for (const uint8_t control : {0x43, 0x45}) {  // Send, Send with Solicited Event
      b->post_receive(++msn, 0, 40);
      DdpUntaggedHeader header{.rsvd_ulp = control, .rsvd_ulp_tail = tail, .msn = msn};
      inject(ulpdu(header, 20));
      header.last = true;
      header.mo = 20;
      inject(ulpdu(header, 20));
      ASSERT_EQ(b->owner.receives.size(), msn);
      EXPECT_EQ(b->owner.receives.back().status, CompletionStatus::Success);
      EXPECT_EQ(b->owner.receives.back().length, 40u);
      EXPECT_EQ(b->owner.receives.back().invalidated_stag, 0u);
    }
    auto request = read_request(msn / 2, {.sink_stag = 5, .size = 10, .source_stag = b->all});
    base::store_be32(request.data() + 2, tail);
    inject(request);
    pair.b.pull_all();
    ASSERT_EQ(pair.b.sent.size(), msn / 2);
    EXPECT_EQ(opcode(pair.b.sent.back()), 2);
  }
  EXPECT_TRUE(valid());
  EXPECT_TRUE(b->owner.events.empty());
  b->post_receive(++msn, 0, 40);
  inject(ulpdu(
      DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x44, .rsvd_ulp_tail = victim, .msn = msn}, 20));
  EXPECT_FALSE(valid()) << "of a Send with Invalidate it is not";
  EXPECT_EQ(b->owner.receives.back().invalidated_stag, victim);
  auto terminate = ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}, 4);
  base::store_be32(terminate.data() + 2, b->all);
  base::store_be32(terminate.data() + 18, 0x02050000);  // RDMAP, remote operation, RV
  inject(terminate);
  ASSERT_EQ(b->owner.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(b->owner.events[0]));
  EXPECT_EQ(b->owner.fault(0).code, 5);
  EXPECT_EQ(b->counters.malformed_terminates, 0u);
  EXPECT_EQ(b->table.access({mem::Stag{b->all}, 0, 1, {}, b->pd, b->stream}).fault,
            mem::AccessFault::None);
}

// RDMAP-7.1-03
TEST_F(InboundTest, StagThatCannotBeInvalidated_RDMAP_5_3_07) {
  b->post_receive(1, 0, 10);
  SendRequest w = a->work(1, Opcode::SendInvalidate, 0, 4);
  w.remote.stag = b->add(Access::RemoteWrite);
  a->send(w);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(0, 1, 0x09);
  const auto t = terminate_of_b();
  EXPECT_TRUE(t.length_valid);
  EXPECT_EQ(t.ddp_header_size, 18);
  EXPECT_FALSE(t.has_rdma_header);
  EXPECT_EQ(t.segment_length, 22);
  ASSERT_EQ(b->owner.receives.size(), 1u);
  EXPECT_EQ(b->owner.receives[0].status, CompletionStatus::Flushed);
}

// Send without a receive.
TEST_F(InboundTest, SendWithoutReceive_DDP_7_1_02) {
  send(1, 0, 4);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 2, 0x02);
}

// In the second segment; nothing past the buffer.
TEST_F(InboundTest, SendTooLong_RDMAP_5_3_02) {
  b->post_receive(1, 0, 250);
  send(1, 0, 300);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 2, 0x05);
  EXPECT_EQ(*b->at(250), Node::kGuard);
}

// A place of the receive queue is as long as the buffer that is posted there now,
// also when longer ones were posted there before.
TEST_F(InboundTest, SendTooLongForAPlaceUsedBefore_RDMAP_5_3_02) {
  restart({.qp = 9, .pd = 4}, {.receive = 2});
  for (uint64_t i = 0; i < 5; ++i) {
    b->post_receive(i, 0, 500);
    send(i, 0, 16);
    pair.pump();
  }
  ASSERT_EQ(b->owner.receives.size(), 5u);
  b->post_receive(5, 1000, 8);
  send(5, 0, 9);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 2, 0x05);
  EXPECT_EQ(*b->at(1000), Node::kGuard);
}

// RDMAP-4.1-03
// UNH-RDMAP-01
TEST_F(InboundTest, WrongRdmapVersion_RDMAP_4_1_02) {
  for (const uint8_t version : {0, 2, 3}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    const auto control = static_cast<uint8_t>(version << 6);
    inject(ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = control, .stag = b->all}, 8));
    expect_terminate(0, 2, 0x05);
  }
  pair.a = test::FramingEnd(kMulpdu);
  pair.b = test::FramingEnd(kMulpdu);
  start();
  inject(ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = 0x70, .stag = b->all}, 8));
  EXPECT_TRUE(b->owner.events.empty());  // reserved bits are ignored
}

// DDP-7.2-02 DDP-6.2.2-01-c: each refused Write with its code, told to our user,
// too. RDMAP-4.8-02-a: the header and the length of the failing segment.
TEST_F(InboundTest, RefusedWrites_RDMAP_5_1_03) {
  struct Case {
    bool known;
    AccessSet rights;
    uint64_t to;
    uint8_t layer, type, code;
  };
  for (const Case& c :
       {Case{false, {}, 0, 1, 1, 0x00}, Case{true, Access::RemoteRead, 0, 0, 1, 0x02},
        Case{true, Access::RemoteWrite, Node::kSize - 7, 1, 1, 0x01},
        Case{true, Access::RemoteWrite, UINT64_MAX - 2, 1, 1, 0x03}}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    const uint32_t stag = c.known ? b->add(c.rights) : 0x99;
    const auto bad =
        ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = 0x40, .stag = stag, .to = c.to}, 8);
    inject(bad);
    expect_terminate(c.layer, c.type, c.code);
    const auto t = terminate_of_b();
    EXPECT_EQ(t.ddp_header_size, 14);
    EXPECT_TRUE(std::equal(bad.begin(), bad.begin() + 14, t.ddp_header.begin()));
    EXPECT_EQ(t.segment_length, 22);
    EXPECT_FALSE(t.has_rdma_header);
  }
}

// RDMAP-7.1-04 RDMAP-4.8-04 RDMAP-4.8-08 RDMAP-4.8-10
// UNH-RDMAP-04
TEST_F(InboundTest, RefusedReads_RDMAP_7_2_03) {
  struct Case {
    bool known;
    AccessSet rights;
    uint64_t to;
    uint8_t code;
  };
  for (const Case& c : {Case{false, {}, 0, 0x00}, Case{true, Access::RemoteRead, Node::kSize, 0x01},
                        Case{true, Access::RemoteRead, Node::kSize - 7, 0x01},
                        Case{true, Access::RemoteWrite, 0, 0x02},
                        Case{true, Access::RemoteRead, UINT64_MAX, 0x04}}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    const uint32_t stag = c.known ? b->add(c.rights) : 0x99;
    const auto bad = read_request(
        1, {.sink_stag = 7, .sink_to = 9, .size = 8, .source_stag = stag, .source_to = c.to});
    inject(bad);
    expect_terminate(0, 1, c.code);
    const auto t = terminate_of_b();
    EXPECT_EQ(t.ddp_header_size, 18);
    EXPECT_TRUE(std::equal(bad.begin(), bad.begin() + 18, t.ddp_header.begin()));
    ASSERT_TRUE(t.has_rdma_header);
    EXPECT_TRUE(std::equal(bad.begin() + 18, bad.end(), t.rdma_header.begin()));
  }
}

// The Terminate holds the header of a refused Read on the last buffer of the IRD as
// it does on the first.
TEST_F(InboundTest, TheLastReadOfTheIrdIsToldWithItsHeader_RDMAP_4_8_08) {
  for (const uint32_t ird : {1u, 2u, 7u}) {
    restart({.ird = ird});
    for (uint32_t msn = 1; msn < ird; ++msn) {
      inject(read_request(msn, {.size = 8, .source_stag = b->all}));
    }
    const auto bad = read_request(ird, {.sink_stag = 7, .size = 8, .source_stag = 0x99});
    inject(bad);
    const auto t = terminate_of_b();
    EXPECT_EQ(t.code, 0x00);
    EXPECT_TRUE(std::equal(bad.begin(), bad.begin() + 18, t.ddp_header.begin()));
    ASSERT_TRUE(t.has_rdma_header) << ird;
    EXPECT_TRUE(std::equal(bad.begin() + 18, bad.end(), t.rdma_header.begin()));
  }
}

// RDMAP-4.8-04, RDMAP-8.1, DDP-8.2-01 for Reads: the source belongs to another protection domain.
TEST_F(InboundTest, ReadOfAnotherPd_RDMAP_7_2_03) {
  const uint32_t foreign = b->table
                               .add({.address = b->at(0),
                                     .length = 100,
                                     .pd = b->pd + 1,
                                     .rights = Access::RemoteRead,
                                     .offset = 0})
                               .value()
                               .value;
  inject(read_request(1, {.size = 8, .source_stag = foreign}));
  expect_terminate(0, 1, 0x03);
}

// DDP-8.3-02-b: revoked while the Response is under way, behind one, two or three
// segments of it; the turn is given to Terminate at once.
// UNH-SEC-01
TEST_F(InboundTest, ReadThatFailsHalfWay_RDMAP_4_8_09) {
  for (uint32_t sent = 1; sent <= 3; ++sent) {
    restart();
    const uint32_t source = b->add(Access::RemoteRead);
    inject(read_request(
        1, {.sink_stag = 7, .sink_to = 1000, .size = 800, .source_stag = source, .source_to = 50}));
    for (uint32_t i = 0; i < sent; ++i) EXPECT_TRUE(pair.b.pull());
    ASSERT_TRUE(b->table.remove(mem::Stag{source}).has_value());
    expect_terminate(0, 1, 0x00);
    EXPECT_EQ(pair.b.sent.size(), sent + 1);
    const auto t = terminate_of_b();
    ASSERT_TRUE(t.has_rdma_header);
    const auto left = wire::parse_rdmap_read_request(t.rdma_header);
    const uint32_t n = sent * (kMulpdu - 14);
    EXPECT_EQ(left, (wire::RdmapReadRequest{.sink_stag = 7,
                                            .sink_to = 1000 + n,
                                            .size = 800 - n,
                                            .source_stag = source,
                                            .source_to = 50 + n}));
    EXPECT_EQ(wire::parse_ddp_untagged(t.ddp_header)->msn, 1u);
  }
}

// SEC-6.4.3.3-03: one Read more than the IRD.
TEST_F(InboundTest, ReadsBeyondTheIrd_RDMAP_6_1_03) {
  start({.ird = 2});
  for (uint32_t msn = 1; msn <= 3; ++msn) {
    inject(read_request(msn, {.size = 8, .source_stag = b->all}));
  }
  expect_terminate(1, 2, 0x02);
}

// What was agreed may be less than the buffers of the queue pair, and where it is
// more they are the limit.
TEST_F(InboundTest, ReadsBeyondTheAgreedIrd_RDMAP_6_1_03) {
  for (const uint16_t agreed : {1, 2, 4, 9}) {
    restart({.qp = 9, .pd = 4, .ird = 4});
    pair.b = test::FramingEnd(kMulpdu);
    b = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4, .ird = 4}, 2);
    pair.b.attach(b->endpoint.framing_user());
    b->endpoint.bind(pair.b, {.ird = agreed});
    const uint32_t limit = std::min<uint32_t>(agreed, 4);
    for (uint32_t msn = 1; msn <= limit; ++msn) {
      inject(read_request(msn, {.size = 8, .source_stag = b->all}));
    }
    EXPECT_TRUE(b->owner.events.empty()) << agreed;
    inject(read_request(limit + 1, {.size = 8, .source_stag = b->all}));
    expect_terminate(1, 2, 0x02);
  }
}

// The buffer of a Read is free again when its Response was sent, before it is acknowledged.
TEST_F(InboundTest, IrdCountsUnansweredReads) {
  start({.ird = 2});
  for (uint32_t msn = 1; msn <= 4; ++msn) {
    inject(read_request(msn, {.size = 8, .source_stag = b->all}));
    pair.b.pull_all();
  }
  EXPECT_EQ(pair.b.sent.size(), 4u);
  pair.b.release_all();
  for (uint32_t msn = 5; msn <= 40; ++msn) {
    inject(read_request(msn, {.size = 8, .source_stag = b->all}));
    pair.b.pull_all();
    pair.b.release_all();
  }
  EXPECT_EQ(pair.b.sent.size(), 40u);
  EXPECT_TRUE(b->owner.events.empty());
}

// BUG-02
TEST_F(InboundTest, ReadRequestOfAnotherSize_RDMAP_4_4_04) {
  for (size_t n = 0; n <= 60; ++n) {
    if (n == 28) continue;
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    inject(ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x41, .qn = 1, .msn = 1}, n));
    if (n < 28) {
      expect_terminate(0, 2, 0xff);
    } else {
      expect_terminate(1, 2, 0x05);
    }
  }
}

class ResponseTest : public TwoNodes {
 protected:
  void SetUp() override {
    start();
    // b reads 100 octets into [500, 600) of a region that is much larger.
    SendRequest w = b->work(1, Opcode::Read, 500, 100);
    w.remote.stag = a->all;
    b->send(w);
    pair.b.pull_all();
    pair.b.release_all();
  }
  void respond(uint64_t to, size_t n, bool last) {
    inject(ulpdu(DdpTaggedHeader{.last = last, .rsvd_ulp = 0x42, .stag = b->all, .to = to}, n));
  }
  [[nodiscard]] bool outside_untouched() const {
    return std::all_of(b->at(0), b->at(500), [](uint8_t o) { return o == Node::kGuard; }) &&
           std::all_of(b->at(600), b->at(2000), [](uint8_t o) { return o == Node::kGuard; });
  }
};

TEST_F(ResponseTest, WholeResponseInDecreasingOrder_DDP_5_3_05) {
  respond(560, 40, false);
  EXPECT_TRUE(b->owner.sends.empty());
  respond(500, 60, true);
  ASSERT_EQ(b->owner.sends.size(), 1u);
  EXPECT_EQ(b->owner.sends[0].length, 100u);
}

// One octet past the end of what was asked for, with and without L, first or later segment.
// UNH-RDMAP-06
TEST_F(ResponseTest, OverrunOfTheSink_BUG_01) {
  respond(500, 60, false);
  respond(560, 41, false);
  expect_terminate(1, 1, 0x01);
  EXPECT_TRUE(outside_untouched());
}
TEST_F(ResponseTest, StartBeforeTheSink_BUG_01) {
  respond(499, 10, false);
  expect_terminate(1, 1, 0x01);
  EXPECT_TRUE(outside_untouched());
}
TEST_F(ResponseTest, TooManyOctetsInsideTheSink_BUG_01) {
  respond(500, 60, false);
  respond(500, 60, false);
  expect_terminate(1, 1, 0x01);
  EXPECT_TRUE(outside_untouched());
}
// As many octets as were asked for, but one part of the sink twice and another never: what was
// there before would be taken for the answer.
TEST_F(ResponseTest, RepeatsOnePartAndLeavesOutAnother_BUG_01) {
  respond(500, 50, false);
  respond(500, 50, true);
  EXPECT_TRUE(outside_untouched());
  ASSERT_EQ(b->owner.sends.size(), 1u);
  EXPECT_EQ(b->owner.sends[0].status, CompletionStatus::Flushed) << "a completion without the data";
  expect_terminate(1, 1, 0x01);
}
// The same with segments that overlap by one octet and leave one out, in every order.
TEST_F(ResponseTest, OverlapOfOneOctet_BUG_01) {
  std::array<std::pair<uint64_t, size_t>, 3> parts{{{0, 34}, {33, 33}, {67, 33}}};
  do {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    SetUp();
    for (size_t i = 0; i < 3; ++i) respond(500 + parts[i].first, parts[i].second, i == 2);
    expect_terminate(1, 1, 0x01);
  } while (std::next_permutation(parts.begin(), parts.end()));
}
// The twin: the same parts without the overlap are one Response, whatever their order.
// UNH-RDMAP-06
TEST_F(ResponseTest, PartsInEveryOrder_DDP_5_3_02) {
  std::array<std::pair<uint64_t, size_t>, 5> parts{
      {{0, 20}, {20, 1}, {21, 40}, {61, 19}, {80, 20}}};
  do {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    SetUp();
    for (size_t i = 0; i < 5; ++i) respond(500 + parts[i].first, parts[i].second, i == 4);
    ASSERT_EQ(b->owner.sends.size(), 1u);
    EXPECT_EQ(b->owner.sends[0].status, CompletionStatus::Success);
    EXPECT_TRUE(b->owner.events.empty());
  } while (std::next_permutation(parts.begin(), parts.end()));
}
// UNH-RDMAP-06
TEST_F(ResponseTest, EndsTooEarly_RDMAP_5_2_2_04) {
  respond(500, 60, true);
  expect_terminate(1, 1, 0x01);
  ASSERT_EQ(b->owner.sends.size(), 1u);
  EXPECT_EQ(b->owner.sends[0].status, CompletionStatus::Flushed);
}
// UNH-RDMAP-06
TEST_F(ResponseTest, OtherStag_RDMAP_5_2_2_04) {
  inject(
      ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = 0x42, .stag = b->all + 256, .to = 500}, 100));
  expect_terminate(1, 1, 0x00);
}
// Two Reads wait. The Response to the second comes first; in their order both
// complete.
TEST_F(ResponseTest, OutOfTheirOrder_UNH_RDMAP_06) {
  for (const bool in_order : {true, false}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    SetUp();
    SendRequest w = b->work(2, Opcode::Read, 700, 50);
    w.remote.stag = a->all;
    b->send(w);
    pair.b.pull_all();
    pair.b.release_all();
    in_order ? respond(500, 100, true) : respond(700, 50, true);
    EXPECT_EQ(b->owner.sends.size(), in_order ? 1u : 2u);
    if (!in_order) {
      expect_terminate(1, 1, 0x01);
      EXPECT_EQ(b->owner.sends[0].status, CompletionStatus::Flushed);
      EXPECT_EQ(b->owner.sends[1].status, CompletionStatus::Flushed);
      std::fill(b->at(700), b->at(750), Node::kGuard);  // the sink of a Read that does wait
      EXPECT_TRUE(outside_untouched());
      continue;
    }
    respond(700, 50, true);
    ASSERT_EQ(b->owner.sends.size(), 2u);
    EXPECT_EQ(b->owner.sends[1].status, CompletionStatus::Success);
    EXPECT_TRUE(b->owner.events.empty());
  }
}
// A second Response when nothing is outstanding any more.
// UNH-RDMAP-06
TEST_F(ResponseTest, Unsolicited_RDMAP_5_2_2_04) {
  respond(500, 100, true);
  EXPECT_EQ(b->owner.sends.size(), 1u);
  respond(500, 100, true);
  expect_terminate(0, 2, 0x06);
}

}  // namespace
}  // namespace rnic::rdmap
