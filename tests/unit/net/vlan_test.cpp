#include "ipv6_fixture.hpp"

namespace rnic::net {
namespace {

class Vlan : public Ipv6Test {
 protected:
  static Octets tagged(Octets frame, uint16_t control) {
    frame.insert(frame.begin() + 12,
                 {0x81, 0x00, static_cast<uint8_t>(control >> 8), static_cast<uint8_t>(control)});
    return frame;
  }
  void start_on(uint16_t vlan) {
    config_.vlan = vlan;
    start();
  }
};

const Octets kInner{1, 2, 3, 4, 5};

// TCP-IP-02
TEST_F(Vlan, TagsAreWrittenAndReadOnAllProtocols) {
  start_on(100);
  ASSERT_TRUE(send(kPeer, 30, 9));
  interface_->flush(now_);
  Octets request = port_->take_sent().octets;
  EXPECT_EQ(base::load_be16(&request[12]), 0x8100);
  EXPECT_EQ(base::load_be16(&request[14]), 100);
  EXPECT_EQ(base::load_be16(&request[16]), 0x0806);
  receive(tagged(arp_reply(kPeer, kPeerMac), 100));
  interface_->flush(now_);
  const Octets frame = port_->take_sent().octets;
  ASSERT_EQ(frame.size(), 18u + 20 + 30);
  EXPECT_EQ(wire::load_mac(frame.data()), kPeerMac);
  EXPECT_EQ(base::load_be16(&frame[14]), 100);
  EXPECT_EQ(base::load_be16(&frame[16]), 0x0800);
  EXPECT_EQ(Octets(frame.begin() + 38, frame.end()), Octets(30, 9));

  ASSERT_TRUE(send6(kPeer6));
  interface_->flush(now_);
  EXPECT_EQ(base::load_be16(&port_->take_sent().octets[16]), 0x86dd);
  receive(tagged(advertisement(kPeer6, kPeerMac), 100));
  interface_->flush(now_);
  EXPECT_EQ(wire::load_mac(port_->take_sent().octets.data()), kPeerMac);
  // Whatever the priority.
  EXPECT_EQ(receive(tagged(ip_frame({}, kInner), 100 | 7 << 13 | 1 << 12)), kInner);
  EXPECT_EQ(receive(tagged(ip6_frame(with_next(wire::kProtocolTcp), kInner), 100)), kInner);
  EXPECT_EQ(counters().other_vlan, 0u);
}

TEST_F(Vlan, FramesOfOthersAreDropped) {
  start_on(100);
  EXPECT_FALSE(receive(ip_frame({}, kInner)));
  EXPECT_FALSE(receive(tagged(ip_frame({}, kInner), 101)));
  EXPECT_FALSE(receive(tagged(ip_frame({}, kInner), 0)));
  EXPECT_EQ(counters().other_vlan, 3u);
  start_on(0);
  EXPECT_FALSE(receive(tagged(ip_frame({}, kInner), 100)));
  EXPECT_EQ(counters().other_vlan, 1u);
}

TEST_F(Vlan, APriorityTagIsNoVlan) {
  EXPECT_EQ(receive(tagged(ip_frame({}, kInner), 5 << 13)), kInner);
  EXPECT_EQ(receive(tagged(ip6_frame(with_next(wire::kProtocolTcp), kInner), 0)), kInner);
}

TEST_F(Vlan, EveryCutIsSurvived) {
  for (const uint16_t vlan : {uint16_t{0}, uint16_t{100}}) {
    start_on(vlan);
    const Octets whole = tagged(ip_frame({}, kInner), vlan);
    for (size_t n = 1; n < whole.size(); ++n) {
      EXPECT_FALSE(receive({whole.begin(), whole.begin() + static_cast<long>(n)}));
    }
    EXPECT_EQ(counters().short_frames, 17u);
  }
}

TEST_F(Vlan, TheTagTakesNothingFromTheMtu) {
  start_on(4094);
  learn6(kPeer6, kPeerMac);
  receive(tagged(arp_request(kPeer, kPeerMac), 4094));
  interface_->flush(now_);
  port_->sent().clear();
  ASSERT_TRUE(send(kPeer, 1480));
  interface_->flush(now_);
  EXPECT_EQ(port_->take_sent().octets.size(), 1518u);
}

}  // namespace
}  // namespace rnic::net
