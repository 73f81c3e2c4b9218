// What TCP has committed stays: retransmissions with other octets, duplicates, and SACKs that are
// kept to (RFC 5044 appendix A.3). Over the real TCP engine.

#include "base/prng.hpp"
#include "mpa_over_tcp.hpp"

namespace rnic::testing {
namespace {

using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

constexpr uint32_t kAltered = 1000;  // added to the number of a ULPDU

/// FPDUs that a has sent and the network has lost; and the same stream with other contents, as
/// right in every checksum and CRC.
class TwoStreams : public MpaConnection {
 public:
  TwoStreams(const ConnectionSetup& setup, uint32_t count, size_t length) : MpaConnection(setup) {
    open();
    const std::vector<std::vector<uint8_t>> frames = caught(*this, count, length);
    sample_ = frames.at(0);
    first_ = base::load_be32(&sample_[wire::kTcpSequenceAt]);
    link.hook = [](const LinkFrame& frame) { return Fate{.drop = frame.from_a}; };
    link.seen = [this](const LinkFrame& frame) {
      if (!frame.from_a) heard(frame);
    };
    SlowEncoder sent(kFullOperation, setup.markers, setup.crc);
    SlowEncoder other(kFullOperation, setup.markers, setup.crc);
    for (uint32_t i = 0; i < count; ++i) {
      sent.add(numbered_ulpdu(i, length));
      other.add(numbered_ulpdu(i + kAltered, length));
    }
    true_octets = sent.stream;
    altered_octets = other.stream;
    for (const uint64_t at : sent.boundaries) boundaries.push_back(at - kFullOperation);
    boundaries.push_back(true_octets.size());
    // What the sender made is what the slow encoder says.
    const size_t header = (sample_[wire::kTcpDataOffsetAt] >> 4) * 4u;
    EXPECT_TRUE(std::equal(sample_.begin() + static_cast<long>(header), sample_.end(),
                           true_octets.begin()));
    sample_.resize(header);
  }

  /// Octets [from, to) of one of the streams, in one segment; b answers.
  void give(const Octets& stream, size_t from, size_t to) {
    Octets segment = sample_;
    base::store_be32(&segment[wire::kTcpSequenceAt], first_ + static_cast<uint32_t>(from));
    segment.insert(segment.end(), stream.begin() + static_cast<long>(from),
                   stream.begin() + static_cast<long>(to));
    fix_checksum(segment);
    put_in(*this, segment);
    link.b.output(link.now);
  }
  void give_fpdus(const Octets& stream, size_t from, size_t to) {
    give(stream, boundaries[from], boundaries[to]);
  }
  [[nodiscard]] bool sacked(size_t at) const { return promised.at(at); }

  Octets true_octets, altered_octets;
  std::vector<size_t> boundaries;  // of the FPDUs, and the end
  std::vector<bool> promised;      // told by a SACK or an ACK, by octet
  uint64_t acknowledged = 0;       // by the last ACK
  std::vector<size_t> reneged;     // promised octets that an ACK asked for again

 private:
  void heard(const LinkFrame& frame) {
    const auto view = wire::TcpView::parse(frame.tcp);
    wire::TcpOptions options;
    ASSERT_TRUE(view && options.parse(view->options()));
    promised.resize(true_octets.size());
    acknowledged = base::load_be32(&frame.tcp[wire::kTcpAcknowledgmentAt]) - first_;
    ASSERT_LE(acknowledged, promised.size());
    for (size_t i = 0; i < acknowledged; ++i) promised[i] = true;
    for (uint32_t i = 0; i < options.sack_count; ++i) {
      const uint32_t left = options.sack[i].left.value - first_;
      const uint32_t right = options.sack[i].right.value - first_;
      if (left >= promised.size()) continue;  // of a duplicate in front (RFC 2883)
      for (size_t at = left; at < right; ++at) promised.at(at) = true;
    }
    if (acknowledged < promised.size() && promised[acknowledged]) reneged.push_back(acknowledged);
  }

  Octets sample_;       // TCP header
  uint32_t first_ = 0;  // sequence number of the first octet of full operation
};

// DDP-3-10: retransmissions with other octets, right in every
// checksum and CRC, come when the first copies are SACKed: one by one, cut elsewhere, over holes,
// and after the order has passed. Of each octet the first copy stands, each FPDU goes up once.
// UNH-MPA-2-12
TEST(FirstCopy, StaysUnderRightCrcs_MPA_A_3_02_MPA_A_3_04_MPA00_5_1_2_01) {
  for (const bool markers : {false, true}) {
    TwoStreams t({.markers = markers}, 7, 900);
    const auto count = [&] { return t.b.user.placed.size(); };
    for (const size_t i : {1u, 3u, 5u}) t.give_fpdus(t.true_octets, i, i + 1);
    for (const size_t i : {1u, 3u, 5u}) {
      for (size_t at = t.boundaries[i]; at < t.boundaries[i + 1]; ++at) ASSERT_TRUE(t.sacked(at));
      EXPECT_FALSE(t.sacked(t.boundaries[i] - 1));
    }
    EXPECT_EQ(count(), markers ? 3u : 0u);
    for (const size_t i : {1u, 3u, 5u}) {  // each whole, and then in pieces
      t.give_fpdus(t.altered_octets, i, i + 1);
      for (size_t at = t.boundaries[i]; at + 100 < t.boundaries[i + 1]; at += 77) {
        t.give(t.altered_octets, at, at + 100);
      }
    }
    EXPECT_EQ(count(), markers ? 3u : 0u);
    // Over two holes: of 2 and 4 this is the first copy, of 1, 3 and 5 it is not.
    t.give_fpdus(t.altered_octets, 1, 6);
    EXPECT_EQ(count(), markers ? 5u : 0u);
    t.give_fpdus(t.true_octets, 1, 6);
    t.give_fpdus(t.true_octets, 0, 1);
    t.give_fpdus(t.altered_octets, 0, 6);  // all of it is below the delivery point now
    t.give_fpdus(t.true_octets, 6, 7);
    t.give_fpdus(t.altered_octets, 0, 7);
    std::vector<Octets> expected;
    for (const uint32_t number : {0u, 1u, 2 + kAltered, 3u, 4 + kAltered, 5u, 6u}) {
      expected.push_back(numbered_ulpdu(number, 900));
    }
    EXPECT_EQ(t.b.user.delivered, expected);
    EXPECT_EQ(count(), expected.size());
    EXPECT_EQ(t.b.user.faults, 0);
    EXPECT_TRUE(t.b.user.errors.empty());
    EXPECT_TRUE(t.reneged.empty());
    EXPECT_EQ(t.acknowledged, t.true_octets.size());
  }
}

// Cuts, orders and altered copies by chance, without CRCs so that any
// mixture is an FPDU: octet by octet it is the first copy that the ULP gets.
TEST(FirstCopy, IsThatOfEachOctet_MPA_A_3_02_MPA00_5_1_2_01) {
  constexpr size_t kPiece = 250;
  uint32_t mixed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    base::Prng random(seed);
    TwoStreams t({.markers = false, .crc = false}, 5, 900);
    const size_t size = t.true_octets.size();
    const auto header = [&](size_t at) {  // the lengths are the same in both
      return std::any_of(t.boundaries.begin(), t.boundaries.end(),
                         [&](size_t b) { return at == b || at == b + 1; });
    };
    Octets first = t.true_octets;
    std::vector<bool> known(size);
    for (int i = 0; i < 60; ++i) {
      const bool altered = random.chance(0.5);
      const size_t from = random.below(size / kPiece + 1) * kPiece;
      const size_t to = std::min(size, from + kPiece * (1 + random.below(5)));
      if (i == 59) {
        t.give(t.true_octets, 0, size);
      } else if (from < to) {
        t.give(altered ? t.altered_octets : t.true_octets, from, to);
      }
      for (size_t at = i == 59 ? 0 : from; at < (i == 59 ? size : to); ++at) {
        if (!known[at] && altered && i != 59) first[at] = t.altered_octets[at];
        known[at] = true;
      }
    }
    Octets got;
    for (const Octets& ulpdu : t.b.user.delivered)
      got.insert(got.end(), ulpdu.begin(), ulpdu.end());
    Octets expected;
    for (size_t i = 0; i + 1 < t.boundaries.size(); ++i) {
      const auto at = first.begin() + static_cast<long>(t.boundaries[i]) + 2;
      expected.insert(expected.end(), at, at + 900);
      EXPECT_FALSE(header(t.boundaries[i] + 2));
    }
    ASSERT_EQ(got, expected) << seed;
    ASSERT_EQ(t.b.user.placed.size(), 5u);
    ASSERT_TRUE(t.reneged.empty()) << seed;
    if (got != t.true_octets) ++mixed;
  }
  EXPECT_GT(mixed, 100u);
}

// What a SACK has promised is never asked for again, also where the space for octets
// that cannot be placed is too small for the window: what finds no room is not promised.
TEST(FirstCopy, NothingPromisedIsAskedForAgain_MPA_A_3_04) {
  uint64_t refused = 0;
  for (const bool markers : {false, true}) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      base::Prng random(seed);
      TwoStreams t({.markers = markers, .hold_octets = 4096}, 12, 1000);
      const size_t size = t.true_octets.size();
      std::vector<std::pair<size_t, size_t>> missing;
      for (size_t at = 0; at < size; at += 500) missing.push_back({at, std::min(size, at + 500)});
      // By chance, and each again until its octets are promised; a promise is believed.
      for (int round = 0; t.acknowledged < size && round < 4000; ++round) {
        const auto [from, to] = missing[random.below(missing.size())];
        const bool believed = !t.promised.empty() && t.sacked(from) && t.sacked(to - 1);
        if (!believed) t.give(t.true_octets, from, to);
      }
      ASSERT_TRUE(t.reneged.empty()) << seed;
      ASSERT_EQ(t.acknowledged, size) << seed;
      ASSERT_EQ(t.b.user.delivered.size(), 12u) << seed;
      ASSERT_EQ(t.b.user.placed.size(), 12u) << seed;
      refused += t.b.counters.hold_refused;
    }
  }
  EXPECT_GT(refused, 100u);
}

// The last octets of an FPDU are held, and every repeat of what is missing before them goes on
// behind them, where there is no room: the order moves all the same, and room comes back with it.
TEST(FirstCopy, ASegmentOverAnIslandWithoutRoomBehindItMovesTheOrder) {
  TwoStreams t({.markers = false, .hold_octets = 2048}, 4, 900);
  const size_t fpdu = t.boundaries[1];
  for (int i = 0; i < 2; ++i) t.give(t.true_octets, fpdu - 2, fpdu);  // doubtful at first
  for (int i = 0; i < 2; ++i) t.give(t.true_octets, 0, 500);
  ASSERT_EQ(t.acknowledged, 500u);
  const uint64_t refused = t.b.counters.hold_refused;
  for (int i = 0; i < 20; ++i) t.give(t.true_octets, 500, 2500);
  EXPECT_GT(t.b.counters.hold_refused, refused);
  EXPECT_EQ(t.acknowledged, 2500u);
  t.give(t.true_octets, 2500, t.true_octets.size());
  EXPECT_EQ(t.b.user.delivered.size(), 4u);
  EXPECT_TRUE(t.reneged.empty());
}

// The network doubles, delays and loses segments, so that TCP repeats what has arrived
// as well: no ULPDU is given to DDP twice, placed or delivered.
TEST(FirstCopy, DdpGetsNoDuplicate_DDP_3_10) {
  for (const bool markers : {false, true}) {
    MpaConnection c({.markers = markers});
    c.open();
    base::Prng random(11);
    uint64_t doubled = 0;
    c.link.hook = [&](const LinkFrame& frame) {
      const uint32_t copies = random.chance(0.3) ? 2 + random.below(2) : 1;
      if (frame.from_a && frame.payload() != 0) doubled += copies - 1;
      return Fate{.drop = random.chance(0.05),
                  .copies = copies,
                  .extra = random.chance(0.2) ? milliseconds(random.below(400)) : milliseconds(0)};
    };
    c.queue(300, 1100);
    c.expect_all_delivered(seconds(600));
    c.link.run(seconds(5));  // copies that are still under way
    EXPECT_EQ(c.b.user.placed.size(), 300u);
    EXPECT_EQ(c.b.user.delivered.size(), 300u);
    EXPECT_EQ(c.b.user.faults, 0);
    EXPECT_GT(doubled, 50u);
    EXPECT_GT(c.link.b.counters().duplicate_octets_in, 50u * 1100);
    if (markers) {
      EXPECT_GT(c.b.counters.placed_early_octets, 0u);
    }
  }
}

}  // namespace
}  // namespace rnic::testing
