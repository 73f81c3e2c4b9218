#include "base/log.hpp"
#include "net/neighbours.hpp"
#include "net_fixture.hpp"
#include "support/logged.hpp"

namespace rnic::net {
namespace {

class Arp : public NetTest {};

// TCP-IP-02
TEST_F(Arp, FirstFrameWaitsForTheAnswer) {
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  const test::SentFrame request = port_->take_sent();
  EXPECT_EQ(mac_to(request), wire::kMacBroadcast);
  EXPECT_EQ(arp_of(request).operation, wire::kArpRequest);
  EXPECT_EQ(arp_of(request).sender_ip, kOurs.as_v4());
  EXPECT_EQ(arp_of(request).target_ip, kPeer.as_v4());

  EXPECT_FALSE(receive(arp_reply(kPeer, kPeerMac)));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);

  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
  EXPECT_EQ(counters().arp_requests_out, 1u);
}

TEST_F(Arp, FarHostsGoThroughTheGateway) {
  learn(kGateway, kGatewayMac);
  ASSERT_TRUE(send(kFar));
  interface_->flush(now_);
  const test::SentFrame frame = port_->take_sent();
  EXPECT_EQ(mac_to(frame), kGatewayMac);
  EXPECT_EQ(wire::parse_ipv4(base::ByteView(frame.octets).subspan(14))->destination, kFar.as_v4());
}

TEST_F(Arp, ParkedFramesAreBoundedAndTheOldestGoes) {
  for (uint8_t i = 0; i < 20; ++i) ASSERT_TRUE(send(kPeer, 100, i));
  EXPECT_EQ(counters().neighbour_unresolved, 4u);
  EXPECT_EQ(counters().arp_requests_out, 1u);
  interface_->flush(now_);
  port_->sent().clear();
  receive(arp_reply(kPeer, kPeerMac));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 16u);
  for (uint8_t i = 4; i < 20; ++i) EXPECT_EQ(port_->take_sent().octets.back(), i);
}

TEST_F(Arp, AsksAgainOnceAPeriodThenGivesUp) {
  ASSERT_TRUE(send(kPeer));
  const base::Now start = now_;
  run_until(start + config_.neighbour_retry * config_.neighbour_retries - base::Duration(1));
  EXPECT_EQ(counters().arp_requests_out, config_.neighbour_retries);
  EXPECT_EQ(counters().neighbour_unresolved, 0u);
  run_until(start + config_.neighbour_retry * config_.neighbour_retries);
  EXPECT_EQ(counters().arp_requests_out, config_.neighbour_retries);
  EXPECT_EQ(counters().neighbour_unresolved, 1u);
  EXPECT_EQ(interface_->next_deadline(), base::kNever);
  port_->sent().clear();
  receive(arp_reply(kPeer, kPeerMac));  // too late: nobody asks
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_TRUE(is_arp(port_->take_sent()));
}

TEST_F(Arp, AnswersRequestsForUsAndLearnsTheAsker) {
  receive(arp_request(kPeer, kPeerMac));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  const test::SentFrame reply = port_->take_sent();
  EXPECT_EQ(mac_to(reply), kPeerMac);
  EXPECT_EQ(arp_of(reply).operation, wire::kArpReply);
  EXPECT_EQ(arp_of(reply).sender_mac, kOurMac);
  EXPECT_EQ(arp_of(reply).sender_ip, kOurs.as_v4());
  EXPECT_EQ(arp_of(reply).target_ip, kPeer.as_v4());
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
}

TEST_F(Arp, UnaskedRepliesAndTalkBetweenOthersTeachNothing) {
  receive(arp_reply(kPeer, kPeerMac));
  receive(
      arp_frame({wire::kArpRequest, kPeerMac, kPeer.as_v4(), {}, 0x0a000009}, wire::kMacBroadcast));
  receive(arp_frame({wire::kArpRequest, kPeerMac, kPeer.as_v4(), {}, kPeer.as_v4()},
                    wire::kMacBroadcast));
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_TRUE(is_arp(port_->take_sent()));
}

TEST_F(Arp, AKnownAddressIsNotOverwrittenByStrangers) {
  const port::MacAddress stranger{2, 6, 6, 6, 6, 6};
  learn(kPeer, kPeerMac);
  receive(arp_reply(kPeer, stranger));
  receive(arp_request(kPeer, stranger));  // answered, and the old address is asked
  interface_->flush(now_);
  bool asked_old = false;
  for (const test::SentFrame& frame : port_->sent()) {
    asked_old |= arp_of(frame).operation == wire::kArpRequest && mac_to(frame) == kPeerMac;
  }
  EXPECT_TRUE(asked_old);
  port_->sent().clear();
  receive(arp_reply(kPeer, kPeerMac));
  receive(arp_reply(kPeer, stranger));
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
}

TEST_F(Arp, AMovedHostIsFoundAgain) {
  const port::MacAddress moved{2, 0, 0, 0, 0, 0x77};
  learn(kPeer, kPeerMac);
  receive(arp_request(kPeer, moved));
  run_until(now_ + config_.neighbour_retry);  // the old address is silent: everybody is asked
  EXPECT_EQ(mac_to(port_->sent().back()), wire::kMacBroadcast);
  receive(arp_reply(kPeer, moved));
  port_->sent().clear();
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), moved);
}

// TCP-IP-02
TEST_F(Arp, UsedEntriesAreConfirmedWithoutAGap) {
  learn(kPeer, kPeerMac);
  receive(arp_request(kGateway, kGatewayMac));
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  port_->sent().clear();
  run_until(now_ + config_.arp_lifetime);
  ASSERT_EQ(port_->sent().size(), 1u);
  const test::SentFrame probe = port_->take_sent();
  EXPECT_EQ(arp_of(probe).target_ip, kPeer.as_v4());
  EXPECT_EQ(mac_to(probe), kPeerMac);
  ASSERT_TRUE(send(kPeer));  // still usable
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
  run_until(now_ + config_.neighbour_retry * config_.neighbour_retries);  // no answer
  port_->sent().clear();
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_TRUE(is_arp(port_->take_sent()));
}

// An entry that was confirmed counts as used again from the first frame that goes to it, also where
// the way of the last frame is remembered: it is confirmed in time for ever.
TEST_F(Arp, AConfirmedEntryIsConfirmedAgain_TCP_IP_02) {
  learn(kPeer, kPeerMac);
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(send(kPeer));
    interface_->flush(now_);
    port_->sent().clear();
    run_until(now_ + config_.arp_lifetime);
    ASSERT_EQ(port_->sent().size(), 1u) << "round " << round;
    const test::SentFrame probe = port_->take_sent();
    ASSERT_TRUE(is_arp(probe));
    EXPECT_EQ(arp_of(probe).target_ip, kPeer.as_v4());
    receive(arp_reply(kPeer, kPeerMac));
  }
}

// RFC 4861 s.7.3.2: after a pause the whole of a burst goes to the old address, which is asked
// then; nobody there, it is forgotten.
TEST_F(Arp, UnusedEntriesAreKeptAndConfirmedWhenTheyAreUsed_TCP_IP_02) {
  for (const bool answers : {true, false}) {
    receive(arp_request(kPeer, kPeerMac));
    interface_->flush(now_);
    port_->sent().clear();
    run_until(now_ + 3 * config_.arp_lifetime);
    EXPECT_TRUE(port_->sent().empty()) << "nobody uses it";
    receive(arp_reply(kPeer, {2, 6, 6, 6, 6, 6}));  // unasked
    EXPECT_TRUE(port_->sent().empty());
    constexpr size_t kBurst = 32;  // twice what waits for an answer
    for (size_t i = 0; i < kBurst; ++i) ASSERT_TRUE(send(kPeer));
    interface_->flush(now_);
    ASSERT_EQ(port_->sent().size(), kBurst);
    for (const test::SentFrame& frame : port_->sent()) EXPECT_EQ(mac_to(frame), kPeerMac);
    port_->sent().clear();
    run_until(now_ + config_.neighbour_retry / 2);
    ASSERT_EQ(port_->sent().size(), 1u);
    EXPECT_EQ(arp_of(port_->sent().front()).target_ip, kPeer.as_v4());
    EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
    if (answers) receive(arp_reply(kPeer, kPeerMac));
    run_until(now_ + config_.neighbour_retry * config_.neighbour_retries);
    port_->sent().clear();
    ASSERT_TRUE(send(kPeer));
    interface_->flush(now_);
    EXPECT_EQ(is_arp(port_->take_sent()), !answers);
  }
}

TEST_F(Arp, TheTableIsBounded) {
  config_.neighbours = 8;
  start();
  learn(kPeer, kPeerMac);
  ASSERT_TRUE(send(kPeer));
  for (uint32_t i = 0; i < 100; ++i)
    receive(arp_request(IpAddress::v4(0x0a000010 + i), kGatewayMac));
  EXPECT_GT(counters().neighbours_full, 0u);
  interface_->flush(now_);
  port_->sent().clear();
  ASSERT_TRUE(send(kPeer));  // askers do not push out who is talked to
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(send(IpAddress::v4(0x0a000080 + i)));
    interface_->flush(now_);
  }
  EXPECT_GE(counters().neighbour_unresolved, 92u);
}

TEST_F(Arp, RequestsAreLimitedOverAllNeighbours) {
  config_.prefix_length = 8;
  config_.neighbours = 8;
  start();
  for (uint32_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(send(IpAddress::v4(0x0a010000 + i)));
    interface_->flush(now_);
  }
  EXPECT_EQ(counters().arp_requests_out, 1000u);
}

TEST_F(Arp, HostileFramesAreCounted) {
  const port::MacAddress group{1, 0, 0x5e, 0, 0, 1};
  receive(arp_request(kPeer, group));
  receive(arp_request(kPeer, {}));
  receive(arp_request(IpAddress::v4(0x0a0000ff), kPeerMac));  // broadcast address
  receive(arp_request(IpAddress::v4(0xe0000001), kPeerMac));  // multicast
  receive(arp_request(kFar, kPeerMac));                       // not on the link
  auto cut = arp_request(kPeer, kPeerMac);
  cut.resize(41);
  receive(cut);
  auto other = arp_request(kPeer, kPeerMac);
  other[wire::kEtherHeader + wire::kArpHardwareLengthAt] = 8;
  receive(other);
  EXPECT_EQ(counters().arp_malformed, 7u);
  interface_->flush(now_);
  EXPECT_TRUE(port_->sent().empty());
}

// RFC 5227: somebody tests whether our address is free.
TEST_F(Arp, ProbesAreAnsweredNotLearned) {
  receive(arp_request(IpAddress::v4(0), kPeerMac));
  interface_->flush(now_);
  EXPECT_EQ(arp_of(port_->take_sent()).target_ip, 0u);
}

// SYNs in the names of neighbours that nobody is make us look for them: those who are there stay
// known, and are confirmed in time.
TEST_F(Arp, AFloodOfInventedNeighboursLeavesARealOneAlone) {
  config_.prefix_length = 8;
  config_.neighbours = 64;
  config_.arp_lifetime = std::chrono::seconds(2);
  start();
  learn(kPeer, kPeerMac);
  uint32_t missed = 0;
  uint32_t asked = 0;
  for (uint32_t ms = 0; ms < 10'000; ++ms) {
    now_ += std::chrono::milliseconds(1);
    for (uint32_t i = 0; i < 3; ++i) send(IpAddress::v4(0x0a010000 + ms * 3 + i), 40);
    interface_->on_timers(now_);
    ASSERT_TRUE(send(kPeer));
    interface_->flush(now_);
    bool came = false;
    for (; !port_->sent().empty(); port_->sent().pop_front()) {
      const test::SentFrame& frame = port_->sent().front();
      came |= !is_arp(frame) && mac_to(frame) == kPeerMac;
      if (!is_arp(frame) || arp_of(frame).target_ip != kPeer.as_v4()) continue;
      ++asked;
      receive(arp_reply(kPeer, kPeerMac));
    }
    missed += came ? 0 : 1;
  }
  EXPECT_EQ(missed, 0u);
  EXPECT_GE(asked, 4u);
  EXPECT_LE(asked, 5u);  // once a lifetime
}

// A new neighbour opens a connection in such a flood, and its turn to be asked for has not come: it
// is answered where its segment came from, until it can be asked for.
TEST_F(Arp, AFloodOfInventedNeighboursDoesNotSilenceWhoOpens) {
  config_.prefix_length = 8;
  config_.neighbours = 64;
  start();
  for (uint32_t i = 0; i < 1500; ++i) {  // more than may be asked for
    send(IpAddress::v4(0x0a010000 + i), 40);
    interface_->flush(now_);
    port_->sent().clear();
  }
  const auto answered = [&] {
    EXPECT_TRUE(send(kPeer, 40));
    interface_->flush(now_);
    const bool sent = !port_->sent().empty() && !is_arp(port_->sent().front());
    if (sent) {
      EXPECT_EQ(mac_to(port_->sent().front()), kPeerMac);
    }
    port_->sent().clear();
    return sent;
  };
  EXPECT_FALSE(answered()) << "nothing has come from there";
  ASSERT_TRUE(receive(ip_frame({}, std::vector<uint8_t>(20))));
  EXPECT_TRUE(answered());
  EXPECT_EQ(counters().neighbour_guessed, 1u);
  // Once the question is out, its answer counts and nothing else.
  run_until(now_ + std::chrono::seconds(2));
  EXPECT_FALSE(answered());
  receive(arp_reply(kPeer, kGatewayMac));
  interface_->flush(now_);
  ASSERT_FALSE(port_->sent().empty());
  EXPECT_EQ(mac_to(port_->sent().front()), kGatewayMac);
}

// The same where the others are there, and more than the table holds: the place of who is asked for
// is given to the next one before the answer comes.
TEST_F(Arp, MoreNeighboursThanTheTableHoldsAreAnswered) {
  config_.prefix_length = 8;
  config_.neighbours = 4;
  start();
  for (uint32_t i = 0; i < 4; ++i) {
    learn(IpAddress::v4(0x0a010000 + i), kGatewayMac);
    ASSERT_TRUE(send(IpAddress::v4(0x0a010000 + i)));
  }
  interface_->flush(now_);
  port_->sent().clear();
  ASSERT_TRUE(receive(ip_frame({}, std::vector<uint8_t>(20))));
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 2u)
      << "the question, and the frame without waiting for its answer";
  EXPECT_TRUE(is_arp(port_->sent().front()));
  EXPECT_EQ(mac_to(port_->sent().back()), kPeerMac);
  EXPECT_EQ(counters().neighbour_guessed, 1u);
}

// A neighbour that asks for us in such a flood is learned, and answered.
TEST_F(Arp, AFloodOfInventedNeighboursDoesNotHideANewOne) {
  config_.prefix_length = 8;
  config_.neighbours = 64;
  start();
  for (uint32_t i = 0; i < 5000; ++i) {
    send(IpAddress::v4(0x0a010000 + i), 40);
    interface_->flush(now_);
    port_->sent().clear();
    if (i == 4000) receive(arp_request(kPeer, kPeerMac));
  }
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
}

TEST_F(Arp, ParkedFramesOfAllNeighboursLeaveThePortBuffers) {
  config_.prefix_length = 8;
  start();
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(send(IpAddress::v4(0x0a010000 + i % 100), 40)) << i;
    interface_->flush(now_);
    port_->sent().clear();
  }
  EXPECT_LE(port_->outstanding(), 128u + 64u);  // and the spare ones of the burst
  EXPECT_GE(counters().neighbour_unresolved, 1000u - 128u);
  learn(kPeer, kPeerMac);
  ASSERT_TRUE(send(kPeer));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
}

// TCP-9293-3.8.3-01: three retransmissions without an answer tell of it.
TEST_F(Arp, ASilentNextHopIsAskedAndItsNewAddressFound) {
  const port::MacAddress moved{2, 0, 0, 0, 0, 0x77};
  learn(kGateway, kGatewayMac);
  interface_->doubt_path(kPeer, now_);            // nothing is known of it
  interface_->doubt_path(IpAddress(1, 2), now_);  // no route
  interface_->flush(now_);
  EXPECT_TRUE(port_->sent().empty());
  interface_->doubt_path(kFar, now_);
  interface_->doubt_path(kFar, now_);
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  const test::SentFrame asked = port_->take_sent();
  EXPECT_EQ(arp_of(asked).target_ip, kGateway.as_v4());
  EXPECT_EQ(mac_to(asked), kGatewayMac);
  run_until(now_ + config_.neighbour_retry);
  receive(arp_reply(kGateway, moved));
  port_->sent().clear();
  ASSERT_TRUE(send(kFar));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), moved);
}

// RFC 5227 s.3: a router that takes another's place announces it.
TEST_F(Arp, AnAnnouncementMakesUsAskAndIsNotBelieved) {
  const port::MacAddress moved{2, 0, 0, 0, 0, 0x77};
  learn(kGateway, kGatewayMac);
  receive(arp_frame({wire::kArpRequest, moved, kGateway.as_v4(), {}, kGateway.as_v4()},
                    wire::kMacBroadcast));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  EXPECT_EQ(mac_to(port_->take_sent()), kGatewayMac);
  ASSERT_TRUE(send(kFar));
  interface_->flush(now_);
  EXPECT_EQ(mac_to(port_->take_sent()), kGatewayMac);
}

// RFC 5227 s.2.4: a claim to our address is counted and answered by one announcement in ten
// seconds; it does not reach the table.
TEST_F(Arp, AClaimToOurAddressIsDefendedNotTooOften) {
  base::set_log_level(base::LogLevel::Off);
  const auto claim = arp_frame({wire::kArpRequest, kPeerMac, kOurs.as_v4(), {}, kOurs.as_v4()},
                               wire::kMacBroadcast);
  const auto answer =
      arp_frame({wire::kArpReply, kPeerMac, kOurs.as_v4(), kOurMac, kOurs.as_v4()}, kOurMac);
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 5; ++i) {
      receive(claim);
      receive(answer);
    }
    interface_->flush(now_);
    ASSERT_EQ(port_->sent().size(), 1u);
    const test::SentFrame frame = port_->take_sent();
    EXPECT_EQ(mac_to(frame), wire::kMacBroadcast);
    const wire::Arp defence = arp_of(frame);
    EXPECT_EQ(defence.operation, wire::kArpRequest);
    EXPECT_EQ(defence.sender_mac, kOurMac);
    EXPECT_EQ(defence.sender_ip, kOurs.as_v4());
    EXPECT_EQ(defence.target_ip, kOurs.as_v4());
    EXPECT_EQ(counters().address_conflicts, 10u * round);
    EXPECT_EQ(counters().address_defences, static_cast<uint64_t>(round));
    now_ += std::chrono::seconds(10);
  }
  // Our own frames, brought back by the link, are no claim.
  receive(arp_frame({wire::kArpRequest, kOurMac, kOurs.as_v4(), {}, kPeer.as_v4()},
                    wire::kMacBroadcast));
  EXPECT_EQ(counters().address_conflicts, 20u);
}

TEST_F(Arp, AClaimToOurAddressIsLoggedOnce) {
  test::Logged log;
  for (int i = 0; i < 3; ++i) {
    receive(arp_frame({wire::kArpRequest, kPeerMac, kOurs.as_v4(), {}, kOurs.as_v4()},
                      wire::kMacBroadcast));
  }
  const std::string said = log.take();
  EXPECT_NE(
      said.find("error net: 10.0.0.1 is ours, but another host on the link uses it, too: give "
                "one of them another\n"),
      std::string::npos)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

// The same in a table that has room, where the place of the entry was somebody else's before, who
// had been asked for: no answer is under way to the new one.
TEST_F(Arp, AReusedPlaceHasNoQuestionOfItsOwn) {
  config_.prefix_length = 8;
  config_.neighbours = 4096;
  config_.neighbour_retries = 1;
  start();
  uint32_t next = 0x0a010000;
  const auto look_for = [&](uint32_t count) {
    const uint64_t before = counters().arp_requests_out;
    for (uint32_t i = 0; i < count; ++i) {
      send(IpAddress::v4(next++), 40);
      interface_->flush(now_);
      port_->sent().clear();
    }
    return counters().arp_requests_out - before;
  };
  EXPECT_EQ(look_for(600), 600u);
  run_until(now_ + config_.neighbour_retry * 9 / 10);
  EXPECT_EQ(look_for(600), 600u);
  run_until(now_ + 2 * config_.neighbour_retry);  // all of them are given up
  EXPECT_EQ(look_for(1100), 1000u) << "a second's worth";
  port_->sent().clear();
  ASSERT_TRUE(receive(ip_frame({}, std::vector<uint8_t>(20))));
  ASSERT_TRUE(send(kPeer, 40));
  interface_->flush(now_);
  ASSERT_EQ(port_->sent().size(), 1u);
  EXPECT_FALSE(is_arp(port_->sent().front()));
  EXPECT_EQ(mac_to(port_->take_sent()), kPeerMac);
  EXPECT_EQ(counters().neighbour_guessed, 1u);
}

// What a table says that it takes grows with its entries, and by two heads of chains for each where
// their number, a power of two, has to grow.
TEST(NeighbourTable, AsksForTwoHeadsAnEntry) {
  for (const uint32_t entries : {16u, 1024u, 65536u}) {
    const uint64_t entry = Neighbours::octets_for(entries) - Neighbours::octets_for(entries - 1);
    const uint64_t step = Neighbours::octets_for(entries + 1) - Neighbours::octets_for(entries);
    EXPECT_EQ(step - entry, 2 * entries * sizeof(uint32_t));
  }
}

}  // namespace
}  // namespace rnic::net
