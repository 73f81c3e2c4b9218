// A path that gets narrower and wide again, through whole devices, in virtual time: when a router's
// word is obeyed, and when the path is tried again.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "llp/pseudo_header.hpp"
#include "support/fake_nic.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr uint16_t kPathPort = 9000;
constexpr uint32_t kWide = 1500;
constexpr uint32_t kNarrow = 1300;

class PathRaise : public ::testing::TestWithParam<bool> {
 protected:
  void start(bool probing) {
    nics_ = test::connected_nics(kWide);
    for (uint32_t i = 0; i < 2; ++i) {
      DeviceConfig config;
      config.net.address = address(i);
      config.net.prefix_length = v4() ? 24 : 64;
      config.seed = i + 1;
      config.tcp.mtu_probing = probing;
      devices_.push_back(std::make_unique<Device>(config, nics_[i]->queue(0), now_));
    }
    nics_[1]->passes = [this](const std::vector<uint8_t>& frame) { return carry(frame); };
    listener_ = *devices_[1]->listen_stream({{}, kPathPort}, 4);
    near_ = *devices_[0]->connect_stream({address(1), kPathPort}, {}, now_);
    run(seconds(1));
    far_ = listener_->next();
    ASSERT_NE(far_, nullptr);
    ASSERT_TRUE(near_->reserve_ring().has_value());
  }
  void TearDown() override { devices_.clear(); }

  [[nodiscard]] bool v4() const { return GetParam(); }
  [[nodiscard]] IpAddress address(uint32_t i) const {
    return v4() ? IpAddress::v4(0x0a000001 + i) : IpAddress(0xfd00000000000000, 1 + i);
  }

  /// The path from the left to the right.
  bool carry(const std::vector<uint8_t>& frame) {
    const auto length = static_cast<uint32_t>(frame.size()) - wire::kEtherHeader;
    longest_ = std::max(longest_, length);
    if (length <= path_) return true;
    ++lost_;
    if (tells_) nics_[0]->receive({too_big(frame)});
    return false;
  }
  [[nodiscard]] std::vector<uint8_t> too_big(const std::vector<uint8_t>& lost) const {
    const uint32_t header = v4() ? wire::kIpv4Header : wire::kIpv6Header;
    std::vector<uint8_t> frame(wire::kEtherHeader + header + wire::kIcmpHeader + header + 8);
    wire::write_ether(frame.data(), test::nic_mac(0), test::nic_mac(1),
                      v4() ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6);
    uint8_t* icmp = frame.data() + wire::kEtherHeader + header;
    std::copy_n(lost.begin() + wire::kEtherHeader, header + 8, icmp + wire::kIcmpHeader);
    const uint32_t length = wire::kIcmpHeader + header + 8;
    uint32_t pseudo = 0;
    if (v4()) {
      icmp[0] = wire::kIcmpUnreachable;
      icmp[1] = wire::kIcmpFragmentationNeeded;
      base::store_be16(icmp + wire::kIcmpMtuAt, static_cast<uint16_t>(path_));
      wire::Ipv4 ip;
      ip.source = address(1).as_v4();
      ip.destination = address(0).as_v4();
      ip.protocol = wire::kProtocolIcmp;
      ip.ttl = 64;
      ip.total_length = header + length;
      wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
    } else {
      icmp[0] = wire::kIcmpv6PacketTooBig;
      base::store_be32(icmp + wire::kIcmpRestAt, path_);
      wire::Ipv6 ip;
      ip.source = {address(1).high(), address(1).low()};
      ip.destination = {address(0).high(), address(0).low()};
      ip.next_header = wire::kNextIcmpv6;
      ip.hop_limit = 64;
      ip.payload_length = length;
      wire::write_ipv6(frame.data() + wire::kEtherHeader, ip);
      pseudo = llp::pseudo_header_sum(address(1), address(0), wire::kNextIcmpv6, length);
    }
    base::store_be16(icmp + wire::kIcmpChecksumAt,
                     wire::checksum_fold(wire::checksum_add(pseudo, {icmp, length})));
    return frame;
  }

  void run(base::Duration span) {
    const base::Now end = now_ + span;
    while (now_ < end) {
      const uint32_t work = devices_[0]->poll(now_) + devices_[1]->poll(now_);
      if (far_ != nullptr) {
        std::array<uint8_t, 4096> piece;
        received_ += far_->take(piece);
        devices_[1]->ring_doorbell(far_->doorbell());
      }
      const base::Now next =
          base::earlier(devices_[0]->next_deadline(), devices_[1]->next_deadline());
      now_ = work != 0 ? now_ + milliseconds(1)
                       : std::clamp(next, now_ + milliseconds(1), now_ + milliseconds(100));
    }
  }
  /// 20 KB, all of it received. \return the longest packet that was tried
  uint32_t transfer() {
    const std::vector<uint8_t> octets(20'000, 0x5a);
    const uint64_t before = received_;
    longest_ = 0;
    size_t put = 0;
    for (int i = 0; i < 1000 && received_ - before < octets.size(); ++i) {
      put += near_->put(base::ByteView(octets).subspan(put));
      devices_[0]->ring_doorbell(near_->doorbell());
      run(milliseconds(20));
    }
    EXPECT_EQ(received_ - before, octets.size());
    return longest_;
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  std::vector<std::unique_ptr<test::FakeNic>> nics_;
  std::vector<std::unique_ptr<Device>> devices_;
  StreamListener* listener_ = nullptr;
  StreamSocket* near_ = nullptr;
  StreamSocket* far_ = nullptr;
  uint64_t received_ = 0;
  uint32_t path_ = kWide;
  bool tells_ = true;
  uint32_t longest_ = 0;
  uint32_t lost_ = 0;
};

// Not within five minutes, and by default after ten; with our own probes as
// without.
TEST_P(PathRaise, AWiderPathIsTriedAfterTenMinutesNotBeforeFive_TCP_1191_6_3_01) {
  for (const bool probing : {false, true}) {
    devices_.clear();
    nics_.clear();
    far_ = nullptr;
    path_ = kWide;
    start(probing);
    EXPECT_EQ(transfer(), kWide);
    path_ = kNarrow;
    transfer();
    EXPECT_EQ(transfer(), kNarrow);
    EXPECT_EQ(devices_[0]->tcp_counters().timeouts, 0u);  // the router's word was enough
    const base::Now told = now_;
    path_ = kWide;
    base::Now tried = base::kNever;
    while (now_ < told + minutes(12)) {
      if (transfer() > kNarrow) tried = std::min(tried, now_);
      run(seconds(5));
    }
    EXPECT_GT(tried, told + minutes(5)) << probing;
    EXPECT_LE(tried, told + minutes(10) + seconds(30)) << probing;
    EXPECT_EQ(transfer(), kWide);
  }
}

// The path is as narrow as before when it is tried again: one packet pays for that, and the next
// ten minutes nobody asks.
TEST_P(PathRaise, APathThatStaysNarrowIsTriedOnceInTenMinutes_TCP_1191_6_3_01) {
  start(false);
  path_ = kNarrow;
  transfer();
  lost_ = 0;
  for (const base::Now end = now_ + minutes(35); now_ < end;) {
    transfer();
    run(seconds(5));
  }
  EXPECT_GE(lost_, 3u);
  EXPECT_LE(lost_, 3u * 14);  // a window of packets at most, each time
  EXPECT_EQ(devices_[0]->tcp_counters().timeouts, 0u);
}

// Nobody tells; the hole is found, and the path is tried again later.
TEST_P(PathRaise, ABlackHoleIsFoundAndLeftAgain_TCP_4821_01) {
  start(true);
  EXPECT_EQ(transfer(), kWide);
  path_ = kNarrow;
  tells_ = false;
  transfer();
  EXPECT_GE(devices_[0]->tcp_counters().black_holes, 1u);
  path_ = kWide;
  for (const base::Now end = now_ + minutes(25); now_ < end;) {
    transfer();
    run(seconds(5));
  }
  EXPECT_GT(transfer(), kWide - 32);  // a search ends when less is left to be won
}

INSTANTIATE_TEST_SUITE_P(Ipv4AndIpv6, PathRaise, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Ipv4" : "Ipv6"; });

}  // namespace
}  // namespace rnic::device
