#include "net/icmp_error.hpp"

#include "ipv6_fixture.hpp"
#include "wire/icmp.hpp"

namespace rnic::net {
namespace {

struct Heard : IcmpErrorUser {
  void icmp_error(const llp::IcmpError& error, base::Now) override {
    last = error;
    l4.assign(error.tcp.begin(), error.tcp.end());
    ++count;
  }
  llp::IcmpError last;
  Octets l4;
  int count = 0;
};

// TCP-IP-03
class IcmpErrors : public Ipv6Test {
 protected:
  void SetUp() override {
    Ipv6Test::SetUp();
    interface_->set_error_user(&heard_);
  }
  Heard heard_;
};

// What a router quotes of a packet of ours: its header and `l4` octets.
Octets quote4(uint32_t l4, uint32_t total = 1500, uint32_t from = kOurs.as_v4(),
              uint32_t to = kFar.as_v4()) {
  wire::Ipv4 ip;
  ip.total_length = total;
  ip.protocol = wire::kProtocolTcp;
  ip.ttl = 1;
  ip.source = from;
  ip.destination = to;
  Octets packet(wire::kIpv4Header + l4);
  wire::write_ipv4(packet.data(), ip);
  for (uint32_t i = 0; i < l4; ++i) packet[wire::kIpv4Header + i] = static_cast<uint8_t>(i + 1);
  return packet;
}

Octets quote6(uint32_t l4, const IpAddress& from = kOurs6, uint8_t next = wire::kProtocolTcp) {
  wire::Ipv6 ip = with_next(next);
  ip.payload_length = 1400;
  ip.source = to_wire(from);
  ip.destination = to_wire(kFar6);
  Octets packet(wire::kIpv6Header + l4);
  wire::write_ipv6(packet.data(), ip);
  for (uint32_t i = 0; i < l4; ++i) packet[wire::kIpv6Header + i] = static_cast<uint8_t>(i + 1);
  return packet;
}

Octets error4(uint8_t type, uint8_t code, uint32_t rest, const Octets& quote) {
  Octets message(8);
  message[0] = type;
  message[1] = code;
  base::store_be32(message.data() + 4, rest);
  message = joined({message, quote});
  base::store_be16(message.data() + 2, wire::checksum_fold(wire::checksum_add(0, message)));
  wire::Ipv4 ip;
  ip.protocol = wire::kProtocolIcmp;
  return ip_frame(ip, message);
}

Octets error6(uint8_t type, uint8_t code, uint32_t rest, const Octets& quote) {
  Octets message(8);
  message[0] = type;
  message[1] = code;
  base::store_be32(message.data() + 4, rest);
  return ip6_frame(with_next(wire::kNextIcmpv6), icmp6(joined({message, quote})));
}

TEST_F(IcmpErrors, AreHandedUpWithWhatTheyQuote) {
  receive(error4(3, 4, 1300, quote4(8)));
  ASSERT_EQ(heard_.count, 1);
  EXPECT_EQ(heard_.last.kind, llp::IcmpError::Kind::PacketTooBig);
  EXPECT_EQ(heard_.last.mtu, 1300u);
  EXPECT_EQ(heard_.last.quoted_length, 1500u);
  EXPECT_EQ(heard_.last.source, kOurs);
  EXPECT_EQ(heard_.last.destination, kFar);
  EXPECT_EQ(heard_.l4, (Octets{1, 2, 3, 4, 5, 6, 7, 8}));
  receive(error6(2, 0, 1300, quote6(20)));
  ASSERT_EQ(heard_.count, 2);
  EXPECT_EQ(heard_.last.kind, llp::IcmpError::Kind::PacketTooBig);
  EXPECT_EQ(heard_.last.mtu, 1300u);
  EXPECT_EQ(heard_.last.quoted_length, 1440u);
  EXPECT_EQ(heard_.last.source, kOurs6);
  EXPECT_EQ(heard_.last.destination, kFar6);
  EXPECT_EQ(heard_.l4.size(), 20u);
  EXPECT_EQ(counters().icmp_errors_in, 2u);
}

TEST_F(IcmpErrors, KindsFollowRfc1122AndRfc4443) {
  using enum llp::IcmpError::Kind;
  const auto kind4 = [&](uint8_t type, uint8_t code) {
    receive(error4(type, code, 0, quote4(8)));
    return heard_.last.kind;
  };
  for (const uint8_t code : {0, 1, 5, 6, 11, 12}) EXPECT_EQ(kind4(3, code), Soft) << int{code};
  for (const uint8_t code : {2, 3, 9, 10, 13}) EXPECT_EQ(kind4(3, code), Hard) << int{code};
  EXPECT_EQ(kind4(11, 0), Soft);
  EXPECT_EQ(kind4(12, 0), Soft);
  EXPECT_EQ(kind4(4, 0), SourceQuench);
  const auto kind6 = [&](uint8_t type, uint8_t code) {
    receive(error6(type, code, 0, quote6(8)));
    return heard_.last.kind;
  };
  for (const uint8_t code : {0, 2, 3}) EXPECT_EQ(kind6(1, code), Soft) << int{code};
  for (const uint8_t code : {1, 4, 5, 6}) EXPECT_EQ(kind6(1, code), Hard) << int{code};
  EXPECT_EQ(kind6(3, 0), Soft);
  EXPECT_EQ(kind6(4, 0), Soft);
  EXPECT_EQ(kind6(4, 1), Hard);
}

TEST_F(IcmpErrors, AboutNothingOfOursAreCountedOnly) {
  receive(error4(3, 4, 1300, quote4(8, 1500, kPeer.as_v4())));              // another's packet
  receive(error4(3, 4, 1300, quote4(8, 1500, kOurs.as_v4(), 0xe0000001)));  // to a group
  receive(error4(3, 4, 1300, quote4(7)));                                   // too little
  Octets other = quote4(8);
  other[wire::kIpv4ProtocolAt] = 17;
  receive(error4(3, 4, 1300, other));
  Octets fragment = quote4(8);
  fragment[wire::kIpv4FragmentAt + 1] = 1;
  receive(error4(3, 4, 1300, fragment));
  for (const uint8_t first : {0x44, 0x4f, 0x65}) {
    Octets bad = quote4(8);
    bad[0] = first;
    receive(error4(3, 4, 1300, bad));
  }
  receive(error6(2, 0, 1300, quote6(8, kPeer6)));
  receive(error6(2, 0, 1300, quote6(8, kOurs)));  // mapped
  receive(error6(2, 0, 1300, quote6(7)));
  receive(error6(2, 0, 1300, quote6(8, kOurs6, 17)));
  EXPECT_EQ(counters().icmp_errors_unusable, 12u);
  EXPECT_EQ(heard_.count, 0);
}

TEST_F(IcmpErrors, PacketTooBigBelowIpv6sLeastIsDiscarded) {  // TCP-8201-4-01
  receive(error6(2, 0, 1279, quote6(8)));
  receive(error6(2, 0, 0, quote6(8)));
  EXPECT_EQ(heard_.count, 0);
  receive(error6(2, 0, 1280, quote6(8)));
  EXPECT_EQ(heard_.count, 1);
}

TEST_F(IcmpErrors, EveryCutIsSurvived) {
  const Octets four = error4(3, 4, 1300, quote4(20));
  const Octets six = error6(2, 0, 1300, quote6(20));
  for (const Octets& whole : {four, six}) {
    for (size_t n = 14; n < whole.size(); ++n) {
      receive({whole.begin(), whole.begin() + static_cast<long>(n)});
    }
  }
  EXPECT_EQ(heard_.count, 0);
}

TEST_F(IcmpErrors, RedirectsAreIgnored) {
  receive(error4(5, 1, kPeer.as_v4(), quote4(8)));
  EXPECT_EQ(counters().icmp_other, 1u);
  EXPECT_EQ(heard_.count, 0);
}

// What is no whole header is nobody's packet.
TEST(IcmpErrorRules, NothingIsToldAboutLessThanAHeader) {
  const Octets zero(40);
  for (size_t n = 0; n < 20; ++n) EXPECT_FALSE(may_report4(base::ByteView(zero).first(n))) << n;
  const Octets packet = quote6(0, kPeer6);
  EXPECT_TRUE(may_report6(packet));
  for (size_t n = 0; n < 40; ++n) EXPECT_FALSE(may_report6(base::ByteView(packet).first(n))) << n;
}

// RFC 1122 s.3.2.2, RFC 4443 s.2.4 e: nothing is told about an error, nor about what may be one; a
// question or an answer may be told about.
TEST(IcmpErrorRules, NothingIsToldAboutAnError) {
  for (uint32_t type = 0; type < 256; ++type) {
    Octets packet = quote4(8);
    packet[wire::kIpv4ProtocolAt] = wire::kProtocolIcmp;
    packet[wire::kIpv4Header] = static_cast<uint8_t>(type);
    EXPECT_EQ(may_report4(packet), type == 0 || type == 8) << type;
    packet[wire::kIpv4FragmentAt + 1] = 1;  // a later fragment has no type to look at
    EXPECT_FALSE(may_report4(packet)) << type;
    Octets packet6 = quote6(8, kPeer6, wire::kNextIcmpv6);
    packet6[wire::kIpv6Header] = static_cast<uint8_t>(type);
    EXPECT_EQ(may_report6(packet6), type >= 128 && type != 137) << type;
  }
  Octets headers = quote4(0);
  headers[wire::kIpv4ProtocolAt] = wire::kProtocolIcmp;
  EXPECT_FALSE(may_report4(headers)) << "the type is cut off";
  EXPECT_FALSE(may_report6(quote6(0, kPeer6, wire::kNextIcmpv6)));
}

// RFC 1122 s.3.2.2: the type is looked for in the packet only, whatever stands behind it in the
// frame: a packet that ends with its header has none, with options as without.
TEST(IcmpErrorRules, TheTypeIsNotTakenFromBehindThePacket) {
  for (const uint32_t header : {20u, 24u, 60u}) {
    Octets frame = quote4(60, header);
    frame[wire::kIpv4VersionAt] = static_cast<uint8_t>(0x40 | header / 4);
    frame[wire::kIpv4ProtocolAt] = wire::kProtocolIcmp;
    frame[header] = wire::kIcmpEchoRequest;
    EXPECT_FALSE(may_report4(base::ByteView(frame).first(header))) << header;
    EXPECT_TRUE(may_report4(base::ByteView(frame).first(header + 1))) << header;
  }
}

// RFC 1122 s.3.2.2.1
TEST_F(IcmpErrors, UnknownProtocolsAreReported) {
  config_.icmp_errors_per_second = 3;
  start();
  learn(kPeer, kPeerMac);
  wire::Ipv4 ip;
  ip.protocol = 17;
  const Octets frame = ip_frame(ip, Octets(1000, 7));
  receive(frame);
  interface_->flush(now_);
  const test::SentFrame sent = port_->take_sent();
  const base::ByteView packet = base::ByteView(sent.octets).subspan(14);
  EXPECT_EQ(packet.size(), 576u);
  const base::ByteView message = packet.subspan(20);
  EXPECT_EQ(message[0], 3);
  EXPECT_EQ(message[1], 2);
  EXPECT_EQ(wire::checksum_fold(wire::checksum_add(0, message)), 0);
  EXPECT_TRUE(std::equal(message.begin() + 8, message.end(), frame.begin() + 14));
  for (int i = 0; i < 10; ++i) receive(frame);
  EXPECT_EQ(counters().icmp_errors_out, 3u);
  EXPECT_EQ(counters().icmp_limited, 8u);
}

// RFC 4443 s.2.4 (c): as much of the packet as fits into IPv6's least MTU, to the octet.
TEST_F(IcmpErrors, OfIpv6QuoteUpToTheLeastMtu) {
  learn6(kPeer6, kPeerMac);
  for (const uint32_t size : {1191u, 1192u, 1193u, 1400u}) {
    const Octets frame = ip6_frame(with_next(17), Octets(size, 7));
    receive(frame);
    const Sent6 error = take6();
    const size_t quoted = std::min<size_t>(40 + size, 1280 - 40 - 8);
    ASSERT_EQ(error.payload.size(), 8 + quoted) << size;
    EXPECT_TRUE(std::equal(error.payload.begin() + 8, error.payload.end(), frame.begin() + 14));
  }
}

TEST_F(IcmpErrors, EchoOfIpv6IsAnswered) {
  learn6(kPeer6, kPeerMac);
  for (const uint32_t data : {0u, 1u, 57u, 1452u}) {
    Octets request(8 + data, 0x42);
    request[0] = 128;
    request[1] = 0;
    receive(ip6_frame(with_next(wire::kNextIcmpv6), icmp6(request)));
    const Sent6 reply = take6();
    EXPECT_EQ(reply.payload[0], 129);
    ASSERT_EQ(reply.payload.size(), request.size());
    EXPECT_TRUE(std::equal(request.begin() + 4, request.end(), reply.payload.begin() + 4));
  }
  Octets broken = icmp6(Octets{128, 0, 0, 0, 1, 2, 3, 4});
  broken.back() ^= 1;
  receive(ip6_frame(with_next(wire::kNextIcmpv6), broken));
  receive(ip6_frame(with_next(wire::kNextIcmpv6), Octets{128, 0, 0}));
  EXPECT_EQ(counters().icmp_malformed, 2u);
  // To a group: a flood would be multiplied.
  wire::Ipv6 group = with_next(wire::kNextIcmpv6);
  group.destination = to_wire(kAllNodes);
  receive(ip6_frame(group, icmp6(Octets{128, 0, 0, 0, 1, 2, 3, 4}, kPeer6, kAllNodes),
                    wire::multicast_mac(wire::kAllNodes)));
  EXPECT_EQ(sent(), 0u);
  EXPECT_EQ(counters().icmp_echo_in, 4u);
}

}  // namespace
}  // namespace rnic::net
