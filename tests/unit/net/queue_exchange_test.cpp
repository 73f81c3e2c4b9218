// What one queue of a port receives for all of them: which frames these are, and what becomes of
// the copies. How devices on several queues use it is in the tests of `rnic`.

#include "net/queue_exchange.hpp"

#include "ipv6_fixture.hpp"

namespace rnic::net {
namespace {

Octets tagged(Octets frame) {
  frame.insert(frame.begin() + wire::kEtherTypeAt, {0x81, 0x00, 0, 100});
  return frame;
}

// A tag changes nothing of what a frame is for; where it is cut off there is nothing to tell by.
TEST(QueueExchange, FramesOfAVlanConcernAllAsOthersDo) {
  const Octets reply = arp_reply(kPeer, kPeerMac);
  const Octets request = arp_request(kPeer, kPeerMac);
  const Octets answer = advertisement(kPeer6, kPeerMac);
  const Octets text = ip_frame({}, Octets(20));
  for (const Octets& frame : {reply, answer}) {
    EXPECT_TRUE(concerns_all_queues(frame));
    EXPECT_TRUE(concerns_all_queues(tagged(frame)));
  }
  for (const Octets& frame : {request, text}) {
    EXPECT_FALSE(concerns_all_queues(frame));
    EXPECT_FALSE(concerns_all_queues(tagged(frame)));
  }
  const Octets whole = tagged(reply);
  const size_t needed = wire::kEtherHeader + wire::kVlanTag + wire::kArpPacket;
  for (size_t n = 0; n <= whole.size(); ++n) {
    EXPECT_EQ(concerns_all_queues(base::ByteView(whole).first(n)), n >= needed) << n;
  }
}

/// Two queues of one port.
class TwoQueues : public ::testing::Test {
 protected:
  static port::PortInfo info(uint16_t queue) {
    port::PortInfo info{"fake", kOurMac, 1500, port::ChecksumMode::Software};
    info.spread.queue = queue;
    info.spread.queues = 2;
    return info;
  }
  /// Whoever serves a queue takes what it has. Each buffer is the first port's: a device has one
  /// pool.
  uint32_t take(uint32_t queue) {
    port::Packet packet;
    const uint32_t n = exchange_.port(queue).rx_burst({&packet, 1}, {});
    if (n != 0) first_.free({&packet, 1});
    return n;
  }

  test::FakePort first_{info(0)};
  test::FakePort second_{info(1)};
  QueueExchange exchange_{{&first_, &second_}};
};

TEST_F(TwoQueues, ACopyWithoutABufferIsLostAndCounted) {
  const Octets reply = arp_reply(kPeer, kPeerMac);
  first_.inject(reply);
  EXPECT_EQ(take(0), 1u);
  EXPECT_EQ(exchange_.port(0).counters().rx_shared, 1u);
  EXPECT_EQ(take(1), 1u);
  first_.refuse_alloc = true;
  first_.inject(reply);
  EXPECT_EQ(take(0), 1u) << "the queue's own comes all the same";
  EXPECT_EQ(exchange_.port(0).counters().rx_shared, 1u);
  EXPECT_EQ(exchange_.port(0).counters().rx_share_lost, 1u);
  EXPECT_EQ(take(1), 0u);
}

TEST_F(TwoQueues, EachHasTheLinkOfItsPort) {
  first_.link_state = port::LinkState::Up;
  second_.link_state = port::LinkState::Gone;
  EXPECT_EQ(exchange_.port(0).link(), port::LinkState::Up);
  EXPECT_EQ(exchange_.port(1).link(), port::LinkState::Gone);
}

/// A queue whose buffers are another's, and which counts those that it is given back.
class PoollessPort final : public test::FakePort {
 public:
  PoollessPort(port::PortInfo info, port::Port& pool) : FakePort(std::move(info)), pool_(pool) {}
  void free(std::span<const port::Packet> packets) override {
    freed += packets.size();
    pool_.free(packets);
  }
  size_t freed = 0;

 private:
  port::Port& pool_;
};

// What nobody fetched goes back to the pool at the end: each copy once, and nothing else.
TEST_F(TwoQueues, CopiesThatNobodyFetchedAreGivenBack) {
  constexpr uint32_t kCopies = 3;
  test::FakePort first(info(0));
  PoollessPort second(info(1), first);
  {
    QueueExchange exchange({&first, &second});
    for (uint32_t i = 0; i < kCopies; ++i) {
      first.inject(arp_reply(kPeer, kPeerMac));
      port::Packet packet;
      ASSERT_EQ(exchange.port(0).rx_burst({&packet, 1}, {}), 1u);
      first.free({&packet, 1});
    }
    EXPECT_EQ(first.outstanding(), kCopies) << "they wait for the other queue";
  }
  EXPECT_EQ(second.freed, kCopies);
  EXPECT_EQ(first.outstanding(), 0u);
}

}  // namespace
}  // namespace rnic::net
