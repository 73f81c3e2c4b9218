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

/// The segment of write_segment() as IPv6.
std::vector<uint8_t> over_ipv6(const Frame& frame) {
  std::vector<uint8_t> out(54);
  out[12] = 0x86;
  out[13] = 0xdd;
  out[14] = 0x60;
  const uint32_t length = frame.packet.length - 34;
  out[18] = static_cast<uint8_t>(length >> 8);
  out[19] = static_cast<uint8_t>(length);
  out[20] = 6;
  for (uint8_t i = 0; i < 32; ++i) out[22 + i] = i;
  out.insert(out.end(), frame.octets.begin() + 34, frame.octets.begin() + frame.packet.length);
  return out;
}

std::vector<uint8_t> tagged(std::vector<uint8_t> frame) {
  frame.insert(frame.begin() + 12, {0x81, 0, 0, 100});
  return frame;
}

// TCP-9293-3.1-01-a: of both IP versions, tagged or not.
TEST(Offload, Ipv6AndVlanFramesAreCompletedToo) {
  Frame frame(101);
  const std::vector<uint8_t> four(frame.octets.begin(), frame.octets.begin() + frame.packet.length);
  for (std::vector<uint8_t> octets : {over_ipv6(frame), tagged(over_ipv6(frame)), tagged(four)}) {
    port::Packet packet;
    packet.data = octets.data();
    packet.length = packet.room = static_cast<uint32_t>(octets.size());
    packet.ip_checksum = packet.l4_checksum = port::Checksum::Open;
    EXPECT_FALSE(driver_test::checksums_good(packet.view()));
    complete_checksums(packet);
    EXPECT_TRUE(driver_test::checksums_good(packet.view()));
    const auto at = locate_tcp(packet.view());
    ASSERT_TRUE(at);
    EXPECT_EQ(at->payload_size(), 101u);
    octets[at->ip + (at->v4 ? 15 : 23)] ^= 1;  // the last octet of the source
    EXPECT_FALSE(tcp_checksum_good(packet.view(), *at));
    for (uint32_t length = 0; length < octets.size(); ++length) {
      EXPECT_FALSE(locate_tcp({octets.data(), length})) << length;
    }
  }
}

// A frame that was cut has the length of what is left of it, and an IPv4 header that is right
// again.
TEST(Offload, TheLengthOfWhatIsLeft) {
  Frame frame(101);
  const std::vector<uint8_t> four(frame.octets.begin(), frame.octets.begin() + frame.packet.length);
  for (std::vector<uint8_t> octets : {four, over_ipv6(frame), tagged(over_ipv6(frame))}) {
    auto at = locate_tcp(octets);
    ASSERT_TRUE(at);
    at->end -= 60;
    write_ip_length(octets, *at);
    const auto left = locate_tcp(octets);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->end, at->end);
    EXPECT_EQ(left->payload_size(), 41u);
    const auto ip = locate_ip(octets);
    ASSERT_TRUE(ip);
    EXPECT_TRUE(ip_checksum_good(octets, *ip));
  }
}

// A device adds the rest to the sum of the pseudo header that it finds.
TEST(Offload, ThePseudoSumIsWhatADeviceCompletes) {
  Frame frame(33);
  for (std::vector<uint8_t> octets :
       {std::vector<uint8_t>(frame.octets.begin(), frame.octets.begin() + frame.packet.length),
        over_ipv6(frame)}) {
    const auto at = locate_tcp(octets);
    ASSERT_TRUE(at);
    write_tcp_pseudo_sum(octets, *at);
    uint32_t sum = 0;
    for (uint32_t i = at->tcp; i < at->end; ++i) sum += octets[i] << ((i - at->tcp) % 2 ? 0 : 8);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    octets[at->tcp + 16] = static_cast<uint8_t>(~sum >> 8);
    octets[at->tcp + 17] = static_cast<uint8_t>(~sum);
    EXPECT_TRUE(tcp_checksum_good(octets, *at));
  }
}

}  // namespace
}  // namespace rnic::offload
