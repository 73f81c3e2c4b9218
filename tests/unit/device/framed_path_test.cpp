// A framed stream of a device on a path that gets narrower in the middle, in virtual time: the
// notice, EMSGSIZE with the limit, the smaller frame that goes, and the frames that were underway.

#include "framed_path.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::device {
namespace {

class NarrowPath : public FramedPath, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr uint32_t kWide = kMtu, kNarrow = 1000;

  /// The path from the left to the right; its router tells of what it drops, or does not.
  bool carry(const Octets& frame) override {
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
    wire::write_ether(frame.data(), test::nic_mac(0), test::nic_mac(1), wire::kEtherTypeIpv4);
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
  uint32_t path_ = kWide;
  uint32_t lost_ = 0;
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
  EXPECT_EQ(counters(0).message_size_errors, 2u);
  const uint64_t before = counters(1).aligned_segments_in;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(send(limit), tuf::SendResult::Ok);
  expect_all_received();
  EXPECT_EQ(counters(1).aligned_segments_in, before + 20);
  EXPECT_FALSE(far_->notices().is_middlebox_suspected());
  EXPECT_EQ(far_->error(), framing::PduError::None);
}

INSTANTIATE_TEST_SUITE_P(Silent, NarrowPath, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Told, NarrowPath, ::testing::Values(true));

}  // namespace
}  // namespace rnic::device
