#include "net_fixture.hpp"

namespace rnic::net {
namespace {

using port::Checksum;
using port::ChecksumMode;

class Ipv4Input : public NetTest {};
class Ipv4Output : public NetTest {};
class Icmp : public NetTest {};

const std::vector<uint8_t> kPayload{1, 2, 3, 4, 5};

TEST_F(Ipv4Input, HandsUpThePayloadWithoutPadding) {
  wire::Ipv4 ip;
  ip.tos = 3;
  auto frame = ip_frame(ip, kPayload);
  frame.resize(60);
  EXPECT_EQ(receive(frame), kPayload);
  EXPECT_EQ(ecn_, 3);
  EXPECT_EQ(counters().ip_in, 1u);
}

TEST_F(Ipv4Input, OptionsAreSkipped) {
  auto frame = ip_frame({}, {1, 1, 1, 0, 7, 8, 9});
  uint8_t* p = frame.data() + wire::kEtherHeader;
  p[0] = 0x46;
  base::store_be16(p + wire::kIpv4ChecksumAt, 0);
  base::store_be16(p + wire::kIpv4ChecksumAt, wire::checksum_fold(wire::checksum_add(0, {p, 24})));
  EXPECT_EQ(receive(frame), (std::vector<uint8_t>{7, 8, 9}));
}

TEST_F(Ipv4Input, ImpossibleHeadersAreDropped) {
  const auto good = ip_frame({}, kPayload);
  auto frame = good;
  frame[wire::kEtherHeader] = 0x65;  // version 6
  EXPECT_FALSE(receive(frame));
  frame[wire::kEtherHeader] = 0x44;  // header of 16 octets
  EXPECT_FALSE(receive(frame));
  frame[wire::kEtherHeader] = 0x4f;  // header longer than the packet
  EXPECT_FALSE(receive(frame));
  frame = good;
  frame[wire::kEtherHeader + wire::kIpv4LengthAt + 1] += 1;  // longer than the frame
  EXPECT_FALSE(receive(frame));
  frame[wire::kEtherHeader + wire::kIpv4LengthAt + 1] = 19;  // shorter than its header
  EXPECT_FALSE(receive(frame));
  frame = good;
  frame.resize(wire::kEtherHeader + 19);
  EXPECT_FALSE(receive(frame));
  EXPECT_EQ(counters().ip_bad_header, 6u);
  frame.resize(13);
  EXPECT_FALSE(receive(frame));
  EXPECT_EQ(counters().short_frames, 1u);
}

// TCP-IP-01: what pads a short frame is no part of the packet, whatever it holds.
TEST_F(Ipv4Input, EthernetPaddingIsLeftOut) {
  auto frame = ip_frame({}, {1, 2, 3});
  frame.resize(60, 0xee);
  EXPECT_EQ(receive(frame), (std::vector<uint8_t>{1, 2, 3}));
  frame.resize(1400, 0xee);
  EXPECT_EQ(receive(frame), (std::vector<uint8_t>{1, 2, 3}));
}

TEST_F(NetTest, ShortFramesArePaddedWithZeros) {
  learn(kPeer, kPeerMac);
  for (const uint32_t length : {0u, 1u, 20u, 25u, 26u, 27u}) {
    ASSERT_TRUE(send(kPeer, 100, 0xff));  // what the buffer held before
    ASSERT_TRUE(send(kPeer, length, 0xff));
    interface_->flush(now_);
    port_->take_sent();
    const auto frame = port_->take_sent();
    ASSERT_EQ(frame.octets.size(), std::max(60u, 34 + length));
    EXPECT_EQ(base::load_be16(&frame.octets[16]), 20 + length);
    for (size_t i = 34 + length; i < frame.octets.size(); ++i) EXPECT_EQ(frame.octets[i], 0);
  }
  receive(arp_request(kPeer, kPeerMac));
  interface_->flush(now_);
  EXPECT_EQ(port_->take_sent().octets.size(), 60u);  // 42 octets of Ethernet and ARP
}

// A medium that is memory takes any length.
TEST_F(NetTest, FramesInMemoryAreNotPadded) {
  start(port::ChecksumMode::Trusted);
  learn(kPeer, kPeerMac);
  ASSERT_TRUE(send(kPeer, 3));
  interface_->flush(now_);
  EXPECT_EQ(port_->take_sent().octets.size(), 37u);
}

TEST_F(Ipv4Input, EveryCutAndEveryFlippedOctetIsSurvived) {
  const auto good = ip_frame({}, kPayload);
  for (size_t n = 1; n < good.size(); ++n)
    receive({good.begin(), good.begin() + static_cast<long>(n)});
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto frame = good;
      frame[at] = static_cast<uint8_t>(frame[at] ^ (1 << bit));
      const auto payload = receive(frame);
      // Of the IP header no single flipped bit gets through.
      if (at >= wire::kEtherHeader && at < wire::kEtherHeader + wire::kIpv4Header) {
        EXPECT_FALSE(payload);
      }
    }
  }
  EXPECT_EQ(counters().ip_in, kPayload.size() * 8 + 6 * 8);
}

TEST_F(Ipv4Input, HeaderChecksumIsVerifiedUnlessThePortVouches) {
  auto frame = ip_frame({}, kPayload);
  EXPECT_FALSE(receive(frame, Checksum::Bad));
  frame[wire::kEtherHeader + wire::kIpv4ChecksumAt] ^= 1;
  EXPECT_FALSE(receive(frame, Checksum::Unknown));
  EXPECT_FALSE(receive(frame, Checksum::Open));  // nobody trusts this medium
  EXPECT_EQ(counters().ip_checksum_errors, 3u);
  EXPECT_TRUE(receive(frame, Checksum::Good));
  start(ChecksumMode::Trusted);
  EXPECT_TRUE(receive(frame, Checksum::Open));
  EXPECT_FALSE(receive(frame, Checksum::Unknown));
}

TEST_F(Ipv4Input, TransportChecksumIsGoodWhenThePortSaysSo) {
  const auto frame = ip_frame({}, kPayload);
  ASSERT_TRUE(receive(frame));
  EXPECT_FALSE(l4_good_);
  ASSERT_TRUE(receive(frame, Checksum::Unknown, Checksum::Open));
  EXPECT_FALSE(l4_good_);
  ASSERT_TRUE(receive(frame, Checksum::Good, Checksum::Bad));
  EXPECT_FALSE(l4_good_);
  ASSERT_TRUE(receive(frame, Checksum::Unknown, Checksum::Good));
  EXPECT_TRUE(l4_good_);
  start(ChecksumMode::Trusted);
  ASSERT_TRUE(receive(frame, Checksum::Unknown, Checksum::Open));
  EXPECT_TRUE(l4_good_);
  ASSERT_TRUE(receive(frame));
  EXPECT_FALSE(l4_good_);
}

TEST_F(Ipv4Input, OnlyPacketsForUs) {
  for (const uint32_t to : {0x0a000003u, 0x0a0000ffu, 0xffffffffu, 0xe0000001u}) {
    wire::Ipv4 ip;
    ip.destination = to;
    EXPECT_FALSE(receive(ip_frame(ip, kPayload)));
  }
  EXPECT_EQ(counters().ip_not_ours, 4u);
  EXPECT_FALSE(receive(ip_frame({}, kPayload, kPeerMac)));
  EXPECT_FALSE(receive(ip_frame({}, kPayload, wire::kMacBroadcast)));
  EXPECT_EQ(counters().not_ours, 2u);
}

TEST_F(Ipv4Input, ImpossibleSourcesAreDropped) {
  for (const uint32_t from : {0x00000001u, 0x7f000001u, 0xe0000001u, 0xf0000001u, 0xffffffffu,
                              0x0a0000ffu, 0x0a000000u, kOurs.as_v4()}) {
    wire::Ipv4 ip;
    ip.source = from;
    EXPECT_FALSE(receive(ip_frame(ip, kPayload))) << from;
  }
  EXPECT_EQ(counters().ip_bad_source, 8u);
}

TEST_F(Ipv4Input, FragmentsAndOtherProtocolsAreCounted) {
  wire::Ipv4 ip;
  ip.fragment = wire::kIpv4MoreFragments;
  EXPECT_FALSE(receive(ip_frame(ip, kPayload)));
  ip.fragment = 100;
  EXPECT_FALSE(receive(ip_frame(ip, kPayload)));
  EXPECT_EQ(counters().ip_fragments, 2u);
  ip.fragment = wire::kIpv4DontFragment;
  EXPECT_TRUE(receive(ip_frame(ip, kPayload)));
  ip.protocol = 17;
  EXPECT_FALSE(receive(ip_frame(ip, kPayload)));
  EXPECT_EQ(counters().ip_unknown_protocol, 1u);
  auto frame = ip_frame({}, kPayload);
  frame[wire::kEtherTypeAt] = 0x86;
  frame[wire::kEtherTypeAt + 1] = 0xdd;  // IPv6, which this interface has no address of
  EXPECT_FALSE(receive(frame));
  EXPECT_EQ(counters().unknown_ethertype, 1u);
  // A header alone is a frame; an octet less is none.
  frame.resize(wire::kEtherHeader);
  EXPECT_FALSE(receive(frame));
  EXPECT_EQ(counters().unknown_ethertype, 2u);
  EXPECT_EQ(counters().short_frames, 0u);
  frame.pop_back();
  EXPECT_FALSE(receive(frame));
  EXPECT_EQ(counters().short_frames, 1u);
}

// MPA-A.5.1-01: Don't Fragment stands on all that goes out.
TEST_F(Ipv4Output, HeadersAreRight) {
  learn(kPeer, kPeerMac);
  for (uint32_t length : {0u, 1u, 20u, 999u, 1480u}) {
    ASSERT_TRUE(send(kPeer, length, 0x77));
    interface_->flush(now_);
    const test::SentFrame frame = port_->take_sent();
    ASSERT_EQ(frame.octets.size(), std::max(60u, 34 + length));
    EXPECT_EQ(wire::load_mac(frame.octets.data() + 6), kOurMac);
    const base::ByteView packet = base::ByteView(frame.octets).subspan(wire::kEtherHeader);
    const auto ip = wire::parse_ipv4(packet);
    ASSERT_TRUE(ip);
    EXPECT_TRUE(wire::ipv4_checksum_good(packet.first(20)));
    EXPECT_EQ(ip->total_length, 20 + length);
    EXPECT_EQ(ip->source, kOurs.as_v4());
    EXPECT_EQ(ip->destination, kPeer.as_v4());
    EXPECT_EQ(ip->protocol, wire::kProtocolTcp);
    EXPECT_EQ(ip->ttl, config_.ttl);
    EXPECT_EQ(ip->fragment, wire::kIpv4DontFragment);
    EXPECT_EQ(frame.l4_checksum, Checksum::Unknown);
  }
}

TEST_F(Ipv4Output, HeaderChecksumHoldsForManyIdsAndAddresses) {
  config_.prefix_length = 1;
  config_.gateway = {};
  start();
  for (uint32_t i = 0; i < 3000; ++i) {
    const IpAddress to = IpAddress::v4(0x0b000000 + (i % 7) * 0x01fffff1);
    if (i < 7) learn(to, kPeerMac);
    ASSERT_TRUE(send(to, i % 1481));
    interface_->flush(now_);
    const test::SentFrame frame = port_->take_sent();
    ASSERT_TRUE(wire::ipv4_checksum_good(base::ByteView(frame.octets).subspan(14, 20))) << i;
  }
}

TEST_F(Ipv4Output, ChecksumIsLeftOpenWhereThePortCompletesOrTrusts) {
  for (const ChecksumMode mode : {ChecksumMode::Offload, ChecksumMode::Trusted}) {
    start(mode);
    learn(kPeer, kPeerMac);
    ASSERT_TRUE(send(kPeer));
    ASSERT_TRUE(send(kPeer, 8, 0, wire::kProtocolIcmp));
    interface_->flush(now_);
    const test::SentFrame frame = port_->take_sent();
    EXPECT_EQ(frame.l4_checksum, Checksum::Open);
    EXPECT_TRUE(wire::ipv4_checksum_good(base::ByteView(frame.octets).subspan(14, 20)));
    EXPECT_EQ(port_->take_sent().l4_checksum, Checksum::Unknown);
  }
}

TEST_F(Ipv4Output, NoRoute) {
  for (const uint32_t to :
       {0u, 0x7f000001u, 0xe0000001u, 0xffffffffu, 0x0a0000ffu, 0x0a000000u, kOurs.as_v4()}) {
    EXPECT_FALSE(interface_->has_route(IpAddress::v4(to))) << to;
    EXPECT_FALSE(send(IpAddress::v4(to))) << to;
  }
  EXPECT_EQ(counters().no_route, 7u);
  EXPECT_TRUE(interface_->has_route(kPeer));
  EXPECT_TRUE(interface_->has_route(kFar));
  config_.gateway = {};
  start();
  EXPECT_FALSE(interface_->has_route(kFar));
  EXPECT_FALSE(send(kFar));
}

TEST_F(Ipv4Output, RoomIsTheSmallerMtu) {
  TxFrame frame;
  ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
  EXPECT_EQ(frame.l4_room, 1480u);
  interface_->cancel(frame);
  config_.mtu = 576;
  start();
  ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
  EXPECT_EQ(frame.l4_room, 556u);
  interface_->cancel(frame);
  config_.mtu = 9000;
  start();
  ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
  EXPECT_EQ(frame.l4_room, 1480u);
  interface_->cancel(frame);
}

TEST_F(Ipv4Output, BurstGoesOutWhenFullAndBuffersComeInBulk) {
  learn(kPeer, kPeerMac);
  const uint64_t tx_before = port_->tx_calls;
  const uint64_t alloc_before = port_->alloc_calls;
  for (int i = 0; i < 31; ++i) ASSERT_TRUE(send(kPeer));
  EXPECT_EQ(interface_->unsent(), 31u);
  EXPECT_TRUE(port_->sent().empty());
  ASSERT_TRUE(send(kPeer));
  EXPECT_EQ(interface_->unsent(), 0u);
  EXPECT_EQ(port_->sent().size(), 32u);
  EXPECT_EQ(port_->tx_calls - tx_before, 1u);
  EXPECT_LE(port_->alloc_calls - alloc_before, 1u);
}

TEST_F(Ipv4Output, AFullPortStopsBeginAndLosesNothing) {
  learn(kPeer, kPeerMac);
  port_->tx_room = 10;
  uint8_t sent = 0;
  while (send(kPeer, 100, sent)) ++sent;
  EXPECT_EQ(sent, 42);  // ten taken, 32 kept
  EXPECT_EQ(interface_->unsent(), 32u);
  EXPECT_GE(counters().port_full, 2u);
  EXPECT_FALSE(interface_->flush(now_));
  port_->tx_room = UINT32_MAX;
  EXPECT_TRUE(send(kPeer, 100, sent));
  EXPECT_TRUE(interface_->flush(now_));
  ASSERT_EQ(port_->sent().size(), 43u);
  for (uint8_t i = 0; i < 43; ++i) EXPECT_EQ(port_->take_sent().octets.back(), i);
}

TEST_F(Ipv4Output, OpenFramesHoldTheirPlaces) {
  learn(kPeer, kPeerMac);
  port_->tx_room = 0;
  std::vector<TxFrame> frames(32);
  for (TxFrame& frame : frames) ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
  TxFrame more;
  EXPECT_FALSE(interface_->begin(kOurs, kPeer, more, now_));
  interface_->cancel(frames[0]);
  ASSERT_TRUE(interface_->begin(kOurs, kPeer, frames[0], now_));
  for (TxFrame& frame : frames) interface_->send(frame, wire::kProtocolTcp, 10, now_);
  EXPECT_EQ(interface_->unsent(), 32u);
  EXPECT_FALSE(interface_->begin(kOurs, kPeer, more, now_));
}

// Buffers that come back are kept for the next frames, a burst of them; the rest is the port's.
TEST_F(Ipv4Output, NoMoreThanABurstOfBuffersIsKept) {
  constexpr uint32_t kBurst = 32;
  learn(kPeer, kPeerMac);
  std::vector<TxFrame> frames(kBurst);
  for (TxFrame& frame : frames) ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
  for (uint32_t i = 1; i < kBurst; ++i) {
    interface_->send(frames[i], wire::kProtocolTcp, 10, now_);
  }
  EXPECT_TRUE(interface_->flush(now_));
  for (uint32_t i = 1; i < kBurst; ++i) {
    ASSERT_TRUE(interface_->begin(kOurs, kPeer, frames[i], now_));
  }
  EXPECT_GT(port_->outstanding(), kBurst);
  for (TxFrame& frame : frames) interface_->cancel(frame);
  EXPECT_EQ(port_->outstanding(), kBurst);
}

// Packets of a run are those that would have been sent one by one, and what is not used of its room
// comes back.
TEST_F(Ipv4Output, ARunIsWhatSinglePacketsAre) {
  for (const bool resolved : {true, false}) {
    std::vector<test::SentFrame> sent[2];
    for (const bool as_run : {false, true}) {
      start();
      if (resolved) learn(kPeer, kPeerMac);
      const std::array<uint32_t, 3> lengths{1480, 20, 999};
      if (as_run) {
        TxRun run;
        ASSERT_TRUE(interface_->begin_run(kOurs, kPeer, 5, run, now_));
        ASSERT_EQ(run.count, 5u);
        run.traffic_class = 2;
        run.hop_limit = 9;
        for (uint8_t i = 0; i < 3; ++i) {
          std::memset(run.packets[i].data + run.l4_at, i, lengths[i]);
        }
        interface_->send_run(run, wire::kProtocolTcp, lengths, now_);
        EXPECT_EQ(run.count, 0u);
      } else {
        for (uint8_t i = 0; i < 3; ++i) {
          TxFrame frame;
          ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
          frame.traffic_class = 2;
          frame.hop_limit = 9;
          std::memset(frame.l4, i, lengths[i]);
          interface_->send(frame, wire::kProtocolTcp, lengths[i], now_);
        }
      }
      if (!resolved) receive(arp_reply(kPeer, kPeerMac));
      interface_->flush(now_);
      interface_->validate();
      while (!port_->sent().empty()) sent[as_run].push_back(port_->take_sent());
    }
    ASSERT_EQ(sent[0].size(), resolved ? 3u : 4u);  // an ARP request goes before
    ASSERT_EQ(sent[0].size(), sent[1].size());
    for (size_t i = 0; i < sent[0].size(); ++i) EXPECT_EQ(sent[0][i].octets, sent[1][i].octets);
  }
}

TEST_F(Ipv4Output, ARunEndsWithTheBurstAndWaitsForThePort) {
  learn(kPeer, kPeerMac);
  port_->tx_room = 0;
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(send(kPeer));
  TxRun run;
  ASSERT_TRUE(interface_->begin_run(kOurs, kPeer, 5, run, now_));
  EXPECT_EQ(run.count, 2u);
  interface_->send_run(run, wire::kProtocolTcp, std::array<uint32_t, 2>{10, 10}, now_);
  EXPECT_EQ(interface_->unsent(), 32u);
  EXPECT_FALSE(interface_->begin_run(kOurs, kPeer, 5, run, now_));
  port_->tx_room = UINT32_MAX;
  ASSERT_TRUE(interface_->begin_run(kOurs, kPeer, 100, run, now_));
  EXPECT_EQ(run.count, TxRun::kMost);
  interface_->send_run(run, wire::kProtocolTcp, {}, now_);
  EXPECT_EQ(interface_->unsent(), 0u);
  EXPECT_EQ(port_->sent().size(), 32u);
  interface_->validate();
}

TEST_F(Ipv4Output, AnEmptyPoolIsCounted) {
  port_->refuse_alloc = true;
  EXPECT_FALSE(send(kPeer));
  EXPECT_EQ(counters().no_buffer, 1u);
  port_->refuse_alloc = false;
  EXPECT_TRUE(send(kPeer));
}

std::vector<uint8_t> echo_request(size_t data) {
  std::vector<uint8_t> message(wire::kIcmpHeader + data, 0x42);
  message[0] = wire::kIcmpEchoRequest;
  message[1] = 0;
  base::store_be16(message.data() + 2, 0);
  base::store_be16(message.data() + 2, wire::checksum_fold(wire::checksum_add(0, message)));
  return message;
}

wire::Ipv4 icmp_header() {
  wire::Ipv4 ip;
  ip.protocol = wire::kProtocolIcmp;
  return ip;
}

TEST_F(Icmp, EchoIsAnswered) {
  learn(kPeer, kPeerMac);
  for (const size_t data : {size_t{0}, size_t{1}, size_t{57}, size_t{1472}}) {
    const auto request = echo_request(data);
    EXPECT_FALSE(receive(ip_frame(icmp_header(), request)));
    interface_->flush(now_);
    const test::SentFrame frame = port_->take_sent();
    const auto ip = wire::parse_ipv4(base::ByteView(frame.octets).subspan(wire::kEtherHeader));
    ASSERT_EQ(ip->total_length, wire::kIpv4Header + request.size());
    const base::ByteView reply = base::ByteView(frame.octets).subspan(34, request.size());
    EXPECT_EQ(reply[0], wire::kIcmpEchoReply);
    EXPECT_EQ(wire::checksum_fold(wire::checksum_add(0, reply)), 0);
    EXPECT_TRUE(std::equal(reply.begin() + 4, reply.end(), request.begin() + 4));
  }
  EXPECT_EQ(counters().icmp_echo_in, 4u);
}

TEST_F(Icmp, RepliesAreLimited) {
  config_.icmp_per_second = 10;
  start();
  learn(kPeer, kPeerMac);
  const auto frame = ip_frame(icmp_header(), echo_request(10));
  for (int i = 0; i < 25; ++i) receive(frame);
  EXPECT_EQ(counters().icmp_echo_in, 10u);
  EXPECT_EQ(counters().icmp_limited, 15u);
  now_ += std::chrono::milliseconds(300);
  for (int i = 0; i < 25; ++i) receive(frame);
  EXPECT_EQ(counters().icmp_echo_in, 13u);
  now_ += std::chrono::hours(1);
  for (int i = 0; i < 25; ++i) receive(frame);
  EXPECT_EQ(counters().icmp_echo_in, 23u);
}

// RFC 792: the code of an echo is 0. What is something else is not answered, however short it is.
TEST_F(Icmp, AnEchoWithACodeIsNotAnswered) {
  learn(kPeer, kPeerMac);
  auto request = echo_request(10);
  request[wire::kIcmpCodeAt] = 1;
  base::store_be16(request.data() + 2, 0);
  base::store_be16(request.data() + 2, wire::checksum_fold(wire::checksum_add(0, request)));
  EXPECT_FALSE(receive(ip_frame(icmp_header(), request)));
  interface_->flush(now_);
  EXPECT_TRUE(port_->sent().empty());
  EXPECT_EQ(counters().icmp_limited, 1u);
  EXPECT_EQ(counters().icmp_echo_in, 0u);
}

TEST_F(Icmp, OthersAreIgnored) {
  auto broken = echo_request(10);
  broken.back() ^= 1;
  receive(ip_frame(icmp_header(), broken));
  receive(ip_frame(icmp_header(), {8, 0, 0}));
  EXPECT_EQ(counters().icmp_malformed, 2u);
  auto other = echo_request(10);
  other[0] = 13;  // timestamp
  base::store_be16(other.data() + 2, 0);
  base::store_be16(other.data() + 2, wire::checksum_fold(wire::checksum_add(0, other)));
  receive(ip_frame(icmp_header(), other));
  EXPECT_EQ(counters().icmp_other, 1u);
  wire::Ipv4 broadcast = icmp_header();
  broadcast.destination = 0x0a0000ff;
  receive(ip_frame(broadcast, echo_request(10)));
  interface_->flush(now_);
  EXPECT_TRUE(port_->sent().empty());
}

TEST_F(Icmp, TwoInterfacesTalk) {
  interface_.reset();
  test::FakePort near({"near", kOurMac, 1500, ChecksumMode::Software});
  test::FakePort far({"far", kPeerMac, 1500, ChecksumMode::Software});
  test::FakePort::connect(near, far);
  Config peer_config = config_;
  peer_config.address = kPeer;
  {
    Interface a(config_, near, now_);
    Interface b(peer_config, far, now_);
    TxFrame frame;
    ASSERT_TRUE(a.begin(kOurs, kPeer, frame, now_));
    std::memset(frame.l4, 9, 300);
    a.send(frame, wire::kProtocolTcp, 300, now_);
    std::optional<std::vector<uint8_t>> arrived;
    for (int turn = 0; turn < 4; ++turn) {
      a.flush(now_);
      b.flush(now_);
      port::Packet packet;
      while (near.rx_burst({&packet, 1}, now_) == 1) {
        a.input(packet, now_);
        near.free({&packet, 1});
      }
      while (far.rx_burst({&packet, 1}, now_) == 1) {
        if (const auto in = b.input(packet, now_))
          arrived.emplace(in->payload.begin(), in->payload.end());
        far.free({&packet, 1});
      }
    }
    ASSERT_TRUE(arrived);
    EXPECT_EQ(*arrived, std::vector<uint8_t>(300, 9));
  }
  start();
}

}  // namespace
}  // namespace rnic::net
