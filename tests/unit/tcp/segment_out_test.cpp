// Where segments leave a stack, without connections.

#include "tcp/segment_out.hpp"

#include <gtest/gtest.h>

#include "shared_parts.hpp"
#include "tcp/tcb.hpp"

namespace rnic::testing {
namespace {

struct OneOut : SharedParts {
  /// A place in the queue, between the two ends.
  tcp::Reply& queue(uint8_t flags) {
    tcp::Reply& reply = *replies.push();
    reply.local = local;
    reply.remote = remote;
    reply.flags = flags;
    return reply;
  }
  [[nodiscard]] tcp::Segment received(uint8_t flags, uint32_t payload) const {
    static constexpr std::array<uint8_t, 100> kOctets{};
    tcp::Segment s;
    s.local = local;
    s.remote = remote;
    s.seq = base::Seq32(700);
    s.ack = base::Seq32(300);
    s.flags = flags;
    s.payload = base::ByteView(kOctets).first(payload);
    return s;
  }

  const Endpoint local{RawPeer::kUs, 4420};
  const Endpoint remote{RawPeer::kPeer, 1000};
  base::Now now = base::from_nanos(5'000'000'000);
};

/// A port that leaves the checksum to us.
struct PlainPort final : tcp::Egress {
  bool begin(const IpAddress&, const IpAddress&, tcp::TxSlot& slot, base::Now now) override {
    begun = now;
    slot = {.tcp = octets.data(), .room = 1480, .checksum_open = false, .frame = nullptr};
    return true;
  }
  void send(tcp::TxSlot&, uint32_t of, base::Now) override { length = of; }
  void cancel(tcp::TxSlot&) override {}
  [[nodiscard]] uint32_t path_mtu(IpAddress, base::Now) const override { return 1500; }
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return 1500; }
  void reduce_path_mtu(IpAddress, uint32_t, base::Now) override {}

  std::array<uint8_t, 1480> octets{};
  uint32_t length = 0;
  base::Now begun{};
};

// RFC 9293 s.3.5.2: it takes its number from the ACK field where there is one.
TEST(SegmentOut, ARstAnswersASegmentThatFitsNothing) {
  OneOut o;
  o.replies.reset(o.received(flag::kAck | flag::kFin, 10));
  o.replies.reset(o.received(flag::kSyn, 10));
  EXPECT_TRUE(o.out.send(o.replies, o.now));
  EXPECT_TRUE(o.replies.empty());
  o.expect({.flags = flag::kRst,
            .seq = 300,
            .ack = 0,
            .payload = 0,
            .options = kinds::kNone,
            .source_port = 4420});
  o.expect({.flags = flag::kRst | flag::kAck,
            .seq = 0,
            .ack = 700 + 1 + 10,
            .payload = 0,
            .options = kinds::kNone,
            .source_port = 4420});
  EXPECT_EQ(o.counters.resets_out, 2u);
  EXPECT_EQ(o.counters.acks_out, 0u);
}

TEST(SegmentOut, AStampedReplyHasTheTimeWhenItGoesOut) {
  OneOut o;
  tcp::Reply& rst = o.queue(flag::kRst);
  rst.stamped = true;
  rst.ts_offset = 123;
  rst.ts_recent = 456;
  o.egress.full = true;
  EXPECT_FALSE(o.out.send(o.replies, o.now));
  o.egress.full = false;
  o.now += milliseconds(7);
  EXPECT_TRUE(o.out.send(o.replies, o.now));
  o.expect({.flags = flag::kRst,
            .payload = 0,
            .options = kinds::kTimestamps,
            .ts_value = 5007 + 123,
            .ts_echo = 456});
}

TEST(SegmentOut, AReplyIsWrittenAsItWasQueued) {
  OneOut o;
  tcp::Reply& syn_ack = o.queue(flag::kSyn | flag::kAck);
  syn_ack.seq = base::Seq32(kIss);
  syn_ack.ack = base::Seq32(kIrs + 1);
  syn_ack.window = 4096;
  syn_ack.traffic_class = kEct0;
  syn_ack.options = {2, 4, 5, 0xb4};
  syn_ack.options_length = 4;
  o.queue(flag::kAck);
  EXPECT_TRUE(o.out.send(o.replies, o.now));
  o.expect({.flags = flag::kSyn | flag::kAck,
            .seq = kIss,
            .ack = kIrs + 1,
            .window = 4096,
            .ecn = kEct0,
            .options = kinds::kMss,
            .mss = 1460});
  EXPECT_EQ(o.counters.acks_out, 1u) << "a SYN-ACK is none";
  EXPECT_EQ(o.counters.resets_out, 0u);
  EXPECT_EQ(o.counters.segments_out, 2u);
}

TEST(SegmentOut, AFullPortIsAWaitAndAMissingRouteIsNone) {
  OneOut o;
  for (const uint32_t seq : {1, 2, 3}) o.queue(flag::kRst).seq = base::Seq32(seq);
  o.egress.full = true;
  EXPECT_FALSE(o.out.send(o.replies, o.now));
  EXPECT_TRUE(o.egress.sent.empty());
  EXPECT_EQ(o.counters.send_waits, 1u);
  tcp::TxSlot slot;
  EXPECT_FALSE(o.out.open(o.local.address, o.remote.address, slot, o.now));
  EXPECT_EQ(o.counters.send_waits, 2u);
  o.egress.full = false;
  EXPECT_TRUE(o.out.send(o.replies, o.now));
  for (const uint32_t seq : {1, 2, 3}) o.expect({.flags = flag::kRst, .seq = seq});
  o.queue(flag::kRst);
  o.egress.full = true;
  o.egress.mtu = 0;  // there is nobody to tell
  EXPECT_TRUE(o.out.send(o.replies, o.now));
  EXPECT_TRUE(o.replies.empty());
  EXPECT_EQ(o.counters.send_waits, 2u);
  EXPECT_EQ(o.counters.resets_out, 3u);
}

TEST(SegmentOut, TheChecksumIsOursWhereThePortLeavesItOpen) {
  OneOut o;
  PlainPort port;
  tcp::SegmentOut out(port, o.counters);
  tcp::Reply& ack = o.queue(flag::kAck);
  ack.seq = base::Seq32(kIss);
  ack.ack = base::Seq32(kIrs);
  EXPECT_TRUE(out.send(o.replies, o.now));
  EXPECT_EQ(port.begun, o.now);
  ASSERT_EQ(port.length, 20u);
  const base::ByteView back = base::ByteView(port.octets).first(port.length);
  EXPECT_TRUE(tcp::checksum_good(o.local.address, o.remote.address, back));
  ++port.octets[7];
  EXPECT_FALSE(tcp::checksum_good(o.local.address, o.remote.address, back));
}

TEST(SegmentOut, ADoubtIsCountedAndPassedOn) {
  OneOut o;
  o.out.doubt_path(o.remote.address, o.now);
  EXPECT_EQ(o.egress.doubted, std::vector{o.remote.address});
  EXPECT_EQ(o.counters.path_doubts, 1u);
  o.out.reduce_path_mtu(o.remote.address, 1300, o.now);
  EXPECT_EQ(o.out.path_mtu(o.remote.address, o.now), 1300u);
}

}  // namespace
}  // namespace rnic::testing
