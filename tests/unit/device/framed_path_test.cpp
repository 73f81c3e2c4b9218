// A framed stream of a device on a path that gets narrower in the middle, in virtual time: the
// notice, EMSGSIZE with the limit, the smaller frame that goes, and the frames that were underway.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "support/fake_nic.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Octets = std::vector<uint8_t>;

constexpr uint16_t kFramedPort = 9100;
constexpr wire::TufKey kThere = 0x0123'4567'89ab, kBack = 0xfedc'ba98'7654;

class NarrowPath : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kWide = 1500, kNarrow = 1000;

  void SetUp() override {
    for (uint32_t i = 0; i < 2; ++i) {
      nics_.push_back(std::make_unique<test::FakeNic>(
          port::PortInfo{"nic", mac(i), kWide, port::ChecksumMode::Software, {}}, 1,
          port::ReceiveSpread{}));
    }
    test::FakeNic::connect(*nics_[0], *nics_[1]);
    for (uint32_t i = 0; i < 2; ++i) {
      DeviceConfig config;
      config.net.address = address(i);
      config.seed = i + 1;
      devices_.push_back(std::make_unique<Device>(config, nics_[i]->queue(0), now_));
    }
    nics_[1]->passes = [this](const Octets& frame) { return carry(frame); };
    FramingOptions setup;
    setup.send_mode = FramedSendMode::Align;
    setup.receive_mode = FramedReceiveMode::Align;
    setup.send_key = kThere;
    setup.receive_key = kBack;
    FramingOptions mirrored = setup;
    std::swap(mirrored.send_key, mirrored.receive_key);
    const tcp::ConnectionOptions options = devices_[0]->default_options();
    auto* listener = *devices_[1]->listen_framed({{}, kFramedPort}, 4, options, mirrored);
    near_ = *devices_[0]->connect_framed({address(1), kFramedPort}, options, setup, now_);
    run(seconds(1));
    far_ = listener->next();
    ASSERT_NE(far_, nullptr);
  }
  void TearDown() override { devices_.clear(); }

  static port::MacAddress mac(uint32_t i) { return {2, 0, 0, 0, 0, static_cast<uint8_t>(1 + i)}; }
  static IpAddress address(uint32_t i) { return IpAddress::v4(0x0a000001 + i); }

  /// The path from the left to the right; its router tells of what it drops, or does not.
  bool carry(const Octets& frame) {
    const auto length = static_cast<uint32_t>(frame.size()) - wire::kEtherHeader;
    if (length <= path_) return true;
    ++lost_;
    if (GetParam()) nics_[0]->receive({too_big(frame)});
    return false;
  }
  [[nodiscard]] Octets too_big(const Octets& lost) const {
    constexpr uint32_t kQuoted = wire::kIpv4Header + 8;
    constexpr uint32_t kLength = wire::kIcmpHeader + kQuoted;
    Octets frame(wire::kEtherHeader + wire::kIpv4Header + kLength);
    wire::write_ether(frame.data(), mac(0), mac(1), wire::kEtherTypeIpv4);
    wire::Ipv4 ip;
    ip.source = address(1).as_v4();
    ip.destination = address(0).as_v4();
    ip.protocol = wire::kProtocolIcmp;
    ip.ttl = 64;
    ip.total_length = wire::kIpv4Header + kLength;
    wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
    uint8_t* icmp = frame.data() + wire::kEtherHeader + wire::kIpv4Header;
    icmp[0] = wire::kIcmpUnreachable;
    icmp[1] = wire::kIcmpFragmentationNeeded;
    base::store_be16(icmp + wire::kIcmpMtuAt, static_cast<uint16_t>(path_));
    std::copy_n(lost.begin() + wire::kEtherHeader, kQuoted, icmp + wire::kIcmpHeader);
    base::store_be16(icmp + wire::kIcmpChecksumAt,
                     wire::checksum_fold(wire::checksum_add(0, {icmp, kLength})));
    return frame;
  }
  void run(base::Duration span) {
    const base::Now end = now_ + span;
    while (now_ < end) {
      const uint32_t work = devices_[0]->poll(now_) + devices_[1]->poll(now_);
      const base::Now next =
          base::earlier(devices_[0]->next_deadline(), devices_[1]->next_deadline());
      now_ = work != 0 ? now_ + milliseconds(1)
                       : std::clamp(next, now_ + milliseconds(1), now_ + milliseconds(100));
    }
  }
  static Octets frame(size_t size, uint32_t seed) {
    Octets out(size);
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(seed * 31 + i * 7);
    base::store_be16(out.data(), static_cast<uint16_t>(size - 2));
    return out;
  }
  tuf::SendResult send(size_t size) {
    const tuf::SendResult result = near_->send(frame(size, sent_));
    if (result == tuf::SendResult::Ok) sizes_.push_back(size), ++sent_;
    devices_[0]->ring_doorbell(near_->doorbell());
    return result;
  }
  /// All that was sent has come, whole and in order.
  void expect_all_received() {
    for (int i = 0; i < 2000 && received_ < sent_; ++i) {
      run(milliseconds(20));
      std::array<uint8_t, 4096> piece;
      for (auto got = far_->receive(piece); got.kind == tuf::ReceiveKind::Pdu;
           got = far_->receive(piece)) {
        ASSERT_LT(received_, sent_);
        EXPECT_EQ(Octets(piece.begin(), piece.begin() + got.length),
                  frame(sizes_[received_], received_));
        ++received_;
      }
      devices_[1]->ring_doorbell(far_->doorbell());
    }
    EXPECT_EQ(received_, sent_);
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  std::vector<std::unique_ptr<test::FakeNic>> nics_;
  std::vector<std::unique_ptr<Device>> devices_;
  FramedSocket* near_ = nullptr;
  FramedSocket* far_ = nullptr;
  uint32_t path_ = kWide;
  uint32_t lost_ = 0;
  uint32_t sent_ = 0, received_ = 0;
  std::vector<size_t> sizes_;
};

// Frames underway are cut and come whole; the limit follows the path,
// a frame above it is refused and changes nothing, one at the limit goes as one segment. A change
// of EMSS is no middlebox.
TEST_P(NarrowPath, InTheMiddle_TUF_5_2_02_TUF_A_04_TUF_A_06) {
  constexpr uint32_t kOptions = 20 + 20 + 12, kHeader = wire::kTufHeaderSize;
  EXPECT_EQ(near_->pdu_limit(), kWide - kOptions - kHeader);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(send(near_->pdu_limit()), tuf::SendResult::Ok);
  expect_all_received();
  const uint32_t notices = near_->notices().emss_changes();
  path_ = kNarrow;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(send(near_->pdu_limit()), tuf::SendResult::Ok);
  expect_all_received();
  EXPECT_GT(lost_, 0u);
  EXPECT_GT(near_->notices().emss_changes(), notices);
  const uint32_t limit = near_->pdu_limit();
  if (GetParam()) {
    EXPECT_EQ(limit, kNarrow - kOptions - kHeader);
  } else {
    EXPECT_LE(limit, kNarrow - kOptions - kHeader);  // found by the loss of full segments
  }
  EXPECT_GE(limit, 256u);
  EXPECT_EQ(near_->usable_emss(), limit);
  EXPECT_EQ(send(limit + 1), tuf::SendResult::MessageSize);
  EXPECT_EQ(send(kWide - kOptions - kHeader), tuf::SendResult::MessageSize);
  EXPECT_EQ(devices_[0]->framed().shared().with_own({}).message_size_errors, 2u);
  const uint64_t before = devices_[1]->framed().shared().with_own({}).aligned_segments_in;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(send(limit), tuf::SendResult::Ok);
  expect_all_received();
  EXPECT_EQ(devices_[1]->framed().shared().with_own({}).aligned_segments_in, before + 20);
  EXPECT_FALSE(far_->notices().is_middlebox_suspected());
  EXPECT_EQ(far_->error(), framing::PduError::None);
}

INSTANTIATE_TEST_SUITE_P(Silent, NarrowPath, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Told, NarrowPath, ::testing::Values(true));

}  // namespace
}  // namespace rnic::device
