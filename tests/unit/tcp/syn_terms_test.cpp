#include "tcp/syn_terms.hpp"

#include "raw_peer.hpp"
#include "tcp/mss.hpp"

namespace rnic::testing {
namespace {

tcp::Config with_window(uint32_t octets) {
  tcp::Config config;
  config.receive_window = octets;
  return config;
}

TEST(SynTerms, TheShiftMakesTheWindowFitItsField) {
  const CaptureEgress egress;
  for (const auto& [window, shift] : std::vector<std::pair<uint32_t, uint8_t>>{
           {1, 0}, {0xffff, 0}, {0x10000, 1}, {4u << 20, 7}, {0x3fffc000, 14}, {UINT32_MAX, 14}}) {
    EXPECT_EQ(tcp::SynTerms(with_window(window), egress).window_shift(), shift) << window;
  }
}

TEST(SynTerms, TheWindowIsWhatThereIsRoomForAndNeverScaled) {
  const CaptureEgress egress;
  const tcp::SynTerms terms(with_window(4u << 20), egress);
  const Endpoint remote{RawPeer::kPeer, 1};
  UserAcceptor acceptor;
  RecordUser user{1, 2};
  EXPECT_EQ(terms.window(nullptr, nullptr, remote), 0xffffu);
  acceptor.room = 700;
  EXPECT_EQ(terms.window(&acceptor, nullptr, remote), 700u);
  user.room = 600;
  EXPECT_EQ(terms.window(&acceptor, &user, remote), 600u) << "who has accepted says it";
  EXPECT_EQ(tcp::SynTerms(with_window(500), egress).window(&acceptor, &user, remote), 500u);
}

TEST(SynTerms, TheMssIsThatOfTheLink) {
  CaptureEgress egress;
  egress.mtu = 600;  // of the path
  const tcp::SynTerms terms(tcp::Config{}, egress);
  tcp::ConnectionOptions options;
  const auto link = static_cast<uint16_t>(egress.link_mtu({}));
  EXPECT_EQ(terms.mss(RawPeer::kPeer, options), link - 40);
  EXPECT_EQ(terms.mss(IpAddress(1, 2), options), link - 60) << "IPv6";
  options.max_segment = 300;
  EXPECT_EQ(terms.mss(RawPeer::kPeer, options), 300u);
}

TEST(Mss, GoesWithTheMtuAndNoLowerThanTheSmallest) {
  EXPECT_EQ(tcp::mss_of_path(1500, RawPeer::kPeer), 1460u);
  EXPECT_EQ(tcp::mss_of_path(1500, IpAddress(1, 2)), 1440u);
  for (const IpAddress& peer : {RawPeer::kPeer, IpAddress(1, 2)}) {
    EXPECT_EQ(tcp::mss_of_path(tcp::least_link_mtu(peer), peer), tcp::kSmallestMss);
    EXPECT_EQ(tcp::mss_of_path(0, peer), tcp::kSmallestMss);
  }
}

TEST(SynTerms, OptionsStandInAMultipleOfFourOctets) {
  tcp::SynOptions options{.mss = 1460};
  for (const bool sack : {false, true}) {
    for (const bool stamped : {false, true}) {
      for (const bool scaled : {false, true}) {
        options.sack = sack;
        options.timestamps.reset();
        options.window_scale.reset();
        if (stamped) options.timestamps = {7, 9};
        if (scaled) options.window_scale = 5;
        std::array<uint8_t, 40> octets{};
        const uint32_t length = tcp::write_syn_options(octets.data(), options);
        EXPECT_EQ(length % 4, 0u);
        wire::TcpOptions read;
        ASSERT_TRUE(read.parse(base::ByteView(octets).first(length)));
        EXPECT_EQ(read.mss, options.mss);
        EXPECT_EQ(read.sack_permitted, sack);
        EXPECT_EQ(read.timestamps.has_value(), stamped);
        EXPECT_EQ(read.window_scale, options.window_scale);
      }
    }
  }
}

}  // namespace
}  // namespace rnic::testing
