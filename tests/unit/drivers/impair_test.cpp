#include "impair/impair.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "../../support/fake_port.hpp"
#include "impair/damage.hpp"
#include "sim/sim.hpp"
#include "tcp_frame.hpp"

namespace rnic::impair {
namespace {

using namespace std::chrono_literals;
using base::from_nanos;
using driver_test::kHeaders;

constexpr uint32_t kPayload = 200;
constexpr uint32_t kFrames = 20000;

struct Arrived {
  uint32_t seq;
  base::Now when;
  std::vector<uint8_t> octets;
};

TEST(Impair, TheLinkIsThatOfThePortBelow) {
  test::FakePort below({.name = "below"});
  ImpairedPort port(below, {}, 1);
  EXPECT_EQ(port.link(), std::nullopt);
  below.link_state = port::LinkState::Down;
  EXPECT_EQ(port.link(), port::LinkState::Down);
}

/// A sender behind a bad network on a link in virtual time.
struct Rig {
  explicit Rig(const Config& config, uint64_t seed = 1, const sim::LinkConfig& wire = {})
      : link(wire), port(std::make_unique<ImpairedPort>(link.a(), config, seed)) {
    world.add([this] { return port->next_deadline(); },
              [this](base::Now now) {
                std::array<port::Packet, 1> none;
                EXPECT_EQ(port->rx_burst(none, now), 0u);
              });
    world.add([this] { return link.b().next_deadline(); }, [this](base::Now now) { receive(now); });
  }

  void send(uint32_t seq, uint32_t payload = kPayload) {
    std::array<port::Packet, 1> packet;
    ASSERT_TRUE(port->alloc(packet));
    driver_test::write_segment(packet[0], seq, payload, static_cast<uint8_t>(seq));
    ASSERT_EQ(port->tx_burst(packet, world.now()), 1u);
  }

  void send_many(uint32_t count, base::Duration gap = 1us) {
    for (uint32_t i = 0; i < count; ++i) {
      send(i * kPayload);
      world.run_for(gap);
    }
    world.run_for(100ms);
  }

  void receive(base::Now now) {
    std::array<port::Packet, 32> packets;
    const uint32_t count = link.b().rx_burst(packets, now);
    for (const port::Packet& packet : std::span(packets).first(count)) {
      const base::ByteView view = packet.view();
      arrived.push_back({driver_test::segment_seq(view), now, {view.begin(), view.end()}});
    }
    link.b().free(std::span(packets).first(count));
  }

  const ImpairCounters& counters() const { return port->impair_counters(); }

  sim::World world;
  sim::Link link;
  std::unique_ptr<ImpairedPort> port;
  std::vector<Arrived> arrived;
};

void expect_share(uint64_t count, uint64_t of, double share) {
  EXPECT_NEAR(static_cast<double>(count) / static_cast<double>(of), share, share * 0.15 + 0.002);
}

TEST(Impair, NothingConfiguredChangesNothing) {
  Rig rig{Config{}};
  rig.send_many(500);
  ASSERT_EQ(rig.arrived.size(), 500u);
  for (uint32_t i = 0; i < 500; ++i) {
    EXPECT_EQ(rig.arrived[i].seq, i * kPayload);
    EXPECT_TRUE(driver_test::checksums_good(rig.arrived[i].octets));
    EXPECT_EQ(rig.arrived[i].when, from_nanos(i * 1000));
  }
  EXPECT_EQ(rig.link.a().outstanding(), 0u);
  EXPECT_EQ(rig.port->next_deadline(), base::kNever);
}

TEST(Impair, TakesTrustAwayAndCompletesChecksums) {
  sim::LinkConfig wire;
  wire.checksum = port::ChecksumMode::Trusted;
  Rig rig(Config{}, 1, wire);
  EXPECT_EQ(rig.port->info().checksum, port::ChecksumMode::Software);
  rig.send(0);
  rig.receive(rig.world.now());
  ASSERT_EQ(rig.arrived.size(), 1u);
  EXPECT_TRUE(driver_test::checksums_good(rig.arrived[0].octets));

  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(rig.link.b().alloc(packet));
  driver_test::write_segment(packet[0], 1, 10);
  ASSERT_EQ(rig.link.b().tx_burst(packet, rig.world.now()), 1u);
  ASSERT_EQ(rig.port->rx_burst(packet, rig.world.now()), 1u);
  EXPECT_EQ(packet[0].l4_checksum, port::Checksum::Unknown);
  EXPECT_EQ(packet[0].ip_checksum, port::Checksum::Unknown);
  rig.port->free(packet);
}

TEST(Impair, DropRate) {
  Config config;
  config.drop = 0.05;
  Rig rig(config);
  rig.send_many(kFrames);
  expect_share(rig.counters().dropped, kFrames, 0.05);
  EXPECT_EQ(rig.arrived.size() + rig.counters().dropped, kFrames);
  EXPECT_EQ(rig.link.a().outstanding(), 0u);
}

TEST(Impair, BurstsOfLossHaveTheirLength) {
  Config config;
  config.burst_enter = 0.01;
  config.burst_leave = 0.2;  // five frames on average
  Rig rig(config);
  rig.send_many(kFrames);
  uint32_t bursts = 0;
  uint32_t expected = 0;
  for (const Arrived& frame : rig.arrived) {
    if (frame.seq != expected) ++bursts;
    expected = frame.seq + kPayload;
  }
  ASSERT_GT(bursts, 100u);
  EXPECT_NEAR(static_cast<double>(rig.counters().dropped) / bursts, 5.0, 1.0);
}

TEST(Impair, DuplicatesAreEqualAndAdjacent) {
  Config config;
  config.duplicate = 0.05;
  Rig rig(config);
  rig.send_many(kFrames);
  expect_share(rig.counters().duplicated, kFrames, 0.05);
  ASSERT_EQ(rig.arrived.size(), kFrames + rig.counters().duplicated);
  uint64_t equal = 0;
  for (size_t i = 1; i < rig.arrived.size(); ++i) {
    equal += rig.arrived[i].octets == rig.arrived[i - 1].octets ? 1 : 0;
  }
  EXPECT_EQ(equal, rig.counters().duplicated);
  EXPECT_EQ(rig.link.a().outstanding(), 0u);
}

TEST(Impair, RepairedFramesPassTcpButDiffer) {
  Config config;
  config.corrupt = 0.05;
  config.repair = 1;
  Rig rig(config);
  rig.send_many(kFrames);
  expect_share(rig.counters().corrupted, kFrames, 0.05);
  EXPECT_EQ(rig.counters().repaired, rig.counters().corrupted);
  uint64_t different = 0;
  for (const Arrived& frame : rig.arrived) {
    ASSERT_TRUE(driver_test::checksums_good(frame.octets));
    const auto first = static_cast<uint8_t>(frame.seq);
    different += driver_test::payload_counts_from(frame.octets, first) ? 0 : 1;
  }
  EXPECT_EQ(different, rig.counters().corrupted);
}

TEST(Impair, UnrepairedFramesFailAChecksum) {
  Config config;
  config.corrupt = 0.05;
  config.repair = 0;
  Rig rig(config);
  rig.send_many(kFrames);
  expect_share(rig.counters().corrupted, kFrames, 0.05);
  EXPECT_EQ(rig.counters().repaired, 0u);
  uint64_t bad = 0;
  uint64_t headers = 0;
  for (const Arrived& frame : rig.arrived) {
    if (driver_test::checksums_good(frame.octets)) continue;
    ++bad;
    // A flip in the headers leaves the payload as it was sent with this sequence number, or breaks
    // both.
    headers += driver_test::payload_counts_from(frame.octets, static_cast<uint8_t>(frame.seq));
  }
  EXPECT_EQ(bad, rig.counters().corrupted);
  EXPECT_GT(headers, 0u);
  EXPECT_LT(headers, bad);
}

TEST(Impair, FramesWithoutTcpPayloadAreNeverRepaired) {
  Config config;
  config.corrupt = 1;
  config.repair = 1;
  Rig rig(config);
  for (uint32_t i = 0; i < 100; ++i) rig.send(i, 0);
  rig.receive(rig.world.now());
  EXPECT_EQ(rig.counters().corrupted, 100u);
  EXPECT_EQ(rig.counters().repaired, 0u);
}

TEST(Impair, ReorderedFramesAreOvertakenByTheConfiguredNumber) {
  Config config;
  config.reorder = 0.02;
  config.reorder_min = 3;
  config.reorder_max = 8;
  Rig rig(config);
  rig.send_many(kFrames);
  ASSERT_EQ(rig.arrived.size(), kFrames);
  expect_share(rig.counters().reordered, kFrames, 0.02);
  uint64_t late = 0;
  uint32_t newest = 0;
  for (size_t i = 0; i < rig.arrived.size(); ++i) {
    if (rig.arrived[i].seq >= newest) {
      newest = rig.arrived[i].seq;
      continue;
    }
    ++late;
    uint32_t passed = 0;
    for (size_t k = i - std::min<size_t>(i, 64); k < i; ++k) {
      passed += rig.arrived[k].seq > rig.arrived[i].seq ? 1 : 0;
    }
    EXPECT_GE(passed, 3u);
    EXPECT_LE(passed, 8u + 8u);  // others that waited as well may be among them
  }
  EXPECT_EQ(late, rig.counters().reordered);
  EXPECT_EQ(rig.link.a().outstanding(), 0u);
}

TEST(Impair, AReorderedTailIsReleasedAfterTheTimeout) {
  Config config;
  config.reorder = 1;
  config.reorder_timeout = 250us;
  Rig rig(config);
  rig.send(0);
  EXPECT_EQ(rig.port->held(), 1u);
  EXPECT_EQ(rig.port->next_deadline(), from_nanos(250000));
  rig.world.run_for(249us);
  EXPECT_TRUE(rig.arrived.empty());
  rig.world.run_for(1us);
  ASSERT_EQ(rig.arrived.size(), 1u);
  EXPECT_EQ(rig.counters().reordered, 0u);
}

TEST(Impair, DelayAndJitterInVirtualTimeKeepOrder) {
  Config config;
  config.delay = 100us;
  config.jitter = 50us;
  Rig rig(config);
  rig.send_many(2000, 1us);
  ASSERT_EQ(rig.arrived.size(), 2000u);
  base::Duration least = 1s;
  base::Duration most = 0s;
  for (uint32_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(rig.arrived[i].seq, i * kPayload);
    const base::Duration took = rig.arrived[i].when - from_nanos(i * 1000);
    least = std::min(least, took);
    most = std::max(most, took);
  }
  EXPECT_GE(least, 100us);
  EXPECT_LE(most, 150us);
  EXPECT_GT(most, least);
  EXPECT_EQ(rig.counters().delayed, 2000u);
}

TEST(Impair, ResegmentedHalvesAreWholeSegments) {
  Config config;
  config.resegment = 0.1;
  Rig rig(config);
  rig.send_many(kFrames / 4);
  expect_share(rig.counters().resegmented, kFrames / 4, 0.1);
  ASSERT_EQ(rig.arrived.size(), kFrames / 4 + rig.counters().resegmented);
  uint32_t expected = 0;
  for (const Arrived& frame : rig.arrived) {
    ASSERT_TRUE(driver_test::checksums_good(frame.octets));
    ASSERT_EQ(frame.seq, expected);  // seq and lengths join without a gap
    const auto payload = static_cast<uint32_t>(frame.octets.size()) - kHeaders;
    expected += payload;
    // The payload began with the low octet of its frame's first sequence number and counts up.
    ASSERT_TRUE(driver_test::payload_counts_from(frame.octets, static_cast<uint8_t>(frame.seq)));
    const bool last = expected % kPayload == 0;
    EXPECT_EQ((frame.octets[47] & driver_test::kPsh) != 0, last);
  }
  EXPECT_EQ(rig.link.a().outstanding(), 0u);
}

// Where the port below has no buffer for a second frame, the first one goes on as it is.
TEST(Impair, WithoutBuffersFramesAreNeitherCutNorDoubled) {
  Config config;
  config.resegment = config.duplicate = 1;
  test::FakePort below({.name = "below"});
  ImpairedPort port(below, config, 1);
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(port.alloc(packet));
  driver_test::write_segment(packet[0], 7, kPayload, 7);
  below.refuse_alloc = true;
  EXPECT_FALSE(port.alloc(std::span(packet).first(1)));
  EXPECT_EQ(port.counters().alloc_failed, 1u) << "what its user was refused";
  ASSERT_EQ(port.tx_burst(packet, from_nanos(0)), 1u);
  EXPECT_EQ(port.impair_counters().no_buffer, 2u) << "for the rest, and for the copy";
  EXPECT_EQ(port.impair_counters().resegmented, 0u);
  EXPECT_EQ(port.impair_counters().duplicated, 0u);
  EXPECT_EQ(port.counters().alloc_failed, 1u);
  ASSERT_EQ(below.sent().size(), 1u);
  const std::vector<uint8_t> frame = below.take_sent().octets;
  EXPECT_EQ(frame.size(), kHeaders + kPayload);
  EXPECT_EQ(driver_test::segment_seq(frame), 7u);
  EXPECT_TRUE(driver_test::payload_counts_from(frame, 7));
  EXPECT_TRUE(driver_test::checksums_good(frame));
}

TEST(Impair, SynAndBadSegmentsAreNotCut) {
  sim::Link link(sim::LinkConfig{});
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(link.a().alloc(packet));
  driver_test::write_segment(packet[0], 1, 50);
  EXPECT_FALSE(can_cut(packet[0]));  // checksums open
  offload::complete_checksums(packet[0]);
  EXPECT_TRUE(can_cut(packet[0]));
  driver_test::write_segment(packet[0], 1, 50, 0, 0x02);
  offload::complete_checksums(packet[0]);
  EXPECT_FALSE(can_cut(packet[0]));
  driver_test::write_segment(packet[0], 1, 1);
  offload::complete_checksums(packet[0]);
  EXPECT_FALSE(can_cut(packet[0]));
  link.a().free(packet);
}

Config everything() {
  Config config;
  config.drop = 0.03;
  config.reorder = 0.03;
  config.duplicate = 0.03;
  config.corrupt = 0.03;
  config.resegment = 0.03;
  config.burst_enter = 0.002;
  config.burst_leave = 0.3;
  config.delay = 20us;
  config.jitter = 10us;
  return config;
}

TEST(Impair, SameSeedSameFate) {
  Rig one(everything(), 42);
  Rig two(everything(), 42);
  Rig other(everything(), 43);
  for (Rig* rig : {&one, &two, &other}) rig->send_many(3000);
  ASSERT_EQ(one.arrived.size(), two.arrived.size());
  for (size_t i = 0; i < one.arrived.size(); ++i) {
    ASSERT_EQ(one.arrived[i].octets, two.arrived[i].octets);
    ASSERT_EQ(one.arrived[i].when, two.arrived[i].when);
  }
  const auto differ = [&] {
    if (one.arrived.size() != other.arrived.size()) return true;
    for (size_t i = 0; i < one.arrived.size(); ++i) {
      if (one.arrived[i].octets != other.arrived[i].octets) return true;
    }
    return false;
  };
  EXPECT_TRUE(differ());
}

TEST(Impair, EverythingAtOnceLeaksNothing) {
  Rig rig(everything(), 7);
  rig.send_many(kFrames);
  const ImpairCounters& n = rig.counters();
  EXPECT_EQ(n.forwarded, n.frames - n.dropped + n.duplicated + n.resegmented);
  EXPECT_EQ(rig.arrived.size(), n.forwarded);
  n.for_each([](const base::CounterRow& row) {
    if (std::string_view(row.name) == "no_buffer" || std::string_view(row.name) == "retries")
      return;
    EXPECT_GT(row.value, 0u) << row.name;
  });
  EXPECT_EQ(rig.port->held(), 0u);
  EXPECT_EQ(rig.link.a().outstanding(), 0u);
}

TEST(Impair, FramesInTheDelayAreFreedAtTheEnd) {
  Config config;
  config.delay = 1s;
  Rig rig(config);
  for (uint32_t i = 0; i < 200; ++i) rig.send(i * kPayload);
  EXPECT_EQ(rig.link.held(), 200u);
  rig.port.reset();
  EXPECT_EQ(rig.link.held(), 0u);
}

TEST(Impair, FramesThatLetOthersPassAreFreedAtTheEnd) {
  Config config;
  config.reorder = 1;
  Rig rig(config);
  for (uint32_t i = 0; i < 200; ++i) rig.send(i * kPayload);
  EXPECT_EQ(rig.link.held(), 200u);
  rig.port.reset();
  EXPECT_EQ(rig.link.held(), 0u);
}

TEST(Impair, FramesThatThePortRefusedAreFreedAtTheEnd) {
  sim::LinkConfig wire;
  wire.a_to_b.bits_per_second = 1000;
  wire.a_to_b.queue_limit = 1;
  Rig rig(Config{}, 1, wire);
  for (uint32_t i = 0; i < 200; ++i) rig.send(i * kPayload);
  EXPECT_EQ(rig.link.held(), 199u);
  rig.port.reset();
  EXPECT_EQ(rig.link.held(), 0u);
}

TEST(Impair, QueueIsBounded) {
  Config config;
  config.delay = 1s;
  sim::LinkConfig wire;
  wire.slots = 8192;
  Rig rig(config, 1, wire);
  std::vector<port::Packet> packets(5000);
  ASSERT_TRUE(rig.port->alloc(packets));
  for (port::Packet& packet : packets) driver_test::write_segment(packet, 0, 10);
  const uint32_t taken = rig.port->tx_burst(packets, rig.world.now());
  EXPECT_LE(taken, ImpairedPort::kCapacity);
  EXPECT_GE(taken, ImpairedPort::kCapacity - 4);
  EXPECT_EQ(rig.port->counters().tx_refused, 5000u - taken);
  rig.port->free(std::span(packets).subspan(taken));
}

TEST(Impair, FramesThatThePortRefusesAreSentLater) {
  sim::LinkConfig wire;
  wire.a_to_b.bits_per_second = 100'000'000;
  wire.a_to_b.queue_limit = 4;
  Rig rig(Config{}, 1, wire);
  for (uint32_t i = 0; i < 100; ++i) rig.send(i * kPayload);
  EXPECT_GT(rig.port->held(), 50u);
  rig.world.run_for(100ms);
  ASSERT_EQ(rig.arrived.size(), 100u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(rig.arrived[i].seq, i * kPayload);
  EXPECT_GT(rig.counters().retries, 0u);
}

TEST(Impair, ConfigurationChangesAtRunTime) {
  Rig rig(Config{});
  rig.send(0);
  Config config;
  config.drop = 1;
  rig.port->set_config(config);
  rig.send(kPayload);
  rig.port->set_config(Config{});
  rig.send(2 * kPayload);
  rig.receive(rig.world.now());
  ASSERT_EQ(rig.arrived.size(), 2u);
  EXPECT_EQ(rig.arrived[1].seq, 2 * kPayload);
}

TEST(Impair, MistakesInTheConfigurationAreNamed) {
  Config config;
  config.duplicate = 1.5;
  ASSERT_FALSE(check(config));
  EXPECT_NE(check(config).error().message.find("duplicate"), std::string::npos);
  config = Config{};
  config.reorder_min = 9;
  config.reorder_max = 8;
  EXPECT_FALSE(check(config));
  config = Config{};
  config.delay = -1ns;
  EXPECT_FALSE(check(config));
  EXPECT_TRUE(check(Config{}));
}

}  // namespace
}  // namespace rnic::impair
