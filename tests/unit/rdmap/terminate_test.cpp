#include "rdmap/terminate.hpp"

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;
using BitOrder = wire::TerminateBitOrder;
using wire::Terminate;

std::vector<uint8_t> emit(const Terminate& t) {
  std::vector<uint8_t> octets(wire::kTerminateSizeMax);
  octets.resize(wire::write_terminate(octets.data(), t));
  return octets;
}

/// A Terminate whose control word has siw's order of bits.
std::vector<uint8_t> as_siw(const Terminate& t) {
  auto octets = emit(t);
  octets[0] = static_cast<uint8_t>(t.type << 4 | t.layer);
  octets[2] = static_cast<uint8_t>((t.length_valid ? 1 : 0) | (t.ddp_header_size != 0 ? 2 : 0) |
                                   (t.has_rdma_header ? 4 : 0));
  return octets;
}

// RDMAP-4.8-02-a, RDMAP-4.8-02-b, RDMAP-4.8-02-c: each flag with what it announces, and nothing
// else; the DDP header has its own size, whatever the field behind it may hold.
TEST(TerminateHeader, WhatTheFlagsAnnounce_RDMAP_4_8_02) {
  const std::array<uint8_t, 28> rdma{9, 8, 7};
  for (const uint8_t size : {0, 14, 18}) {
    for (const bool read : {false, true}) {
      ddp::SegmentReport segment{.header_size = size, .length = 0x0123};
      segment.header.fill(0x5a);
      segment.header[0] = size == 14 ? 0xc1 : 0x41;
      const auto octets = emit(terminate_for({FaultLayer::Rdmap, 1, 0x02, "x"}, segment,
                                             read ? base::ByteView(rdma) : base::ByteView()));
      const bool r = read && size != 0;
      SCOPED_TRACE(size);
      ASSERT_EQ(octets.size(), 4u + (size != 0 ? 2 + size : 0) + (r ? 28 : 0));
      EXPECT_EQ(octets[2], (size != 0 ? 0xc0 : 0) | (r ? 0x20 : 0));
      if (size != 0) {
        EXPECT_EQ(base::load_be16(&octets[4]), 0x0123);
      }
      for (size_t i = 1; i < size; ++i) EXPECT_EQ(octets[6 + i], 0x5a) << i;
      if (r) {
        EXPECT_TRUE(std::equal(rdma.begin(), rdma.end(), octets.begin() + 6 + size));
      }
      const auto back = wire::parse_terminate(octets, BitOrder::Rfc);
      ASSERT_TRUE(back && back->exact);
      EXPECT_EQ(back->length_valid, size != 0);
      EXPECT_EQ(back->ddp_header_size, size);
      EXPECT_EQ(back->has_rdma_header, r);
    }
  }
}

// RDMAP-4.8-03
TEST(TerminateHeader, LayoutAndTruncation_RDMAP_4_8_01) {
  ddp::SegmentReport segment{.header_size = 18, .length = 0x0123};
  segment.header.fill(0x41);
  segment.header[0] = 0x41;
  const std::array<uint8_t, 28> rdma{9, 8, 7};
  const auto octets = emit(terminate_for({FaultLayer::Rdmap, 1, 0x02, "x"}, segment, rdma));
  ASSERT_EQ(octets.size(), 4u + 2 + 18 + 28);
  EXPECT_EQ(hex(base::ByteView(octets).first(8)), "01 02 e0 00 01 23 41 41");
  EXPECT_EQ(octets[24], 9);
  for (size_t n = 0; n < octets.size(); ++n) {
    EXPECT_FALSE(wire::parse_terminate(base::ByteView(octets).first(n), BitOrder::Rfc));
    (void)read_terminate(base::ByteView(octets).first(n));
  }
  auto reserved = octets;
  reserved[2] |= 0x1f;
  reserved[3] = 0xff;
  EXPECT_TRUE(wire::parse_terminate(reserved, BitOrder::Rfc)->exact);
}

// Figure 10, row by row.
// UNH-RDMAP-09
TEST(TerminateHeader, HeadersPerFigure10_RDMAP_4_8_07) {
  ddp::SegmentReport segment{.header_size = 14, .length = 30};
  segment.header[0] = 0xc1;
  const std::array<uint8_t, 28> rdma{};
  const auto has = [&](uint8_t layer, uint8_t type, base::ByteView read) {
    const Terminate t =
        terminate_for({static_cast<FaultLayer>(layer), type, 1, "x"}, segment, read);
    EXPECT_EQ(t.length_valid, t.ddp_header_size != 0);
    return std::pair(t.ddp_header_size != 0, t.has_rdma_header);
  };
  EXPECT_EQ(has(0, 0, rdma), std::pair(false, false));
  EXPECT_EQ(has(0, 1, rdma), std::pair(true, true));
  EXPECT_EQ(has(0, 1, {}), std::pair(true, false));
  EXPECT_EQ(has(0, 2, rdma), std::pair(true, false));
  EXPECT_EQ(has(1, 1, rdma), std::pair(true, false));
  EXPECT_EQ(has(1, 2, rdma), std::pair(true, false));
  EXPECT_EQ(has(1, 0, rdma), std::pair(false, false));
  EXPECT_EQ(has(2, 0, rdma), std::pair(false, false));
}

// Every code that siw can send, in both orders of bits, comes out the same.
TEST(TerminateHeader, SiwOrderIsRecognised_BUG_13) {
  Terminate t{.length_valid = true, .segment_length = 64, .ddp_header_size = 18};
  t.ddp_header[0] = 0x41;
  for (const bool rdma : {false, true}) {
    t.has_rdma_header = rdma;
    for (uint8_t layer = 0; layer < 2; ++layer) {
      for (uint8_t type = 1; type < 3; ++type) {
        const auto rfc = emit(t = [&] {
          Terminate x = t;
          x.layer = layer;
          x.type = type;
          x.code = layer == 0 && type == 2 ? 6 : 3;
          return x;
        }());
        const auto first = read_terminate(rfc);
        ASSERT_TRUE(first);
        EXPECT_EQ(first->order, BitOrder::Rfc);
        const auto second = read_terminate(as_siw(t));
        ASSERT_TRUE(second);
        EXPECT_EQ(second->order, BitOrder::Siw) << int{layer} << "/" << int{type};
        EXPECT_EQ(static_cast<uint8_t>(second->fault.layer), layer);
        EXPECT_EQ(second->fault.type, type);
        EXPECT_NE(second->detail.find("RFC 5040's order"), std::string::npos);
      }
    }
  }
  // Without headers: siw's MPA CRC error, 02 02 00 00.
  const auto llp = read_terminate(std::array<uint8_t, 4>{0x02, 0x02, 0, 0});
  ASSERT_TRUE(llp);
  EXPECT_EQ(llp->fault.layer, FaultLayer::Llp);
  EXPECT_EQ(llp->fault.code, 2);
}

// RDMAP-4.8-05 RDMAP-4.8-06 RDMAP-7.1-01: every code of figure 9, of RFC 5041 s.7.2
// and of RFC 5044 s.8 goes over the wire and is named; no other code is.
TEST(TerminateHeader, EveryCode_RDMAP_4_8_04) {
  const auto known = [](uint8_t layer, uint8_t type, int code) {
    if (layer == 2) return type == 0 && code >= 1 && code <= 7;
    if (type == 0) return true;
    if (layer == 0 && type == 1) return code <= 4 || code == 9 || code == 0xff;
    if (layer == 0 && type == 2) return (code >= 5 && code <= 9) || code == 0xff;
    if (layer == 1 && type == 1) return code <= 4;
    if (layer == 1 && type == 2) return code >= 1 && code <= 6;
    return layer == 1 && type == 3;  // left to the LLP
  };
  for (uint8_t layer = 0; layer < 16; ++layer) {
    for (uint8_t type = 0; type < 16; ++type) {
      for (int code = 0; code < 256; ++code) {
        Terminate t{.layer = layer, .type = type, .code = static_cast<uint8_t>(code)};
        const bool headers = layer != 2 && type != 0;
        if (headers) {
          t.length_valid = true;
          t.ddp_header_size = 14;
          t.ddp_header[0] = 0xc1;
        }
        const auto received = read_terminate(emit(t));
        const bool here = layer < 3 && known(layer, type, code);
        if (here) {
          ASSERT_TRUE(received);
          EXPECT_EQ(received->order, BitOrder::Rfc)
              << int{layer} << "/" << int{type} << "/" << code;
          EXPECT_EQ(static_cast<uint8_t>(received->fault.layer), layer);
          EXPECT_EQ(received->fault.type, type);
          EXPECT_EQ(received->fault.code, code);
          EXPECT_EQ(received->detail.find("unknown"), std::string::npos) << received->detail;
        } else if (received) {
          EXPECT_EQ(received->order, BitOrder::Siw);  // impossible as it stands
        }
      }
    }
  }
}

// Headers that do not belong to an error make its reading the worse one.
TEST(TerminateHeader, HeadersDecideBetweenTwoPossibleReadings_BUG_13) {
  // 02 06 00 00: RFC 5040 would have sent 0/2/06 with the DDP header; siw means 2/0/06.
  const auto bare = read_terminate(std::array<uint8_t, 4>{0x02, 0x06, 0, 0});
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->order, BitOrder::Siw);
  EXPECT_EQ(bare->fault.layer, FaultLayer::Llp);
  EXPECT_NE(bare->detail.find("layer 0, type 2, code 6"), std::string::npos) << bare->detail;
  // 20 06 00 00 is right as it stands; the other reading is told.
  const auto right = read_terminate(std::array<uint8_t, 4>{0x20, 0x06, 0, 0});
  ASSERT_TRUE(right);
  EXPECT_EQ(right->order, BitOrder::Rfc);
  EXPECT_NE(right->detail.find("siw's order of bits: layer 0, type 2, code 6"), std::string::npos);
}

// RDMAP-4.8-07: a local catastrophic error comes without headers, a protection error with the DDP
// header. So four octets are a local catastrophic error of DDP in either order of bits, and not an
// RDMAP protection error in the other.
TEST(TerminateHeader, LocalCatastrophicErrorsComeBare_BUG_13) {
  for (const auto& [octet, order] : {std::pair<uint8_t, BitOrder>{0x10, BitOrder::Rfc},
                                     std::pair<uint8_t, BitOrder>{0x01, BitOrder::Siw}}) {
    const auto received = read_terminate(std::array<uint8_t, 4>{octet, 0, 0, 0});
    ASSERT_TRUE(received);
    EXPECT_EQ(received->order, order);
    EXPECT_EQ(received->fault.layer, FaultLayer::Ddp);
    EXPECT_EQ(received->fault.type, 0);
  }
}

// A Terminate that lacks the header that its error should have, and has octets that
// nothing announces, is a Terminate all the same.
TEST(TerminateHeader, UntidyOnesAreUnderstood_RDMAP_5_4_06) {
  const auto received = read_terminate(std::array<uint8_t, 5>{0x11, 0x01, 0, 0, 0xee});
  ASSERT_TRUE(received);
  EXPECT_FALSE(received->header.exact);
  EXPECT_EQ(received->fault.layer, FaultLayer::Ddp);
  EXPECT_EQ(received->fault.type, 1);
  EXPECT_EQ(received->fault.code, 1);
}

TEST(TerminateHeader, Described) {
  EXPECT_EQ(describe({FaultLayer::Ddp, 1, 1}),
            "layer DDP, type tagged buffer error, code 0x01 base or bounds violation");
  EXPECT_EQ(describe({FaultLayer::Llp, 0, 2}), "layer LLP, type MPA error, code 0x02 CRC mismatch");
  EXPECT_EQ(describe({FaultLayer::Rdmap, 7, 0x77}),
            "layer RDMAP, type unknown, code 0x77 (unknown)");
}

class TerminateTest : public TwoNodes {};

// RDMAP-5.4-03 RDMAP-6.2.1-02 RDMAP-5.4-04 RDMAP-6.2.1-03
// UNH-RDMAP-09
TEST_F(TerminateTest, BothEndsGoToErrorOnce_RDMAP_5_4_02) {
  b->post_receive(70, 0, 10);
  b->post_receive(71, 0, 10);
  a->post_receive(80, 0, 10);
  b->send(b->work(60, Opcode::Send, 0, 5));
  write(1, 0, 8, 0);
  SendRequest bad = a->work(2, Opcode::Write, 0, 8);
  bad.remote = {b->all, Node::kSize - 1};
  a->send(bad);
  write(3, 0, 8, 0);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  // Everything of b is flushed in post order, and Terminate goes before the Send that waited.
  EXPECT_EQ(b->endpoint.state(), EndpointState::Terminating);
  ASSERT_EQ(b->owner.sends.size(), 1u);
  EXPECT_EQ(b->owner.sends[0].status, CompletionStatus::Flushed);
  ASSERT_EQ(b->owner.receives.size(), 2u);
  EXPECT_EQ(b->owner.receives[1].id, 71u);
  expect_terminate(1, 1, 0x01);
  EXPECT_EQ(pair.b.sent.size(), 1u);
  pair.a.arrive_rest(pair.b);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
  ASSERT_EQ(a->owner.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(a->owner.events[0]));
  EXPECT_EQ(a->owner.fault(0).layer, FaultLayer::Ddp);
  EXPECT_EQ(a->owner.fault(0).code, 1);
  EXPECT_EQ(pair.a.close_calls, 1u);
  EXPECT_TRUE(pair.a.discarding);
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::RemoteAccess);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Flushed);
  EXPECT_FALSE(pair.a.pull());
  pair.a.user().ended(StreamEnd::Closed, {});
  pair.b.user().ended(StreamEnd::Closed, {});
  ASSERT_EQ(b->owner.events.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<event::Disconnected>(b->owner.events[1]));
  EXPECT_EQ(b->endpoint.state(), EndpointState::Error);
  EXPECT_EQ(b->counters.terminates_out, 1u);
  EXPECT_EQ(a->counters.terminates_in, 1u);
}

// The Terminate is about a message of which only the first segment was sent.
TEST_F(TerminateTest, TheMessageUnderWayIsBlamed_RDMAP_5_4_02) {
  write(1, 0, 8, 0);
  SendRequest bad = a->work(2, Opcode::Write, 0, 1000);
  bad.remote.stag = 0x7777;
  a->send(bad);
  write(3, 0, 8, 0);
  pair.a.pull();
  pair.a.pull();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.arrive_rest(pair.b);
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::RemoteAccess);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Flushed);
}

TEST_F(TerminateTest, TheSendUnderWayIsBlamed_RDMAP_5_4_02) {
  a->send(a->work(2, Opcode::Send, 0, 1000));  // for which there is no receive
  pair.a.pull();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  pair.a.arrive_rest(pair.b);
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::RemoteInvalidRequest);
}

// What was posted before the peer's Terminate is not sent any more.
TEST_F(TerminateTest, NothingIsSentAfterAReceivedTerminate_RDMAP_5_4_05) {
  b->send(b->work(1, Opcode::Write, 0, 1000));
  EXPECT_TRUE(pair.b.pull());
  inject(read_request(1, {.size = 100, .source_stag = b->all}));
  auto octets = ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}, 4);
  std::copy_n(std::array<uint8_t, 4>{0x20, 0x02, 0, 0}.begin(), 4, octets.begin() + 18);
  inject(octets);
  EXPECT_FALSE(pair.b.pull());
  EXPECT_EQ(pair.b.sent.size(), 1u);
  b->send(b->work(2, Opcode::Write, 0, 8));
  EXPECT_FALSE(pair.b.pull());
  EXPECT_EQ(b->owner.sends.size(), 2u);
}

// Two Terminates cross: each side has sent its own and ignores the other's; nobody answers.
// UNH-RDMAP-09
TEST_F(TerminateTest, TerminatesCross_RDMAP_5_4_03) {
  pair.a.user().framing_error(llp::FramingError::Crc, {});
  pair.b.user().framing_error(llp::FramingError::Crc, {});
  pair.a.pull_all();
  pair.b.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(pair.b.sent.size(), 1u);
  pair.a.arrive_rest(pair.b);
  pair.b.arrive_rest(pair.a);
  EXPECT_FALSE(pair.a.pull());
  EXPECT_FALSE(pair.b.pull());
  EXPECT_EQ(a->owner.events.size(), 1u);
  EXPECT_EQ(b->owner.events.size(), 1u);
}

// The rest of a message under way is abandoned; the flushed records can still be rebuilt for TCP.
TEST_F(TerminateTest, AbandonsTheMessageUnderWay) {
  SendRequest w = b->work(1, Opcode::Write, 0, 1000);
  w.remote.stag = a->all;
  b->send(w);
  EXPECT_TRUE(pair.b.pull());
  inject(ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = 0x40, .stag = 1}, 8));
  expect_terminate(1, 1, 0x00);
  ASSERT_EQ(pair.b.sent.size(), 2u);
  EXPECT_EQ(pair.b.rebuild(0), pair.b.sent[0].octets);
  EXPECT_EQ(pair.b.rebuild(1), pair.b.sent[1].octets);
  pair.b.release_all();
  EXPECT_EQ(b->owner.sends.size(), 1u);
}

// RDMAP-6.2.1-01: the LLP's codes; headers are
// never attached.
// UNH-RDMAP-10
TEST_F(TerminateTest, FramingErrors_RDMAP_4_8_06_MPA_8_11_MPA00_9_01_CM6581_8_01) {
  for (const auto error :
       {llp::FramingError::Closed, llp::FramingError::Crc, llp::FramingError::MarkerMismatch,
        llp::FramingError::BadStartFrame, llp::FramingError::LocalCatastrophic,
        llp::FramingError::InsufficientIrd, llp::FramingError::NoMatchingRtr}) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    pair.b.user().framing_error(error, {});
    expect_terminate(2, 0, static_cast<uint8_t>(error));
    EXPECT_EQ(pair.b.sent[0].octets.size(), 18u + 4);
  }
}

TEST_F(TerminateTest, TheFirstErrorIsTheOneReported_RDMAP_7_1_05) {
  pair.b.user().framing_error(llp::FramingError::Crc, {});
  pair.b.user().framing_error(llp::FramingError::MarkerMismatch, {});
  b->send(b->work(1, Opcode::Send, 999999, 8));
  expect_terminate(2, 0, 2);
}

// Every short length; only the message without four octets of control is malformed.
TEST_F(TerminateTest, MalformedTerminates_RDMAP_5_4_06) {
  for (size_t n = 0; n <= 52; ++n) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    start();
    b->post_receive(1, 0, 8);
    auto octets = ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}, n);
    std::fill(octets.begin() + 18, octets.end(), 0xee);  // impossible in either reading
    inject(octets);
    EXPECT_EQ(b->endpoint.state(), EndpointState::Error);
    ASSERT_EQ(b->owner.events.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(b->owner.events[0]));
    EXPECT_EQ(b->counters.malformed_terminates, 1u);
    EXPECT_EQ(b->owner.receives.size(), 1u);
    EXPECT_EQ(pair.b.close_calls, 1u);
  }
}
TEST_F(TerminateTest, TooLongTerminate_RDMAP_5_4_06) {
  inject(ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}, 53));
  expect_terminate(1, 2, 0x05);
}
TEST_F(TerminateTest, TerminateWithAnotherMsn_RDMAP_5_4_01) {
  inject(ulpdu(DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 3}, 4));
  expect_terminate(1, 2, 0x03);
}

// Our own receive buffer was taken away.
TEST_F(TerminateTest, RevokedReceiveBuffer_RDMAP_7_1_01) {
  b->post_receive(1, 0, 8);
  b->post_receive(2, 0, 8);
  ASSERT_TRUE(b->table.remove(mem::Stag{b->all}).has_value());
  send(1, 0, 8);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 0, 0x00);
  ASSERT_EQ(b->owner.receives.size(), 2u);
  EXPECT_EQ(b->owner.receives[0].status, CompletionStatus::LocalProtection);
  EXPECT_EQ(b->owner.receives[1].status, CompletionStatus::Flushed);
}

// The user learns which buffer it was also where no other was posted behind it.
TEST_F(TerminateTest, RevokedReceiveBufferThatIsTheLast_RDMAP_7_1_01) {
  for (const uint64_t posted : {1u, 2u, 3u}) {
    restart();
    for (uint64_t i = 1; i < posted; ++i) {
      b->post_receive(i, 0, 8);
      send(i, 0, 8);
    }
    pair.pump();
    b->post_receive(posted, 0, 8);
    ASSERT_TRUE(b->table.remove(mem::Stag{b->all}).has_value());
    send(posted, 0, 8);
    pair.a.pull_all();
    pair.b.arrive_rest(pair.a);
    expect_terminate(1, 0, 0x00);
    ASSERT_EQ(b->owner.receives.size(), posted);
    EXPECT_EQ(b->owner.receives.back().id, posted);
    EXPECT_EQ(b->owner.receives.back().status, CompletionStatus::LocalProtection);
  }
}

// Of a message under way nothing waits any more.
TEST_F(TerminateTest, NothingWaitsBehindAReceivedTerminate_RDMAP_5_4_05) {
  write(1, 0, 1000, 0);
  ASSERT_TRUE(pair.a.pull());
  EXPECT_FALSE(pair.a.user().all_fits(0, 9));
  b->endpoint.framing_user().framing_error(llp::FramingError::Crc, {});
  pair.b.pull_all();
  pair.a.arrive_rest(pair.b);
  EXPECT_EQ(a->endpoint.state(), EndpointState::Error);
  EXPECT_TRUE(pair.a.user().all_fits(0, 9));
}

// Nor of one behind the end of the stream.
TEST_F(TerminateTest, NothingWaitsBehindTheEnd) {
  write(1, 0, 1000, 0);
  ASSERT_TRUE(pair.a.pull());
  EXPECT_FALSE(pair.a.user().all_fits(0, 9));
  pair.a.user().ended(StreamEnd::PeerReset, {});
  EXPECT_TRUE(pair.a.user().all_fits(0, 9));
}

// Nor of one behind an end that we made.
TEST_F(TerminateTest, NothingWaitsBehindAnAbort) {
  write(1, 0, 1000, 0);
  ASSERT_TRUE(pair.a.pull());
  EXPECT_FALSE(pair.a.user().all_fits(0, 9));
  a->endpoint.abort();
  EXPECT_TRUE(pair.a.user().all_fits(0, 9));
  EXPECT_FALSE(pair.a.pull());
}

// What waits is told when sending is allowed: a Terminate, and nothing where nothing waits.
TEST_F(TerminateTest, MaySendTellsOfAWaitingTerminate) {
  const uint32_t idle = pair.a.ready_calls;
  pair.a.user().may_send();
  EXPECT_EQ(pair.a.ready_calls, idle);
  pair.a.user().framing_error(llp::FramingError::Crc, {});
  const uint32_t raised = pair.a.ready_calls;
  pair.a.user().may_send();
  EXPECT_EQ(pair.a.ready_calls, raised + 1);
}

// The peer's TCP had all of a Write before the peer saw that it must not be: it has completed, and
// the event says which it was. Of two that look the same it says nothing.
TEST_F(TerminateTest, ARequestThatHasCompletedIsNamed) {
  for (const bool twice : {false, true}) {
    restart();
    for (uint64_t id = 1; id <= 4; ++id) {
      SendRequest w = a->work(id, Opcode::Write, 0, 8);
      w.remote = {b->all, id == 3 || (twice && id == 2) ? Node::kSize : 8 * id};
      a->send(w);
    }
    pair.a.pull_all();
    pair.a.release_up_to(4);
    ASSERT_EQ(a->owner.sends.size(), 4u);
    a->owner.sends.clear();
    pair.pump();
    EXPECT_TRUE(a->owner.sends.empty());
    const auto told = std::get<event::TerminateReceived>(a->owner.events.at(0));
    EXPECT_EQ(told.request, twice ? std::nullopt : std::optional<uint64_t>(3));
  }
}

// A Send is known by its number for as long as no other request has its slot.
TEST_F(TerminateTest, ARequestIsNamedWhileItIsKnown) {
  for (const uint64_t behind : {3u, 4u}) {
    restart({.qp = 9, .pd = 4}, {.send = 4, .receive = 4});
    send(1, 0, 8);
    pair.a.pull_all();
    pair.a.release_up_to(1);
    for (uint64_t id = 2; id < 2 + behind; ++id) {
      write(id, 0, 8, 0);
      pair.a.pull_all();
      pair.a.release_up_to(id);
    }
    pair.pump();  // there is no receive
    const auto told = std::get<event::TerminateReceived>(a->owner.events.at(0));
    EXPECT_EQ(told.request, behind == 3 ? std::optional<uint64_t>(1) : std::nullopt);
  }
}

TEST_F(TerminateTest, ARequestThatIsUnderWayIsNamed) {
  SendRequest bad = a->work(2, Opcode::Write, 0, 8);
  bad.remote.stag = 0x7777;
  a->send(bad);
  pair.pump(false);
  EXPECT_EQ(std::get<event::TerminateReceived>(a->owner.events.at(0)).request, 2u);
}

}  // namespace
}  // namespace rnic::rdmap
