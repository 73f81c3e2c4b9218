#include "net/fragments.hpp"

#include "base/prng.hpp"
#include "ipv6_fixture.hpp"
#include "support/plain_reassembler.hpp"

namespace rnic::net {
namespace {

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

// TCP-IP-01
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

// TCP-IP-01: a TCP header that is cut: only the whole is judged.
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

// RFC 7112: a first fragment whose headers are bad is refused by itself, before and behind a good
// one. So the headers of a datagram that is whole are good.
TEST_F(FragmentsTest, ABadFirstFragmentIsRefusedByItself) {
  const Octets tcp = content(64);
  const Octets good = joined({Octets{wire::kProtocolTcp, 0, 1, 4, 0, 0, 0, 0}, tcp});
  const Octets bad = joined({Octets{wire::kProtocolTcp, 0, 0x5e, 4, 0, 0, 0, 0}, tcp});
  const auto first = [&](const Octets& all) {
    return receive(fragment6(all, 0, 40, 5, wire::kNextDestinationOptions)).has_value();
  };
  EXPECT_FALSE(first(bad));
  EXPECT_FALSE(first(good));
  EXPECT_FALSE(first(bad));
  EXPECT_EQ(counters().ip_fragments_dropped, 2u);
  EXPECT_EQ(receive(fragment6(good, 40, 72, 5, wire::kNextDestinationOptions)), tcp);
}

// TCP-IP-01, RFC 5722
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

// TCP-IP-01
TEST_F(FragmentsTest, AFloodTakesTheOldestPlace) {
  const Octets all = content(64);
  for (uint16_t id = 1; id <= 1000; ++id) receive(fragment4(all, 0, 24, id));
  EXPECT_EQ(counters().ip_reassembly_full, 996u);
  EXPECT_EQ(reassembler_.held(), 4u);
  EXPECT_EQ(receive(fragment4(all, 24, 64, 1000)), all);  // the newest has its place
  EXPECT_FALSE(receive(fragment4(all, 24, 64, 1)));
}

// A datagram that has taken another's place has its own time.
TEST_F(FragmentsTest, ATimeThatIsNobodysAnyMoreEndsNothing) {
  config_.reassembly_datagrams = 1;
  restart();
  const Octets all = content(64);
  const base::Now start = now_;
  receive(fragment4(all, 24, 64, 1));
  now_ += std::chrono::seconds(10);
  receive(fragment4(all, 24, 64, 2));
  EXPECT_EQ(counters().ip_reassembly_full, 1u);
  now_ = start + config_.reassembly_timeout;
  interface_->on_timers(now_);
  EXPECT_EQ(counters().ip_reassembly_timeouts, 0u);
  EXPECT_EQ(interface_->next_deadline(), now_ + std::chrono::seconds(10));
  now_ += std::chrono::seconds(10);
  interface_->on_timers(now_);
  EXPECT_EQ(counters().ip_reassembly_timeouts, 1u);
  EXPECT_EQ(interface_->next_deadline(), base::kNever);
}

// RFC 8200 s.4.5: nobody puts together what goes to many.
TEST_F(FragmentsTest, FragmentsToAGroupAreDropped) {
  const Octets all = content(64);
  for (const auto& [first, end] : {std::pair<uint32_t, uint32_t>{0, 24}, {24, 64}}) {
    Octets frame = fragment6(all, first, end);
    wire::store_ipv6_address(&frame[wire::kEtherHeader + wire::kIpv6DestinationAt],
                             wire::kAllNodes);
    const port::MacAddress mac = wire::multicast_mac(wire::kAllNodes);
    std::copy(mac.begin(), mac.end(), frame.begin());
    EXPECT_FALSE(receive(std::move(frame)));
  }
  EXPECT_EQ(counters().ip_fragments_dropped, 2u);
  EXPECT_EQ(counters().ip_fragments, 0u) << "they did not even take a place";
  EXPECT_EQ(reassembler_.held(), 0u);
}

// RFC 5722 s.4: a datagram that ended by an overlap stays silent. It has failed already: its time
// is no second failure, and nobody is told.
TEST_F(FragmentsTest, TheTimeOfAnEndedDatagramIsNobodysConcern) {
  learn(kPeer, kPeerMac);
  learn6(kPeer6, kPeerMac);
  const Octets all = content(64);
  for (const bool v4 : {true, false}) {
    receive(v4 ? fragment4(all, 0, 24, 1) : fragment6(all, 0, 24, 1));
    receive(v4 ? fragment4(all, 16, 40, 1) : fragment6(all, 16, 40, 1));
  }
  EXPECT_EQ(counters().ip_reassembly_failed, 2u);
  run_until(now_ + 2 * config_.reassembly_timeout);
  EXPECT_EQ(counters().ip_reassembly_timeouts, 0u);
  EXPECT_EQ(counters().icmp_errors_out, 0u);
}

// TCP-IP-01
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

/// Each policy of RFC 5044 s.A.5.1, on an interface of its own.
class FragmentPolicies : public FragmentsTest {
 protected:
  void use(FragmentPolicy policy) {
    config_.fragments = policy;
    restart();
    learn(kPeer, kPeerMac);
    learn6(kPeer6, kPeerMac);
    port_->sent().clear();
  }
  /// The MTUs that the sender of the fragments was told since the last call.
  std::vector<uint32_t> told() {
    std::vector<uint32_t> mtus;
    interface_->flush(now_);
    for (const auto& frame : port_->sent()) {
      const base::ByteView packet = base::ByteView(frame.octets).subspan(wire::kEtherHeader);
      if (packet[0] >> 4 == 6) {
        EXPECT_EQ(packet[wire::kIpv6Header], wire::kIcmpv6PacketTooBig);
        mtus.push_back(base::load_be32(&packet[wire::kIpv6Header + wire::kIcmpRestAt]));
      } else {
        EXPECT_EQ(packet[wire::kIpv4Header], wire::kIcmpUnreachable);
        EXPECT_EQ(packet[wire::kIpv4Header + 1], wire::kIcmpFragmentationNeeded);
        mtus.push_back(base::load_be16(&packet[wire::kIpv4Header + wire::kIcmpMtuAt]));
      }
    }
    port_->sent().clear();
    return mtus;
  }
  using Told = std::vector<uint32_t>;
};

// The first choice. Only the first fragment can be quoted, and says
// what came through. The default keeps them and tells nobody.
TEST_F(FragmentPolicies, Drop_MPA_A_5_1_02_MPA00_13_2_01) {
  EXPECT_EQ(Config{}.fragments, FragmentPolicy::Many);
  const Octets all = content(2400);
  for (const FragmentPolicy policy : {FragmentPolicy::Drop, FragmentPolicy::Many}) {
    use(policy);
    const bool drops = policy == FragmentPolicy::Drop;
    EXPECT_FALSE(receive(fragment4(all, 0, 1200, 1)));
    EXPECT_EQ(told(), drops ? Told{1220} : Told{});
    EXPECT_EQ(receive(fragment4(all, 1200, 2400, 1)).has_value(), !drops);
    EXPECT_FALSE(receive(fragment6(all, 0, 1400, 2)));
    EXPECT_EQ(told(), drops ? Told{1448} : Told{});
    EXPECT_FALSE(receive(fragment6(all, 0, 800, 3)));
    EXPECT_EQ(told(), drops ? Told{1280} : Told{}) << "IPv6 knows no smaller MTU";
    EXPECT_EQ(reassembler_.held(), drops ? 0u : 2u);
    EXPECT_EQ(counters().ip_reassembly_refused, drops ? 3u : 0u);
  }
}

// Whoever would keep a datagram and cannot drops its fragments and tells nobody: a smaller MTU
// would help as little.
TEST_F(FragmentPolicies, WithoutAPlaceNobodyIsTold_MPA_A_5_1_02) {
  const Octets all = content(2400);
  config_.reassembly_datagrams = 0;
  for (const FragmentPolicy policy :
       {FragmentPolicy::One, FragmentPolicy::Spanning, FragmentPolicy::Many}) {
    use(policy);
    EXPECT_FALSE(receive(fragment4(all, 0, 1200)));
    EXPECT_FALSE(receive(fragment4(all, 1200, 2400)));
    EXPECT_FALSE(receive(fragment6(all, 0, 1200)));
    EXPECT_EQ(told(), Told{});
    EXPECT_EQ(counters().ip_fragments_dropped, 3u);
    EXPECT_EQ(counters().ip_reassembly_refused, 0u);
  }
}

// A fragment that cannot be part of any datagram is dropped, not refused: it says nothing of what
// comes through.
TEST_F(FragmentPolicies, OfImpossibleFragmentsNobodyIsTold_MPA_A_5_1_02) {
  use(FragmentPolicy::Mtu);
  const Octets all = content(64);
  EXPECT_FALSE(receive(fragment4(all, 0, 20)));  // not a multiple of 8
  EXPECT_FALSE(receive(fragment4(all, 0, 0)));
  EXPECT_EQ(counters().ip_fragments_dropped, 2u);
  EXPECT_EQ(counters().ip_reassembly_refused, 0u);
  EXPECT_EQ(told(), Told{});
}

// The second: as much as the link's MTU. What is larger is refused, in any order of its fragments,
// and told when its first one has come; a later datagram takes the place of an earlier one.
TEST_F(FragmentPolicies, OneOfTheMtusSize_MPA_A_5_1_02_MPA00_13_2_01) {
  const Octets fits = content(1480), larger = content(1488), small = content(900);
  use(FragmentPolicy::Mtu);
  EXPECT_FALSE(receive(fragment4(fits, 800, 1480, 1)));
  EXPECT_EQ(receive(fragment4(fits, 0, 800, 1)), fits);
  EXPECT_FALSE(receive(fragment4(larger, 0, 800, 2)));
  EXPECT_FALSE(receive(fragment4(larger, 800, 1488, 2)));
  EXPECT_EQ(told(), Told{820});
  EXPECT_FALSE(receive(fragment4(larger, 800, 1488, 3)));
  EXPECT_EQ(told(), Told{});
  EXPECT_FALSE(receive(fragment4(larger, 0, 800, 3)));
  EXPECT_EQ(told(), Told{820});
  EXPECT_FALSE(receive(fragment4(larger, 0, 800, 3)));
  EXPECT_EQ(told(), Told{}) << "once";
  EXPECT_FALSE(receive(fragment4(fits, 0, 1000, 4)));
  EXPECT_FALSE(receive(fragment4(small, 0, 600, 5)));
  EXPECT_EQ(told(), Told{1020}) << "number 4 has gone";
  EXPECT_FALSE(receive(fragment4(fits, 1000, 1480, 4)));
  EXPECT_EQ(receive(fragment4(small, 600, 900, 5)), small);
  EXPECT_EQ(reassembler_.held(), 0u);
}

// The third: many datagrams of any size at once.
TEST_F(FragmentPolicies, Many_MPA_A_5_1_02_MPA00_13_2_01) {
  use(FragmentPolicy::Many);
  const Octets all = content(8000);
  for (uint16_t id = 1; id <= 4; ++id) {
    for (uint32_t at = 0; at < 6400; at += 1280) receive(fragment4(all, at, at + 1280, id));
  }
  EXPECT_EQ(reassembler_.held(), 4u);
  for (uint16_t id = 1; id <= 4; ++id) {
    receive(fragment4(all, 6400, 7680, id));
    EXPECT_EQ(receive(fragment4(all, 7680, 8000, id)), all);
  }
}

// The fourth: one datagram of any size.
TEST_F(FragmentPolicies, One_MPA_A_5_1_02_MPA00_13_2_01) {
  use(FragmentPolicy::One);
  const Octets all = content(8000), other = content(1000);
  const auto most = [&](uint16_t id) {
    for (uint32_t at = 0; at < 7680; at += 1280) {
      EXPECT_FALSE(receive(fragment4(all, at, at + 1280, id)));
    }
  };
  most(1);
  EXPECT_EQ(receive(fragment4(all, 7680, 8000, 1)), all);
  most(2);
  EXPECT_FALSE(receive(fragment4(other, 0, 800, 3)));  // takes the place
  EXPECT_EQ(reassembler_.held(), 1u);
  EXPECT_EQ(receive(fragment4(other, 800, 1000, 3)), other);
  EXPECT_FALSE(receive(fragment4(all, 7680, 8000, 2)));
  EXPECT_EQ(told(), Told{});
}

// The fifth: datagrams share one buffer; the oldest gives way when it is full.
TEST_F(FragmentPolicies, Spanning_MPA_A_5_1_02_MPA00_13_2_01) {
  config_.reassembly_octets = 4000;
  use(FragmentPolicy::Spanning);
  const Octets all = content(2000);
  for (uint16_t id = 1; id <= 3; ++id) EXPECT_FALSE(receive(fragment4(all, 0, 1200, id)));
  EXPECT_EQ(receive(fragment4(all, 1200, 2000, 2)), all);  // 3,600 were there, and 400 free
  EXPECT_EQ(counters().ip_reassembly_refused, 1u) << "number 1 made room for the last 400";
  EXPECT_FALSE(receive(fragment4(all, 1200, 2000, 1)));
  EXPECT_EQ(receive(fragment4(all, 1200, 2000, 3)), all);
  const Octets large = content(4008);
  for (uint32_t at = 0; at < 3600; at += 1200) receive(fragment4(large, at, at + 1200, 9));
  EXPECT_FALSE(receive(fragment4(large, 3600, 4008, 9))) << "more than the buffer";
  EXPECT_EQ(told(), Told{});
  EXPECT_EQ(reassembler_.held(), 0u);
}

// Whatever comes, the octets that wait are within the limit and are all given back.
TEST_F(FragmentPolicies, RandomFragmentsLeaveNothingBehind_MPA_A_5_1_02) {
  for (const FragmentPolicy policy :
       {FragmentPolicy::Mtu, FragmentPolicy::One, FragmentPolicy::Spanning, FragmentPolicy::Many}) {
    config_.reassembly_octets = 3000;
    use(policy);
    base::Prng prng(static_cast<uint64_t>(policy) + 1);
    for (int i = 0; i < 20'000; ++i) {
      const Octets all = content(static_cast<uint32_t>(prng.between(9, 3000)));
      const auto size = static_cast<uint32_t>(all.size());
      const auto first = static_cast<uint32_t>(prng.below(size) / 8 * 8);
      auto end = std::min<uint32_t>(size, first + 8 * static_cast<uint32_t>(prng.between(1, 150)));
      const auto id = static_cast<uint16_t>(prng.below(6));
      receive(prng.chance(0.5) ? fragment4(all, first, end, id) : fragment6(all, first, end, id));
      interface_->flush(now_);
      port_->sent().clear();
    }
    run_until(now_ + 2 * config_.reassembly_timeout);
    EXPECT_EQ(reassembler_.held(), 0u);
    const Octets all = content(1400);  // and there is room again
    EXPECT_FALSE(receive(fragment4(all, 0, 800, 77)));
    EXPECT_EQ(receive(fragment4(all, 800, 1400, 77)), all);
  }
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
