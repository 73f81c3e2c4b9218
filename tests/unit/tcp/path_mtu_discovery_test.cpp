// What a connection makes of routers' words and of its own probes, without a stack around it.

#include "tcp/path_mtu_discovery.hpp"

#include <gtest/gtest.h>

#include "support/transitions.hpp"

namespace rnic::tcp {
namespace {

struct PathProbe {
  using Verdict = PathMtuDiscovery::Verdict;
  static constexpr uint32_t kPacket = 1500;

  ~PathProbe() { path.validate(); }
  /// A router speaks of a packet of 1500 octets over IPv4.
  Verdict told(uint32_t mtu_told, bool outstanding) {
    llp::IcmpError error;
    error.kind = llp::IcmpError::Kind::PacketTooBig;
    error.mtu = mtu_told;
    error.quoted_length = kPacket;
    return path.judge(error, IpAddress::v4(0x0a000001), kPacket, outstanding, mtu);
  }
  void probe(uint32_t size) {
    tcb.snd_nxt += size;
    path.probe_sent(size, tcb.snd_nxt - size);
  }

  base::Now now = base::Now{} + std::chrono::seconds(1);
  uint32_t mtu = 0;
  Tcb tcb;
  Prediction prediction;
  PathMtuDiscovery path{tcb, prediction};
};

TEST(PathMtuDiscovery, WhatIsTooSmallOrTooLargeIsIgnored) {
  PathProbe p;
  EXPECT_EQ(p.told(1400, true), PathProbe::Verdict::Believed);
  EXPECT_EQ(p.mtu, 1400u);
  EXPECT_EQ(p.told(67, true), PathProbe::Verdict::Ignored);
  EXPECT_EQ(p.told(1500, true), PathProbe::Verdict::Ignored);
  EXPECT_EQ(p.told(0, true), PathProbe::Verdict::Believed);
  EXPECT_EQ(p.mtu, 1492u) << "the plateau below";
}

TEST(PathMtuDiscovery, AnUnverifiedWordCountsWithATimeOutOfTheSameSegment) {
  PathProbe p;
  EXPECT_EQ(p.told(1400, false), PathProbe::Verdict::Unverified);
  EXPECT_EQ(p.path.take_unverified(PathProbe::kPacket), 1400u);
  EXPECT_FALSE(p.path.take_unverified(PathProbe::kPacket)) << "once";
  EXPECT_EQ(p.told(1400, false), PathProbe::Verdict::Unverified);
  p.tcb.snd_nxt = p.tcb.snd_una = 1;
  EXPECT_FALSE(p.path.take_unverified(PathProbe::kPacket)) << "something got through";
}

TEST(PathMtuDiscovery, BehindABlackHoleItSearchesUpwardByHalves) {
  PathProbe p;
  EXPECT_TRUE(p.path.suspect_black_hole(1500, {IpAddress::v4(0x0a000002), 1}, p.now));
  EXPECT_EQ(p.path.limit(), 1024u);
  EXPECT_EQ(p.path.next_size(1500), 1024u + 238);
  p.probe(1262);
  EXPECT_FALSE(p.path.may_probe(p.now)) << "one at a time";
  EXPECT_FALSE(p.path.probe_arrived());
  p.tcb.snd_una = p.tcb.snd_nxt;
  EXPECT_TRUE(p.path.probe_arrived());
  p.path.probe_confirmed(1500, p.now);
  EXPECT_EQ(p.path.limit(), 1262u);
  p.path.rest(p.now);
  EXPECT_EQ(p.path.next_size(1500), 1500u) << "once a while all of it";
  p.probe(1500);
  p.tcb.snd_una = p.tcb.snd_nxt;
  p.path.probe_confirmed(1500, p.now);
  EXPECT_EQ(p.path.limit(), 0u);
  EXPECT_EQ(p.path.state(), PathSearchState::Disabled);
}

TEST(PathMtuDiscovery, ASizeThatIsLostTwiceIsNotTriedAgain) {
  PathProbe p;
  p.path.start_search(1024);
  p.prediction.begin(1, 2, base::Seq32(3), 20, 1000, 0);
  p.probe(1500);
  EXPECT_FALSE(p.prediction.on());
  p.path.probe_lost(p.now);
  EXPECT_EQ(p.path.next_size(1500), 1500u) << "chance";
  p.probe(1500);
  p.path.probe_lost(p.now);
  EXPECT_LT(p.path.next_size(1500), 1500u);
}

TEST(PathSearchStates, EachPairIsLegalOrNotAsRfc8899Says) {
  // Disabled, Searching, Probing, SearchComplete
  testing::expect_transitions(kPathSearchTransitions, {".x..", "..xx", "xx..", ".xxx"}, "....");
}

TEST(PathSearchStates, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  struct Happening {
    const char* name;
    void (*happen)(PathProbe&);
  };
  static constexpr Happening kEvents[] = {
      {"a search from the base",
       [](PathProbe& p) {
         if (!p.path.enabled()) p.path.start_search(1024);
       }},
      {"a black hole",
       [](PathProbe& p) {
         EXPECT_TRUE(p.path.suspect_black_hole(1500, {IpAddress::v4(1), 1}, p.now));
       }},
      {"a probe",
       [](PathProbe& p) {
         if (p.path.enabled() && p.path.may_probe(p.now)) p.probe(1400);
       }},
      {"its loss",
       [](PathProbe& p) {
         if (p.path.probing()) p.path.probe_lost(p.now);
       }},
      {"its arrival",
       [](PathProbe& p) {
         if (p.path.probing()) p.path.probe_confirmed(1500, p.now);
       }},
      {"the arrival of the largest one",
       [](PathProbe& p) {
         if (p.path.probing()) p.path.probe_confirmed(1400, p.now);
       }},
      {"no size is left",
       [](PathProbe& p) {
         if (p.path.enabled() && p.path.may_probe(p.now)) p.path.rest(p.now);
       }},
  };
  testing::SeenTransitions seen(kPathSearchTransitions);
  for (int way = 0; way < 7 * 7 * 7 * 7; ++way) {
    PathProbe p;
    for (int rest = way, step = 0; step < 4; ++step, rest /= 7) {
      const PathSearchState from = p.path.state();
      kEvents[rest % 7].happen(p);
      p.path.validate();
      seen.note(from, p.path.state(), kEvents[rest % 7].name);
    }
  }
  seen.expect_all();
}

TEST(PathSearchStates, WithoutASearchThereIsNoProbe) {
  PathProbe p;
  EXPECT_DEATH(p.probe(1500), "allows");
  EXPECT_DEATH(p.path.rest(p.now), "allows");
  p.path.start_search(1024);
  EXPECT_DEATH(p.path.probe_lost(p.now), "allows");
  EXPECT_DEATH(p.path.probe_confirmed(1500, p.now), "allows");
}

TEST(PathSearchStates, ABlackHoleLeavesTheProbeInFlightToBeJudged) {
  PathProbe p;
  p.path.start_search(1024);
  p.probe(1500);
  p.tcb.snd_una = p.path.probe_begin() + 1;
  EXPECT_TRUE(p.path.suspect_black_hole(1024, {IpAddress::v4(1), 1}, p.now));
  EXPECT_EQ(p.path.limit(), 576u);
  EXPECT_TRUE(p.path.probing());
  p.path.probe_lost(p.now);
  EXPECT_EQ(p.path.state(), PathSearchState::Searching);
}

}  // namespace
}  // namespace rnic::tcp
