// A stream between two devices whose segments the network cuts, while somebody throws fragments at
// the receiver. Through librte_ip_frag, in virtual time; the EAL is started by main() in
// dpdk_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/prng.hpp"
#include "device/device.hpp"
#include "dpdk/dpdk.hpp"
#include "support/fake_nic.hpp"

namespace rnic::dpdk {
namespace {

using Octets = std::vector<uint8_t>;
constexpr uint16_t kEchoPort = 9000;

IpAddress address(bool v4, uint32_t number) {
  return v4 ? IpAddress::v4(0x0a000000 + number) : IpAddress(0xfd00000000000000, number);
}

/// One fragment from 10.0.0.`from` or fd00::`from` to host 2.
Octets fragment(bool v4, uint32_t from, uint32_t id, uint32_t offset, bool more,
                const Octets& content, uint8_t protocol = wire::kProtocolTcp) {
  Octets frame(wire::kEtherHeader + (v4 ? wire::kIpv4Header : wire::kIpv6Header));
  const auto length = static_cast<uint32_t>(content.size());
  wire::write_ether(frame.data(), test::nic_mac(1), test::nic_mac(0),
                    v4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6);
  uint8_t* p = frame.data() + wire::kEtherHeader;
  if (v4) {
    wire::Ipv4 ip;
    ip.source = address(true, from).as_v4();
    ip.destination = address(true, 2).as_v4();
    ip.protocol = protocol;
    ip.ttl = 64;
    ip.id = static_cast<uint16_t>(id);
    ip.fragment =
        static_cast<uint16_t>(offset / 8 | (more ? wire::kIpv4MoreFragments : uint16_t{0}));
    ip.total_length = wire::kIpv4Header + length;
    wire::write_ipv4(p, ip);
  } else {
    wire::Ipv6 ip;
    ip.source = {address(false, from).high(), address(false, from).low()};
    ip.destination = {address(false, 2).high(), address(false, 2).low()};
    ip.next_header = wire::kNextFragment;
    ip.hop_limit = 64;
    ip.payload_length = wire::kIpv6FragmentHeader + length;
    wire::write_ipv6(p, ip);
    std::array<uint8_t, wire::kIpv6FragmentHeader> header{protocol};
    base::store_be16(&header[2], static_cast<uint16_t>(offset | (more ? 1 : 0)));
    base::store_be32(&header[4], id);
    frame.insert(frame.end(), header.begin(), header.end());
  }
  frame.insert(frame.end(), content.begin(), content.end());
  return frame;
}

class FragmentAttack : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    nics_ = test::connected_nics(1500);
    for (uint32_t i = 0; i < 2; ++i) {
      device::DeviceConfig config;
      config.net.address = address(true, 1 + i);
      config.net.addresses = {{address(false, 1 + i), 64}};
      config.seed = i + 1;
      auto made =
          make_reassembler({config.net.reassembly_datagrams, 1500, config.net.reassembly_timeout});
      ASSERT_TRUE(made) << made.error().message;
      reassemblers_.push_back(std::move(*made));
      devices_.push_back(std::make_unique<device::Device>(config, nics_[i]->queue(0), now_,
                                                          reassemblers_.back().get()));
    }
    nics_[1]->fragment_over = 500;
    auto listener = devices_[1]->listen_stream({{}, kEchoPort}, 4);
    ASSERT_TRUE(listener);
    listener_ = *listener;
  }

  [[nodiscard]] bool v4() const { return GetParam(); }
  [[nodiscard]] const net::Counters& counters() const { return devices_[1]->net_counters(); }
  void attack(Octets frame) { nics_[1]->receive({std::move(frame)}); }
  Octets noise(uint32_t length) {
    Octets octets(length);
    for (uint8_t& octet : octets) octet = static_cast<uint8_t>(prng_.next());
    return octets;
  }

  void attack_in_every_way(uint32_t round) {
    const uint32_t id = 0x10000 + round * 64;  // not those of the stream: they are the last test's
    const uint32_t who = 3 + round % 200;
    const auto hit = [&](uint32_t n, uint32_t offset, bool more, const Octets& content) {
      attack(fragment(v4(), who, id + n, offset, more, content));
    };
    // Overlaps: other octets for the same range; the middle twice; teardrop (the second lies inside
    // the first and ends before it).
    hit(0, 0, true, noise(80)), hit(0, 0, true, noise(160)), hit(0, 80, false, noise(40));
    hit(1, 0, true, noise(80)), hit(1, 40, true, noise(80)), hit(1, 120, false, noise(8));
    hit(2, 0, true, noise(80)), hit(2, 24, false, noise(4));
    // Tiny: a first fragment of 8 octets cuts the TCP header, another overwrites its flags.
    hit(3, 0, true, noise(8)), hit(3, 8, true, noise(16)), hit(3, 8, false, noise(16));
    // Beyond the end of all datagrams; beyond its own end; two ends.
    hit(4, 65'528, false, noise(1000)), hit(5, 0, false, noise(80));
    hit(6, 80, false, noise(80)), hit(6, 160, true, noise(80)), hit(6, 80, false, noise(72));
    // Not of 8 octets, empty, and nine of them.
    hit(7, 0, true, noise(81)), hit(8, 8, true, {}), hit(8, 8, false, {});
    for (uint32_t i = 0; i < 9; ++i) hit(9, i * 8 + 800, i != 8, noise(8));
    // Datagrams that are never whole, and of protocols that nobody knows.
    for (uint32_t i = 10; i < 16; ++i) hit(i, 1480, true, noise(1200));
    attack(fragment(v4(), who, id + 16, 0, true, noise(80), 17));
    attack(fragment(v4(), who, id + 16, 80, false, noise(80), 17));
  }

  /// \return true when `text` has come through
  bool send(const Octets& text, const std::function<void(uint32_t)>& each_round) {
    auto near = devices_[0]->connect_stream({address(v4(), 2), kEchoPort}, {}, now_);
    if (!near) return false;
    device::StreamSocket* far = nullptr;
    bool reserved = false;
    Octets got;
    size_t sent = 0;
    std::array<uint8_t, 4096> piece;
    for (uint32_t round = 0; round < 50'000 && got.size() < text.size(); ++round) {
      if (round < 400) each_round(round);
      for (auto& device : devices_) device->poll(now_);
      now_ += std::chrono::milliseconds(1);
      if (far == nullptr) far = listener_->next();
      if (far == nullptr || !(*near)->is_established()) continue;
      if (!reserved) reserved = (*near)->reserve_ring().has_value();
      sent += (*near)->put(base::ByteView(text).subspan(sent));
      const size_t n = far->take(piece);
      got.insert(got.end(), piece.begin(), piece.begin() + n);
      devices_[0]->ring_doorbell((*near)->doorbell());
      devices_[1]->ring_doorbell(far->doorbell());
    }
    return got == text;
  }
  void wait(base::Duration span) {
    const base::Now end = now_ + span;
    while (now_ < end) {
      for (auto& device : devices_) device->poll(now_);
      now_ += std::chrono::milliseconds(100);
    }
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  base::Prng prng_{5};
  std::vector<std::unique_ptr<test::FakeNic>> nics_;
  std::vector<std::unique_ptr<net::Reassembler>> reassemblers_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  device::StreamListener* listener_ = nullptr;
};

// TCP-IP-01
TEST_P(FragmentAttack, AFragmentedStreamPasses) {
  ASSERT_TRUE(send(noise(200'000), [](uint32_t) {}));
  EXPECT_GT(counters().ip_reassembled, 100u);
  EXPECT_EQ(counters().ip_reassembly_failed, 0u);
  EXPECT_EQ(devices_[0]->tcp_counters().retransmitted_segments, 0u);
}

// TCP-IP-01
TEST_P(FragmentAttack, AFragmentedStreamPassesAmongHostileFragments) {
  ASSERT_TRUE(send(noise(200'000), [this](uint32_t round) { attack_in_every_way(round); }));
  EXPECT_GT(counters().ip_reassembled, 100u);
  EXPECT_GT(counters().ip_fragments_dropped, 300u);
  EXPECT_GT(counters().ip_reassembly_failed, 300u);
  EXPECT_GT(counters().ip_reassembly_full, 300u);
  // What is held after the last one is given up in time, and room for all of the table is there
  // again.
  wait(std::chrono::seconds(61));
  EXPECT_GT(counters().ip_reassembly_timeouts, 0u);
  const uint64_t full = counters().ip_reassembly_full;
  for (uint32_t i = 0; i < 64; ++i) attack(fragment(v4(), 9, i + 1, 0, true, noise(800)));
  wait(std::chrono::milliseconds(200));
  EXPECT_EQ(counters().ip_reassembly_full, full);
  attack(fragment(v4(), 9, 1000, 0, true, noise(800)));
  wait(std::chrono::milliseconds(100));
  EXPECT_EQ(counters().ip_reassembly_full, full + 1);
  EXPECT_LT(nics_[1]->outstanding(), 256u);
}

// Somebody who guesses sender and identification can end a datagram, which TCP sends again; he
// cannot mix octets in.
TEST_P(FragmentAttack, ForgedPartsOfTheStreamsOwnDatagramsCostTimeOnly) {
  const auto forge = [this](uint32_t round) {
    for (uint32_t id = round / 2; id < round / 2 + 4; ++id) {
      attack(fragment(v4(), 1, id, 64, true, noise(64)));
    }
  };
  ASSERT_TRUE(send(noise(50'000), forge));
  EXPECT_GT(counters().ip_reassembly_failed, 0u);
  EXPECT_GT(devices_[0]->tcp_counters().retransmitted_segments, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ipv4AndIpv6, FragmentAttack, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Ipv4" : "Ipv6"; });

}  // namespace
}  // namespace rnic::dpdk
