#include "wire/tcp.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

Octets segment() {
  return {0x9c, 0x40, 0x12, 0xb7, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x60, 0x18,
          0xfe, 0xdc, 0xab, 0xcd, 0x00, 0x09, 0x01, 0x01, 0x01, 0x00, 'd',  'a',  't',  'a'};
}

// RFC 9293 s.3.1: where each field is.
TEST(TcpView, ReadsEveryField) {
  const Octets octets = segment();
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
  Octets octets = segment();
  for (size_t length = 0; length < 24; ++length) {
    EXPECT_FALSE(TcpView::parse(Exact(octets, length).view())) << length;
  }
  EXPECT_TRUE(TcpView::parse(Exact(octets, 24).view()));
  octets[12] = 0x40;
  EXPECT_FALSE(TcpView::parse(octets)) << "four words are no header";
  octets[12] = 0x80;
  EXPECT_FALSE(TcpView::parse(octets)) << "the segment is shorter than that";
}

// Every data offset over every length.
TEST(TcpView, EveryHeaderLength) {
  for (uint32_t words = 0; words < 16; ++words) {
    for (size_t length = 0; length <= 64; ++length) {
      Octets octets(std::max<size_t>(length, 13), 0xff);
      octets[kTcpDataOffsetAt] = static_cast<uint8_t>(words << 4);
      const auto view = TcpView::parse(Exact(octets, length).view());
      ASSERT_EQ(view.has_value(), words >= 5 && words * 4 <= length) << words << " of " << length;
    }
  }
}

// RFC 9293 s.3.1: what is written, octet by octet; reserved bits, checksum and pointer are 0.
TEST(TcpHeaderWire, EveryFieldAtItsPlace) {
  const Octets octets = written(kTcpHeaderMin, [](uint8_t* p) {
    write_tcp(p, {.source_port = 40000,
                  .destination_port = 4791,
                  .sequence = base::Seq32(0x01020304),
                  .acknowledgment = base::Seq32(0x05060708),
                  .flags = 0xff,
                  .window = 0xfedc,
                  .header_length = 60});
  });
  EXPECT_EQ(octets, (Octets{0x9c, 0x40, 0x12, 0xb7, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                            0x07, 0x08, 0xf0, 0xff, 0xfe, 0xdc, 0x00, 0x00, 0x00, 0x00}));
}

TEST(TcpHeaderWire, ComesBackAsItWent) {
  const Octets octets = written(kTcpHeaderMin, [](uint8_t* p) {
    write_tcp(p, {.source_port = 1, .destination_port = 2, .flags = tcp_flag::kSyn, .window = 3});
  });
  const auto view = TcpView::parse(octets);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->source_port(), 1);
  EXPECT_EQ(view->destination_port(), 2);
  EXPECT_EQ(view->flags(), tcp_flag::kSyn);
  EXPECT_EQ(view->window(), 3);
  EXPECT_EQ(view->header_length(), kTcpHeaderMin);
  EXPECT_TRUE(view->options().empty() && view->payload().empty());
}

// The four reserved bits beside the data offset are not looked at (RFC 9293 s.3.1).
TEST(TcpView, ReservedBitsAreIgnored) {
  Octets octets = segment();
  octets[kTcpDataOffsetAt] |= 0x0f;
  ASSERT_TRUE(TcpView::parse(octets));
  EXPECT_EQ(TcpView::parse(octets)->header_length(), 24u);
}

}  // namespace
}  // namespace rnic::wire
