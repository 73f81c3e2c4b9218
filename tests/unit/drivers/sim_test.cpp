#include "sim/sim.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <vector>

#include "tcp_frame.hpp"

namespace rnic::sim {
namespace {

using namespace std::chrono_literals;
using base::from_nanos;

uint32_t send(port::Port& from, uint32_t payload, base::Now now, uint8_t first = 0) {
  std::array<port::Packet, 1> packet;
  if (!from.alloc(packet)) return 0;
  driver_test::write_segment(packet[0], 1, payload, first);
  const uint32_t sent = from.tx_burst(packet, now);
  if (sent == 0) from.free(packet);
  return sent;
}

uint32_t drain(port::Port& to, base::Now now) {
  std::array<port::Packet, 32> packets;
  const uint32_t count = to.rx_burst(packets, now);
  to.free(std::span(packets).first(count));
  return count;
}

TEST(SimLink, FrameArrivesAfterTheDelayAndNotBefore) {
  LinkConfig config;
  config.a_to_b.delay = 50us;
  Link link(config);
  EXPECT_EQ(link.b().next_deadline(), base::kNever);
  ASSERT_EQ(send(link.a(), 100, from_nanos(1000)), 1u);
  EXPECT_EQ(link.b().next_deadline(), from_nanos(51000));
  EXPECT_EQ(drain(link.b(), from_nanos(50999)), 0u);
  EXPECT_EQ(link.in_flight(), 1u);
  EXPECT_EQ(drain(link.b(), from_nanos(51000)), 1u);
  EXPECT_EQ(link.held(), 0u);
  EXPECT_EQ(link.a().outstanding(), 0u);
}

TEST(SimLink, RateSpacesFrames) {
  LinkConfig config;
  config.a_to_b.bits_per_second = 1'000'000'000;
  Link link(config);
  // 54 + 922 + 24 octets are 8 us at 1 Gb/s.
  ASSERT_EQ(send(link.a(), 922, from_nanos(0)), 1u);
  ASSERT_EQ(send(link.a(), 922, from_nanos(0)), 1u);
  EXPECT_EQ(link.b().next_deadline(), from_nanos(8000));
  EXPECT_EQ(drain(link.b(), from_nanos(8000)), 1u);
  EXPECT_EQ(link.b().next_deadline(), from_nanos(16000));
  EXPECT_EQ(drain(link.b(), from_nanos(16000)), 1u);
}

TEST(SimLink, FullQueueRefusesUntilTheWireIsFree) {
  LinkConfig config;
  config.a_to_b.bits_per_second = 1'000'000'000;
  config.a_to_b.delay = 1s;  // underway is not waiting
  config.a_to_b.queue_limit = 2;
  Link link(config);
  EXPECT_EQ(send(link.a(), 922, from_nanos(0)), 1u);
  EXPECT_EQ(send(link.a(), 922, from_nanos(0)), 1u);
  EXPECT_EQ(send(link.a(), 922, from_nanos(0)), 0u);
  EXPECT_EQ(link.a().counters().tx_refused, 1u);
  EXPECT_EQ(send(link.a(), 922, from_nanos(8000)), 1u);
  EXPECT_EQ(link.a().outstanding(), 3u);
  EXPECT_EQ(link.held(), 0u);
}

TEST(SimLink, RouterQueueDropsInstead) {
  LinkConfig config;
  config.a_to_b.bits_per_second = 1'000'000;
  config.a_to_b.queue_limit = 1;
  config.a_to_b.drop_when_full = true;
  Link link(config);
  EXPECT_EQ(send(link.a(), 922, from_nanos(0)), 1u);
  EXPECT_EQ(send(link.a(), 922, from_nanos(0)), 1u);
  EXPECT_EQ(link.a().queue_drops(), 1u);
  EXPECT_EQ(link.a().outstanding(), 1u);
}

TEST(SimLink, ShorterDelayDoesNotOvertake) {
  LinkConfig config;
  config.a_to_b.delay = 100us;
  Link link(config);
  ASSERT_EQ(send(link.a(), 10, from_nanos(0), 1), 1u);
  link.set_a_to_b({});
  ASSERT_EQ(send(link.a(), 10, from_nanos(10), 2), 1u);
  EXPECT_EQ(drain(link.b(), from_nanos(10)), 0u);
  EXPECT_EQ(drain(link.b(), from_nanos(100000)), 2u);
}

TEST(SimLink, EachDirectionChangesByItself) {
  Link link(LinkConfig{});
  Direction slow;
  slow.delay = 70us;
  link.set_b_to_a(slow);
  ASSERT_EQ(send(link.a(), 10, from_nanos(0)), 1u);
  ASSERT_EQ(send(link.b(), 10, from_nanos(0)), 1u);
  EXPECT_EQ(link.b().next_deadline(), from_nanos(0));
  EXPECT_EQ(link.a().next_deadline(), from_nanos(70'000));
  EXPECT_EQ(drain(link.b(), from_nanos(0)), 1u);
  EXPECT_EQ(drain(link.a(), from_nanos(70'000)), 1u);
}

TEST(SimLink, ChecksumModes) {
  for (const auto mode :
       {port::ChecksumMode::Software, port::ChecksumMode::Trusted, port::ChecksumMode::Offload}) {
    LinkConfig config;
    config.checksum = mode;
    Link link(config);
    ASSERT_EQ(send(link.a(), 100, from_nanos(0)), 1u);
    std::array<port::Packet, 1> packet;
    ASSERT_EQ(link.b().rx_burst(packet, from_nanos(0)), 1u);
    const bool software = mode == port::ChecksumMode::Software;
    EXPECT_EQ(packet[0].l4_checksum, software ? port::Checksum::Unknown : port::Checksum::Good);
    EXPECT_EQ(driver_test::checksums_good(packet[0].view()), mode != port::ChecksumMode::Trusted);
    link.b().free(packet);
  }
}

TEST(SimLink, OffloadFindsBadChecksums) {
  LinkConfig config;
  config.checksum = port::ChecksumMode::Offload;
  Link link(config);
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(link.a().alloc(packet));
  driver_test::write_segment(packet[0], 1, 100);
  packet[0].l4_checksum = port::Checksum::Unknown;  // said to be complete, but is not
  ASSERT_EQ(link.a().tx_burst(packet, from_nanos(0)), 1u);
  ASSERT_EQ(link.b().rx_burst(packet, from_nanos(0)), 1u);
  EXPECT_EQ(packet[0].ip_checksum, port::Checksum::Good);
  EXPECT_EQ(packet[0].l4_checksum, port::Checksum::Bad);
  link.b().free(packet);
}

TEST(SimLink, PoolIsBoundedAndAllOrNothing) {
  LinkConfig config;
  config.slots = 8;
  Link link(config);
  std::vector<port::Packet> packets(9);
  EXPECT_FALSE(link.a().alloc(packets));
  EXPECT_EQ(link.a().outstanding(), 0u);
  packets.resize(8);
  ASSERT_TRUE(link.a().alloc(packets));
  EXPECT_GE(packets[0].room, 1514u);
  EXPECT_EQ(link.held(), 8u);
  link.a().free(packets);
  EXPECT_EQ(link.held(), 0u);
}

TEST(SimLink, ReceivedFramesMayBeSentBack) {
  Link link(LinkConfig{});
  ASSERT_EQ(send(link.a(), 10, from_nanos(0)), 1u);
  std::array<port::Packet, 1> packet;
  ASSERT_EQ(link.b().rx_burst(packet, from_nanos(0)), 1u);
  ASSERT_EQ(link.b().tx_burst(packet, from_nanos(0)), 1u);
  EXPECT_EQ(drain(link.a(), from_nanos(0)), 1u);
  EXPECT_EQ(link.a().outstanding(), 0u);
}

TEST(World, JumpsFromDeadlineToDeadline) {
  LinkConfig config;
  config.a_to_b.delay = 3us;
  config.b_to_a.delay = 5us;
  Link link(config);
  World world;
  std::vector<int64_t> arrivals;
  const auto echo = [&](SimPort& port) {
    world.add([&port] { return port.next_deadline(); },
              [&port, &arrivals](base::Now now) {
                arrivals.push_back(base::nanos(now));
                std::array<port::Packet, 4> packets;
                const uint32_t count = port.rx_burst(packets, now);
                EXPECT_EQ(port.tx_burst(std::span(packets).first(count), now), count);
              });
  };
  echo(link.a());
  echo(link.b());
  EXPECT_FALSE(world.step());
  ASSERT_EQ(send(link.a(), 10, world.now()), 1u);
  EXPECT_EQ(world.run_until(from_nanos(15000)), 3u);
  EXPECT_EQ(arrivals, (std::vector<int64_t>{3000, 8000, 11000}));
  EXPECT_EQ(world.now(), from_nanos(15000));
  EXPECT_TRUE(world.run_until([&] { return arrivals.size() == 5; }, base::kNever, 100));
  EXPECT_FALSE(world.run_until([] { return false; }, base::kNever, 10));
}

}  // namespace
}  // namespace rnic::sim
