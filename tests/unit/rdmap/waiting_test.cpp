// What an endpoint says of what waits in it, and what it does not give away in part: its framing
// asks before it builds a segment.

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class WaitingTest : public TwoNodes {
 protected:
  static constexpr uint32_t kOverhead = 9;

  /// New framings and endpoints; a begins with an RTR of this kind.
  void restart_with(Rtr rtr) {
    pair.a = test::FramingEnd(kMulpdu);
    pair.b = test::FramingEnd(kMulpdu);
    a = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4}, 1);
    b = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4}, 2);
    pair.a.attach(a->endpoint.framing_user());
    pair.b.attach(b->endpoint.framing_user());
    a->endpoint.bind(pair.a, {.rtr_out = rtr});
    b->endpoint.bind(pair.b, {.send_rtr_in = rtr == Rtr::Send});
  }
  /// \return whether a framing that becomes able to send hears that there is something to be sent
  static bool told(test::FramingEnd& end) {
    const uint32_t before = end.ready_calls;
    end.user().may_send();
    return end.ready_calls != before;
  }
  /// A small Write is not sent at once for its own sake: it may wait for more (RFC 9293 s.3.7.4).
  static bool goes_at_once(test::FramingEnd& end) {
    return end.user().fills_segment(1000, kOverhead);
  }
  static void small_write(uint64_t id, Node& from, const Node& to) {
    SendRequest w = from.work(id, Opcode::Write, 0, 8);
    w.remote.stag = to.all;
    from.send(w);
  }
};

// Whatever waits, be it a message, a Response or an RTR alone, is told of when sending is allowed,
// until it has been pulled.
TEST_F(WaitingTest, MaySendTellsOfAMessage) {
  EXPECT_FALSE(told(pair.a));
  small_write(1, *a, *b);
  EXPECT_TRUE(told(pair.a));
  pair.a.pull_all();
  EXPECT_FALSE(told(pair.a));
}

TEST_F(WaitingTest, MaySendTellsOfAResponse) {
  EXPECT_FALSE(told(pair.b));
  inject(read_request(1, {.size = 8, .source_stag = b->all}));
  EXPECT_TRUE(told(pair.b));
  pair.b.pull_all();
  EXPECT_FALSE(told(pair.b));
}

TEST_F(WaitingTest, MaySendTellsOfAnRtr) {
  restart_with(Rtr::Write);
  EXPECT_TRUE(told(pair.a));
  pair.a.pull_all();
  EXPECT_FALSE(told(pair.a));
}

// Nagle's rule (RFC 9293 s.3.7.4) holds a small message back, but not one with a Response in front
// of it, of which the peer waits for each octet.
TEST_F(WaitingTest, AResponseMakesASmallMessageGoAtOnce) {
  small_write(1, *b, *a);
  EXPECT_FALSE(goes_at_once(pair.b));
  inject(read_request(1, {.size = 400, .source_stag = b->all}));
  EXPECT_TRUE(goes_at_once(pair.b));
  ASSERT_TRUE(pair.b.pull());
  ASSERT_TRUE(pair.b.pull());
  ASSERT_EQ(opcode(pair.b.sent[1]), static_cast<uint8_t>(wire::RdmapOpcode::ReadResponse));
  small_write(2, *b, *a);
  EXPECT_TRUE(goes_at_once(pair.b)) << "the Response is under way";
  ASSERT_TRUE(pair.b.pull());
  EXPECT_FALSE(goes_at_once(pair.b)) << "it is out";
}

// RFC 6581 s.9.2: nor one behind the RTR, which the peer must have before it may send.
TEST_F(WaitingTest, AnRtrMakesASmallMessageGoAtOnce) {
  for (const Rtr rtr : {Rtr::Write, Rtr::Read, Rtr::Send}) {
    restart_with(rtr);
    small_write(1, *a, *b);
    EXPECT_TRUE(goes_at_once(pair.a));
    ASSERT_TRUE(pair.a.pull());
    EXPECT_FALSE(goes_at_once(pair.a)) << "only the small message is left";
  }
}

// Decision 10: nor one behind an empty Write that wakes a silent peer.
TEST_F(WaitingTest, ANudgeMakesASmallMessageGoAtOnce) {
  small_write(1, *a, *b);
  ASSERT_TRUE(pair.a.pull());
  small_write(2, *a, *b);
  EXPECT_FALSE(goes_at_once(pair.a));
  pair.a.user().peer_silent();
  EXPECT_TRUE(goes_at_once(pair.a));
  ASSERT_TRUE(pair.a.pull());
  EXPECT_FALSE(goes_at_once(pair.a));
}

// RFC 6581 s.9.2: an RTR is one FPDU. Where it does not fit to the octet nothing goes, and it still
// waits for a larger segment.
TEST_F(WaitingTest, AnRtrIsNotCutToFit) {
  for (const auto& [rtr, size] :
       {std::pair{Rtr::Write, wire::kDdpTaggedSize}, std::pair{Rtr::Send, wire::kDdpUntaggedSize},
        std::pair{Rtr::Read, 46u}}) {
    restart_with(rtr);
    EXPECT_FALSE(pair.a.pull(false, size - 1));
    EXPECT_EQ(a->counters.rtrs_out, 0u);
    EXPECT_TRUE(a->owner.events.empty());
    ASSERT_TRUE(pair.a.pull(false, size));
    EXPECT_EQ(pair.a.sent.back().octets.size(), size);
    EXPECT_EQ(a->counters.rtrs_out, 1u);
  }
}

}  // namespace
}  // namespace rnic::rdmap
