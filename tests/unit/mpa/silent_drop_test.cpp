// Silent drop (RFC 5044 s.8): what is damaged behind a right TCP checksum is dropped before it is
// committed, wherever the damage is; what is cut is dropped five times at most.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/prng.hpp"
#include "mpa/fpdu_locator.hpp"
#include "start_frames.hpp"
#include "support/long_form.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

/// A responder in full operation, given the segments of a stream one by one. Nothing that it drops
/// comes again by itself.
struct Dropper {
  explicit Dropper(bool markers, const std::vector<size_t>& lengths, uint32_t drop_limit = 8)
      : Dropper(config_of(markers, drop_limit), lengths) {}
  /// \param private_data octets of it in the Request
  Dropper(const Config& config, const std::vector<size_t>& lengths, size_t private_data = 0)
      : end(framing::Role::Responder, config),
        start(kStart + private_data),
        encoder(start, config.markers_receive, config.crc) {
    for (const size_t length : lengths) {
      expected.push_back(numbered_ulpdu(static_cast<uint32_t>(expected.size()), length));
      encoder.add(expected.back());
    }
    MpaEnd peer(framing::Role::Initiator, config, Octets(private_data, 'p'));
    peer.establish();
    end.establish();
    end.receive(0, peer.pull_all());
    end.session->accept({}, end.now);
    end.pull_all();
    end.sends_again = false;
  }
  static Config config_of(bool markers, uint32_t drop_limit) {
    Config config;
    config.markers_receive = markers;
    config.drop_limit = drop_limit;
    return config;
  }
  bool give(size_t from, size_t to) {
    return end.receive(start + from, base::ByteView(encoder.stream).subspan(from, to - from));
  }
  bool give_damaged(size_t from, size_t to, size_t at, uint8_t bits) {
    encoder.stream[at] ^= bits;
    const bool taken = give(from, to);
    encoder.stream[at] ^= bits;
    return taken;
  }
  [[nodiscard]] size_t boundary(size_t i) const {
    return i < encoder.boundaries.size() ? encoder.boundaries[i] - start : encoder.stream.size();
  }
  void expect_all() {
    EXPECT_EQ(end.user.delivered, expected);
    EXPECT_EQ(end.user.faults, 0);
    EXPECT_TRUE(end.user.errors.empty());
    EXPECT_EQ(held_octets(*end.own_store), 0u);
  }

  MpaEnd end;
  uint64_t start;  ///< stream offset of the first FPDU
  SlowEncoder encoder;
  std::vector<Octets> expected;
};

/// Between the octets that are damaged: in the long form each of them is.
size_t step() { return test::by_form<size_t>(7, 1); }

/// Every octet of segment `hit`, one bit changed, the segments given in `order`. What is dropped
/// comes again, and everything is delivered.
void every_octet_heals(bool markers, const std::vector<size_t>& lengths,
                       const std::vector<size_t>& first_fpdus, const std::vector<size_t>& order,
                       size_t hit, size_t every = 1) {
  const Dropper sample(markers, lengths);
  std::vector<size_t> cuts;
  for (const size_t i : first_fpdus) cuts.push_back(sample.boundary(i));
  cuts.push_back(sample.encoder.stream.size());
  for (size_t at = cuts[hit]; at < cuts[hit + 1]; at += every * step()) {
    Dropper rx(markers, lengths);
    for (const size_t k : order) {
      if (k != hit) {
        ASSERT_TRUE(rx.give(cuts[k], cuts[k + 1]));
        continue;
      }
      const auto bit = static_cast<uint8_t>(1u << (at + hit) % 8);
      ASSERT_FALSE(rx.give_damaged(cuts[k], cuts[k + 1], at, bit))
          << "octet " << at - cuts[k] << " of segment " << k << ", markers " << markers;
    }
    ASSERT_TRUE(rx.give(cuts[hit], cuts[hit + 1])) << at;
    ASSERT_NO_FATAL_FAILURE(rx.expect_all());
    ASSERT_EQ(rx.end.counters.crc_errors + rx.end.counters.marker_errors, 0u) << at;
  }
}

// Small FPDUs in a segment, the first marker of which lies in a later one; every octet,
// in order and ahead of it, from the first segment of the connection on.
TEST(SilentDrop, EveryOctetOfASegmentOfManyFpdus_MPA_8_07) {
  const std::vector<size_t> lengths(24, 50);
  const std::vector<size_t> segments{0, 7, 14, 19};
  for (const bool markers : {false, true}) {
    for (const std::vector<size_t>& order :
         {std::vector<size_t>{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 1, 3, 0}, {3, 2, 1, 0}}) {
      for (size_t hit = 0; hit < 4; ++hit) {
        every_octet_heals(markers, lengths, segments, order, hit);
      }
    }
  }
}

TEST(SilentDrop, EveryOctetOfAFullSegment_MPA_8_07) {
  const std::vector<size_t> lengths(4, 1430);
  for (const bool markers : {false, true}) {
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2, 3}, {2, 1, 3, 0}}) {
      for (size_t hit = 0; hit < 4; ++hit) {
        every_octet_heals(markers, lengths, {0, 1, 2, 3}, order, hit, hit == 2 ? 1 : 7);
      }
    }
  }
}

// More FPDUs in a segment than are listed: those behind the list are proven as well.
TEST(SilentDrop, EveryOctetBehindTheListedFpdus_MPA_8_07) {
  const std::vector<size_t> lengths(420, 18);
  for (const bool markers : {false, true}) {
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2}, {1, 0, 2}, {2, 1, 0}}) {
      every_octet_heals(markers, lengths, {0, 60, 360}, order, 1, 5);
    }
  }
}

// Of an FPDU that had to be cut the piece that completes it is judged by the CRC of the
// whole, whichever piece it is, and the others when they come a second time.
TEST(SilentDrop, EveryOctetOfAnFpduInPieces_MPA_8_07) {
  for (const bool markers : {false, true}) {
    const std::vector<size_t> lengths{100, 1400, 100};
    const Dropper sample(markers, lengths);
    const size_t begin = sample.boundary(1), end = sample.boundary(2);
    const std::vector<size_t> cuts{begin, begin + 16, begin + 700, end - 4, end};
    std::vector<size_t> order{0, 1, 2, 3};
    do {
      for (size_t at = begin; at < end; at += (at % 100 == 0 ? 1 : 3) * step()) {
        Dropper rx(markers, lengths);
        ASSERT_TRUE(rx.give(0, begin));
        std::vector<size_t> left = order;
        bool damaged = false;
        for (uint32_t round = 0; round < 4 && !left.empty(); ++round) {
          std::erase_if(left, [&](size_t k) {
            if (damaged || at < cuts[k] || at >= cuts[k + 1]) return rx.give(cuts[k], cuts[k + 1]);
            damaged = true;
            EXPECT_FALSE(rx.give_damaged(cuts[k], cuts[k + 1], at, 0x04)) << at - begin;
            return false;
          });
        }
        ASSERT_TRUE(left.empty());
        ASSERT_TRUE(rx.give(end, rx.encoder.stream.size()));
        ASSERT_NO_FATAL_FAILURE(rx.expect_all());
        ASSERT_FALSE(HasFailure()) << "octet " << at - begin << " markers " << markers;
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

/// FPDUs from the `from`-th on in the pieces of siw's Read Responses: the header, the payload by
/// pages, the CRC.
std::vector<base::Range> cut_as_siw(const Dropper& rx, size_t from, size_t to) {
  std::vector<base::Range> pieces;
  for (size_t i = from; i < to; ++i) {
    const size_t begin = rx.boundary(i), end = rx.boundary(i + 1);
    pieces.push_back({begin, begin + 16});
    for (size_t at = begin + 16; at < end - 4; at += 1448) {
      pieces.push_back({at, std::min(at + 1448, end - 4)});
    }
    pieces.push_back({end - 4, end});
  }
  return pieces;
}

// A sender that cuts is soon known as one: 40 cut FPDUs are on their way before the first of them
// is sent again, and five segments are dropped; the same when damage was healed before, and when
// what was dropped comes again joined to what follows.
TEST(SilentDrop, ACuttingSenderLosesFiveSegments) {
  for (const bool markers : {false, true}) {
    for (const bool damage : {false, true}) {
      for (const bool joined : {false, true}) {
        std::vector<size_t> lengths(20, 1000);
        lengths.resize(60, 4110);
        Dropper rx(markers, lengths);
        for (size_t i = 0; i < 20; ++i) {
          const size_t begin = rx.boundary(i), end = rx.boundary(i + 1);
          if (damage && i % 4 == 3) {
            ASSERT_FALSE(rx.give_damaged(begin, end, begin + (i % 8 == 3 ? 0 : 300), 0x10));
          }
          ASSERT_TRUE(rx.give(begin, end));
        }
        const uint64_t before = rx.end.counters.suspicious_drops;
        const uint64_t bad_before = rx.end.counters.crc_drops;
        const std::vector<base::Range> pieces = cut_as_siw(rx, 20, 60);
        for (const base::Range piece : pieces) rx.give(piece.begin, piece.end);
        EXPECT_EQ(rx.end.counters.suspicious_drops - before, 5u);
        const size_t reach = joined ? pieces[12].end : 0;
        if (joined) {
          EXPECT_TRUE(rx.give(pieces[0].begin, reach));
        }
        for (const base::Range piece : pieces) ASSERT_TRUE(rx.give(piece.begin, piece.end));
        EXPECT_EQ(rx.end.counters.suspicious_drops - before, 5u);
        EXPECT_EQ(rx.end.counters.crc_drops, bad_before);
        rx.expect_all();
      }
    }
  }
}

// Random cuts by a middlebox, any order, any share of the FPDUs: never more than five.
TEST(SilentDrop, RandomCutsLoseFiveSegmentsAtMost) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    base::Prng prng(seed);
    std::vector<size_t> lengths;
    for (uint32_t i = 0; i < 120; ++i) lengths.push_back(prng.between(20, 1440));
    Dropper rx(prng.chance(0.5), lengths);
    std::vector<base::Range> pieces;
    const double share = prng.chance(0.5) ? 0.1 : 1;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const size_t begin = rx.boundary(i), end = rx.boundary(i + 1);
      const size_t cut = prng.chance(share) ? prng.between(begin + 1, end - 1) : end;
      pieces.push_back({begin, cut});
      if (cut != end) pieces.push_back({cut, end});
    }
    std::vector<base::Range> left = pieces;
    while (!left.empty()) {
      std::vector<base::Range> dropped;
      while (!left.empty()) {
        const size_t k = prng.chance(0.7) ? 0 : prng.below(std::min<size_t>(left.size(), 20));
        if (!rx.give(left[k].begin, left[k].end)) dropped.push_back(left[k]);
        left.erase(left.begin() + static_cast<ptrdiff_t>(k));
      }
      left = std::move(dropped);
    }
    ASSERT_LE(rx.end.counters.suspicious_drops, 5u) << seed;
    ASSERT_LE(rx.end.counters.crc_drops, 1u) << seed;  // a piece that looks like an FPDU by chance
    ASSERT_NO_FATAL_FAILURE(rx.expect_all());
  }
}

// Damage that only looks like a cut is given back each time: a connection that has healed hundreds
// of damaged lengths, ahead of the order as well, still drops the next.
TEST(SilentDrop, DamageIsNeverBelieved) {
  for (const bool markers : {false, true}) {
    Dropper rx(markers, std::vector<size_t>(600, 1000));
    for (size_t i = 0; i + 3 < 600; i += 3) {
      const size_t begin = rx.boundary(i + 1), end = rx.boundary(i + 2);
      const size_t length = begin + (markers && (begin % 512) == 0 ? 4 : 0);
      ASSERT_FALSE(rx.give_damaged(begin, end, length, 0x10)) << i;  // ahead of the order
      ASSERT_TRUE(rx.give(rx.boundary(i), begin));
      ASSERT_FALSE(rx.give_damaged(begin, end, length, 0x20)) << i;  // and in it
      ASSERT_TRUE(rx.give(begin, end));
      ASSERT_TRUE(rx.give(end, rx.boundary(i + 3)));
    }
    EXPECT_GT(rx.end.counters.suspicious_drops, 300u);
    ASSERT_TRUE(rx.give(rx.boundary(597), rx.encoder.stream.size()));
    rx.expect_all();
  }
}

// Of a sender that cuts, too, a damaged piece is none of the five: it is given back when what it
// should have been is placed, whichever octet it was, in order and ahead of it.
TEST(SilentDrop, ADamagedPieceOfACuttingSenderIsGivenBack) {
  for (const bool markers : {false, true}) {
    for (const bool ahead : {false, true}) {
      Dropper rx(markers, std::vector<size_t>(40, 1000));
      for (size_t i = 0; i + 1 < 30; i += 2) {
        const size_t begin = rx.boundary(i + (ahead ? 1 : 0)), cut = begin + 600;
        const size_t end = rx.boundary(i + (ahead ? 2 : 1));
        ASSERT_FALSE(rx.give_damaged(begin, cut, begin + 20 + i, 0x10)) << i;
        if (i < 6) {
          ASSERT_FALSE(rx.give(begin, cut)) << i;  // and three good ones
        }
        ASSERT_TRUE(rx.give(begin, end)) << i;
        ASSERT_TRUE(rx.give(rx.boundary(i), rx.boundary(i + 2))) << i;
      }
      EXPECT_EQ(rx.end.counters.suspicious_drops, 18u);
      ASSERT_TRUE(rx.give(rx.boundary(30), rx.encoder.stream.size()));
      rx.expect_all();
    }
  }
}

/// Five good segments of a sender that cuts are dropped: from then on it is known as one.
void make_known_to_cut(Dropper& rx) {
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_FALSE(rx.give(rx.boundary(i), rx.boundary(i) + 20)) << i;
    ASSERT_TRUE(rx.give(rx.boundary(i), rx.boundary(i + 1))) << i;
  }
  ASSERT_EQ(rx.end.counters.suspicious_drops, 5u);
}

// What was dropped on suspicion in pieces is known when it comes again as one, as a sender does
// that joins what it sends again.
TEST(SilentDrop, SuspectsAreKnownInALongerSegment) {
  for (const bool markers : {false, true}) {
    Dropper rx(markers, std::vector<size_t>(8, 1000));
    for (size_t i = 0; i < 2; ++i) {
      const size_t begin = rx.boundary(i), end = rx.boundary(i + 1);
      ASSERT_FALSE(rx.give(begin, begin + 600)) << i;
      ASSERT_FALSE(rx.give(begin + 600, begin + 700)) << i;
      ASSERT_TRUE(rx.give(begin, begin + 700)) << i;
      ASSERT_TRUE(rx.give(begin + 700, end)) << i;
    }
    EXPECT_EQ(rx.end.counters.suspicious_drops, 4u);
    ASSERT_TRUE(rx.give(rx.boundary(2), rx.encoder.stream.size()));
    rx.expect_all();
  }
}

// A suspect that comes again proves nothing of what comes behind it for the first time in
// the same segment: the middle of an FPDU that is cut, and cut elsewhere when it is sent again.
TEST(SilentDrop, DamageBehindASuspectThatComesAgain_MPA_8_07) {
  for (const bool markers : {false, true}) {
    const Dropper sample(markers, {300, 300, 300});
    const size_t begin = sample.boundary(1), end = sample.boundary(2);
    for (const bool rest : {false, true}) {
      for (size_t at = begin + 41; at < begin + 91; ++at) {
        Dropper rx(markers, {300, 300, 300});
        ASSERT_TRUE(rx.give(0, begin));
        ASSERT_FALSE(rx.give(begin, begin + 41));
        if (rest) {
          ASSERT_FALSE(rx.give(begin + 41, end));
        }
        ASSERT_FALSE(rx.give_damaged(begin, begin + 91, at, 0x10)) << at - begin;
        ASSERT_TRUE(rx.give(begin, end));
        ASSERT_TRUE(rx.give(end, rx.encoder.stream.size()));
        ASSERT_NO_FATAL_FAILURE(rx.expect_all());
      }
    }
  }
}

// A damaged marker that leads into the middle of an FPDU does not hide the damage, not
// even where the sender is known to cut: the FPDUs of the segment are walked from its begin, too.
TEST(SilentDrop, DamagedMarkersAreFoundThoughTheSenderCuts_MPA_8_07) {
  const Dropper sample(true, std::vector<size_t>(60, 50));
  const size_t begin = sample.boundary(10), end = sample.boundary(30);
  size_t damaged = 0;
  for (size_t marker = (begin + 511) / 512 * 512; marker + 4 <= end; marker += 512) {
    for (size_t bit = 0; bit < 32; ++bit) {
      Dropper rx(true, std::vector<size_t>(60, 50));
      ASSERT_NO_FATAL_FAILURE(make_known_to_cut(rx));
      const auto bits = static_cast<uint8_t>(1u << bit % 8);
      ASSERT_FALSE(rx.give_damaged(begin, end, marker + bit / 8, bits)) << marker << ' ' << bit;
      ASSERT_TRUE(rx.give(begin, end));
      ASSERT_TRUE(rx.give(rx.boundary(5), begin));
      ASSERT_TRUE(rx.give(end, rx.encoder.stream.size()));
      ASSERT_NO_FATAL_FAILURE(rx.expect_all());
      ++damaged;
    }
  }
  EXPECT_EQ(damaged, 64u);
}

// The count of the range at the delivery point comes to its end, however many ranges
// ahead of it are damaged meanwhile.
TEST(SilentDrop, TheCountInOrderIsNeverGivenUp_MPA_8_08) {
  for (const bool first : {false, true}) {
    Dropper rx(false, std::vector<size_t>(60, 300), 3);
    const size_t next = rx.boundary(1);
    const auto damage_ahead = [&](size_t from) {
      for (size_t i = from; i < from + 20; ++i) {
        const size_t begin = rx.boundary(i), end = rx.boundary(i + 1);
        ASSERT_FALSE(rx.give_damaged(begin, end, begin + 40, 1)) << i;
      }
    };
    // Counted before the others, or when all places are taken.
    if (first) {
      ASSERT_FALSE(rx.give_damaged(0, next, 40, 1));
    }
    ASSERT_NO_FATAL_FAILURE(damage_ahead(1));
    if (!first) {
      ASSERT_FALSE(rx.give_damaged(0, next, 40, 1));
    }
    ASSERT_NO_FATAL_FAILURE(damage_ahead(21));
    ASSERT_FALSE(rx.give_damaged(0, next, 41, 1));
    ASSERT_FALSE(rx.give_damaged(0, next, 42, 1));
    EXPECT_TRUE(rx.end.user.errors.empty());
    ASSERT_TRUE(rx.give_damaged(0, next, 43, 1));
    EXPECT_EQ(rx.end.user.errors, std::vector{llp::FramingError::Crc});
  }
}

// Damage in a piece that is committed already cannot be healed; it is told when the same
// rest comes a second time, not after all the drops of the limit.
TEST(SilentDrop, DamageInACommittedPieceIsTold_MPA_8_08) {
  Dropper rx(false, {300, 300});
  const size_t cut = 100, end = rx.boundary(1);
  EXPECT_FALSE(rx.give_damaged(0, cut, 50, 1));
  EXPECT_TRUE(rx.give_damaged(0, cut, 50, 1));  // twice the same
  EXPECT_FALSE(rx.give(cut, end));
  EXPECT_TRUE(rx.give(cut, end));
  EXPECT_EQ(rx.end.user.errors, std::vector{llp::FramingError::Crc});
  EXPECT_EQ(rx.end.counters.crc_drops, 1u);
}

// Each damage of a range counts, up to the limit.
TEST(SilentDrop, TheLimitIsOfOneRange_MPA_8_08) {
  Dropper rx(false, {300, 300, 300}, 2);
  const size_t one = rx.boundary(1), two = rx.boundary(2);
  for (const size_t at : {40u, 50u}) EXPECT_FALSE(rx.give_damaged(0, one, at, 1));
  EXPECT_TRUE(rx.give(0, one));
  for (const size_t at : {40u, 50u}) EXPECT_FALSE(rx.give_damaged(one, two, one + at, 1));
  EXPECT_TRUE(rx.give_damaged(one, two, one + 60, 1));
  EXPECT_EQ(rx.end.user.errors, std::vector{llp::FramingError::Crc});
}

// What the session holds and what it has placed goes back to the store's pools at once, not when
// the session ends.
TEST(SilentDrop, DiscardGivesEverythingBack) {
  const framing::HoldStorePtr store = framing::make_hold_store(1u << 20);
  Config config;
  config.markers_receive = true;
  MpaEnd end(framing::Role::Responder, config, {}, 0, store.get());
  MpaEnd peer(framing::Role::Initiator, config);
  peer.establish();
  end.establish();
  end.receive(0, peer.pull_all());
  end.session->accept({}, end.now);
  end.pull_all();
  const uint32_t ranges = store->ranges().free(), placed = store->placed().free();
  SlowEncoder encoder(kStart, true);
  for (uint32_t i = 0; i < 40; ++i) encoder.add(numbered_ulpdu(i, 1000));
  const base::ByteView stream(encoder.stream);
  for (size_t i = 2; i < 40; i += 2) {
    const uint64_t begin = encoder.boundaries[i], size = encoder.boundaries[i + 1] - begin;
    end.receive(begin, stream.subspan(begin - kStart, i % 4 == 0 ? size : 500));
  }
  ASSERT_LT(store->ranges().free(), ranges);
  ASSERT_LT(store->placed().free(), placed);
  end.session->discard_received();
  EXPECT_EQ(store->ranges().free(), ranges);
  EXPECT_EQ(store->placed().free(), placed);
  EXPECT_EQ(held_octets(*store), 0u);
}

// A whole FPDU beside it tells that the sender aligns: the other was damaged, not cut. Nobody is
// suspected, as often as it comes damaged.
TEST(SilentDrop, DamageBesideAWholeFpduIsNoSuspicion_MPA_8_07) {
  for (const size_t hit : {1, 2}) {
    Dropper rx(false, {400, 300, 200, 100});
    for (int again = 0; again < 3; ++again) {
      const size_t at = rx.boundary(hit) + 50 + static_cast<size_t>(again);
      EXPECT_FALSE(rx.give_damaged(rx.boundary(1), rx.boundary(3), at, 1));
      EXPECT_EQ(rx.end.counters.crc_drops, static_cast<uint64_t>(again) + 1);
    }
    EXPECT_EQ(rx.end.counters.suspicious_drops, 0u);
    ASSERT_TRUE(rx.give(rx.boundary(1), rx.boundary(3)));
    EXPECT_EQ(rx.end.counters.suspicious_drops, 0u);
    ASSERT_TRUE(rx.give(rx.boundary(3), rx.boundary(4)));
    ASSERT_TRUE(rx.give(0, rx.boundary(1)));
    rx.expect_all();
  }
}

// An FPDU that begins in the segment and of which the rest is there already is judged by its CRC.
TEST(SilentDrop, ThePieceBeforeAHeldRestIsJudged_MPA_8_07) {
  for (const bool markers : {false, true}) {
    Dropper rx(markers, {400, 1000, 200});
    const size_t cut = rx.boundary(1) + 600;
    while (!rx.give(cut, rx.boundary(2))) {
    }
    const uint64_t suspected = rx.end.counters.suspicious_drops;
    EXPECT_FALSE(rx.give_damaged(0, cut, rx.boundary(1) + 300, 4));
    EXPECT_EQ(rx.end.counters.crc_drops, 1u);
    EXPECT_EQ(rx.end.counters.suspicious_drops, suspected);
    ASSERT_TRUE(rx.give(0, cut));
    ASSERT_TRUE(rx.give(rx.boundary(2), rx.boundary(3)));
    rx.expect_all();
  }
}

// The same ahead of the order: the piece with which a held rest is whole is proven by its CRC and
// is no suspect.
TEST(SilentDrop, AnEarlyPieceBeforeAHeldRestIsProven_MPA_8_07) {
  for (const bool markers : {false, true}) {
    Dropper rx(markers, {400, 1000, 200});
    const size_t begin = rx.boundary(1), cut = begin + 60;
    while (!rx.give(cut, rx.boundary(2))) {
    }
    const uint64_t suspected = rx.end.counters.suspicious_drops;
    EXPECT_TRUE(rx.give(begin, cut)) << "markers " << markers;
    EXPECT_EQ(rx.end.counters.suspicious_drops, suspected);
    ASSERT_TRUE(rx.give(0, begin));
    ASSERT_TRUE(rx.give(rx.boundary(2), rx.boundary(3)));
    rx.expect_all();
  }
}

// RFC 5044 s.4.1: FPDUs are multiples of four octets long, from where the first one begins. That is
// behind the private data of the Request, wherever these end: a lone FPDU ahead of the order whose
// CRC is wrong was damaged, not cut.
TEST(SilentDrop, FpdusBeginAtFoursOfTheirOwnStart_MPA_8_07) {
  for (size_t private_data = 0; private_data < 8; ++private_data) {
    Dropper rx(Dropper::config_of(false, 8), {300, 300, 300}, private_data);
    const size_t begin = rx.boundary(1), end = rx.boundary(2);
    for (size_t again = 0; again < 3; ++again) {
      EXPECT_FALSE(rx.give_damaged(begin, end, begin + 50 + again, 1));
    }
    EXPECT_EQ(rx.end.counters.crc_drops, 3u) << private_data << " octets of private data";
    EXPECT_EQ(rx.end.counters.suspicious_drops, 0u);
    ASSERT_TRUE(rx.give(begin, end));
    ASSERT_TRUE(rx.give(end, rx.boundary(3)));
    ASSERT_TRUE(rx.give(0, begin));
    rx.expect_all();
  }
}

// Without a CRC, too, a length that leads over an FPDU that was placed is damaged (RFC 5044 s.8,
// error 3): its segment is dropped as soon as it ends behind the marker that tells where the FPDU
// begins.
TEST(SilentDrop, ALengthThatLeadsOverAPlacedFpduIsDropped_MPA_8_04) {
  Config config = Dropper::config_of(true, 8);
  config.crc = false;
  Dropper rx(config, {100, 600, 600, 100});
  const size_t begin = rx.boundary(1), end = rx.boundary(2);
  const size_t behind_marker = 512 + 4;
  ASSERT_TRUE(begin < 512 && behind_marker < end);
  ASSERT_TRUE(rx.give(end, rx.boundary(3)));
  ASSERT_EQ(rx.end.user.placed.size(), 1u);
  for (const size_t to : {behind_marker, behind_marker + 1, end - 1}) {
    EXPECT_FALSE(rx.give_damaged(begin, to, begin, 0x04)) << "up to octet " << to;
  }
  ASSERT_TRUE(rx.give(begin, end));
  ASSERT_TRUE(rx.give(rx.boundary(3), rx.encoder.stream.size()));
  ASSERT_TRUE(rx.give(0, begin));
  rx.expect_all();
}

// The trace of a connection shows each drop for a wrong CRC.
TEST(SilentDrop, EachDropIsTraced) {
  Dropper rx(false, {300, 300, 300});
  int drops = 0;
  for (const size_t i : {0, 1, 1}) {
    const size_t begin = rx.boundary(i), at = begin + 40 + static_cast<size_t>(drops);
    ASSERT_FALSE(rx.give_damaged(begin, rx.boundary(i + 1), at, 1));
    EXPECT_EQ(rx.end.stream.traces[TraceKind::CrcDropped], ++drops);
  }
  EXPECT_EQ(rx.end.counters.crc_drops, 3u);
  EXPECT_EQ(rx.end.stream.traces.count(TraceKind::InOrder), 0u);
}

}  // namespace
}  // namespace rnic::mpa
