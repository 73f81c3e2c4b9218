#include "base/log.hpp"
#include "ipv6_fixture.hpp"
#include "support/logged.hpp"

namespace rnic::net {
namespace {

class NeighbourDiscovery : public Ipv6Test {};

const wire::Ipv6Address kPeerGroup = wire::solicited_node(to_wire(kPeer6));

// TCP-IP-02
TEST_F(NeighbourDiscovery, FirstFrameWaitsForTheAnswer) {
  ASSERT_TRUE(send6(kPeer6));
  ASSERT_EQ(sent(), 1u);
  const Sent6 question = take6();
  EXPECT_EQ(question.mac, wire::multicast_mac(kPeerGroup));
  EXPECT_EQ(from_wire(question.ip.destination), from_wire(kPeerGroup));
  EXPECT_EQ(from_wire(question.ip.source), kOurs6);
  EXPECT_EQ(question.ip.hop_limit, 255);
  const wire::NeighbourMessage message = neighbour_of(question);
  EXPECT_EQ(message.type, wire::kIcmpv6NeighbourSolicitation);
  EXPECT_EQ(from_wire(message.target), kPeer6);
  EXPECT_EQ(message.link, kOurMac);

  receive(advertisement(kPeer6, kPeerMac));
  EXPECT_EQ(take6().mac, kPeerMac);
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, kPeerMac);
  EXPECT_EQ(counters().nd_solicitations_out, 1u);
}

TEST_F(NeighbourDiscovery, SolicitationsForUsAreAnsweredAndTeach) {
  receive(solicitation(kPeer6, kPeerMac));
  ASSERT_EQ(sent(), 1u);
  const Sent6 answer = take6();
  EXPECT_EQ(answer.mac, kPeerMac);
  EXPECT_EQ(from_wire(answer.ip.destination), kPeer6);
  EXPECT_EQ(from_wire(answer.ip.source), kOurs6);
  EXPECT_EQ(answer.ip.hop_limit, 255);
  const wire::NeighbourMessage message = neighbour_of(answer);
  EXPECT_EQ(message.type, wire::kIcmpv6NeighbourAdvertisement);
  EXPECT_EQ(message.flags, wire::kNdFlagSolicited | wire::kNdFlagOverride);
  EXPECT_EQ(from_wire(message.target), kOurs6);
  EXPECT_EQ(message.link, kOurMac);
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, kPeerMac);
}

TEST_F(NeighbourDiscovery, TheLinkLocalAddressIsAnsweredToo) {
  const wire::Ipv6Address group = wire::solicited_node(to_wire(kOurLinkLocal));
  receive(nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurLinkLocal), kPeerMac},
                   kGateway6, from_wire(group), wire::multicast_mac(group)));
  EXPECT_EQ(from_wire(neighbour_of(take6()).target), kOurLinkLocal);
}

// RFC 4862 s.5.4: somebody tests whether our address is free.
TEST_F(NeighbourDiscovery, ProbesAreAnsweredToAllNotLearned) {
  const wire::Ipv6Address group = wire::solicited_node(to_wire(kOurs6));
  receive(nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), {}}, {},
                   from_wire(group), wire::multicast_mac(group)));
  const Sent6 answer = take6();
  EXPECT_EQ(from_wire(answer.ip.destination), kAllNodes);
  EXPECT_EQ(answer.mac, wire::multicast_mac(wire::kAllNodes));
  EXPECT_EQ(neighbour_of(answer).flags, wire::kNdFlagOverride);
}

TEST_F(NeighbourDiscovery, FarHostsGoThroughTheGateway) {
  learn6(kGateway6, kGatewayMac);
  ASSERT_TRUE(send6(kFar6));
  const Sent6 frame = take6();
  EXPECT_EQ(frame.mac, kGatewayMac);
  EXPECT_EQ(from_wire(frame.ip.destination), kFar6);
}

TEST_F(NeighbourDiscovery, UnaskedAdvertisementsTeachNothing) {
  receive(advertisement(kPeer6, kPeerMac));
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, wire::multicast_mac(kPeerGroup));
}

// RFC 4861 s.4.3: to our own address it need not carry the asker's, which we may know.
TEST_F(NeighbourDiscovery, AQuestionWithoutAnAddressIsAnsweredWhereItIsKnown) {
  const auto question = [](const IpAddress& from) {
    return nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), {}}, from, kOurs6,
                    kOurMac);
  };
  learn6(kPeer6, kPeerMac);
  receive(question(kPeer6));
  const Sent6 answer = take6();
  EXPECT_EQ(answer.mac, kPeerMac);
  EXPECT_EQ(from_wire(answer.ip.destination), kPeer6);
  EXPECT_EQ(neighbour_of(answer).flags, wire::kNdFlagSolicited | wire::kNdFlagOverride);
  EXPECT_EQ(neighbour_of(answer).link, kOurMac);
  receive(question({0xfd00000000000000, 0x33}));
  EXPECT_EQ(sent(), 0u);
}

// RFC 4861 s.7.2.5: whoever is asked for is found by what he says of himself as well.
TEST_F(NeighbourDiscovery, AnAdvertisementOfWhoIsAskedForCompletesTheEntry) {
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(neighbour_of(take6()).type, wire::kIcmpv6NeighbourSolicitation);
  receive(advertisement(kPeer6, kPeerMac, wire::kNdFlagOverride));  // not in answer
  ASSERT_EQ(sent(), 1u);
  const Sent6 waited = take6();
  EXPECT_EQ(waited.mac, kPeerMac);
  EXPECT_EQ(waited.ip.next_header, wire::kProtocolTcp);
}

TEST_F(NeighbourDiscovery, AKnownAddressIsNotOverwrittenByStrangers) {
  const port::MacAddress stranger{2, 6, 6, 6, 6, 6};
  learn6(kPeer6, kPeerMac);
  receive(advertisement(kPeer6, stranger));
  EXPECT_EQ(sent(), 0u);
  receive(advertisement(kPeer6, stranger, wire::kNdFlagOverride));  // unsolicited: it is asked
  ASSERT_EQ(sent(), 1u);
  const Sent6 probe = take6();
  EXPECT_EQ(probe.mac, kPeerMac);
  EXPECT_EQ(from_wire(probe.ip.destination), kPeer6);
  receive(advertisement(kPeer6, stranger, wire::kNdFlagSolicited));  // does not override
  receive(advertisement(kPeer6, kPeerMac));
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, kPeerMac);
}

TEST_F(NeighbourDiscovery, AnAnswerWithoutAnAddressConfirms) {
  learn6(kPeer6, kPeerMac);
  ASSERT_TRUE(send6(kPeer6));
  interface_->flush(now_);
  port_->sent().clear();
  run_until(now_ + config_.nd_lifetime);
  EXPECT_EQ(take6().mac, kPeerMac);  // asked where it was
  receive(
      nd_frame({wire::kIcmpv6NeighbourAdvertisement, wire::kNdFlagSolicited, to_wire(kPeer6), {}},
               kPeer6, kOurs6, kOurMac));
  const uint64_t asked = counters().nd_solicitations_out;
  run_until(now_ + config_.neighbour_retry * 3);
  EXPECT_EQ(counters().nd_solicitations_out, asked);
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, kPeerMac);
}

// TCP-IP-02
TEST_F(NeighbourDiscovery, SilentNeighboursAreGivenUp) {
  learn6(kPeer6, kPeerMac);
  ASSERT_TRUE(send6(kPeer6));
  run_until(now_ + config_.nd_lifetime + config_.neighbour_retry * config_.neighbour_retries);
  EXPECT_EQ(counters().nd_solicitations_out, 1u + config_.neighbour_retries);
  port_->sent().clear();
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, wire::multicast_mac(kPeerGroup));
  run_until(now_ + config_.neighbour_retry * config_.neighbour_retries);
  EXPECT_EQ(counters().neighbour_unresolved, 1u);
}

// RFC 4861 s.7.1
TEST_F(NeighbourDiscovery, HostileMessagesAreCounted) {
  const wire::Ipv6Address group = wire::solicited_node(to_wire(kOurs6));
  const port::MacAddress group_mac = wire::multicast_mac(group);
  const auto ask = [&](const IpAddress& from, std::optional<port::MacAddress> link, uint8_t hops) {
    return nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), link}, from,
                    from_wire(group), group_mac, hops);
  };
  receive(ask(kPeer6, kPeerMac, 254));                               // came through a router
  receive(ask(kPeer6, port::MacAddress{1, 0, 0x5e, 0, 0, 1}, 255));  // a group's address
  receive(ask(kPeer6, port::MacAddress{}, 255));
  receive(ask(kPeer6, {}, 255));       // to a group without one
  receive(ask(kFar6, kPeerMac, 255));  // not on the link
  receive(ask({}, kPeerMac, 255));     // nobody, with an address
  receive(nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), {}}, {}, kOurs6,
                   kOurMac));  // nobody, not to the group
  receive(nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, wire::kAllNodes, kPeerMac}, kPeer6,
                   kOurs6, kOurMac));  // for a group
  receive(nd_frame(
      {wire::kIcmpv6NeighbourAdvertisement, wire::kNdFlagSolicited, to_wire(kPeer6), kPeerMac},
      kPeer6, kAllNodes, wire::multicast_mac(wire::kAllNodes)));
  EXPECT_EQ(counters().nd_malformed, 9u);
  EXPECT_EQ(sent(), 0u);
  // Options: of length 0, past the end; and every shorter message.
  Octets message(wire::kNdMessage);
  wire::write_neighbour_message(message.data(),
                                {wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), kPeerMac});
  const auto send_message = [&](Octets octets) {
    wire::Ipv6 ip = with_next(wire::kNextIcmpv6);
    ip.hop_limit = 255;
    receive(ip6_frame(ip, icmp6(std::move(octets))));
  };
  const uint64_t before = counters().nd_malformed;
  for (const uint8_t length : {uint8_t{0}, uint8_t{2}, uint8_t{255}}) {
    Octets bad = message;
    bad[wire::kNdOptionsAt + 1] = length;
    send_message(bad);
  }
  Octets code = message;
  code[1] = 1;
  send_message(code);
  for (uint32_t n = 8; n < wire::kNdMessage; ++n) {
    if (n != wire::kNdOptionsAt) send_message({message.begin(), message.begin() + n});
  }
  EXPECT_EQ(counters().nd_malformed - before, 4 + wire::kNdMessage - 8 - 1);
  EXPECT_EQ(sent(), 0u);
  send_message(message);
  EXPECT_EQ(sent(), 1u);
}

TEST_F(NeighbourDiscovery, RoutersDoNotConfigureUs) {
  for (const uint8_t type :
       {wire::kIcmpv6RouterSolicitation, wire::kIcmpv6RouterAdvertisement, wire::kIcmpv6Redirect}) {
    Octets message(40);
    message[0] = type;
    wire::Ipv6 ip = with_next(wire::kNextIcmpv6);
    ip.hop_limit = 255;
    receive(ip6_frame(ip, icmp6(message)));
  }
  EXPECT_EQ(counters().nd_ignored, 3u);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(NeighbourDiscovery, OthersGroupsAreNotHeard) {
  const wire::Ipv6Address group = wire::solicited_node(to_wire(kPeer6));
  receive(nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kPeer6), kGatewayMac}, kGateway6,
                   from_wire(group), wire::multicast_mac(group)));
  EXPECT_EQ(counters().ip_not_ours, 1u);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(NeighbourDiscovery, TheTableIsBoundedAndAnswersAreLimited) {
  config_.neighbours = 8;
  start();
  learn6(kPeer6, kPeerMac);
  ASSERT_TRUE(send6(kPeer6));
  for (uint64_t i = 0; i < 3000; ++i) {
    receive(solicitation({0xfd00000000000000, 0x1000 + i}, kGatewayMac));
    interface_->flush(now_);
    port_->sent().clear();
  }
  EXPECT_EQ(counters().nd_advertisements_out, 1000u);
  EXPECT_GT(counters().neighbours_full, 0u);
  ASSERT_TRUE(send6(kPeer6));
  EXPECT_EQ(take6().mac, kPeerMac);
}

// A flood, of neighbours that nobody knows or of hosts that look for a free address, does not keep
// a neighbour that we know from its answer; nor does one that asks too often.
TEST_F(NeighbourDiscovery, AFloodOfQuestionsLeavesTheAnswersOfOthers) {
  config_.neighbours = 8;
  start();
  learn6(kPeer6, kPeerMac);
  ASSERT_TRUE(send6(kPeer6));
  const auto clear = [this] {
    interface_->flush(now_);
    port_->sent().clear();
  };
  const wire::Ipv6Address group = wire::solicited_node(to_wire(kOurs6));
  const auto probe = [&] {
    receive(nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), {}}, {},
                     from_wire(group), wire::multicast_mac(group)));
  };
  clear();
  uint64_t answered = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    receive(solicitation({0xfd00000000000000, 0x1000 + i}, kGatewayMac));
    answered += sent();
    clear();
  }
  EXPECT_LT(answered, 3000u);
  EXPECT_EQ(counters().icmp_limited, 3000 - answered);
  receive(solicitation(kPeer6, kPeerMac));
  EXPECT_EQ(sent(), 1u);
  clear();
  probe();
  EXPECT_EQ(sent(), 1u);
  clear();
  for (int i = 0; i < 3000; ++i) {
    probe();
    receive(solicitation(kPeer6, kPeerMac));
    clear();
  }
  receive(solicitation(kPeer6, kPeerMac));
  EXPECT_EQ(sent(), 0u);
  now_ += std::chrono::seconds(1);
  receive(solicitation(kPeer6, kPeerMac));
  EXPECT_EQ(sent(), 1u);
}

// RFC 6980 s.5: not even with a fragment header that makes no fragments.
TEST_F(NeighbourDiscovery, MessagesWithAFragmentHeaderAreNotBelieved) {
  Octets message(wire::kNdMessage);
  wire::write_neighbour_message(message.data(),
                                {wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), kPeerMac});
  const Octets whole = icmp6(message);
  wire::Ipv6 ip = with_next(wire::kNextFragment);
  ip.hop_limit = 255;
  Octets header(wire::kIpv6FragmentHeader);
  header[0] = wire::kNextIcmpv6;
  receive(ip6_frame(ip, joined({header, whole})));
  EXPECT_EQ(counters().nd_malformed, 1u);
  EXPECT_EQ(sent(), 0u);
  ip.next_header = wire::kNextIcmpv6;
  receive(ip6_frame(ip, whole));
  EXPECT_EQ(sent(), 1u);
}

/// With duplicate address detection on: kOurs6 and the link-local address are tentative at first.
class DuplicateAddress : public Ipv6Test {
 protected:
  void SetUp() override {
    config_.dad_transmits = 2;
    Ipv6Test::SetUp();
  }
  /// The next question for kOurs6, or nothing.
  std::optional<Sent6> question() {
    while (!port_->sent().empty()) {
      const Sent6 sent = take6();
      if (from_wire(neighbour_of(sent).target) == kOurs6) return sent;
    }
    return std::nullopt;
  }
  void expect_unusable() {
    EXPECT_FALSE(interface_->is_ours(kOurs6));
    EXPECT_NE(interface_->source_for(kPeer6), kOurs6);
    EXPECT_FALSE(receive(ip6_frame(with_next(wire::kProtocolTcp), {1, 2, 3})));
  }
  static Octets probe_of_another() {
    const wire::Ipv6Address group = wire::solicited_node(to_wire(kOurs6));
    return nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), {}}, {},
                    from_wire(group), wire::multicast_mac(group));
  }
};

// RFC 4862 s.5.4.2: asked for from no address, to its group, as often as configured; then it is
// used.
TEST_F(DuplicateAddress, AnAddressThatNobodyHasIsUsedAfterTheQuestions) {
  expect_unusable();
  EXPECT_FALSE(question());
  run_until(now_ + std::chrono::seconds(1));  // the random delay is shorter
  const auto first = question();
  ASSERT_TRUE(first);
  EXPECT_EQ(from_wire(first->ip.source), IpAddress{});
  EXPECT_EQ(from_wire(first->ip.destination), solicited_node(kOurs6));
  EXPECT_EQ(first->ip.hop_limit, 255);
  EXPECT_FALSE(neighbour_of(*first).link);
  expect_unusable();
  run_until(now_ + std::chrono::seconds(1));
  EXPECT_TRUE(question());
  expect_unusable();
  run_until(now_ + std::chrono::seconds(1));
  EXPECT_FALSE(question());
  EXPECT_TRUE(interface_->is_ours(kOurs6));
  EXPECT_TRUE(interface_->is_ours(kOurLinkLocal));
  EXPECT_EQ(interface_->source_for(kPeer6), kOurs6);
  EXPECT_TRUE(receive(ip6_frame(with_next(wire::kProtocolTcp), {1, 2, 3})));
  EXPECT_EQ(counters().duplicate_addresses, 0u);
  EXPECT_EQ(interface_->next_deadline(), base::kNever);
}

// RFC 4862 s.5.4.4: somebody has it. s.5.4.3: somebody asks for it as we do.
TEST_F(DuplicateAddress, AnAddressThatSomebodyHasIsNeverUsed) {
  base::set_log_level(base::LogLevel::Off);
  const auto owner = nd_frame(
      {wire::kIcmpv6NeighbourAdvertisement, wire::kNdFlagOverride, to_wire(kOurs6), kPeerMac},
      kOurs6, kAllNodes, wire::multicast_mac(wire::kAllNodes));
  for (const Octets& answer : {owner, probe_of_another()}) {
    start();
    run_until(now_ + std::chrono::seconds(1));
    EXPECT_FALSE(receive(answer));
    EXPECT_EQ(counters().duplicate_addresses, 1u);
    run_until(now_ + std::chrono::seconds(60));
    expect_unusable();
    EXPECT_TRUE(interface_->is_ours(kOurLinkLocal));  // the other one is free
    EXPECT_TRUE(interface_->is_ours(kOurs));          // and IPv4 has nothing to do with it
  }
}

TEST_F(DuplicateAddress, AnAddressThatSomebodyHasIsNamed) {
  run_until(now_ + std::chrono::seconds(1));
  test::Logged log;
  receive(probe_of_another());
  const std::string said = log.take();
  EXPECT_NE(said.find("error net: somebody on the link has fd00::1 already: it is not used; "
                      "configure another address\n"),
            std::string::npos)
      << said;
}

// RFC 4862 s.5.4.3: who only wants to talk to it is no conflict, and gets no answer; nor is our own
// question, brought back by the link.
TEST_F(DuplicateAddress, OthersQuestionsAndOurOwnAreNoConflict) {
  run_until(now_ + std::chrono::seconds(1));
  ASSERT_TRUE(question());
  port_->sent().clear();
  receive(solicitation(kPeer6, kPeerMac));
  Octets ours = probe_of_another();
  std::copy(kOurMac.begin(), kOurMac.end(), ours.begin() + wire::kEtherSourceAt);
  receive(ours);
  interface_->flush(now_);
  EXPECT_TRUE(port_->sent().empty());
  EXPECT_EQ(counters().duplicate_addresses, 0u);
  run_until(now_ + std::chrono::seconds(3));
  EXPECT_TRUE(interface_->is_ours(kOurs6));
  // From now on it is defended (s.5.4.3's other side).
  port_->sent().clear();
  receive(probe_of_another());
  EXPECT_EQ(from_wire(take6().ip.destination), kAllNodes);
}

// RFC 4862 s.5.4.4 is about tentative addresses; behind that an advertisement of ours by another is
// counted, however it comes, and changes nothing.
TEST_F(NeighbourDiscovery, AnAdvertisementOfOurAddressIsCounted) {
  const port::MacAddress other{2, 0, 0, 0, 0, 0x77};
  for (const uint8_t solicited : {uint8_t{0}, wire::kNdFlagSolicited}) {
    const auto flags = static_cast<uint8_t>(solicited | wire::kNdFlagOverride);
    receive(nd_frame({wire::kIcmpv6NeighbourAdvertisement, flags, to_wire(kOurs6), other}, kPeer6,
                     kOurs6, kOurMac));
  }
  EXPECT_EQ(counters().address_conflicts, 2u);
  EXPECT_EQ(counters().nd_malformed, 0u);
  EXPECT_EQ(sent(), 0u);
}

}  // namespace
}  // namespace rnic::net
