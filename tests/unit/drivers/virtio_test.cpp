// net_virtio_user against net_vhost in one process, over a socket in /tmp: devices with checksum
// offload. The EAL is started by main() in dpdk_test.cpp.
#include <gtest/gtest.h>
#include <rte_byteorder.h>
#include <rte_thash.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/prng.hpp"
#include "device/device.hpp"
#include "dpdk/dpdk.hpp"
#include "net/rss.hpp"
#include "tcp_frame.hpp"

namespace rnic::dpdk {
namespace {

/// Puts an IPv6 header in the place of the segment's IPv4 header.
void to_ipv6(port::Packet& packet) {
  const uint32_t length = packet.length - 34;
  std::memmove(packet.data + 54, packet.data + 34, length);
  std::memset(packet.data + 14, 0, 40);
  base::store_be16(packet.data + 12, 0x86dd);
  packet.data[14] = 0x60;
  base::store_be16(packet.data + 18, static_cast<uint16_t>(length));
  packet.data[20] = 6;
  packet.data[21] = 64;
  packet.data[37] = 1;
  packet.data[53] = 2;
  packet.length += 20;
}

class VirtioPair : public testing::Test {
 protected:
  void SetUp() override {
    path_ = "/tmp/rnic-vhost-" + std::to_string(getpid());
    unlink(path_.c_str());
    PortOptions options;
    options.pool_size = 2048;
    options.ring_size = 256;
    options.mac = port::MacAddress{2, 0, 0, 0, 0, 1};
    auto back = open_port("net_vhost7,iface=" + path_ + ",queues=1", options);
    ASSERT_TRUE(back) << back.error().message;
    back_ = std::move(*back);
    options.mac = port::MacAddress{2, 0, 0, 0, 0, 2};
    auto front = open_port("net_virtio_user7,path=" + path_ + ",queues=1", options);
    ASSERT_TRUE(front) << front.error().message;
    front_ = std::move(*front);
  }
  void TearDown() override {
    front_.reset();
    back_.reset();
    unlink(path_.c_str());
  }

  std::string path_;
  std::unique_ptr<port::Port> back_;
  std::unique_ptr<port::Port> front_;
};

class VirtioStream : public VirtioPair, public testing::WithParamInterface<bool> {};

// What the two devices do with our open checksums is only theirs to know; the octets must be right
// and nobody but the devices may have looked at them.
TEST_P(VirtioStream, TcpRunsWithChecksumsOffloadedBothWays) {
  EXPECT_EQ(front_->info().checksum, port::ChecksumMode::Offload);
  EXPECT_EQ(back_->info().checksum, port::ChecksumMode::Offload);
  auto clock = TscClock::create();
  ASSERT_TRUE(clock);
  const auto config = [&](uint32_t i) {
    device::DeviceConfig c;
    c.net.address =
        GetParam() ? IpAddress::v4(0x0a000001 + i) : IpAddress(0xfd00000000000000, 1 + i);
    c.net.prefix_length = GetParam() ? 24 : 64;
    return c;
  };
  device::Device left(config(0), *front_, clock->now());
  device::Device right(config(1), *back_, clock->now());
  auto listener = right.listen_stream({{}, 9000}, 4);
  ASSERT_TRUE(listener);
  auto near = left.connect_stream({config(1).net.address, 9000}, {}, clock->now());
  ASSERT_TRUE(near) << near.error().message;
  device::StreamSocket* far = nullptr;
  std::vector<uint8_t> sent(300'000), got(300'000), back(300'000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint8_t>(i * 31 + i / 251);
  size_t put = 0, taken = 0, returned = 0, answered = 0;
  const base::Now end = clock->now() + std::chrono::seconds(20);
  while (returned < sent.size() && clock->now() < end) {
    left.poll(clock->now());
    right.poll(clock->now());
    if (far == nullptr && (far = (*listener)->next()) != nullptr) {
      ASSERT_TRUE((*near)->reserve_ring());
      ASSERT_TRUE(far->reserve_ring());
    }
    if (far == nullptr || !(*near)->is_established()) continue;
    put += (*near)->put(base::ByteView(sent).subspan(put));
    taken += far->take(base::ByteSpan(got).subspan(taken));
    answered += far->put(base::ByteView(got).subspan(answered, taken - answered));
    returned += (*near)->take(base::ByteSpan(back).subspan(returned));
    left.ring_doorbell((*near)->doorbell());
    right.ring_doorbell(far->doorbell());
  }
  EXPECT_EQ(returned, sent.size());
  EXPECT_TRUE(back == sent);
  EXPECT_EQ(left.tcp_counters().checksum_errors, 0u);
  EXPECT_EQ(right.tcp_counters().checksum_errors, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ipv4AndIpv6, VirtioStream, testing::Bool(),
                         [](const auto& p) { return p.param ? "Ipv4" : "Ipv6"; });

TEST_F(VirtioPair, ReceivedSegmentsAreVouchedFor) {
  for (const uint32_t way : {0u, 1u, 2u, 3u}) {
    port::Port* from = way % 2 == 0 ? front_.get() : back_.get();
    port::Port* to = way % 2 == 0 ? back_.get() : front_.get();
    const bool v6 = way >= 2;
    std::array<port::Packet, 1> packet;
    ASSERT_TRUE(from->alloc(packet));
    driver_test::write_segment(packet[0], 1, 100);
    if (v6) to_ipv6(packet[0]);
    uint32_t n = 0;
    const base::Now now{};
    ASSERT_EQ(from->tx_burst(packet, now), 1u);
    std::array<port::Packet, 4> in;
    // The other end's thread of DPDK has its own pace: as many looks as it takes, within reason.
    for (int i = 0; i < 100'000 && n == 0; ++i) {
      n = to->rx_burst(in, now);
      std::this_thread::yield();
    }
    ASSERT_EQ(n, 1u);
    EXPECT_EQ(in[0].l4_checksum, port::Checksum::Good);
    const auto at = offload::locate_tcp(in[0].view());
    ASSERT_TRUE(at);
    EXPECT_EQ(at->v4, !v6);
    EXPECT_EQ(at->payload_size(), 100u);
    EXPECT_EQ(in[0].data[at->payload + 99], 99);
    to->free({in.data(), 1});
  }
}

TEST_F(VirtioPair, TheLinkIsUpWhileThereIsAPeer) {
  // DPDK's own threads connect the two.
  const auto becomes = [](port::Port& port, port::LinkState state) {
    for (int i = 0; i < 100'000 && port.link() != state; ++i) std::this_thread::yield();
    return port.link() == state;
  };
  EXPECT_TRUE(becomes(*front_, port::LinkState::Up));
  EXPECT_TRUE(becomes(*back_, port::LinkState::Up));
  front_.reset();
  EXPECT_TRUE(becomes(*back_, port::LinkState::Down));
}

// TCP-MQ-01: a device with receive-side scaling is as many ports as it has queues, told how it
// spreads.
TEST(Rss, ADeviceThatSpreadsTcpGivesAPortAQueue) {
  PortOptions options;
  options.pool_size = 512;
  options.ring_size = 64;
  auto ports = open_queues("net_null7,no-rx=1", 4, options);
  ASSERT_TRUE(ports) << ports.error().message;
  ASSERT_EQ(ports->size(), 4u);
  for (uint16_t i = 0; i < 4; ++i) {
    const port::ReceiveSpread& spread = (*ports)[i]->info().spread;
    EXPECT_EQ(spread.queue, i);
    EXPECT_EQ(spread.queues, 4);
    EXPECT_EQ(spread.key, net::kSymmetricRssKey);
    ASSERT_EQ(spread.table.size(), 128u);
    for (uint32_t place = 0; place < 128; ++place) EXPECT_EQ(spread.table[place], place % 4);
    std::array<port::Packet, 1> packet;
    ASSERT_TRUE((*ports)[i]->alloc(packet));
    driver_test::write_segment(packet[0], 1, 100);
    EXPECT_EQ((*ports)[i]->tx_burst(packet, base::Now{}), 1u);
  }
  ports->erase(ports->begin(), ports->begin() + 3);  // the device lives as long as one of them
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(ports->front()->alloc(packet));
  driver_test::write_segment(packet[0], 1, 100);
  EXPECT_EQ(ports->front()->tx_burst(packet, base::Now{}), 1u);
}

// TCP-MQ-01: a device without it is one queue, which gets everything.
TEST(Rss, ADeviceThatDoesNotSpreadTcpIsOneQueue) {
  base::set_log_level(base::LogLevel::Off);
  const std::string path = "/tmp/rnic-vhost-q" + std::to_string(getpid());
  unlink(path.c_str());
  PortOptions options;
  options.pool_size = 512;
  options.ring_size = 64;
  auto ports = open_queues("net_vhost8,iface=" + path + ",queues=4", 4, options);
  ASSERT_TRUE(ports) << ports.error().message;
  EXPECT_EQ(ports->size(), 1u);
  EXPECT_EQ(ports->front()->info().spread.queues, 1);
  EXPECT_FALSE(open_queues("net_null8", 0, options));
  EXPECT_FALSE(open_queues("net_null8", 65, options));
  ports->clear();
  unlink(path.c_str());
}

// TCP-MQ-01: our Toeplitz hash is the one of rte_thash, and so of the NICs.
TEST(Rss, TheHashIsThatOfRteThash) {
  base::Prng prng(11);
  for (int i = 0; i < 1000; ++i) {
    net::RssKey key;
    for (uint8_t& octet : key) octet = static_cast<uint8_t>(prng.next());
    const bool v4 = i % 2 == 0;
    const auto address = [&] {
      return v4 ? IpAddress::v4(static_cast<uint32_t>(prng.next()))
                : IpAddress(prng.next() | 1, prng.next());
    };
    const Endpoint from{address(), static_cast<uint16_t>(prng.next())};
    const Endpoint to{address(), static_cast<uint16_t>(prng.next())};
    uint32_t words[9] = {};
    uint32_t count = 0;
    for (const Endpoint& e : {from, to}) {
      if (v4) {
        words[count++] = e.address.as_v4();
      } else {
        for (const uint64_t half : {e.address.high(), e.address.low()}) {
          words[count++] = static_cast<uint32_t>(half >> 32);
          words[count++] = static_cast<uint32_t>(half);
        }
      }
    }
    words[count++] = static_cast<uint32_t>(from.port) << 16 | to.port;
    ASSERT_EQ(net::rss_hash(from, to, key), rte_softrss(words, count, key.data()));
  }
}

}  // namespace
}  // namespace rnic::dpdk
