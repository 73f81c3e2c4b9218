// The analysis draft's claims, on small versions of the experiments.
#include <gtest/gtest.h>

#include "experiments.hpp"

namespace rnic::experiment {
namespace {

RigConfig rig(uint32_t emss, Framing framing, bool packing, uint32_t message) {
  RigConfig config;
  config.path.mtu = emss + 40;
  config.path.tcp = plain_tcp();
  config.framing = framing;
  config.packing = packing;
  config.message_octets = message;
  return config;
}

double ratio(uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// About 60 and 22 times as many segments, and ACKs in proportion.
TEST(Packing, WorstCases_MPAA_6_01_MPAA_6_02_MPAA_6_03) {
  for (const uint32_t emss : {1460u, 536u}) {
    const Transfer on = transfer(rig(emss, Framing::MpaMarkers, true, 1), 1200);
    const Transfer off = transfer(rig(emss, Framing::MpaMarkers, false, 1), 1200);
    ASSERT_TRUE(on.complete && off.complete);
    EXPECT_EQ(off.segments, 1200u);
    EXPECT_NEAR(ratio(off.segments, on.segments), emss == 1460 ? 60 : 22, 1);
    EXPECT_NEAR(ratio(off.acks, on.acks), ratio(off.segments, on.segments), 2);
  }
  // The draft's example: 120 segments where two suffice.
  EXPECT_EQ(transfer(rig(1460, Framing::Mpa, true, 1), 120).segments, 2u);
  EXPECT_EQ(transfer(rig(1460, Framing::Mpa, false, 1), 120).segments, 120u);
  // And where nothing can be packed nothing is gained.
  EXPECT_EQ(transfer(rig(1460, Framing::Mpa, true, 1440), 50).segments,
            transfer(rig(1460, Framing::Mpa, false, 1440), 50).segments);
}

// Windows that count segments carry as much less as a segment holds less.
TEST(Packing, SlowStartCarriesLess_MPAA_6_04) {
  RigConfig packed = rig(1460, Framing::Mpa, true, 44);
  packed.path.delay = std::chrono::milliseconds(25);
  packed.path.queue_frames = 1u << 20;
  RigConfig unpacked = packed;
  unpacked.packing = false;
  unpacked.max_segment = 64;  // one FPDU: the windows are ten segments, twenty, ...
  const auto with = payload_by_round(packed, 20'000, 4);
  const auto without = payload_by_round(unpacked, 20'000, 4);
  ASSERT_EQ(with.size(), 4u);
  ASSERT_EQ(without.size(), 4u);
  EXPECT_EQ(without[0], 440u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(ratio(with[i], without[i]), 1460.0 / 64, 1.5);
}

RigConfig many(Framing framing, uint32_t connections, double loss) {
  RigConfig config = rig(1460, framing, true, 64 * 1024);
  config.path.tcp.max_records_per_connection = 1024;
  config.path.loss = loss;
  config.connections = connections;
  config.receive_window = 256 * 1024;
  return config;
}

// Aligned and located by markers or key nothing is held; otherwise half a segment for
// each connection, and the draft's K1 = 1 is enough.
TEST(ReceiveBuffer, GrowsWithConnectionsOnlyWithoutAlignment_MPAA_7_01) {
  for (const Framing aligned : {Framing::Mpa, Framing::MpaMarkers, Framing::TufKey}) {
    const HoldRun run = hold_run(many(aligned, 50, 0), 1);
    EXPECT_TRUE(run.complete);
    EXPECT_EQ(run.peak, 0u) << to_string(aligned);
  }
  for (const Framing unaligned : {Framing::MpaUnaligned, Framing::MpaUnalignedMarkers}) {
    const HoldRun few = hold_run(many(unaligned, 10, 0), 1);
    const HoldRun more = hold_run(many(unaligned, 100, 0), 1);
    EXPECT_TRUE(few.complete && more.complete);
    EXPECT_LE(more.peak, 1460u * 100);
    EXPECT_GE(more.peak, 1460u * 100 / 4);
    EXPECT_GE(more.peak, few.peak * 5);
  }
  // Behind a hole markers locate what alignment alone does not.
  EXPECT_EQ(hold_run(many(Framing::MpaMarkers, 20, 0.02), 2).peak, 0u);
  EXPECT_GT(hold_run(many(Framing::Mpa, 20, 0.02), 2).peak, 1460u);
}

// The octets are told in all and by connection, and the most that it was.
TEST(ReceiveBuffer, IsCounted_MPAA_7_02) {
  Rig r(many(Framing::MpaUnaligned, 4, 0));
  ASSERT_TRUE(r.start());
  uint64_t most = 0;
  bool seen = false;
  r.path().received = [&](const Frame&) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r.connections(); ++i) sum += r.held(i);
    EXPECT_EQ(sum, framing::held_octets(r.hold()));
    EXPECT_GE(framing::held_memory(r.hold()), sum);
    most = std::max(most, sum);
    seen = seen || sum != 0;
  };
  r.send(1);
  ASSERT_TRUE(r.finish());
  EXPECT_TRUE(seen);
  // A segment may be held as a whole for as long as it takes to find the FPDU that ends in it.
  EXPECT_GE(framing::held_octets_peak(r.hold()), most);
  EXPECT_EQ(framing::held_octets(r.hold()), 0u);
}

// EMSS/2 + 1 approaches twice the least number of segments and never exceeds it.
TEST(HalfSegments, TwiceIsTheWorst_MPAA_7_2_01) {
  double worst = 0;
  for (const uint32_t fpdu : {24u, 364u, 488u, 492u, 728u, 732u, 736u, 1000u, 1452u}) {
    const Transfer run = transfer(rig(1460, Framing::Mpa, true, fpdu - 20), 400);
    ASSERT_TRUE(run.complete);
    const double value = ratio(run.segments, (run.stream_octets + 1459) / 1460);
    EXPECT_LE(value, 2.0) << fpdu;
    worst = std::max(worst, value);
    if (fpdu == 732) {
      EXPECT_GT(value, 1.95);
    }
    if (fpdu == 728) {
      EXPECT_LT(value, 1.01);
    }
  }
  EXPECT_GT(worst, 1.95);
}

// Of a segment that a middlebox has cut only the first half arrives and is
// acknowledged; the second comes again, and the segments behind it begin where they began.
TEST(HalfSegments, ACutSegmentIsCompleted_MPAA_7_2_02_MPA_A_1_04) {
  for (const Framing framing : {Framing::Mpa, Framing::MpaMarkers, Framing::TufKey}) {
    RigConfig config = rig(1460, framing, true, 64 * 1024);
    Rig r(config);
    ASSERT_TRUE(r.start());
    uint32_t number = 0;
    bool lose_next = false;
    std::vector<std::pair<uint32_t, uint32_t>> sent;  // sequence, payload
    r.path().cuts = [&](const Frame& frame) {
      sent.emplace_back(base::load_be32(&frame.tcp[wire::kTcpSequenceAt]), frame.payload());
      return ++number == 20 ? 700u : 0u;
    };
    r.path().loses_half = [&] {
      lose_next = true;
      return true;
    };
    r.send(4);
    ASSERT_TRUE(r.finish());
    EXPECT_TRUE(lose_next);
    EXPECT_EQ(r.wrong(), 0u);
    EXPECT_EQ(r.delivered(), 4u * 64 * 1024);
    // What came again is the whole FPDU, or the octets of it that were missing.
    const auto [cut_begin, cut_octets] = sent[19];
    uint32_t again = 0;
    for (size_t i = 20; i < sent.size(); ++i) {
      const bool whole = sent[i].first == cut_begin && sent[i].second == cut_octets;
      const bool rest = sent[i].first == cut_begin + 700 && sent[i].second == cut_octets - 700;
      if (whole || rest) ++again;
    }
    EXPECT_GE(again, 1u) << to_string(framing);
  }
}

// In bursts after pauses every segment begins and ends with FPDUs.
TEST(Alignment, OfBurstsAfterPauses_MPA_5_1_02) {
  Rig r(rig(1460, Framing::Mpa, true, 5000));
  ASSERT_TRUE(r.start());
  const uint64_t segments = r.tcp(kInitiator).data_segments_out;
  const uint64_t aligned = r.tcp(kInitiator).aligned_segments_out;
  for (int burst = 0; burst < 4; ++burst) {
    r.send(20);
    ASSERT_TRUE(r.finish());
    r.path().run_for(std::chrono::seconds(2));
  }
  EXPECT_GT(r.tcp(kInitiator).data_segments_out - segments, 200u);
  EXPECT_EQ(r.tcp(kInitiator).aligned_segments_out - aligned,
            r.tcp(kInitiator).data_segments_out - segments);
  EXPECT_EQ(r.wrong(), 0u);
}

// The key places everything that comes ahead of the order, until a middlebox cuts every segment;
// markers go on.
TEST(KeyMode, PlacesEarlyUntilSegmentsAreCut_MPAA_7_1_01) {
  for (const Framing framing : {Framing::TufKey, Framing::MpaMarkers}) {
    for (const double split : {0.0, 1.0}) {
      RigConfig config = rig(1460, framing, true, 64 * 1024);
      config.path.loss = 0.02;
      config.path.split = split;
      const Transfer run = transfer(config, 16);
      ASSERT_TRUE(run.complete);
      ASSERT_GT(run.out_of_order, 0u);
      const double share = ratio(run.early, run.out_of_order);
      if (framing == Framing::TufKey && split == 1) {
        EXPECT_LT(share, 0.05);
      } else {
        EXPECT_GT(share, 0.95);
      }
    }
  }
}

// MPAA-8-07: whatever the other end is,
// MPA's end closes, at once where an octet came, and nothing reaches DDP.
TEST(Enablement, EndsAndIsNamed_MPAA_8_01_MPAA_8_02_MPAA_8_03_MPAA_8_04_MPAA_8_05_MPAA_8_06) {
  const auto cases = enablement_cases();
  EXPECT_GE(cases.size(), 30u);
  for (const EnablementCase& one : cases) {
    EXPECT_EQ(one.delivered, 0u) << one.peer;
    EXPECT_FALSE(one.error.empty()) << one.peer;
    EXPECT_NE(one.counter.find("mpa.start_failures"), std::string::npos) << one.peer;
    EXPECT_GE(one.milliseconds, 0) << one.peer << " stays open";
    if (one.counter.find("start_timeouts") == std::string::npos) {
      EXPECT_LT(one.milliseconds, 100) << one.peer;
    } else {
      EXPECT_NEAR(one.milliseconds, 60'000, 100) << one.peer;
    }
    if (one.mpa_role.rfind("initiator", 0) == 0) {
      EXPECT_NE(one.event.find("connect failed"), std::string::npos) << one.peer;
    }
  }
}

}  // namespace
}  // namespace rnic::experiment
