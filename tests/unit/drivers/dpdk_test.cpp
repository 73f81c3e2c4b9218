// Frames through DPDK's own devices, without hugepages; the EAL is started by main().
#include "dpdk/dpdk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "impair/impair.hpp"
#include "tcp_frame.hpp"

namespace rnic::dpdk {
namespace {

constexpr base::Now kNow = base::from_nanos(0);

void send_one(port::Port& from, uint32_t length, uint8_t first) {
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(from.alloc(packet));
  ASSERT_GE(packet[0].room, length);
  for (uint32_t i = 0; i < length; ++i) packet[0].data[i] = static_cast<uint8_t>(first + i);
  packet[0].length = length;
  packet[0].l4_checksum = port::Checksum::Open;
  ASSERT_EQ(from.tx_burst(packet, kNow), 1u);
}

void expect_one(port::Port& to, uint32_t length, uint8_t first) {
  std::array<port::Packet, 32> packets;
  ASSERT_EQ(to.rx_burst(packets, kNow), 1u);
  ASSERT_EQ(packets[0].length, length);
  for (uint32_t i = 0; i < length; ++i) {
    ASSERT_EQ(packets[0].data[i], static_cast<uint8_t>(first + i)) << "octet " << i;
  }
  to.free(std::span(packets).first(1));
}

TEST(RingPair, FramesCrossBothWays) {
  auto pair = open_ring_pair("cross_a", "cross_b");
  ASSERT_TRUE(pair) << pair.error().message;
  auto& [a, b] = *pair;
  EXPECT_EQ(a->info().name, "cross_a");
  EXPECT_EQ(a->info().checksum, port::ChecksumMode::Trusted);
  EXPECT_NE(a->info().mac, b->info().mac);
  send_one(*a, 60, 1);
  expect_one(*b, 60, 1);
  send_one(*b, 1514, 2);
  expect_one(*a, 1514, 2);
  EXPECT_EQ(a->counters().tx_frames, 1u);
  EXPECT_EQ(a->counters().rx_octets, 1514u);
}

TEST(RingPair, TrustedMediumVouchesForChecksums) {
  auto pair = open_ring_pair("trust_a", "trust_b");
  ASSERT_TRUE(pair) << pair.error().message;
  send_one(*pair->first, 100, 0);
  std::array<port::Packet, 32> packets;
  ASSERT_EQ(pair->second->rx_burst(packets, kNow), 1u);
  EXPECT_EQ(packets[0].l4_checksum, port::Checksum::Good);
  EXPECT_EQ(packets[0].ip_checksum, port::Checksum::Good);
  pair->second->free(std::span(packets).first(1));
}

TEST(RingPair, JumboFramesAreOneSegment) {
  RingPairOptions options;
  options.mtu = 9000;
  options.pool_size = 1024;
  options.ring_size = 256;
  auto pair = open_ring_pair("jumbo_a", "jumbo_b", options);
  ASSERT_TRUE(pair) << pair.error().message;
  send_one(*pair->first, 9014, 7);
  expect_one(*pair->second, 9014, 7);
  EXPECT_EQ(pair->second->counters().rx_linearised, 0u);
}

TEST(RingPair, FullRingRefusesAndTheCallerKeepsTheRest) {
  RingPairOptions options;
  options.ring_size = 64;
  options.pool_size = 256;
  auto pair = open_ring_pair("full_a", "full_b", options);
  ASSERT_TRUE(pair) << pair.error().message;
  std::vector<port::Packet> packets(100);
  ASSERT_TRUE(pair->first->alloc(packets));
  for (port::Packet& packet : packets) packet.length = 60;
  EXPECT_EQ(pair->first->tx_burst(packets, kNow), 64u);
  EXPECT_EQ(pair->first->counters().tx_refused, 36u);
  pair->first->free(std::span(packets).subspan(64));
}

TEST(RingPair, AllocIsAllOrNothing) {
  RingPairOptions options;
  options.ring_size = 64;
  options.pool_size = 256;
  auto pair = open_ring_pair("alloc_a", "alloc_b", options);
  ASSERT_TRUE(pair) << pair.error().message;
  std::vector<port::Packet> packets(300);
  EXPECT_FALSE(pair->first->alloc(packets));
  EXPECT_EQ(pair->first->counters().alloc_failed, 1u);
  packets.resize(200);
  EXPECT_TRUE(pair->first->alloc(packets));
  pair->first->free(packets);
}

TEST(RingPair, OnePortMayOutliveTheOther) {
  auto pair = open_ring_pair("outlive_a", "outlive_b");
  ASSERT_TRUE(pair) << pair.error().message;
  send_one(*pair->first, 80, 3);
  pair->first.reset();
  expect_one(*pair->second, 80, 3);
}

TEST(RingPair, ImpossibleSizesAreNamed) {
  RingPairOptions options;
  options.mtu = 70000;
  auto pair = open_ring_pair("size_a", "size_b", options);
  ASSERT_FALSE(pair);
  EXPECT_NE(pair.error().message.find("70000"), std::string::npos);
}

// The frames cross by pointer: what is damaged, copied or cut must be the sender's own, and all of
// it must come back to the pools.
TEST(RingPair, ImpairedFramesCrossAndAllBuffersReturn) {
  RingPairOptions options;
  options.pool_size = 512;
  options.ring_size = 128;
  auto pair = open_ring_pair("impair_a", "impair_b", options);
  ASSERT_TRUE(pair) << pair.error().message;
  impair::Config config;
  config.drop = config.duplicate = config.corrupt = config.resegment = config.reorder = 0.1;
  uint64_t received = 0;
  uint64_t intact = 0;
  impair::ImpairCounters counters;
  {
    impair::ImpairedPort port(*pair->first, config, 5);
    for (int i = 0; i < 5000; ++i) {
      std::array<port::Packet, 1> packet;
      ASSERT_TRUE(port.alloc(packet)) << "after " << i << " frames";
      driver_test::write_segment(packet[0], 0, 500);
      ASSERT_EQ(port.tx_burst(packet, base::from_nanos(i * 1000)), 1u);
      std::array<port::Packet, 32> in;
      const uint32_t count = pair->second->rx_burst(in, kNow);
      for (uint32_t k = 0; k < count; ++k) intact += driver_test::checksums_good(in[k].view());
      pair->second->free(std::span(in).first(count));
      received += count;
    }
    counters = port.impair_counters();
  }
  EXPECT_EQ(received, counters.forwarded);
  EXPECT_EQ(received - intact, counters.corrupted - counters.repaired);
  std::vector<port::Packet> all(512);
  EXPECT_TRUE(pair->first->alloc(all));
  pair->first->free(all);
}

TEST(OpenPort, ErrorsNameTheThingAndTheRemedy) {
  auto unknown = open_port("eno7");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
  EXPECT_NE(unknown.error().message.find("eno7"), std::string::npos);

  auto no_interface = open_port("net_af_packet9,iface=absent77");
  ASSERT_FALSE(no_interface);
  EXPECT_EQ(no_interface.error().code, ErrorCode::NotFound);
  EXPECT_NE(no_interface.error().message.find("absent77"), std::string::npos);

  auto no_argument = open_port("net_af_packet9");
  ASSERT_FALSE(no_argument);
  EXPECT_EQ(no_argument.error().code, ErrorCode::InvalidArgument);

  auto no_driver = open_port("net_nonsense0");
  ASSERT_FALSE(no_driver);
  EXPECT_NE(no_driver.error().message.find("net_nonsense0"), std::string::npos);

  auto no_pci = open_port("0000:ff:1f.7");
  ASSERT_FALSE(no_pci);
  EXPECT_NE(no_pci.error().message.find("vfio-pci"), std::string::npos);
}

TEST(OpenPort, VirtualDeviceIsPluggedAndUnplugged) {
  for (int round = 0; round < 2; ++round) {
    auto port = open_port("net_null0");
    ASSERT_TRUE(port) << port.error().message;
    auto twice = open_port("net_null0");
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, ErrorCode::AlreadyExists);
    std::array<port::Packet, 4> packets;
    ASSERT_TRUE((*port)->alloc(packets));
    for (port::Packet& packet : packets) packet.length = 64;
    EXPECT_EQ((*port)->tx_burst(packets, kNow), 4u);
  }
}

/// What stands behind each "-a".
std::vector<std::string> allowed(const std::vector<std::string>& arguments) {
  std::vector<std::string> found;
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "-a") found.push_back(arguments[i + 1]);
  }
  return found;
}
bool has(const std::vector<std::string>& arguments, const std::string& one) {
  return std::find(arguments.begin(), arguments.end(), one) != arguments.end();
}

// A NIC of another process is not taken: DPDK is told which ones are ours.
TEST(EalArguments, NameThePciDevicesThatAreUsed) {
  EalConfig config;
  EXPECT_TRUE(has(Eal::arguments(config, true, 0), "--no-pci"));
  config.pci_devices = {"0000:01:00.0", "0000:02:00.0,key=1"};
  const auto arguments = Eal::arguments(config, true, 0);
  EXPECT_FALSE(has(arguments, "--no-pci"));
  EXPECT_EQ(allowed(arguments), config.pci_devices);
}

TEST(EalArguments, LeaveTheChoiceToTheUser) {
  for (const std::string own : {"-a", "--allow=0000:03:00.0", "-b0000:04:00.0", "--block"}) {
    EalConfig config;
    config.pci_devices = {"0000:01:00.0"};
    config.extra_args = {own};
    EXPECT_FALSE(has(Eal::arguments(config, true, 0), "0000:01:00.0")) << own;
  }
}

TEST(TscClock, RunsForward) {
  auto clock = TscClock::create();
  ASSERT_TRUE(clock) << clock.error().message;
  const base::Now first = clock->now();
  EXPECT_GT(clock->hertz(), 100000000u);
  base::Now later = clock->now();
  for (int i = 0; i < 1000 && later == first; ++i) later = clock->now();
  EXPECT_GT(later, first);
}

}  // namespace
}  // namespace rnic::dpdk

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  rnic::dpdk::EalConfig config;
  config.hugepages = rnic::dpdk::Hugepages::Off;
  config.memory_mb = 256;
  const auto early = rnic::dpdk::open_ring_pair("early_a", "early_b");
  if (early || early.error().code != rnic::ErrorCode::WrongState) return 1;
  if (const auto status = rnic::dpdk::Eal::init(config); !status) {
    std::cout << "SKIPPED: " << status.error().message << "\n";
    return 77;
  }
  const int rc = RUN_ALL_TESTS();
  rnic::dpdk::Eal::cleanup();
  return rc;
}
