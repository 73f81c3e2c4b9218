// A device with several queues: a stack a queue, every connection on the queue that its segments
// come to.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/log.hpp"
#include "device/device.hpp"
#include "llp/pseudo_header.hpp"
#include "net/queue_exchange.hpp"
#include "net/rss.hpp"
#include "support/fake_nic.hpp"
#include "support/plain_reassembler.hpp"
#include "support/record_user.hpp"
#include "wire/arp.hpp"
#include "wire/icmp.hpp"
#include "wire/nd.hpp"

namespace rnic::device {
namespace {

constexpr uint16_t kEchoPort = 9000;
constexpr uint32_t kConnections = 200;
constexpr uint32_t kOctets = 4000;

/// One NIC, with a device and its applications on every queue.
struct NicHost {
  struct Options {
    uint8_t number = 1;
    uint16_t queues = 4;
    bool tells_spread = true;  ///< false: the stacks believe that everything comes to them
    bool exchange = true;
  };
  struct Client {
    StreamSocket* socket;
    uint32_t queue;
    size_t sent = 0;
    std::vector<uint8_t> got;
  };
  struct Server {
    StreamSocket* socket;
    uint32_t queue;
    std::vector<uint8_t> owed;
  };

  NicHost(const Options& options, base::Now now)
      : nic({"nic", {2, 0, 0, 0, 0, options.number}, 1500, port::ChecksumMode::Software, {}},
            options.queues,
            options.tells_spread ? net::even_spread(options.queues, 128) : port::ReceiveSpread{}) {
    std::vector<port::Port*> ports;
    for (uint32_t i = 0; i < nic.queues(); ++i) ports.push_back(&nic.queue(i));
    if (options.exchange) exchange = std::make_unique<net::QueueExchange>(ports);
    for (uint32_t i = 0; i < nic.queues(); ++i) {
      DeviceConfig config;
      config.net.address = v4(options.number);
      config.net.addresses = {{v6(options.number), 64}};
      config.seed = options.number * 100u + i;
      config.limits.max_qps = config.limits.max_connections = 8;
      config.limits.max_streams = 256;
      config.limits.stream_buffer = 8192;
      config.limits.hold_octets = 1u << 20;
      config.tcp.connect_timeout = std::chrono::seconds(8);
      reassemblers.push_back(std::make_unique<test::PlainReassembler>());
      devices.push_back(std::make_unique<Device>(
          config, exchange ? exchange->port(i) : nic.queue(i), now, reassemblers.back().get()));
      listeners.push_back(*devices.back()->listen_stream({{}, kEchoPort}, 256));
    }
  }

  static IpAddress v4(uint8_t number) { return IpAddress::v4(0x0a000000u + number); }
  static IpAddress v6(uint8_t number) { return {0xfd00000000000000, number}; }

  void connect(uint32_t queue, const IpAddress& to, base::Now now) {
    auto socket = devices[queue]->connect_stream({to, kEchoPort}, {}, now);
    ASSERT_TRUE(socket) << socket.error().message;
    clients.push_back({*socket, queue});
  }

  uint32_t poll(base::Now now) {
    uint32_t work = 0;
    for (auto& device : devices) work += device->poll(now);
    return work;
  }
  [[nodiscard]] base::Now next_deadline() const {
    base::Now next = base::kNever;
    for (const auto& device : devices) next = base::earlier(next, device->next_deadline());
    return next;
  }
  [[nodiscard]] bool has_all() const {
    return std::all_of(clients.begin(), clients.end(),
                       [](const Client& c) { return c.got.size() == kOctets; });
  }
  /// Clients send kOctets and read them back from the echo.
  void serve() {
    for (uint32_t i = 0; i < devices.size(); ++i) {
      while (StreamSocket* socket = listeners[i]->next()) {
        EXPECT_TRUE(socket->reserve_ring().has_value());
        servers.push_back({socket, i});
      }
    }
    std::array<uint8_t, 2048> piece;
    for (Server& s : servers) {
      const size_t n = s.socket->take(piece);
      if (n == 0 && s.owed.empty()) continue;
      s.owed.insert(s.owed.end(), piece.begin(), piece.begin() + n);
      s.owed.erase(s.owed.begin(), s.owed.begin() + s.socket->put(s.owed));
      devices[s.queue]->ring_doorbell(s.socket->doorbell());
    }
    for (Client& c : clients) {
      if (!c.socket->is_established() || c.socket->how_ended()) continue;
      if (c.sent == 0) {
        ASSERT_TRUE(c.socket->reserve_ring().has_value());
      }
      const size_t n = c.socket->take(piece);
      if (n == 0 && c.sent == kOctets) continue;
      const std::vector<uint8_t> all = text(c);
      c.sent += c.socket->put(base::ByteView(all).subspan(c.sent));
      c.got.insert(c.got.end(), piece.begin(), piece.begin() + n);
      devices[c.queue]->ring_doorbell(c.socket->doorbell());
    }
  }
  static std::vector<uint8_t> text(const Client& c) {
    std::vector<uint8_t> all(kOctets);
    for (uint32_t i = 0; i < kOctets; ++i) {
      all[i] = static_cast<uint8_t>(i * 13 + c.socket->handle().index * 7 + c.queue + i / 251);
    }
    return all;
  }
  [[nodiscard]] uint32_t echoed() const {
    return static_cast<uint32_t>(std::count_if(clients.begin(), clients.end(),
                                               [](const Client& c) { return c.got == text(c); }));
  }
  [[nodiscard]] uint64_t sum(uint64_t tcp::Counters::*counter) const {
    uint64_t all = 0;
    for (const auto& device : devices) all += device->tcp_counters().*counter;
    return all;
  }

  test::FakeNic nic;
  std::unique_ptr<net::QueueExchange> exchange;
  std::vector<std::unique_ptr<test::PlainReassembler>> reassemblers;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<StreamListener*> listeners;
  std::vector<Client> clients;
  std::vector<Server> servers;
};

class Queues : public ::testing::Test {
 protected:
  void start(NicHost::Options left, uint16_t right_queues) {
    base::set_log_level(base::LogLevel::Off);
    left_ = std::make_unique<NicHost>(left, now_);
    right_ = std::make_unique<NicHost>(NicHost::Options{.number = 2, .queues = right_queues}, now_);
    test::FakeNic::connect(left_->nic, right_->nic);
  }
  void connect_all(const IpAddress& to) {
    for (uint32_t i = 0; i < kConnections; ++i) left_->connect(i % left_->nic.queues(), to, now_);
  }
  void run(base::Duration span) {
    const base::Now end = now_ + span;
    while (now_ < end && !left_->has_all()) {
      const bool worked = left_->poll(now_) + right_->poll(now_) != 0;
      left_->serve();
      right_->serve();
      const base::Now next = base::earlier(left_->next_deadline(), right_->next_deadline());
      now_ = std::max(now_ + std::chrono::microseconds(100), worked ? base::Now{} : next);
    }
  }
  /// Every connection of both hosts is where the hash says.
  void expect_all_at_home() {
    EXPECT_EQ(left_->echoed(), kConnections);
    EXPECT_EQ(right_->servers.size(), kConnections);
    for (NicHost* host : {left_.get(), right_.get()}) {
      const port::ReceiveSpread spread =
          net::even_spread(static_cast<uint16_t>(host->nic.queues()), 128);
      std::vector<uint32_t> used(host->nic.queues());
      const auto check = [&](const StreamSocket& socket, uint32_t queue) {
        EXPECT_EQ(net::queue_of(spread, socket.local(), socket.remote()), queue);
        ++used[queue];
      };
      for (const auto& c : host->clients) check(*c.socket, c.queue);
      for (const auto& s : host->servers) check(*s.socket, s.queue);
      for (const uint32_t n : used) EXPECT_GT(n, kConnections / host->nic.queues() / 3);
      EXPECT_EQ(host->sum(&tcp::Counters::no_connection), 0u);
      EXPECT_EQ(host->sum(&tcp::Counters::checksum_errors), 0u);
    }
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  std::unique_ptr<NicHost> left_;
  std::unique_ptr<NicHost> right_;
};

// TCP-MQ-01: 200 connections, opened on four queues and accepted on three, both directions.
TEST_F(Queues, EveryConnectionStaysOnItsQueue) {
  start({}, 3);
  connect_all(NicHost::v4(2));
  run(std::chrono::seconds(20));
  expect_all_at_home();
  EXPECT_EQ(left_->sum(&tcp::Counters::not_at_home), 0u);
  EXPECT_EQ(right_->sum(&tcp::Counters::not_at_home), 0u);
}

// TCP-MQ-01
TEST_F(Queues, EveryConnectionStaysOnItsQueueOverIpv6) {
  start({}, 3);
  connect_all(NicHost::v6(2));
  run(std::chrono::seconds(20));
  expect_all_at_home();
  EXPECT_EQ(left_->sum(&tcp::Counters::not_at_home), 0u);
  EXPECT_EQ(right_->sum(&tcp::Counters::not_at_home), 0u);
}

// TCP-MQ-01, the negative twin: stacks that know nothing of the spread choose any port, and three
// answers of four come to a queue that does not know them.
TEST_F(Queues, WithoutTheSearchForAPortConnectionsStray) {
  start({.tells_spread = false, .exchange = false}, 3);
  // Each queue would ask for the neighbour, and the answer comes to queue 0: that is not the point.
  for (uint32_t i = 0; i < 4; ++i) {
    const wire::Arp arp{
        wire::kArpRequest, {2, 0, 0, 0, 0, 2}, NicHost::v4(2).as_v4(), {}, NicHost::v4(1).as_v4()};
    std::vector<uint8_t> frame(60);
    wire::write_ether(frame.data(), wire::kMacBroadcast, arp.sender_mac, wire::kEtherTypeArp);
    wire::write_arp(frame.data() + wire::kEtherHeader, arp);
    left_->nic.receive_on(i, {std::move(frame)});
  }
  connect_all(NicHost::v4(2));
  run(std::chrono::seconds(3));
  EXPECT_GT(left_->sum(&tcp::Counters::no_connection), kConnections / 2);
  EXPECT_LT(left_->echoed(), kConnections / 2);
}

// Answers of neighbours come to queue 0 only: without the exchange the other queues never get one.
TEST_F(Queues, WithoutTheExchangeOtherQueuesFindNoNeighbour) {
  start({.exchange = false}, 1);
  for (uint32_t i = 0; i < 4; ++i) left_->connect(i, NicHost::v4(2), now_);
  run(std::chrono::seconds(5));
  EXPECT_EQ(left_->echoed(), 1u);
}

// TCP-MQ-01: segments that the network cut come to queue 0, and reach the stack that has the
// connection; the others refuse them silently.
TEST_F(Queues, FragmentedSegmentsReachTheirQueue) {
  start({}, 3);
  left_->nic.fragment_over = right_->nic.fragment_over = 600;
  connect_all(NicHost::v4(2));
  run(std::chrono::seconds(20));
  expect_all_at_home();
  EXPECT_GT(left_->sum(&tcp::Counters::not_at_home), 0u);
  EXPECT_GT(left_->exchange->port(0).counters().rx_shared, 0u);
}

// A wrong queue neither accepts nor answers, and says so in a counter.
TEST_F(Queues, ASynOnAnotherQueueIsNotAnswered) {
  start({}, 4);
  left_->connect(0, NicHost::v4(2), now_);
  run(std::chrono::milliseconds(50));
  ASSERT_EQ(right_->servers.size(), 1u);
  const uint32_t home = right_->servers[0].queue;
  Device& other = *right_->devices[(home + 1) % 4];
  const uint64_t out = other.tcp_counters().segments_out;
  // The same SYN, from the wire to the next queue.
  std::vector<uint8_t> frame(wire::kEtherHeader + wire::kIpv4Header + 20);
  wire::write_ether(frame.data(), {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 1}, wire::kEtherTypeIpv4);
  wire::Ipv4 ip;
  ip.source = NicHost::v4(1).as_v4();
  ip.destination = NicHost::v4(2).as_v4();
  ip.protocol = wire::kProtocolTcp;
  ip.ttl = 64;
  ip.total_length = wire::kIpv4Header + 20;
  wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
  uint8_t* tcp = frame.data() + wire::kEtherHeader + wire::kIpv4Header;
  base::store_be16(tcp, left_->clients[0].socket->local().port);
  base::store_be16(tcp + 2, kEchoPort);
  tcp[12] = 0x50;
  tcp[13] = 0x02;
  const uint32_t pseudo = llp::pseudo_header_sum(NicHost::v4(1), NicHost::v4(2), 6, 20);
  base::store_be16(tcp + 16, wire::checksum_fold(wire::checksum_add(pseudo, {tcp, 20})));
  right_->nic.receive_on((home + 1) % 4, {std::move(frame)});
  right_->poll(now_);
  EXPECT_EQ(other.tcp_counters().not_at_home, 1u);
  EXPECT_EQ(other.tcp_counters().segments_out, out);
}

/// A way out whose answers come here for one local port only.
struct OnePortEgress final : tcp::Egress {
  bool begin(const IpAddress&, const IpAddress&, tcp::TxSlot&, base::Now) override { return false; }
  void send(tcp::TxSlot&, uint32_t, base::Now) override {}
  void cancel(tcp::TxSlot&) override {}
  uint32_t path_mtu(IpAddress, base::Now) const override { return 1500; }
  uint32_t link_mtu(IpAddress) const override { return 1500; }
  void reduce_path_mtu(IpAddress, uint32_t, base::Now) override {}
  bool lands_here(const Endpoint& local, const Endpoint&) const override {
    return local.port == 50'001;
  }
};

// TCP-MQ-01: the one port at home is found, and a named one must be it.
TEST(Home, TheLocalPortIsOneWhoseAnswersComeHere) {
  OnePortEgress egress;
  const base::Now now = base::from_nanos(1'000'000'000);
  tcp::Config config;
  config.max_connections = 4;
  tcp::Stack stack(config, egress, {1, 2}, 3, now);
  rnic::testing::RecordUser user(1, 2);
  const Endpoint remote{NicHost::v4(2), kEchoPort};
  const auto named = stack.connect({NicHost::v4(1), 50'002}, remote, user, now);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, ErrorCode::InvalidArgument);
  const auto chosen = stack.connect({NicHost::v4(1), 0}, remote, user, now);
  ASSERT_TRUE(chosen);
  EXPECT_EQ((*chosen)->local().port, 50'001);
  const auto second = stack.connect({NicHost::v4(1), 0}, remote, user, now);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::ResourceExhausted);
}

TEST(QueueExchange, SharesAnswersErrorsAndFragmentsOnly) {
  const auto arp = [](uint16_t operation) {
    std::vector<uint8_t> frame(60);
    wire::write_ether(frame.data(), {}, {}, wire::kEtherTypeArp);
    wire::write_arp(frame.data() + wire::kEtherHeader, {operation, {}, 1, {}, 2});
    return frame;
  };
  EXPECT_TRUE(net::concerns_all_queues(arp(wire::kArpReply)));
  EXPECT_FALSE(net::concerns_all_queues(arp(wire::kArpRequest)));
  const auto ipv4 = [](uint8_t protocol, uint16_t fragment, uint8_t first) {
    std::vector<uint8_t> frame(wire::kEtherHeader + wire::kIpv4Header + 8);
    wire::write_ether(frame.data(), {}, {}, wire::kEtherTypeIpv4);
    wire::Ipv4 ip;
    ip.protocol = protocol;
    ip.fragment = fragment;
    ip.total_length = wire::kIpv4Header + 8;
    wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
    frame[wire::kEtherHeader + wire::kIpv4Header] = first;
    return frame;
  };
  EXPECT_TRUE(net::concerns_all_queues(ipv4(6, wire::kIpv4MoreFragments, 0)));
  EXPECT_TRUE(net::concerns_all_queues(ipv4(6, 3, 0)));
  EXPECT_FALSE(net::concerns_all_queues(ipv4(6, 0, 0)));
  EXPECT_FALSE(net::concerns_all_queues(ipv4(17, 3, 0)));
  EXPECT_TRUE(net::concerns_all_queues(ipv4(1, 0, wire::kIcmpUnreachable)));
  EXPECT_FALSE(net::concerns_all_queues(ipv4(1, 0, wire::kIcmpEchoRequest)));
  EXPECT_FALSE(net::concerns_all_queues(ipv4(1, 3, wire::kIcmpUnreachable)));   // no first octet
  EXPECT_FALSE(net::concerns_all_queues(ipv4(17, 0, wire::kIcmpUnreachable)));  // no type
  const auto ipv6 = [](uint8_t next, std::vector<uint8_t> payload) {
    std::vector<uint8_t> frame(wire::kEtherHeader + wire::kIpv6Header);
    wire::write_ether(frame.data(), {}, {}, wire::kEtherTypeIpv6);
    uint8_t* ip = frame.data() + wire::kEtherHeader;
    ip[0] = 0x60;
    base::store_be16(ip + 4, static_cast<uint16_t>(payload.size()));
    ip[6] = next;
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  };
  EXPECT_FALSE(net::concerns_all_queues(ipv6(6, std::vector<uint8_t>(20))));
  EXPECT_TRUE(net::concerns_all_queues(ipv6(60, {6, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4})));
  EXPECT_TRUE(net::concerns_all_queues(ipv6(44, {6, 0, 0, 1, 0, 0, 0, 9, 1, 2, 3, 4})));
  EXPECT_FALSE(net::concerns_all_queues(ipv6(44, {17, 0, 0, 1, 0, 0, 0, 9, 1, 2, 3, 4})));
  EXPECT_TRUE(net::concerns_all_queues(ipv6(58, {wire::kIcmpv6PacketTooBig, 0, 0, 0})));
  EXPECT_TRUE(net::concerns_all_queues(ipv6(58, {wire::kIcmpv6NeighbourAdvertisement, 0, 0, 0})));
  EXPECT_FALSE(net::concerns_all_queues(ipv6(58, {wire::kIcmpv6NeighbourSolicitation, 0, 0, 0})));
  EXPECT_FALSE(net::concerns_all_queues(ipv6(58, {wire::kIcmpv6EchoRequest, 0, 0, 0})));
  EXPECT_FALSE(net::concerns_all_queues(ipv6(58, {})));
  // Cut at every length: no octet beyond is looked at (the sanitizers see it).
  for (const auto& frame :
       {arp(wire::kArpReply), ipv4(1, 0, 3), ipv6(44, {6, 0, 0, 1, 0, 0, 0, 9})}) {
    for (size_t n = 0; n < frame.size(); ++n) {
      const std::vector<uint8_t> cut(frame.begin(), frame.begin() + n);
      static_cast<void>(net::concerns_all_queues(cut));
    }
  }
}

}  // namespace
}  // namespace rnic::device
