// The receiver with a framing of nothing but lengths: what MPA and ULP framing have in common, and
// what another framing protocol would have to bring along.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "framing/framing.hpp"
#include "framing/receiver_steps.hpp"
#include "length_locator.hpp"
#include "support/damage.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::framing {

using test::FakeFramingUser;
using test::FakeStream;
using test::Octets;

template class Receiver<LengthLocator>;

namespace {

struct Counts {
  uint64_t pdus_in = 0, in_order = 0, early = 0, held = 0, refused = 0, discarded = 0;
};

struct End final : ReceiverOwner {
  explicit End(uint32_t hold_limit = 1u << 16)
      : receiver(store, {.hold = hold_limit, .early = 64, .out_of_order = true},
                 {counts.pdus_in, counts.in_order, counts.early, counts.held, counts.refused,
                  counts.discarded},
                 locator, *this) {
    receiver.attach(&stream);
    receiver.bind(&user);
    receiver.start(0);
  }
  void first_pdu(base::Now) override { ++firsts; }
  void broken(PduError error, base::Now) override { errors.push_back(error); }

  /// As TCP does: asks, commits, and tells how far the order has come.
  llp::InspectVerdict arrive(uint64_t begin, base::ByteView octets) {
    const base::Range range{begin, begin + octets.size()};
    const llp::InspectVerdict verdict = receiver.inspect(range, octets, {});
    if (verdict != llp::InspectVerdict::Accept) return verdict;
    receiver.place(range, octets, {});
    committed.push_back(range);
    while (true) {
      const auto next = std::ranges::find(committed, ordered, &base::Range::begin);
      if (next == committed.end()) break;
      ordered = next->end;
      committed.erase(next);
    }
    receiver.ordered(ordered, {});
    return verdict;
  }

  HoldStore store{1u << 20};
  Counts counts;
  FakeStream stream;
  FakeFramingUser user;
  LengthLocator locator{store};
  Receiver<LengthLocator> receiver;
  std::vector<PduError> errors;
  std::vector<base::Range> committed;
  uint64_t ordered = 0;
  int firsts = 0;
};

Octets stream_of(const std::vector<Octets>& pdus) {
  Octets stream;
  for (const Octets& pdu : pdus) {
    stream.push_back(static_cast<uint8_t>(pdu.size()));
    stream.insert(stream.end(), pdu.begin(), pdu.end());
  }
  return stream;
}

std::vector<Octets> numbered(uint32_t count, std::mt19937& random) {
  std::vector<Octets> pdus;
  for (uint32_t i = 0; i < count; ++i) {
    pdus.push_back(test::numbered_ulpdu(i, 5 + random() % 200));
  }
  return pdus;
}

// However the stream is cut and in whatever order it comes, each PDU is placed once and delivered
// once, in order, and nothing stays behind.
TEST(Receiver, AnySegmentsInAnyOrder) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<Octets> pdus = numbered(20, random);
    const Octets stream = stream_of(pdus);
    std::vector<base::Range> segments;
    for (uint64_t at = 0; at < stream.size();) {
      const uint64_t end = std::min<uint64_t>(at + 1 + random() % 300, stream.size());
      segments.push_back({at, end});
      at = end;
    }
    if (seed % 2 != 0) std::shuffle(segments.begin(), segments.end(), random);
    End end;
    for (const base::Range& s : segments) {
      ASSERT_EQ(end.arrive(s.begin, base::ByteView(stream).subspan(s.begin, s.size())),
                llp::InspectVerdict::Accept);
    }
    EXPECT_EQ(end.user.delivered, pdus);
    EXPECT_TRUE(end.errors.empty());
    EXPECT_EQ(end.firsts, 1);
    EXPECT_EQ(end.counts.pdus_in, pdus.size());
    EXPECT_EQ(end.locator.placed_count, pdus.size());
    EXPECT_EQ(end.locator.passed_to, stream.size());
    EXPECT_EQ(end.receiver.held(), 0u);
    EXPECT_EQ(end.store.octets(), 0u);
    EXPECT_TRUE(end.receiver.at_boundary());
  }
}

// What is no PDU stands at the delivery point: those before it are delivered, nothing behind it is.
TEST(Receiver, ABadPduEndsWhatGoesUp) {
  std::mt19937 random(1);
  for (const uint64_t cut : {0u, 1u, 5u, 40u}) {
    const std::vector<Octets> pdus = numbered(2, random);
    Octets stream = stream_of(pdus);
    const uint64_t bad = stream.size();
    stream.insert(stream.end(), 100, 0);
    End end;
    const uint64_t first = bad + cut;
    EXPECT_EQ(end.arrive(0, base::ByteView(stream).first(first)), llp::InspectVerdict::Accept);
    EXPECT_EQ(end.arrive(first, base::ByteView(stream).subspan(first)),
              llp::InspectVerdict::Accept);
    EXPECT_EQ(end.user.delivered, pdus) << cut;
    EXPECT_EQ(end.errors, std::vector<PduError>{kBadLength}) << cut;
    EXPECT_EQ(end.receiver.held(), 0u);
    EXPECT_EQ(end.arrive(stream.size(), base::ByteView(stream).first(50)),
              llp::InspectVerdict::Accept)
        << "acknowledged all the same";
    EXPECT_EQ(end.user.delivered, pdus);
  }
}

// Without hold space a segment ahead of the order is refused before its commit, and one in order
// finds room all the same.
TEST(Receiver, WithoutHoldSpaceTheOrderGoesOn) {
  std::mt19937 random(2);
  const std::vector<Octets> pdus = numbered(4, random);
  const Octets stream = stream_of(pdus);
  End end(0);
  const base::ByteView octets(stream);
  EXPECT_EQ(end.arrive(100, octets.subspan(100, 50)), llp::InspectVerdict::NoRoom);
  EXPECT_EQ(end.counts.refused, 1u);
  for (uint64_t at = 0; at < stream.size(); at += 7) {
    const uint64_t n = std::min<uint64_t>(7, stream.size() - at);
    ASSERT_EQ(end.arrive(at, octets.subspan(at, n)), llp::InspectVerdict::Accept);
  }
  EXPECT_EQ(end.user.delivered, pdus);
}

using LengthReceiver = Receiver<LengthLocator>;

RNIC_OPEN(LengthReceiver, can_drop_)
RNIC_OPEN(LengthReceiver, stopped_)
RNIC_OPEN(LengthReceiver, stream_)

TEST(Receiver, NoticesDamage) {
  End end;
  end.arrive(10, Octets(5, 1));
  ASSERT_NE(end.receiver.held(), 0u);
  test::notices(end.receiver, "framing/receiver_steps.hpp: held_.empty() && placed().empty()",
                [&] { stopped_(end.receiver) = true; });
  test::notices(end.receiver, "framing/receiver_steps.hpp: !can_drop_ ||", [&] {
    can_drop_(end.receiver) = true;
    stream_(end.receiver) = nullptr;
  });
}

}  // namespace
}  // namespace rnic::framing
