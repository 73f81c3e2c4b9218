#include "wire/tcp.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rnic::wire {
namespace {

std::vector<uint8_t> segment() {
  return {0x9c, 0x40, 0x12, 0xb7, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x60, 0x18,
          0xfe, 0xdc, 0xab, 0xcd, 0x00, 0x09, 0x01, 0x01, 0x01, 0x00, 'd',  'a',  't',  'a'};
}

// RFC 9293 s.3.1: where each field is.
TEST(TcpView, ReadsEveryField) {
  const std::vector<uint8_t> octets = segment();
  const auto view = TcpView::parse(octets);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->source_port(), 40000);
  EXPECT_EQ(view->destination_port(), 4791);
  EXPECT_EQ(view->sequence().value, 0x01020304u);
  EXPECT_EQ(view->acknowledgment().value, 0x05060708u);
  EXPECT_EQ(view->header_length(), 24u);
  EXPECT_EQ(view->flags(), tcp_flag::kAck | tcp_flag::kPsh);
  EXPECT_TRUE(view->has(tcp_flag::kPsh));
  EXPECT_FALSE(view->has(tcp_flag::kFin));
  EXPECT_EQ(view->window(), 0xfedc);
  EXPECT_EQ(view->checksum(), 0xabcd);
  EXPECT_EQ(view->urgent_pointer(), 9);
  EXPECT_EQ(view->options().size(), 4u);
  EXPECT_EQ(view->options().data(), octets.data() + 20);
  ASSERT_EQ(view->payload().size(), 4u);
  EXPECT_EQ(view->payload()[0], 'd');
}

TEST(TcpView, AHeaderThatIsNotThereAsAWholeIsNone) {
  std::vector<uint8_t> octets = segment();
  for (size_t length = 0; length < 24; ++length) {
    EXPECT_FALSE(TcpView::parse({octets.data(), length})) << length;
  }
  EXPECT_TRUE(TcpView::parse({octets.data(), 24}));
  octets[12] = 0x40;
  EXPECT_FALSE(TcpView::parse(octets)) << "four words are no header";
  octets[12] = 0x80;
  EXPECT_FALSE(TcpView::parse(octets)) << "the segment is shorter than that";
}

}  // namespace
}  // namespace rnic::wire
