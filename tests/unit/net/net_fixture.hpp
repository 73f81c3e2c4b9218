/// \file
/// One interface 10.0.0.1/24 on a fake port, a neighbour 10.0.0.2, a gateway 10.0.0.254.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/endian.hpp"
#include "net/net.hpp"
#include "support/fake_port.hpp"
#include "wire/arp.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/ipv4.hpp"

namespace rnic::net {

inline constexpr port::MacAddress kOurMac{2, 0, 0, 0, 0, 1};
inline constexpr port::MacAddress kPeerMac{2, 0, 0, 0, 0, 2};
inline constexpr port::MacAddress kGatewayMac{2, 0, 0, 0, 0, 0xfe};
inline constexpr IpAddress kOurs = IpAddress::v4(0x0a000001);
inline constexpr IpAddress kPeer = IpAddress::v4(0x0a000002);
inline constexpr IpAddress kGateway = IpAddress::v4(0x0a0000fe);
inline constexpr IpAddress kFar = IpAddress::v4(0xc0000201);

/// An Ethernet frame with an IPv4 packet from kPeer to kOurs unless `ip` says otherwise.
inline std::vector<uint8_t> ip_frame(wire::Ipv4 ip, const std::vector<uint8_t>& payload,
                                     const port::MacAddress& to = kOurMac) {
  if (ip.source == 0) ip.source = kPeer.as_v4();
  if (ip.destination == 0) ip.destination = kOurs.as_v4();
  if (ip.protocol == 0) ip.protocol = wire::kProtocolTcp;
  if (ip.ttl == 0) ip.ttl = 64;
  ip.total_length = wire::kIpv4Header + static_cast<uint32_t>(payload.size());
  std::vector<uint8_t> frame(wire::kEtherHeader + ip.total_length);
  wire::write_ether(frame.data(), to, kPeerMac, wire::kEtherTypeIpv4);
  wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
  std::copy(payload.begin(), payload.end(), frame.begin() + wire::kEtherHeader + wire::kIpv4Header);
  return frame;
}

inline std::vector<uint8_t> arp_frame(const wire::Arp& arp, const port::MacAddress& to) {
  std::vector<uint8_t> frame(60);
  wire::write_ether(frame.data(), to, arp.sender_mac, wire::kEtherTypeArp);
  wire::write_arp(frame.data() + wire::kEtherHeader, arp);
  return frame;
}

/// A reply to us.
inline std::vector<uint8_t> arp_reply(IpAddress ip, const port::MacAddress& mac) {
  return arp_frame({wire::kArpReply, mac, ip.as_v4(), kOurMac, kOurs.as_v4()}, kOurMac);
}

/// A request for us.
inline std::vector<uint8_t> arp_request(IpAddress ip, const port::MacAddress& mac) {
  return arp_frame({wire::kArpRequest, mac, ip.as_v4(), {}, kOurs.as_v4()}, wire::kMacBroadcast);
}

inline bool is_arp(const test::SentFrame& frame) {
  return base::load_be16(frame.octets.data() + wire::kEtherTypeAt) == wire::kEtherTypeArp;
}

inline wire::Arp arp_of(const test::SentFrame& frame) {
  const auto arp = wire::parse_arp(base::ByteView(frame.octets).subspan(wire::kEtherHeader));
  EXPECT_TRUE(arp.has_value());
  return arp.value_or(wire::Arp{});
}

inline port::MacAddress mac_to(const test::SentFrame& frame) {
  return wire::load_mac(frame.octets.data());
}

class NetTest : public ::testing::Test {
 protected:
  void start(port::ChecksumMode mode = port::ChecksumMode::Software) {
    interface_.reset();
    port_ = std::make_unique<test::FakePort>(port::PortInfo{"fake", kOurMac, 1500, mode}, 256);
    interface_ = std::make_unique<Interface>(config_, *port_, now_);
  }
  void SetUp() override {
    config_.address = kOurs;
    config_.gateway = kGateway;
    start();
  }

  /// Receives one frame. \return the payload handed up, copied.
  std::optional<std::vector<uint8_t>> receive(std::vector<uint8_t> octets,
                                              port::Checksum ip = port::Checksum::Unknown,
                                              port::Checksum l4 = port::Checksum::Unknown) {
    port_->inject(std::move(octets), ip, l4);
    port::Packet packet;
    EXPECT_EQ(port_->rx_burst({&packet, 1}, now_), 1u);
    const std::optional<TcpIn> in = interface_->input(packet, now_);
    std::optional<std::vector<uint8_t>> payload;
    if (in) {
      payload.emplace(in->payload.begin(), in->payload.end());
      l4_good_ = in->l4_checksum_good;
      ecn_ = in->ecn;
    }
    port_->free({&packet, 1});
    return payload;
  }

  /// Sends an IP payload of `length` octets, each `fill`.
  bool send(IpAddress to, uint32_t length = 100, uint8_t fill = 0x5a,
            uint8_t protocol = wire::kProtocolTcp) {
    TxFrame frame;
    if (!interface_->begin(kOurs, to, frame, now_)) return false;
    EXPECT_LE(length, frame.l4_room);
    std::memset(frame.l4, fill, length);
    interface_->send(frame, protocol, length, now_);
    return true;
  }

  void learn(IpAddress ip, const port::MacAddress& mac) {
    send(ip);
    receive(arp_reply(ip, mac));
    interface_->flush(now_);
    port_->sent().clear();
  }

  /// Fires timers until `end`, as a worker would.
  void run_until(base::Now end) {
    while (interface_->next_deadline() <= end) {
      now_ = std::max(now_, interface_->next_deadline());
      interface_->on_timers(now_);
      interface_->flush(now_);
    }
    now_ = end;
  }

  const Counters& counters() { return interface_->counters(); }

  Config config_;
  base::Now now_ = base::from_nanos(1'000'000);
  std::unique_ptr<test::FakePort> port_;
  std::unique_ptr<Interface> interface_;
  bool l4_good_ = false;
  uint8_t ecn_ = 0;
};

}  // namespace rnic::net
