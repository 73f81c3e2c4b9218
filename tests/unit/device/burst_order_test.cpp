// In which order the frames of a burst are taken, and which of them wait for the next one.
#include "device/burst_order.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "base/endian.hpp"
#include "wire/ether.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::device {
namespace {

namespace flag = wire::tcp_flag;
using Octets = std::vector<uint8_t>;

/// A frame with a TCP segment, as far as anybody looks at it.
struct Frame {
  uint32_t begin = 0;
  uint32_t text = 100;
  uint32_t stamp = 0;  // 0: none
  uint8_t flags = flag::kAck;
  uint8_t flow = 1;
  bool ipv6 = false;
  bool tagged = false;

  [[nodiscard]] Octets octets() const {
    const uint32_t tcp_header = stamp == 0 ? 20 : 32;
    const uint32_t ip_header = ipv6 ? wire::kIpv6Header : wire::kIpv4Header;
    Octets frame(wire::kEtherHeader + ip_header + tcp_header + text);
    base::store_be16(&frame[wire::kEtherTypeAt],
                     ipv6 ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4);
    write_ip(&frame[wire::kEtherHeader], tcp_header + text);
    uint8_t* const tcp = &frame[wire::kEtherHeader + ip_header];
    base::store_be16(tcp + wire::kTcpSourcePortAt, flow);
    base::store_be32(tcp + wire::kTcpSequenceAt, begin);
    tcp[wire::kTcpDataOffsetAt] = static_cast<uint8_t>(tcp_header << 2);
    tcp[wire::kTcpFlagsAt] = flags;
    if (stamp != 0) {
      base::store_be32(tcp + wire::kTcpOptionsAt, 0x0101080a);
      base::store_be32(tcp + wire::kTcpOptionsAt + 4, stamp);
    }
    if (tagged) frame.insert(frame.begin() + wire::kEtherTypeAt, {0x81, 0x00, 0, 100});
    return frame;
  }

 private:
  void write_ip(uint8_t* ip, uint32_t payload) const {
    if (ipv6) {
      ip[0] = 0x60;
      base::store_be16(ip + wire::kIpv6LengthAt, static_cast<uint16_t>(payload));
      ip[wire::kIpv6NextHeaderAt] = wire::kProtocolTcp;
      return;
    }
    ip[0] = 0x45;
    base::store_be16(ip + wire::kIpv4LengthAt,
                     static_cast<uint16_t>(wire::kIpv4Header + payload));
    ip[wire::kIpv4ProtocolAt] = wire::kProtocolTcp;
  }
};

class BurstOrderTest : public ::testing::Test {
 protected:
  using Order = std::vector<size_t>;

  BurstOrderTest() { order_.note_ahead(1); }

  /// A burst comes, behind what has waited. \return which frames of the test, counted from its
  /// begin, are taken
  Order arrange(const std::vector<Octets>& frames) {
    burst_.erase(burst_.begin(), burst_.end() - waiting_);
    for (const Octets& octets : frames) {
      store_.push_back(octets);
      port::Packet packet;
      packet.data = store_.back().data();
      packet.length = static_cast<uint32_t>(octets.size());
      packet.room = static_cast<uint32_t>(store_.size() - 1);  // tells the frames apart
      burst_.push_back(packet);
    }
    const uint32_t taken = order_.arrange(burst_);
    order_.validate();
    EXPECT_EQ(order_.held(), burst_.size() - taken);
    waiting_ = order_.held();
    Order order;
    for (uint32_t i = 0; i < taken; ++i) order.push_back(burst_[i].room);
    return order;
  }
  Order arrange(const std::vector<Frame>& frames) {
    std::vector<Octets> all;
    for (const Frame& frame : frames) all.push_back(frame.octets());
    return arrange(all);
  }
  /// A turn begins, and brings a burst.
  Order turn(const std::vector<Frame>& frames) {
    order_.begin_turn();
    return arrange(frames);
  }
  /// Bursts with an overtaken segment, until what is behind a hole waits. Their text ends at 0.
  void make_disorder() {
    for (uint32_t i = 0; i < 4; ++i) turn({{0u - 100}, {0u - 200}});
  }
  /// Numbers of frames that came after make_disorder(), from 0 on.
  static Order behind_disorder(std::initializer_list<size_t> numbers) {
    Order order;
    for (const size_t number : numbers) order.push_back(number + 8);
    return order;
  }

  DeviceCounters counters_;
  BurstOrder order_{true, counters_};
  std::deque<Octets> store_;
  std::vector<port::Packet> burst_;
  uint32_t waiting_ = 0;
};

// --- Order ---

TEST_F(BurstOrderTest, TextIsTakenInTheOrderOfItsOctets) {
  EXPECT_EQ(turn({{300}, {0}, {200}, {100}}), (Order{1, 3, 2, 0}));
  EXPECT_EQ(counters_.overtaken_in, 3u);
}

TEST_F(BurstOrderTest, SequenceNumbersWrapAround) {
  EXPECT_EQ(turn({{0u - 50}, {50}, {0u - 150}}), (Order{2, 0, 1}));
}

TEST_F(BurstOrderTest, WhatComesTwiceStaysAsItCame) {
  EXPECT_EQ(turn({{100}, {100}, {0}, {0}}), (Order{2, 3, 0, 1}));
}

TEST_F(BurstOrderTest, OrderedBurstsStayAsTheyAre) {
  EXPECT_EQ(turn({{0}, {100}, {200}}), (Order{0, 1, 2}));
  EXPECT_EQ(counters_.overtaken_in, 0u);
}

TEST_F(BurstOrderTest, EachOfSeveralFlowsHasAnOrderOfItsOwn) {
  std::vector<Frame> frames;
  for (const uint32_t begin : {100u, 0u}) {
    for (uint8_t flow = 1; flow <= 5; ++flow) frames.push_back({.begin = begin, .flow = flow});
  }
  EXPECT_EQ(turn(frames), (Order{5, 6, 7, 8, 4, 0, 1, 2, 3, 9})) << "there are four lanes";
  EXPECT_EQ(turn(frames).size(), frames.size());
}

TEST_F(BurstOrderTest, ALaneIsTheNextFlowsWhereItsOwnHasSentNothing) {
  for (uint8_t flow = 1; flow <= 9; ++flow) {
    const size_t first = store_.size();
    EXPECT_EQ(turn({{.begin = 100, .flow = flow}, {.begin = 0, .flow = flow}}),
              (Order{first + 1, first}));
  }
}

TEST_F(BurstOrderTest, FramesOfVlansAndOfBothFamiliesAreKnown) {
  for (const bool ipv6 : {false, true}) {
    for (const bool tagged : {false, true}) {
      Frame later{.begin = 100, .ipv6 = ipv6, .tagged = tagged};
      Frame earlier{.begin = 0, .ipv6 = ipv6, .tagged = tagged};
      const size_t first = store_.size();
      EXPECT_EQ(turn({later, earlier}), (Order{first + 1, first})) << ipv6 << tagged;
    }
  }
}

// Put before what was sent before it, a segment that was sent again would bring a timestamp which
// makes the others look old: PAWS (RFC 7323 section 5.3) would drop them.
TEST_F(BurstOrderTest, NothingPassesWhatBearsAnEarlierTimestamp) {
  EXPECT_EQ(turn({{.begin = 100, .stamp = 7}, {.begin = 0, .stamp = 8}}), (Order{0, 1}));
  EXPECT_EQ(turn({{.begin = 100, .stamp = 8}, {.begin = 0, .stamp = 8}}), (Order{3, 2}));
  EXPECT_EQ(turn({{.begin = 100, .stamp = 8}, {.begin = 0, .stamp = 7}}), (Order{5, 4}));
}

TEST_F(BurstOrderTest, AnAckKeepsItsPlace) {
  const Frame ack{.begin = 500, .text = 0};
  EXPECT_EQ(turn({{100}, ack, {0}}), (Order{2, 1, 0}));
}

TEST_F(BurstOrderTest, AFlowWhoseSegmentsAreNotAllPlainStaysAsItCame) {
  const Frame fin{.begin = 200, .text = 0, .flags = flag::kAck | flag::kFin};
  const Frame urgent{.begin = 200, .flags = flag::kAck | flag::kUrg};
  const Frame reset{.begin = 200, .text = 0, .flags = flag::kRst};
  for (const Frame& other : {fin, urgent, reset}) {
    const size_t first = store_.size();
    EXPECT_EQ(turn({{100}, {0}, other}), (Order{first, first + 1, first + 2}));
  }
  Octets with_options = Frame{.begin = 0, .stamp = 9}.octets();
  with_options[wire::kEtherHeader + wire::kIpv4Header + wire::kTcpOptionsAt] = 5;  // SACK
  const size_t first = store_.size();
  EXPECT_EQ(arrange(std::vector<Octets>{Frame{.begin = 100, .stamp = 9}.octets(), with_options}),
            (Order{first, first + 1}));
}

TEST_F(BurstOrderTest, PushedTextIsPlain) {
  EXPECT_EQ(turn({{100}, {.begin = 0, .flags = flag::kAck | flag::kPsh}}), (Order{1, 0}));
}

/// Frames in which something is wrong, or that hold something else.
class Oddity : public BurstOrderTest {
 protected:
  /// The frame with one octet changed, between two that change places.
  void expect_kept(Octets odd, const char* what) {
    const size_t first = store_.size();
    order_.begin_turn();
    EXPECT_EQ(arrange(std::vector<Octets>{Frame{.begin = 200}.octets(), std::move(odd),
                                          Frame{.begin = 0}.octets()}),
              (Order{first + 2, first + 1, first}))
        << what;
  }
  static Octets with(uint32_t at, uint8_t value, bool ipv6 = false) {
    Octets frame = Frame{.begin = 100, .ipv6 = ipv6}.octets();
    frame[at] = value;
    return frame;
  }
};

TEST_F(Oddity, KeepsItsPlace) {
  constexpr uint32_t kIp = wire::kEtherHeader;
  constexpr uint32_t kTcp = kIp + wire::kIpv4Header;
  constexpr uint32_t kTcp6 = kIp + wire::kIpv6Header;
  expect_kept(with(wire::kEtherTypeAt + 1, 0x06), "ARP");
  expect_kept(with(kIp, 0x46), "options of IP");
  expect_kept(with(kIp + wire::kIpv4ProtocolAt, 17), "UDP");
  expect_kept(with(kIp + wire::kIpv4FragmentAt, 0x20), "a fragment");
  expect_kept(with(kIp + wire::kIpv4FragmentAt + 1, 1), "another fragment");
  expect_kept(with(kIp + wire::kIpv4LengthAt, 9), "an IP length beyond the frame");
  expect_kept(with(kIp + wire::kIpv4LengthAt + 1, 39), "an IP length without a TCP header");
  expect_kept(with(kTcp + wire::kTcpDataOffsetAt, 4 << 4), "a TCP header that is too short");
  Octets cut = Frame{.begin = 100, .text = 1}.octets();
  cut[kTcp + wire::kTcpDataOffsetAt] = 15 << 4;
  expect_kept(cut, "a TCP header beyond the packet");
  expect_kept(with(kIp, 0x50, true), "neither version");
  expect_kept(with(kIp + wire::kIpv6NextHeaderAt, 0, true), "an extension header");
  expect_kept(with(kIp + wire::kIpv6LengthAt, 9, true), "a payload beyond the frame");
  expect_kept(with(kIp + wire::kIpv6LengthAt + 1, 19, true), "a payload without a TCP header");
  expect_kept(with(kTcp6 + wire::kTcpDataOffsetAt, 4 << 4, true), "a TCP header that is too short");
}

TEST_F(Oddity, NoOctetBehindTheEndOfAFrameIsLookedAt) {
  for (const bool ipv6 : {false, true}) {
    for (const bool tagged : {false, true}) {
      const Octets whole = Frame{.begin = 100, .ipv6 = ipv6, .tagged = tagged}.octets();
      for (size_t n = 0; n < whole.size(); ++n) {
        // What is left stands in memory of its own, so that AddressSanitizer sees its end.
        expect_kept(Octets(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)), "cut off");
      }
    }
  }
}

// --- What is looked at ---

TEST_F(BurstOrderTest, NothingIsLookedAtUntilTextArrivesAheadOfItsOrder) {
  BurstOrder order(true, counters_);
  order.note_ahead(0);
  EXPECT_FALSE(order.on());
  order.note_ahead(100);
  EXPECT_TRUE(order.on());
}

TEST_F(BurstOrderTest, ADeviceThatIsToTakeBurstsAsTheyComeLooksAtNone) {
  BurstOrder order(false, counters_);
  order.note_ahead(100);
  EXPECT_FALSE(order.on());
  order.validate();
}

// A loss has text arrive ahead of its order, too, and one segment look as if it had been overtaken.
TEST_F(BurstOrderTest, WhereALookFindsLittleTheNextBurstsAreTakenAsTheyCome) {
  turn({{100}, {0}});
  for (uint32_t i = 1; i < 16; ++i) {
    ASSERT_TRUE(order_.on()) << i;
    turn({{100 + 100 * i}});
  }
  for (uint64_t i = 0; i < 256; ++i) {
    ASSERT_FALSE(order_.on()) << i;
    order_.note_ahead(2 + i);
    order_.validate();
  }
  order_.note_ahead(257);
  EXPECT_FALSE(order_.on()) << "no more came ahead of its order";
  order_.note_ahead(258);
  EXPECT_TRUE(order_.on());
  order_.validate();
}

TEST_F(BurstOrderTest, ALookEndsWhenDisorderHasBeenLowForSixteenBursts) {
  make_disorder();
  uint32_t at = 0;
  for (uint32_t i = 0; i < 8 + 16; ++i, at += 100) {
    ASSERT_TRUE(order_.on()) << i;
    turn({{at}});
  }
  EXPECT_FALSE(order_.on());
}

// --- What waits ---

TEST_F(BurstOrderTest, WhatIsBehindAHoleWaitsForTheNextTurn) {
  make_disorder();
  EXPECT_EQ(turn({{0}, {200}, {300}}), behind_disorder({0}));
  EXPECT_EQ(counters_.waited_in, 2u);
  EXPECT_EQ(turn({{400}, {100}}), behind_disorder({4, 1, 2, 3}));
  EXPECT_EQ(order_.held(), 0u);
}

TEST_F(BurstOrderTest, ItWaitsForOneTurnWhateverThatBrings) {
  make_disorder();
  EXPECT_EQ(turn({{0}, {200}}), behind_disorder({0}));
  EXPECT_EQ(turn({}), behind_disorder({1}));
  EXPECT_EQ(turn({{300}, {500}}), behind_disorder({2})) << "the hole before 300 is known";
  EXPECT_EQ(turn({{600}}), behind_disorder({3, 4})) << "nothing waits beside what has waited";
}

TEST_F(BurstOrderTest, ItWaitsForAllBurstsOfATurn) {
  make_disorder();
  EXPECT_EQ(turn({{0}, {200}}), behind_disorder({0}));
  EXPECT_EQ(turn({}), behind_disorder({1}));
  EXPECT_EQ(turn({{300}, {500}}), behind_disorder({2}));
  EXPECT_EQ(turn({{400}, {700}}), behind_disorder({4, 3})) << "of this turn, as 700 is";
  EXPECT_EQ(arrange(std::vector<Frame>{{800}}), Order{});
  EXPECT_EQ(arrange(std::vector<Frame>{{600}}), behind_disorder({7, 5, 6}));
}

TEST_F(BurstOrderTest, ALateSegmentMakesNoHoleBehindIt) {
  make_disorder();
  EXPECT_EQ(turn({{0}, {200}}), behind_disorder({0}));
  EXPECT_EQ(turn({}), behind_disorder({1}));
  EXPECT_EQ(turn({{100}, {300}}), behind_disorder({2, 3})) << "200 has been taken";
}

// A loss looks like reordering once, when it is sent again.
TEST_F(BurstOrderTest, NothingWaitsWhereSegmentsAreOvertakenOnceInAWhile) {
  for (uint32_t i = 0; i < 3; ++i) {  // one look
    const uint32_t base = i * 1000;
    turn({{base + 100}, {base}});
    for (uint32_t burst = 0; burst < 4; ++burst) {
      EXPECT_EQ(turn({{base + 300 + 200 * burst}}).size(), 1u) << "behind a hole";
    }
  }
  EXPECT_EQ(counters_.waited_in, 0u);
}

TEST_F(BurstOrderTest, DisorderOfLongAgoIsForgotten) {
  make_disorder();
  uint32_t at = 0;
  for (; order_.on(); at += 100) turn({{at}});
  for (uint64_t ahead = 2; !order_.on(); ++ahead) order_.note_ahead(ahead);
  for (uint32_t i = 0; i < 4; ++i) turn({{.begin = 100, .flow = 2}, {.begin = 0, .flow = 2}});
  const size_t first = store_.size();
  EXPECT_EQ(turn({{at + 100}}), Order{first}) << "where its flow was then is nothing to go by";
}

TEST_F(BurstOrderTest, MoreThanThereIsRoomForDoesNotWait) {
  make_disorder();
  std::vector<Frame> frames;
  for (uint32_t i = 0; i < BurstOrder::kMostHeld; ++i) frames.push_back({100 + 100 * i});
  EXPECT_EQ(turn(frames), Order{});
  EXPECT_EQ(order_.held(), BurstOrder::kMostHeld);
  EXPECT_EQ(turn({}).size(), BurstOrder::kMostHeld);
  for (Frame& frame : frames) frame.begin += 6700;
  EXPECT_EQ(turn({{6500}, {6700}}).size(), 1u);
  EXPECT_EQ(arrange(frames).size(), frames.size() + 1) << "with one that waits";
}

TEST_F(BurstOrderTest, TheRoomIsAllFlows) {
  make_disorder();
  turn({{.begin = 0, .flow = 2}});
  std::vector<Frame> frames;
  for (uint32_t i = 0; i < BurstOrder::kMostHeld - 1; ++i) frames.push_back({100 + 100 * i});
  EXPECT_EQ(turn(frames), Order{});
  const size_t first = store_.size();
  EXPECT_EQ(arrange(std::vector<Frame>{{.begin = 200, .flow = 2}}), Order{});
  EXPECT_EQ(order_.held(), BurstOrder::kMostHeld);
  EXPECT_EQ(arrange(std::vector<Frame>{{.begin = 300, .flow = 2}}), (Order{first, first + 1}));
}

TEST_F(BurstOrderTest, EachFlowWaitsForItsOwnHole) {
  make_disorder();
  EXPECT_EQ(turn({{.begin = 0, .flow = 2}, {0}, {200}, {.begin = 200, .flow = 2}, {300}}),
            behind_disorder({0, 1}));
  EXPECT_EQ(turn({{100}, {.begin = 500, .flow = 2}}), behind_disorder({5, 2, 3, 4, 6}));
}

TEST_F(BurstOrderTest, NothingOfAFlowWaitsBesideWhatIsNotPlain) {
  make_disorder();
  EXPECT_EQ(turn({{0}, {200}}), behind_disorder({0}));
  const Frame fin{.begin = 300, .text = 0, .flags = flag::kAck | flag::kFin};
  EXPECT_EQ(turn({{100}, fin}), behind_disorder({1, 2, 3})) << "as they came";
  EXPECT_EQ(turn({{900}}), behind_disorder({4})) << "how far it took the flow is not known";
}

// Nothing has been checked when frames change places: a number that damage has made must not keep
// a flow from being ordered, or from being taken.
TEST_F(BurstOrderTest, ADamagedNumberIsForgotten) {
  make_disorder();
  EXPECT_EQ(turn({{0}, {0x40000000}}), behind_disorder({0}));
  EXPECT_EQ(turn({{100}}), behind_disorder({2, 1}));
  EXPECT_EQ(turn({{200}, {400}}), behind_disorder({3}));
  EXPECT_EQ(turn({{300}}), behind_disorder({5, 4}));
}

}  // namespace
}  // namespace rnic::device
