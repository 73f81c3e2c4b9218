#include "offload/offload.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tcp_frame.hpp"

namespace rnic::offload {
namespace {

struct Frame {
  std::vector<uint8_t> octets = std::vector<uint8_t>(2048);
  port::Packet packet;
  explicit Frame(uint32_t payload) {
    packet.data = octets.data();
    packet.room = static_cast<uint32_t>(octets.size());
    driver_test::write_segment(packet, 1000, payload);
  }
};

TEST(Offload, CompletesWhatIsOpenAndOnlyThat) {
  Frame frame(101);
  EXPECT_FALSE(driver_test::checksums_good(frame.packet.view()));
  complete_checksums(frame.packet);
  EXPECT_TRUE(driver_test::checksums_good(frame.packet.view()));
  EXPECT_EQ(frame.packet.l4_checksum, port::Checksum::Unknown);
  frame.packet.data[60] ^= 1;
  complete_checksums(frame.packet);
  EXPECT_FALSE(driver_test::checksums_good(frame.packet.view()));
}

TEST(Offload, EveryTruncationIsRefused) {
  Frame frame(10);
  for (uint32_t length = 0; length < frame.packet.length; ++length) {
    EXPECT_FALSE(locate_tcp({frame.packet.data, length})) << length;
  }
  EXPECT_TRUE(locate_tcp(frame.packet.view()));
}

TEST(Offload, ImpossibleHeadersAreRefused) {
  const auto refused = [](uint32_t at, uint8_t value) {
    Frame frame(10);
    frame.packet.data[at] = value;
    return !locate_tcp(frame.packet.view());
  };
  EXPECT_TRUE(refused(14, 0x44));       // IHL 4
  EXPECT_TRUE(refused(14, 0x65));       // version 6
  EXPECT_TRUE(refused(14 + 6, 0x20));   // more fragments
  EXPECT_TRUE(refused(14 + 7, 0x01));   // a later fragment
  EXPECT_TRUE(refused(14 + 9, 17));     // UDP
  EXPECT_TRUE(refused(34 + 12, 0x40));  // data offset 4
  EXPECT_TRUE(refused(34 + 12, 0xf0));  // data offset past the end
  EXPECT_TRUE(refused(14 + 2, 0xff));   // total length past the frame
}

TEST(Offload, EthernetPaddingIsNotPayload) {
  Frame frame(1);
  frame.packet.length = 60;
  const auto at = locate_tcp(frame.packet.view());
  ASSERT_TRUE(at);
  EXPECT_EQ(at->payload_size(), 1u);
}

}  // namespace
}  // namespace rnic::offload
