#include "llp/llp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace rnic::llp {
namespace {

TEST(Endpoint, TextBothWays) {
  for (const std::string text : {"0.0.0.0", "10.0.0.1", "255.255.255.255", "192.0.2.33"}) {
    const auto address = parse_ip(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(to_string(*address), text);
  }
  EXPECT_EQ(parse_ip("1.2.3.4")->as_v4(), 0x01020304u);
  EXPECT_EQ(to_string(Endpoint{IpAddress::v4(0x0a000001), 7174}), "10.0.0.1:7174");
}

TEST(Endpoint, BothFamiliesAreOneType) {
  for (const std::string text : {"::", "::1", "fe80::1", "fd00::a:0:0:1", "2001:db8::"}) {
    const auto address = parse_ip(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(to_string(*address), text);
    EXPECT_FALSE(address->is_v4());
  }
  EXPECT_EQ(to_string(Endpoint{*parse_ip("fe80::1"), 80}), "[fe80::1]:80");
  EXPECT_TRUE(parse_ip("fe80::1")->is_link_local());
  EXPECT_FALSE(parse_ip("fec0::1")->is_link_local());
  EXPECT_EQ(*parse_ip("::ffff:10.0.0.1"), IpAddress::v4(0x0a000001));
  EXPECT_NE(*parse_ip("::10.0.0.1"), IpAddress::v4(0x0a000001));
}

TEST(Endpoint, TextWithAPort) {
  for (const std::string text : {"10.0.0.1:80", "[fe80::1]:1", "0.0.0.0:65535", "[::]:0"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint.has_value()) << text;
    EXPECT_EQ(to_string(*endpoint), text);
    EXPECT_EQ(*parse_endpoint(text, 7), *endpoint) << text;
  }
  EXPECT_EQ(*parse_endpoint(":80"), (Endpoint{{}, 80}));
}

TEST(Endpoint, TextThatMayLeaveItsPortOut) {
  for (const std::string text : {"10.0.0.1", "fe80::1", "[fe80::1]", "::1"}) {
    const auto endpoint = parse_endpoint(text, 80);
    ASSERT_TRUE(endpoint.has_value()) << text;
    const std::string bare = text.front() == '[' ? text.substr(1, text.size() - 2) : text;
    EXPECT_EQ(to_string(endpoint->address), bare);
    EXPECT_EQ(endpoint->port, 80);
    const auto without = parse_endpoint(text);
    ASSERT_FALSE(without.has_value()) << text;
    EXPECT_NE(without.error().message.find("\"" + text + "\""), std::string::npos);
  }
  EXPECT_EQ(*parse_endpoint("", 80), (Endpoint{{}, 80}));
  EXPECT_FALSE(parse_endpoint("").has_value());
  // Without brackets these four hex digits belong to the address (RFC 5952 s.6).
  EXPECT_EQ(parse_endpoint("fe80::1:80", 7)->address, *parse_ip("fe80::1:80"));
}

TEST(Endpoint, TextThatIsNone) {
  for (const std::string text :
       {"10.0.0.1:",    "10.0.0.1:65536", "10.0.0.1:-1",    "10.0.0.1:+1", "10.0.0.1:80 ",
        "10.0.0.1: 80", "10.0.0.1:0x50",  "10.0.0.1:80:90", "10.0.0:80",   "10.0.0.256:80",
        "host:80",      "[fe80::1",       "[fe80::1]80",    "[fe80::1]:",  "[fe80::1]]:80",
        "[]:80",        "[10.0.0.1]:80",  "[:]:80",         ":",           "[fe80::1%1]:80",
        "ten",          "10.0.0.1 ",      "1.2.3.4.5"}) {
    const auto wrong = parse_endpoint(text, 80);
    ASSERT_FALSE(wrong.has_value()) << text;
    EXPECT_EQ(wrong.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(wrong.error().message.find("write 10.0.0.1"), std::string::npos);
  }
}

TEST(Endpoint, OnlyUnicastIsAnEnd) {
  for (const char* text :
       {"::", "0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "ff02::1"}) {
    EXPECT_FALSE(parse_ip(text)->is_unicast()) << text;
  }
  for (const char* text : {"10.0.0.1", "fd00::1", "fe80::1"}) {
    EXPECT_TRUE(parse_ip(text)->is_unicast()) << text;
  }
}

TEST(Endpoint, PseudoHeaderSumOfBothFamilies) {
  // 10.0.0.1 -> 10.0.0.2, TCP, 20 octets: the plain sum of RFC 9293 s.3.1.
  const auto a = IpAddress::v4(0x0a000001);
  const auto b = IpAddress::v4(0x0a000002);
  EXPECT_EQ(pseudo_header_sum(a, b, 6, 20) % 0xffff, (0x0a00u + 1 + 0x0a00u + 2 + 6 + 20) % 0xffff);
  // RFC 8200 s.8.1, with the carry of each half.
  const IpAddress c(0xfffffffffffffffe, 0xffffffffffffffff);
  const IpAddress d(0x20010db800000000, 0x0000000000000001);
  const uint64_t words =
      7 * 0xffffu + 0xfffeu + 0x2001u + 0x0db8u + 1 + 6 + 70000 / 65536 + 70000 % 65536;
  EXPECT_EQ(pseudo_header_sum(c, d, 6, 70000) % 0xffff, words % 0xffff);
}

TEST(Endpoint, WrongTextIsAnErrorThatQuotesIt) {
  for (const std::string text : {"", "10.0.0", "10.0.0.256", "10.0.0.1 ", "localhost", "1::2::3",
                                 "fd00::/64", "1.2.3.4.5"}) {
    const auto address = parse_ip(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(address.error().message.find("\"" + text + "\""), std::string::npos);
  }
}

TEST(Frame, AppendsInOrderUpToItsRoom) {
  std::array<uint8_t, 8> room{};
  Frame frame(room.data(), 8);
  *frame.append(1) = 1;
  frame.append(3)[2] = 4;
  EXPECT_EQ(frame.length(), 4u);
  EXPECT_EQ(frame.room_left(), 4u);
  EXPECT_EQ(frame.written().data(), room.data());
  EXPECT_EQ(frame.written()[3], 4);
  frame.append(4);
  EXPECT_EQ(frame.room_left(), 0u);
}

TEST(UlpduView, CopyPrefixCrossesPieces) {
  std::vector<uint8_t> octets(50);
  std::iota(octets.begin(), octets.end(), uint8_t{0});
  const base::ByteView all(octets);
  for (size_t a = 0; a <= octets.size(); ++a) {
    for (size_t b = a; b <= octets.size(); b += 7) {
      const std::array<base::ByteView, 3> pieces{all.first(a), all.subspan(a, b - a),
                                                 all.subspan(b)};
      const UlpduView ulpdu{pieces, 50};
      for (const uint32_t n : {0u, 1u, 18u, 46u, 50u, 60u}) {
        std::vector<uint8_t> out(61, 0xee);
        const uint32_t expected = std::min(n, 50u);
        ASSERT_EQ(ulpdu.copy_prefix(out.data(), n), expected);
        ASSERT_TRUE(std::equal(out.begin(), out.begin() + expected, octets.begin()));
        ASSERT_EQ(out[expected], 0xee);
      }
    }
  }
}

// RFC 5044 section 8 and RFC 6580 section 3.3 fix these numbers.
TEST(Framing, ErrorsAreNumberedAsOnTheWire) {
  EXPECT_EQ(static_cast<int>(FramingError::Closed), 1);
  EXPECT_EQ(static_cast<int>(FramingError::Crc), 2);
  EXPECT_EQ(static_cast<int>(FramingError::MarkerMismatch), 3);
  EXPECT_EQ(static_cast<int>(FramingError::BadStartFrame), 4);
  std::set<std::string> names;
  EXPECT_EQ(static_cast<int>(FramingError::LocalCatastrophic), 5);
  EXPECT_EQ(static_cast<int>(FramingError::InsufficientIrd), 6);
  EXPECT_EQ(static_cast<int>(FramingError::NoMatchingRtr), 7);
  for (int e = 0; e <= 7; ++e) {
    const std::string name = to_string(static_cast<FramingError>(e));
    names.insert(name);
    EXPECT_EQ(e != 0, name.ends_with("(MPA error " + std::to_string(e) + ")")) << name;
  }
  EXPECT_EQ(names.size(), 8u);
}

/// Says no more than it must.
class PlainUser final : public StreamUser {
 public:
  void established(uint32_t, base::Now) override {}
  Pulled pull(uint32_t, uint64_t, Frame&, base::Now) override { return {}; }
  bool rebuild(const RecordTag&, uint64_t, uint32_t, Frame&) override { return false; }
  void released(const RecordTag&, uint64_t) override {}
  InspectVerdict inspect(base::Range, base::ByteView, base::Now) override {
    return InspectVerdict::Accept;
  }
  void place(base::Range, base::ByteView, bool, base::Now) override {}
  void ordered(uint64_t, base::Now) override {}
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override { return 0; }
  void peer_finished(base::Now) override {}
  void ended(StreamEnd, base::Now) override {}
};

class PlainFramingUser final : public FramingUser {
 public:
  PulledUlpdu pull_ulpdu(uint32_t, bool, UlpduWriter&, base::Now) override { return {}; }
  bool rebuild_ulpdu(const RecordTag&, UlpduWriter&) override { return false; }
  void released_ulpdu(const RecordTag&) override {}
  PlaceVerdict place_ulpdu(const UlpduView&, bool, base::Now) override {
    return PlaceVerdict::Placed;
  }
  void deliver_ulpdu(base::ByteView, uint32_t, base::Now) override {}
  void may_send() override {}
  void mulpdu_changed(uint32_t) override {}
  void framing_error(FramingError, base::Now) override {}
  void peer_finished(bool, base::Now) override {}
  void ended(StreamEnd, base::Now) override {}
};

class PlainTransport final : public Transport {
 public:
  Result<Endpoint> reserve(const Endpoint& local) override { return local; }
  Status unreserve(const Endpoint&) override { return {}; }
  Result<Endpoint> listen(const Endpoint& local, Acceptor&, PortClaim, const TcpOptions&) override {
    return local;
  }
  Status unlisten(const Endpoint&) override { return {}; }
  Result<Stream*> connect(const Endpoint&, const Endpoint&, StreamUser&, base::Now, PortClaim,
                          const TcpOptions&) override {
    return nullptr;
  }
  Status choose(Stream&, const TcpOptions&, base::Now) override { return {}; }
  void on_timers(base::Now) override {}
  void output(base::Now) override {}
  [[nodiscard]] base::Now next_deadline() const override { return base::kNever; }
};

class Unasked final : public BeforeHandUp {
 public:
  void before_hand_up() override { ++asked; }
  int asked = 0;
};

// A user that says nothing of it takes all that comes, may always be asked for more, and keeps
// nothing that its application has not read.
TEST(StreamUser, TakesEverythingUnlessItSaysOtherwise) {
  PlainUser user;
  const std::vector<uint8_t> octets(777);
  EXPECT_EQ(user.takes({1000, 1777}, octets), 777u);
  EXPECT_EQ(user.sure_room(), UINT32_MAX);
  EXPECT_EQ(user.unread(), 0u);
  EXPECT_TRUE(user.fills_segment(UINT32_MAX));
  EXPECT_FALSE(user.all_fits(UINT32_MAX - 1));
  EXPECT_EQ(user.cut(octets), 777u);
}

TEST(FramingUser, IsAskedAndCannotTellUnlessItSaysOtherwise) {
  PlainFramingUser user;
  for (const uint32_t n : {0u, 1u, UINT32_MAX}) {
    EXPECT_TRUE(user.fills_segment(n, 20));
    EXPECT_FALSE(user.all_fits(n, 20));
  }
  user.peer_silent();  // it has nothing to say
}

TEST(Transport, HasNothingToTakeWhereItsSegmentsAreHandedToIt) {
  PlainTransport transport;
  Unasked unasked;
  EXPECT_EQ(transport.receive({}, unasked), 0u);
  EXPECT_EQ(unasked.asked, 0) << "nothing was handed up";
}

TEST(Stream, EndsHaveNames) {
  std::set<std::string> names;
  for (int end = 0; end <= static_cast<int>(StreamEnd::Aborted); ++end) {
    names.insert(to_string(static_cast<StreamEnd>(end)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(StreamEnd::Aborted) + 1);
}

}  // namespace
}  // namespace rnic::llp
