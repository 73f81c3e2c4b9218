// The headers of one connection's segments.

#include "tcp/segment_writer.hpp"

#include "core_parts.hpp"

namespace rnic::testing {
namespace {

using tcp::Timer;

struct OneWriter : CoreParts {
  static constexpr uint32_t kWindow = 20'000;

  explicit OneWriter(const tcp::Config& of = {}) : CoreParts(of) {
    establish();
    core.tcb.rcv_edge = kWindow;
    user.room = kWindow;
  }
  /// `text` at this offset of the stream, with the ACK field.
  void write(uint64_t offset, const std::string& text, uint8_t more_flags = 0) {
    tcp::TxSlot slot;
    ASSERT_TRUE(writer.begin(static_cast<uint32_t>(text.size()), slot, now));
    std::copy(text.begin(), text.end(), writer.payload_of(slot));
    writer.finish(slot, offset, static_cast<uint32_t>(text.size()),
                  static_cast<uint8_t>(flag::kAck | more_flags), now);
  }
  /// The text in order is taken.
  void receive(uint32_t octets) {
    receiver.take_in_order({core.tcb.rcv_nxt, core.tcb.rcv_nxt + octets}, text(octets), false, now);
  }
  [[nodiscard]] base::ByteView text(uint32_t octets) {
    stream.resize(octets);
    for (uint32_t i = 0; i < octets; ++i) stream[i] = octet_at(core.tcb.rcv_nxt + i, 22);
    return stream;
  }
  void agree_on_ecn(CongestionControl control) {
    binding.options.congestion_control = control;
    core.ecn.take_syn(true, false, true);
  }

  std::vector<uint8_t> stream;
  tcp::Receiver receiver{core, core.timers_};
  tcp::SegmentWriter writer{core, receiver};
};

TEST(SegmentWriter, TextStandsAtItsPlaceAndAcknowledgesWhatCame) {
  OneWriter w;
  w.binding.options.dscp = 10;
  w.binding.options.hop_limit = 3;
  w.receive(1000);
  EXPECT_TRUE(w.core.timers().runs(Timer::DelayedAck));
  w.write(700, "abc", flag::kPsh);
  w.expect({.flags = flag::kAck | flag::kPsh,
            .seq = kIss + 1 + 700,
            .ack = kIrs + 1 + 1000,
            .window = OneWriter::kWindow,  // the user has taken them
            .octets = std::vector<uint8_t>{'a', 'b', 'c'},
            .options = kinds::kNone,
            .source_port = RawPeer::kOurPort,
            .dscp = 10,
            .hop_limit = 3});
  EXPECT_FALSE(w.core.timers().runs(Timer::DelayedAck)) << "it was carried";
  EXPECT_EQ(w.receiver.ack().last_ack_sent(), 1000u);
  EXPECT_EQ(w.counters.segments_out, 1u);
  EXPECT_EQ(w.counters.acks_out, 0u);
}

TEST(SegmentWriter, TimestampsStandOnEverySegment) {
  OneWriter w;
  w.core.tcb.ts_ok = true;
  w.core.tcb.ts_offset = 77;
  w.core.tcb.ts_recent = 88;
  w.write(0, "abc");
  EXPECT_TRUE(w.writer.send_ack(w.now));
  for (const uint32_t payload : {3, 0}) {
    w.expect(
        {.payload = payload, .options = kinds::kTimestamps, .ts_value = 1000 + 77, .ts_echo = 88});
  }
}

TEST(SegmentWriter, AnAckAloneNamesWhatLiesBehindAHole) {
  OneWriter w;
  w.core.tcb.sack_ok = true;
  w.core.tcb.snd_nxt = 500;
  w.core.tcb.rcv_nxt = 100;
  tcp::Segment s;
  s.seq = base::Seq32(kIrs + 1 + 300);
  s.flags = flag::kAck;
  const std::vector<uint8_t> octets(200);
  s.payload = octets;
  tcp::Receiver::NewText text;
  ASSERT_TRUE(w.receiver.inspect_text(w.receiver.text_of(s), text, w.now));
  w.user.ordered_to = 100;
  w.receiver.take_text(w.receiver.text_of(s), text, w.now);
  EXPECT_TRUE(w.receiver.ack().due_alone());
  EXPECT_TRUE(w.writer.send_ack(w.now));
  EXPECT_FALSE(w.receiver.ack().due());
  w.expect({.flags = flag::kAck,
            .seq = kIss + 1 + 500,
            .ack = kIrs + 1 + 100,
            .payload = 0,
            .options = kinds::kSack,
            .sack = SackBlocks{{kIrs + 1 + 300, kIrs + 1 + 500}}});
  EXPECT_EQ(w.counters.acks_out, 1u);
}

TEST(SegmentWriter, ThePeersFinIsAcknowledgedBehindTheLastOctet) {
  OneWriter w;
  w.core.tcb.rcv_nxt = 100;
  w.core.tcb.peers_fin = tcp::PeersFin::Reached;
  w.write(0, "a");
  EXPECT_TRUE(w.writer.send_ack(w.now));
  for (const uint32_t payload : {1, 0}) {
    w.expect({.ack = kIrs + 1 + 101, .payload = payload});
  }
}

TEST(SegmentWriter, WhereThereIsNoRoomNothingHasHappened) {
  OneWriter w;
  tcp::TxSlot slot;
  w.receiver.ask_ack();
  w.egress.full = true;
  EXPECT_FALSE(w.writer.open(slot, w.now));
  EXPECT_FALSE(w.writer.begin(10, slot, w.now));
  EXPECT_FALSE(w.writer.send_ack(w.now));
  EXPECT_EQ(w.counters.send_waits, 3u);
  w.egress.full = false;
  w.egress.mtu = 1000;  // less than EMSS was made of
  EXPECT_TRUE(w.writer.begin(960, slot, w.now));
  EXPECT_EQ(w.counters.send_waits, 3u);
  EXPECT_FALSE(w.writer.begin(961, slot, w.now));
  w.core.tcb.ts_ok = true;
  EXPECT_FALSE(w.writer.begin(960, slot, w.now));
  EXPECT_EQ(w.counters.send_waits, 5u);
  EXPECT_EQ(w.egress.cancelled, 2u);
  EXPECT_TRUE(w.egress.sent.empty());
  EXPECT_TRUE(w.receiver.ack().due()) << "it is owed still";
}

TEST(SegmentWriter, NewDataIsEcnCapableAndTellsOfAReductionOnce) {
  OneWriter w;
  tcp::TxSlot slot;
  ASSERT_TRUE(w.writer.open(slot, w.now));
  EXPECT_EQ(w.writer.mark_new_data(w.core.ecn, slot), 0);
  EXPECT_EQ(slot.traffic_class, 0) << "not agreed on";
  w.agree_on_ecn(CongestionControl::NewReno);
  w.core.ecn.note_reduction(0);
  for (const uint8_t flags : {flag::kCwr, uint8_t{0}}) {
    ASSERT_TRUE(w.writer.open(slot, w.now));
    EXPECT_EQ(w.writer.mark_new_data(w.core.ecn, slot), flags);
    EXPECT_EQ(slot.traffic_class, kEct0);
  }
  EXPECT_EQ(w.counters.cwr_out, 1u);
  EXPECT_TRUE(
      w.core.ecn.arrived(true, false, w.core.prediction));  // a mark: until the peer says CWR
  w.write(0, "abc");
  EXPECT_TRUE(w.writer.send_ack(w.now));
  // Neither an ACK nor a probe may be marked.
  for (const uint32_t payload : {3, 0}) {
    w.expect({.flags = flag::kAck | flag::kEce, .payload = payload, .ecn = 0});
  }
}

// RFC 8257 s.3.2; the right edge of the window stays where it is.
TEST(SegmentWriter, WhatCameBeforeAChangeOfCeIsAcknowledgedApart) {
  OneWriter w;
  w.agree_on_ecn(CongestionControl::Dctcp);
  w.receive(300);
  tcp::Segment marked;
  marked.ecn = kCe;
  w.receiver.take_ecn(marked);
  w.receive(200);
  w.egress.full = true;
  EXPECT_FALSE(w.writer.send_owed_acks(w.core.ecn, w.now));
  w.egress.full = false;
  EXPECT_TRUE(w.writer.send_owed_acks(w.core.ecn, w.now));
  EXPECT_TRUE(w.writer.send_ack(w.now));
  w.expect({.flags = flag::kAck, .ack = kIrs + 1 + 300, .window = OneWriter::kWindow - 300});
  w.expect({.flags = flag::kAck | flag::kEce, .ack = kIrs + 1 + 500});
  EXPECT_TRUE(w.egress.sent.empty());
  EXPECT_EQ(w.counters.ce_change_acks, 1u);
  EXPECT_EQ(w.counters.acks_out, 2u);
}

// RFC 8257 s.4.1: the knob of a network that is DCTCP's alone.
TEST(SegmentWriter, DctcpMayMarkWhatIsNoNewDataToo) {
  for (const auto control : {CongestionControl::Dctcp, CongestionControl::NewReno}) {
    tcp::Config config;
    config.dctcp_ect_on_control = true;
    OneWriter w(config);
    w.agree_on_ecn(control);
    EXPECT_TRUE(w.writer.send_ack(w.now));
    w.expect({.ecn = control == CongestionControl::Dctcp ? kEct0 : uint8_t{0}});
  }
}

}  // namespace
}  // namespace rnic::testing
