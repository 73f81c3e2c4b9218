#include "ipv6_fixture.hpp"

namespace rnic::net {
namespace {

class Ipv6Input : public Ipv6Test {};
class Ipv6Output : public Ipv6Test {};

const Octets kSent{1, 2, 3, 4, 5, 6, 7, 8};

// An extension header of 8 octets with these options, or zero padding.
Octets options_header(uint8_t next, const Octets& options = {1, 4, 0, 0, 0, 0}) {
  return joined({Octets{next, static_cast<uint8_t>((options.size() + 2) / 8 - 1)}, options});
}

TEST_F(Ipv6Input, EthernetPaddingIsLeftOut) {
  auto frame = ip6_frame(with_next(wire::kProtocolTcp), {1, 2, 3});
  frame.resize(60, 0xee);
  EXPECT_EQ(receive(frame), (Octets{1, 2, 3}));
}

TEST_F(Ipv6Input, HandsUpThePayloadWithoutPadding) {
  wire::Ipv6 ip = with_next(wire::kProtocolTcp);
  ip.traffic_class = 0xb9;  // DSCP 46, ECT(1)
  ip.flow_label = 0xfffff;
  Octets frame = ip6_frame(ip, kSent);
  frame.resize(80, 0xee);
  EXPECT_EQ(receive(frame), kSent);
  EXPECT_EQ(ecn_, 1);
  EXPECT_FALSE(l4_good_);
  EXPECT_EQ(counters().ip6_in, 1u);
  EXPECT_TRUE(receive(ip6_frame(with_next(wire::kProtocolTcp), kSent), port::Checksum::Unknown,
                      port::Checksum::Good));
  EXPECT_TRUE(l4_good_);
}

TEST_F(Ipv6Input, WithoutAnAddressOfItsOwnIpv6IsNotKnown) {
  config_.addresses.clear();
  config_.gateway6 = {};
  start();
  EXPECT_FALSE(receive(ip6_frame(with_next(wire::kProtocolTcp), kSent)));
  EXPECT_EQ(counters().unknown_ethertype, 1u);
}

TEST_F(Ipv6Input, ImpossibleHeadersAreDropped) {
  const Octets good = ip6_frame(with_next(wire::kProtocolTcp), kSent);
  Octets frame = good;
  frame[14] = 0x45;
  EXPECT_FALSE(receive(frame));
  frame = good;
  frame[19] += 1;  // longer than the frame
  EXPECT_FALSE(receive(frame));
  EXPECT_EQ(counters().ip_bad_header, 2u);
}

// SEC-FUZZ-01
TEST_F(Ipv6Input, EveryCutAndEveryFlippedBitIsSurvived) {
  const Octets good = ip6_frame(with_next(wire::kNextHopByHop),
                                joined({options_header(wire::kNextDestinationOptions),
                                        options_header(wire::kNextFragment),
                                        {wire::kNextIcmpv6, 0, 0, 0, 0, 0, 0, 9},
                                        icmp6(Octets{128, 0, 0, 0, 1, 2, 3, 4})}));
  for (size_t n = 1; n < good.size(); ++n) {
    EXPECT_FALSE(receive({good.begin(), good.begin() + static_cast<long>(n)}));
  }
  for (size_t at = 14; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Octets frame = good;
      frame[at] = static_cast<uint8_t>(frame[at] ^ (1 << bit));
      receive(frame);
      interface_->flush(now_);
    }
  }
  port_->sent().clear();
}

// TCP-9293-3.9.2.3-01
TEST_F(Ipv6Input, ImpossibleAddressesAreDropped) {
  const auto from = [](const IpAddress& a) {
    wire::Ipv6 ip = with_next(wire::kProtocolTcp);
    ip.source = to_wire(a);
    return ip6_frame(ip, kSent);
  };
  EXPECT_FALSE(receive(from(kAllNodes)));
  EXPECT_FALSE(receive(from({0, 1})));
  EXPECT_FALSE(receive(from(kOurs6)));
  EXPECT_FALSE(receive(from(kPeer)));  // a mapped address on the wire
  Octets nobody = from(kPeer6);
  std::fill_n(nobody.begin() + 14 + 8, 16, uint8_t{0});
  EXPECT_FALSE(receive(nobody));
  EXPECT_EQ(counters().ip_bad_source, 5u);
  for (const IpAddress& to : {kPeer6, kOurs /* mapped */, IpAddress{0, 1}, kFar6}) {
    wire::Ipv6 ip = with_next(wire::kProtocolTcp);
    ip.destination = to_wire(to);
    EXPECT_FALSE(receive(ip6_frame(ip, kSent)));
  }
  EXPECT_EQ(counters().ip_not_ours, 4u);
  wire::Ipv6 ip = with_next(wire::kProtocolTcp);
  ip.destination = to_wire(kAllNodes);
  EXPECT_FALSE(receive(ip6_frame(ip, kSent, wire::multicast_mac(wire::kAllNodes))));
  EXPECT_EQ(sent(), 0u);
}

TEST_F(Ipv6Input, ExtensionHeadersAreWalked) {
  const Octets atomic{wire::kProtocolTcp, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(receive(ip6_frame(with_next(wire::kNextHopByHop),
                              joined({options_header(wire::kNextRouting),
                                      {wire::kNextDestinationOptions, 0, 0, 0, 0, 0, 0, 0},
                                      options_header(wire::kNextFragment, {5, 2, 0, 0, 0, 0}),
                                      atomic,
                                      kSent}))),
            kSent);
}

// RFC 8200 s.4.1: hop-by-hop options stand right behind the IPv6 header, nowhere else: not behind
// another header, and not behind a fragment header, of which they are the first.
TEST_F(Ipv6Input, HopByHopOptionsElsewhereAreAProblem) {
  learn6(kPeer6, kPeerMac);
  const Octets options = options_header(wire::kProtocolTcp);
  const Octets atomic{wire::kNextHopByHop, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_TRUE(receive(ip6_frame(with_next(wire::kNextHopByHop), joined({options, kSent}))));
  uint64_t refused = 0;
  for (const auto& [next, in_front] :
       {std::pair{wire::kNextDestinationOptions, options_header(wire::kNextHopByHop)},
        std::pair{wire::kNextFragment, atomic}}) {
    EXPECT_FALSE(receive(ip6_frame(with_next(next), joined({in_front, options, kSent}))));
    EXPECT_EQ(counters().ip6_bad_extension, ++refused);
    ASSERT_EQ(sent(), 1u);
    const Sent6 problem = take6();
    EXPECT_EQ(problem.payload.at(0), wire::kIcmpv6ParameterProblem);
    EXPECT_EQ(problem.payload.at(1), wire::kIcmpv6UnknownNextHeader);
  }
}

// Each packet for us counts once, whatever its headers are and whatever it carries; what is refused
// for its headers does not.
TEST_F(Ipv6Input, EachPacketForUsIsCountedOnce) {
  const Octets options = options_header(wire::kProtocolTcp);
  EXPECT_TRUE(receive(ip6_frame(with_next(wire::kProtocolTcp), kSent)));
  EXPECT_EQ(counters().ip6_in, 1u);
  EXPECT_TRUE(
      receive(ip6_frame(with_next(wire::kNextDestinationOptions), joined({options, kSent}))));
  EXPECT_EQ(counters().ip6_in, 2u);
  EXPECT_FALSE(receive(ip6_frame(with_next(17), kSent)));
  EXPECT_EQ(counters().ip6_in, 3u);
  EXPECT_EQ(counters().ip_unknown_protocol, 1u);
  EXPECT_FALSE(
      receive(ip6_frame(with_next(wire::kNextIcmpv6), icmp6(Octets{129, 0, 0, 0, 0, 0, 0, 0}))));
  EXPECT_EQ(counters().ip6_in, 4u);
  EXPECT_FALSE(receive(ip6_frame(with_next(wire::kNextDestinationOptions), Octets{6, 0, 1})));
  EXPECT_EQ(counters().ip6_in, 4u);
}

// RFC 6946, RFC 8200 s.4.5: nothing behind the header is no octet, not half a header.
TEST_F(Ipv6Input, AFragmentHeaderMayBeTheLastThing) {
  const Octets atomic{wire::kProtocolTcp, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(receive(ip6_frame(with_next(wire::kNextFragment), atomic)), Octets{});
  EXPECT_EQ(counters().ip6_bad_extension, 0u);
}

struct Problem {
  const char* what;
  uint8_t next;
  Octets payload;
  int code;  // -1: nothing is said
  uint32_t pointer;
};

TEST_F(Ipv6Input, WhatCannotBeServedIsReportedWithItsPlace) {
  const Octets tcp8 = kSent;
  const std::vector<Problem> problems{
      {"unknown protocol", 17, tcp8, wire::kIcmpv6UnknownNextHeader, 6},
      {"unknown protocol behind a header", 60, joined({options_header(17), tcp8}),
       wire::kIcmpv6UnknownNextHeader, 40},
      {"no next header", wire::kNextNone, {}, -1, 0},
      {"hop-by-hop in the second place", 60, joined({options_header(0), options_header(6), tcp8}),
       wire::kIcmpv6UnknownNextHeader, 40},
      // RFC 4443 s.3.4: the pointer counts from the IPv6 header of the packet as it came. The field
      // that names the protocol is the first one of the fragment header.
      {"unknown protocol behind an atomic fragment header", 44,
       joined({{17, 0, 0, 0, 0, 0, 0, 1}, tcp8}), wire::kIcmpv6UnknownNextHeader, 40},
      {"unknown protocol behind options and an atomic fragment header", 60,
       joined({options_header(44), {17, 0, 0, 0, 0, 0, 0, 1}, tcp8}),
       wire::kIcmpv6UnknownNextHeader, 48},
      {"hop-by-hop behind an atomic fragment header", 44,
       joined({{0, 0, 0, 0, 0, 0, 0, 1}, options_header(6), tcp8}), wire::kIcmpv6UnknownNextHeader,
       40},
      {"routing with segments left", 43, joined({{6, 0, 0, 1, 0, 0, 0, 0}, tcp8}),
       wire::kIcmpv6BadField, 42},
      {"option to be skipped", 60, joined({options_header(6, {0x1e, 4, 0, 0, 0, 0}), tcp8}), -2, 0},
      {"option to be dropped", 60, joined({options_header(6, {0x5e, 4, 0, 0, 0, 0}), tcp8}), -1, 0},
      {"option to be reported", 60, joined({options_header(6, {0x9e, 4, 0, 0, 0, 0}), tcp8}),
       wire::kIcmpv6UnknownOption, 42},
      {"jumbo payload", 0, joined({options_header(6, {0xc2, 4, 0, 1, 0, 0}), tcp8}),
       wire::kIcmpv6UnknownOption, 42},
      {"option past its header", 60, joined({options_header(6, {1, 9, 0, 0, 0, 0}), tcp8}),
       wire::kIcmpv6BadField, 42},
      {"option without a length", 60, joined({options_header(6, {1, 3, 0, 0, 0, 1}), tcp8}),
       wire::kIcmpv6BadField, 47},
      {"header past the end", 60, Octets{6, 9, 1, 4, 0, 0, 0, 0}, -1, 0},
      {"half a header", 60, Octets{6, 0, 1}, -1, 0},
      {"half a fragment header", 44, Octets{6, 0, 0, 0}, -1, 0},
      {"a fragment of a length that does not fit", 44,
       joined({{6, 0, 0, 1, 0, 0, 0, 1}, kSent, {9}}), wire::kIcmpv6BadField, 4},
      {"a fragment past the longest packet", 44, joined({{6, 0, 0xff, 0xf9, 0, 0, 0, 1}, kSent}),
       wire::kIcmpv6BadField, 42},
      {"a first fragment without the TCP header", 44, joined({{6, 0, 0, 1, 0, 0, 0, 1}, kSent}),
       wire::kIcmpv6IncompleteChain, 0},
  };
  learn6(kPeer6, kPeerMac);
  for (const Problem& problem : problems) {
    SCOPED_TRACE(problem.what);
    const Octets frame = ip6_frame(with_next(problem.next), problem.payload);
    EXPECT_EQ(receive(frame).has_value(), problem.code == -2);
    ASSERT_EQ(sent(), problem.code >= 0 ? 1u : 0u);
    if (problem.code < 0) continue;
    const Sent6 error = take6();
    EXPECT_EQ(from_wire(error.ip.destination), kPeer6);
    EXPECT_EQ(from_wire(error.ip.source), kOurs6);
    EXPECT_EQ(error.payload[0], wire::kIcmpv6ParameterProblem);
    EXPECT_EQ(error.payload[1], problem.code);
    EXPECT_EQ(base::load_be32(error.payload.data() + 4), problem.pointer);
    EXPECT_EQ(Octets(error.payload.begin() + 8, error.payload.end()),
              Octets(frame.begin() + 14, frame.end()));
  }
}

TEST_F(Ipv6Input, HeadersAndOptionsAreLimited) {
  const auto frame = [&](uint32_t headers) {
    Octets all;
    for (uint32_t i = 1; i < headers; ++i) {
      all = joined({all, options_header(wire::kNextDestinationOptions)});
    }
    return ip6_frame(with_next(wire::kNextDestinationOptions),
                     joined({all, options_header(wire::kProtocolTcp), kSent}));
  };
  EXPECT_TRUE(receive(frame(8)));
  EXPECT_FALSE(receive(frame(9)));
  EXPECT_FALSE(
      receive(ip6_frame(with_next(wire::kNextDestinationOptions),
                        joined({options_header(wire::kProtocolTcp, Octets(22, 0)), kSent}))));
  EXPECT_EQ(counters().ip6_bad_extension, 2u);
}

// RFC 4443 s.2.4 e: no errors about errors, about groups, to nobody; and not without end.
// TCP-IP-03
TEST_F(Ipv6Input, ErrorsAreNotSentAboutEverything) {
  config_.icmp_errors_per_second = 10;
  start();
  learn6(kPeer6, kPeerMac);
  receive(ip6_frame(with_next(60), joined({options_header(wire::kNextIcmpv6, {0x1e, 4, 0, 0, 0, 0}),
                                           icmp6(Octets{3, 0, 0, 0, 0, 0, 0, 0})})));
  receive(ip6_frame(with_next(60), joined({options_header(17), Octets(8)})));
  EXPECT_EQ(sent(), 1u);
  port_->sent().clear();
  // To a group only for an option that asks for it.
  wire::Ipv6 group = with_next(60);
  group.destination = to_wire(kAllNodes);
  const port::MacAddress mac = wire::multicast_mac(wire::kAllNodes);
  receive(ip6_frame(group, joined({options_header(17), Octets(8)}), mac));
  receive(ip6_frame(group, options_header(wire::kProtocolTcp, {0xde, 4, 0, 0, 0, 0}), mac));
  EXPECT_EQ(sent(), 0u);
  receive(ip6_frame(group, options_header(wire::kProtocolTcp, {0x9e, 4, 0, 0, 0, 0}), mac));
  EXPECT_EQ(sent(), 1u);
  EXPECT_EQ(from_wire(take6().ip.source), kOurs6);
  for (int i = 0; i < 50; ++i) receive(ip6_frame(with_next(17), kSent));
  EXPECT_EQ(counters().icmp_errors_out, 10u);
  EXPECT_EQ(counters().icmp_limited, 42u);
}

TEST_F(Ipv6Output, HeadersAreRight) {
  learn6(kPeer6, kPeerMac);
  for (const uint32_t length : {0u, 1u, 20u, 1460u}) {
    TxFrame frame;
    ASSERT_TRUE(interface_->begin(kOurs6, kPeer6, frame, now_));
    EXPECT_EQ(frame.l4_room, 1460u);
    std::memset(frame.l4, 0x77, length);
    frame.traffic_class = 0xba;
    frame.hop_limit = 7;
    interface_->send(frame, wire::kProtocolTcp, length, now_);
    const Sent6 sent = take6();
    EXPECT_EQ(sent.mac, kPeerMac);
    EXPECT_EQ(sent.ip.payload_length, length);
    EXPECT_EQ(sent.ip.traffic_class, 0xba);
    EXPECT_EQ(sent.ip.hop_limit, 7);
    EXPECT_EQ(sent.ip.next_header, wire::kProtocolTcp);
    EXPECT_EQ(from_wire(sent.ip.source), kOurs6);
    EXPECT_EQ(from_wire(sent.ip.destination), kPeer6);
    EXPECT_EQ(sent.payload, Octets(length, 0x77));
  }
  send6(kPeer6);
  EXPECT_EQ(take6().ip.hop_limit, config_.ttl);
}

TEST_F(Ipv6Output, FlowLabelIsStableForAConnectionAndDiffersBetweenThem) {
  learn6(kPeer6, kPeerMac);
  const auto label = [&](uint8_t port) {
    EXPECT_TRUE(send6(kPeer6, 40, port));
    return take6().ip.flow_label;
  };
  const uint32_t first = label(1);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(label(1), first);
  std::vector<uint32_t> labels;
  for (uint8_t port = 1; port < 100; ++port) labels.push_back(label(port));
  std::sort(labels.begin(), labels.end());
  EXPECT_GT(std::unique(labels.begin(), labels.end()) - labels.begin(), 95);
  // The two ports are all that is looked at, also where there is nothing else.
  const auto short_label = [&](uint32_t length, uint8_t port) {
    EXPECT_TRUE(send6(kPeer6, length, port));
    return take6().ip.flow_label;
  };
  EXPECT_EQ(short_label(4, 1), first);
  EXPECT_NE(short_label(4, 2), first);
  EXPECT_EQ(short_label(3, 1), short_label(3, 2));
  config_.seed = 99;
  start();
  learn6(kPeer6, kPeerMac);
  EXPECT_NE(label(1), first);
}

// TCP-8201-4-01, TCP-1191-6.3-01
TEST_F(Ipv6Output, PathMtuIsRememberedForATimeAndNeverRaised) {
  EXPECT_EQ(Config{}.path_mtu_lifetime, std::chrono::minutes(10));
  EXPECT_EQ(interface_->path_mtu(kPeer6, now_), 1500u);
  interface_->reduce_path_mtu(kPeer6, 1279, now_);
  EXPECT_EQ(interface_->path_mtu(kPeer6, now_), 1500u);
  interface_->reduce_path_mtu(kPeer6, 1300, now_);
  interface_->reduce_path_mtu(kPeer6, 1400, now_);
  EXPECT_EQ(interface_->path_mtu(kPeer6, now_), 1300u);
  EXPECT_EQ(interface_->link_mtu(kPeer6), 1500u);  // what may come back
  EXPECT_EQ(interface_->path_mtu(kPeer, now_), 1500u);
  interface_->reduce_path_mtu(kPeer, 20, now_);
  EXPECT_EQ(interface_->path_mtu(kPeer, now_), 68u);
  const base::Now forgotten = now_ + config_.path_mtu_lifetime;
  EXPECT_EQ(interface_->path_mtu(kPeer6, forgotten - base::Duration(1)), 1300u);
  EXPECT_EQ(interface_->path_mtu(kPeer6, forgotten), 1500u);
}

// A path MTU that is not below the link's takes no place, so no other path is forgotten for it.
TEST_F(Ipv6Output, APathAsWideAsTheLinkTakesNoPlace) {
  interface_->reduce_path_mtu(kPeer6, 1300, now_);
  interface_->reduce_path_mtu(kPeer, 1300, now_);
  for (uint64_t i = 0; i < 10'000; ++i) {  // more often than there are places
    interface_->reduce_path_mtu({kPeer6.high(), 100 + i}, 1500, now_);
    interface_->reduce_path_mtu({kPeer6.high(), 100 + i}, 9000, now_);
  }
  EXPECT_EQ(interface_->path_mtu(kPeer6, now_), 1300u);
  EXPECT_EQ(interface_->path_mtu(kPeer, now_), 1300u);
}

// TCP-9293-3.9.2-01
TEST_F(NetTest, TypeOfServiceAndTimeToLiveAreTheFrames) {
  learn(kPeer, kPeerMac);
  TxFrame frame;
  ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
  frame.traffic_class = 0xba;
  frame.hop_limit = 3;
  interface_->send(frame, wire::kProtocolTcp, 20, now_);
  interface_->flush(now_);
  const test::SentFrame sent = port_->take_sent();
  const auto packet = base::ByteView(sent.octets).subspan(wire::kEtherHeader);
  const auto ip = wire::parse_ipv4(packet);
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->tos, 0xba);
  EXPECT_EQ(ip->ttl, 3);
  EXPECT_TRUE(wire::ipv4_checksum_good(packet.first(20)));
}

// send() consumes the frame, as cancel() does: its room may be another packet's at once, so the way
// to it is taken back, whether the packet goes out or waits for its neighbour.
TEST_F(NetTest, ASentFrameLeadsToNoRoom) {
  learn(kPeer, kPeerMac);
  for (const IpAddress& to : {kPeer, kGateway /* nobody knows it yet */}) {
    TxFrame frame;
    ASSERT_TRUE(interface_->begin(kOurs, to, frame, now_));
    EXPECT_NE(frame.l4, nullptr);
    interface_->send(frame, wire::kProtocolTcp, 20, now_);
    EXPECT_EQ(frame.l4, nullptr);
    ASSERT_TRUE(interface_->begin(kOurs, to, frame, now_));
    interface_->cancel(frame);
    EXPECT_EQ(frame.l4, nullptr);
  }
}

// Whoever sends several packets by one TxFrame says anew what is special about each.
TEST_F(NetTest, BeginForgetsWhatTheFrameBeforeWasGiven) {
  learn(kPeer, kPeerMac);
  TxFrame frame;
  for (const bool special : {true, false}) {
    ASSERT_TRUE(interface_->begin(kOurs, kPeer, frame, now_));
    if (special) {
      frame.traffic_class = 0xba;
      frame.hop_limit = 3;
    }
    interface_->send(frame, wire::kProtocolTcp, 20, now_);
    interface_->flush(now_);
    const test::SentFrame sent = port_->take_sent();
    const auto ip = wire::parse_ipv4(base::ByteView(sent.octets).subspan(wire::kEtherHeader));
    ASSERT_TRUE(ip);
    EXPECT_EQ(ip->tos, special ? 0xba : 0);
    EXPECT_EQ(ip->ttl, special ? 3 : config_.ttl);
  }
}

}  // namespace
}  // namespace rnic::net
