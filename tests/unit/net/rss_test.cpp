#include "net/rss.hpp"

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace rnic::net {
namespace {

Endpoint end(const char* address, uint16_t port) { return {*parse_ip(address), port}; }

// The published verification suite for RSS.
constexpr RssKey kPublished{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                            0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                            0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                            0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

TEST(Rss, PublishedVectors) {
  EXPECT_EQ(rss_hash(end("66.9.149.187", 2794), end("161.142.100.80", 1766), kPublished),
            0x51ccc178u);
  EXPECT_EQ(rss_hash(end("199.92.111.2", 14230), end("65.69.140.83", 4739), kPublished),
            0xc626b0eau);
  EXPECT_EQ(
      rss_hash(end("3ffe:2501:200:1fff::7", 2794), end("3ffe:2501:200:3::1", 1766), kPublished),
      0x40207d3du);
}

// TCP-MQ-01: both directions of a connection land on one queue.
TEST(Rss, OurKeyIsSymmetricAndSpreads) {
  base::Prng prng(3);
  const port::ReceiveSpread spread = even_spread(4, 128);
  std::array<uint32_t, 4> landed{};
  for (int i = 0; i < 4000; ++i) {
    const Endpoint a{IpAddress::v4(static_cast<uint32_t>(prng.next())),
                     static_cast<uint16_t>(prng.next())};
    const Endpoint b{IpAddress::v4(static_cast<uint32_t>(prng.next())),
                     static_cast<uint16_t>(prng.next())};
    EXPECT_EQ(rss_hash(a, b, kSymmetricRssKey), rss_hash(b, a, kSymmetricRssKey));
    ++landed[queue_of(spread, a, b)];
  }
  for (const uint32_t count : landed) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace rnic::net
