#include "net/fragments.hpp"

#include "base/prng.hpp"
#include "ipv6_fixture.hpp"
#include "support/plain_reassembler.hpp"

namespace rnic::net {
namespace {

// TCP-IP-01
class FragmentsTest : public Ipv6Test {
 protected:
  void SetUp() override {
    config_.reassembly_datagrams = 4;
    Ipv6Test::SetUp();
    restart();
  }
  void restart() {
    interface_.reset();
    port_ = std::make_unique<test::FakePort>(
        port::PortInfo{"fake", kOurMac, 1500, port::ChecksumMode::Software}, 256);
    interface_ = std::make_unique<Interface>(config_, *port_, now_, &reassembler_);
  }
  void TearDown() override {
    interface_.reset();
    EXPECT_EQ(reassembler_.held(), 0u);
  }

  static Octets content(uint32_t size) {
    Octets all(size);
    for (uint32_t i = 0; i < size; ++i) all[i] = static_cast<uint8_t>(i * 7 + i / 256);
    return all;
  }
  static Octets fragment4(const Octets& all, uint32_t first, uint32_t end, uint16_t id = 1,
                          uint8_t ecn = 0, uint8_t protocol = wire::kProtocolTcp) {
    wire::Ipv4 ip;
    ip.id = id;
    ip.tos = ecn;
    ip.protocol = protocol;
    ip.fragment = static_cast<uint16_t>(
        first / 8 | (end < all.size() ? wire::kIpv4MoreFragments : uint16_t{0}));
    return ip_frame(ip, {all.begin() + first, all.begin() + end});
  }
  static Octets fragment6(const Octets& all, uint32_t first, uint32_t end, uint32_t id = 1,
                          uint8_t next = wire::kProtocolTcp, uint8_t ecn = 0) {
    wire::Ipv6 ip = with_next(wire::kNextFragment);
    ip.traffic_class = ecn;
    Octets header(8);
    header[0] = next;
    base::store_be16(&header[2], static_cast<uint16_t>(first | (end < all.size() ? 1 : 0)));
    base::store_be32(&header[4], id);
    return ip6_frame(ip, joined({header, {all.begin() + first, all.begin() + end}}));
  }

  test::PlainReassembler reassembler_;
};

TEST_F(FragmentsTest, AnyOrderOfBothVersionsIsJoined) {
  const Octets all = content(100);
  std::vector<std::pair<uint32_t, uint32_t>> cuts{{0, 24}, {24, 48}, {48, 56}, {56, 100}};
  uint16_t id = 0;
  do {
    for (const bool v4 : {true, false}) {
      ++id;
      for (size_t i = 0; i < cuts.size(); ++i) {
        const auto [first, end] = cuts[i];
        const auto got =
            receive(v4 ? fragment4(all, first, end, id) : fragment6(all, first, end, id),
                    port::Checksum::Unknown, port::Checksum::Good);
        if (i + 1 < cuts.size()) {
          EXPECT_FALSE(got);
        } else {
          ASSERT_TRUE(got);
          EXPECT_EQ(*got, all);
          EXPECT_FALSE(l4_good_);  // what a port says of a fragment means nothing
        }
      }
    }
  } while (std::next_permutation(cuts.begin(), cuts.end()));
  EXPECT_EQ(counters().ip_reassembled, 48u);
  EXPECT_EQ(interface_->next_deadline(), base::kNever);
}

// A TCP header that is cut: only the whole is judged.
TEST_F(FragmentsTest, TinyFragmentsOfIpv4AreHarmless) {
  const Octets all = content(48);
  for (uint32_t at = 0; at < 40; at += 8) EXPECT_FALSE(receive(fragment4(all, at, at + 8)));
  EXPECT_EQ(receive(fragment4(all, 40, 48)), all);
}

TEST_F(FragmentsTest, HeadersBehindTheFragmentHeaderAreWalkedInTheWhole) {
  const Octets tcp = content(64);
  const Octets all = joined({Octets{wire::kProtocolTcp, 0, 1, 4, 0, 0, 0, 0}, tcp});
  EXPECT_FALSE(receive(fragment6(all, 0, 40, 5, wire::kNextDestinationOptions)));
  EXPECT_EQ(receive(fragment6(all, 40, 72, 5, 99)), tcp);  // only the first one's header counts
}

// RFC 5722
TEST_F(FragmentsTest, OverlapEndsTheDatagram) {
  const Octets all = content(64);
  struct Case {
    const char* what;
    uint32_t first, end;
  };
  for (const bool v4 : {true, false}) {
    const auto fragment = [&](uint32_t first, uint32_t end, uint16_t id) {
      return v4 ? fragment4(all, first, end, id) : fragment6(all, first, end, id);
    };
    uint16_t id = 100;
    for (const Case& c : {Case{"head", 0, 32},
                          {"inside", 8, 16},
                          {"tail", 16, 32},
                          {"around", 0, 40},
                          {"last over it", 16, 64}}) {
      SCOPED_TRACE(c.what);
      ++id;
      EXPECT_FALSE(receive(fragment(0, 24, id)));
      EXPECT_FALSE(receive(fragment(c.first, c.end, id)));
      // Nothing of it is accepted any more.
      EXPECT_FALSE(receive(fragment(24, 64, id)));
      EXPECT_FALSE(receive(fragment(0, 24, id)));
      EXPECT_EQ(reassembler_.held(), 0u);
    }
  }
  EXPECT_EQ(counters().ip_reassembly_failed, 10u);
}

TEST_F(FragmentsTest, ExactDuplicatesAreIgnored) {
  const Octets all = content(64);
  EXPECT_FALSE(receive(fragment4(all, 0, 24)));
  EXPECT_FALSE(receive(fragment4(all, 0, 24)));
  EXPECT_FALSE(receive(fragment4(all, 24, 48)));
  EXPECT_FALSE(receive(fragment4(all, 24, 48)));
  EXPECT_EQ(receive(fragment4(all, 48, 64)), all);
  EXPECT_EQ(counters().ip_fragments_dropped, 2u);
}

TEST_F(FragmentsTest, TheEndIsOneAndNothingIsBehindIt) {
  const Octets all = content(64);
  const Octets shorter(all.begin(), all.begin() + 48);
  receive(fragment4(all, 0, 24, 1));
  receive(fragment4(all, 48, 64, 1));
  EXPECT_FALSE(receive(fragment4(shorter, 24, 48, 1)));  // another end
  receive(fragment4(shorter, 32, 48, 2));
  EXPECT_FALSE(receive(fragment4(content(96), 56, 64, 2)));  // past the end
  receive(fragment4(content(96), 56, 64, 3));
  EXPECT_FALSE(receive(fragment4(shorter, 32, 48, 3)));  // the end before what is there
  EXPECT_EQ(counters().ip_reassembly_failed, 3u);
}

TEST_F(FragmentsTest, ImpossibleFragmentsAreDropped) {
  Octets all = content(64);
  receive(fragment4(all, 0, 20));  // not a multiple of 8
  Octets empty = fragment4(all, 8, 8);
  receive(empty);
  wire::Ipv4 ip;
  ip.fragment = 0x1fff;  // ends past 65,535
  receive(ip_frame(ip, content(16)));
  EXPECT_EQ(counters().ip_fragments_dropped, 3u);
  EXPECT_EQ(counters().ip_fragments, 3u);
  EXPECT_EQ(interface_->next_deadline(), base::kNever);
}

TEST_F(FragmentsTest, MoreFragmentsThanTheLimitEndTheDatagram) {
  const Octets all = content(80);
  for (uint32_t at = 0; at < 72; at += 8) EXPECT_FALSE(receive(fragment4(all, at, at + 8)));
  EXPECT_EQ(counters().ip_reassembly_failed, 1u);
  EXPECT_FALSE(receive(fragment4(all, 72, 80)));
}

TEST_F(FragmentsTest, AFloodTakesTheOldestPlace) {
  const Octets all = content(64);
  for (uint16_t id = 1; id <= 1000; ++id) receive(fragment4(all, 0, 24, id));
  EXPECT_EQ(counters().ip_reassembly_full, 996u);
  EXPECT_EQ(reassembler_.held(), 4u);
  EXPECT_EQ(receive(fragment4(all, 24, 64, 1000)), all);  // the newest has its place
  EXPECT_FALSE(receive(fragment4(all, 24, 64, 1)));
}

TEST_F(FragmentsTest, TimeIsLimitedAndTheSourceIsTold) {
  learn(kPeer, kPeerMac);
  learn6(kPeer6, kPeerMac);
  const Octets all = content(64);
  receive(fragment4(all, 0, 24, 1));
  receive(fragment4(all, 24, 64, 2));  // without the first one nobody is told
  receive(fragment6(all, 0, 24, 3));
  const base::Now start = now_;
  run_until(start + config_.reassembly_timeout - base::Duration(1));
  EXPECT_EQ(counters().ip_reassembly_timeouts, 0u);
  port_->sent().clear();
  run_until(start + config_.reassembly_timeout);
  EXPECT_EQ(counters().ip_reassembly_timeouts, 3u);
  EXPECT_EQ(reassembler_.held(), 0u);
  EXPECT_EQ(counters().icmp_errors_out, 2u);
  EXPECT_FALSE(receive(fragment4(all, 24, 64, 1)));
}

TEST_F(FragmentsTest, ProtocolsAndSourcesDoNotMix) {
  const Octets all = content(64);
  receive(fragment4(all, 0, 24, 1));
  EXPECT_FALSE(receive(fragment4(all, 24, 64, 1, 0, wire::kProtocolIcmp)));
  wire::Ipv4 ip;
  ip.id = 1;
  ip.fragment = 3;
  ip.source = 0x0a000003;
  EXPECT_FALSE(receive(ip_frame(ip, {all.begin() + 24, all.end()})));
  EXPECT_EQ(receive(fragment4(all, 24, 64, 1)), all);
}

TEST_F(FragmentsTest, RefusedMemoryEndsTheDatagramOnly) {
  const Octets all = content(64);
  receive(fragment4(all, 0, 24, 1));
  reassembler_.refuse = true;
  EXPECT_FALSE(receive(fragment4(all, 24, 64, 1)));
  reassembler_.refuse = false;
  receive(fragment4(all, 0, 24, 2));
  EXPECT_EQ(receive(fragment4(all, 24, 64, 2)), all);
}

TEST_F(FragmentsTest, WithoutAReassemblerTheyAreDropped) {
  start();
  const Octets all = content(64);
  EXPECT_FALSE(receive(fragment4(all, 0, 24)));
  EXPECT_FALSE(receive(fragment4(all, 24, 64)));
  EXPECT_EQ(counters().ip_fragments_dropped, 2u);
}

// TCP-3168-5.3-01
TEST_F(FragmentsTest, CongestionMarksAreKept) {
  const Octets all = content(64);
  uint16_t id = 0;
  const auto join = [&](uint8_t a, uint8_t b, uint8_t c) -> int {
    ++id;
    receive(fragment4(all, 0, 24, id, a));
    receive(fragment6(all, 0, 24, id, wire::kProtocolTcp, a));
    receive(fragment4(all, 24, 48, id, b));
    receive(fragment6(all, 24, 48, id, wire::kProtocolTcp, b));
    const bool four = receive(fragment4(all, 48, 64, id, c)).has_value();
    const int ecn = four ? ecn_ : -1;
    const bool six = receive(fragment6(all, 48, 64, id, wire::kProtocolTcp, c)).has_value();
    EXPECT_EQ(four, six);
    EXPECT_TRUE(!six || ecn == ecn_);
    return ecn;
  };
  for (uint8_t same = 0; same < 4; ++same) EXPECT_EQ(join(same, same, same), same);
  EXPECT_EQ(join(2, 3, 2), 3);
  EXPECT_EQ(join(2, 2, 3), 3);
  EXPECT_EQ(join(3, 1, 1), 3);
  EXPECT_EQ(join(3, 0, 3), -1);  // a mark that Not-ECT cannot have
  EXPECT_EQ(join(0, 0, 3), -1);
  EXPECT_EQ(join(2, 0, 2), 0);
}

TEST_F(FragmentsTest, EchoOfFragmentsIsAnswered) {
  learn6(kPeer6, kPeerMac);
  Octets request(200, 0x42);
  request[0] = 128;
  request[1] = 0;
  const Octets all = icmp6(request);
  receive(fragment6(all, 0, 104, 7, wire::kNextIcmpv6));
  receive(fragment6(all, 104, 200, 7, wire::kNextIcmpv6));
  EXPECT_EQ(take6().payload.size(), 200u);
}

// SEC-FUZZ-01: any fragments in any order; what comes out is what went in.
TEST_F(FragmentsTest, RandomFragmentsNeverMakeWrongOctets) {
  base::Prng prng(7);
  const Octets all = content(200);
  uint32_t whole = 0;
  for (int i = 0; i < 30'000; ++i) {
    uint32_t first = static_cast<uint32_t>(prng.below(5)) * 40;
    uint32_t end = first + 40;
    if (prng.below(20) == 0) {
      first = static_cast<uint32_t>(prng.below(25)) * 8;
      end = static_cast<uint32_t>(std::min<uint64_t>(200, first + 1 + prng.below(64)));
    }
    const auto id = static_cast<uint16_t>(i / 12 + static_cast<int>(prng.below(2)));
    const auto got = receive(fragment4(all, first, end, id));
    if (got) {
      ++whole;
      ASSERT_EQ(*got, all);
    }
    now_ += std::chrono::milliseconds(prng.below(500));
    run_until(now_);
  }
  EXPECT_GT(whole, 100u);
  EXPECT_GT(counters().ip_reassembly_failed, 100u);
}

}  // namespace
}  // namespace rnic::net
