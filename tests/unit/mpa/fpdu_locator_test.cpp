#include "mpa/fpdu_locator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/prng.hpp"
#include "start_frames.hpp"
#include "support/long_form.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using llp::FramingError;
using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

/// A responder in full operation, and the stream that an initiator would send it.
struct Receiver {
  explicit Receiver(Config config, uint64_t hold = 512u << 10)
      : end(framing::Role::Responder, config, {}, hold),
        encoder(kStart, config.markers_receive, config.crc) {
    MpaEnd peer(framing::Role::Initiator, config);
    peer.establish();
    end.establish();
    end.receive(0, peer.pull_all());
    end.session->accept({}, end.now);
    end.pull_all();
  }
  void add(uint32_t number, size_t length) {
    expected.push_back(numbered_ulpdu(number, length));
    encoder.add(expected.back());
  }
  [[nodiscard]] base::ByteView stream() const { return encoder.stream; }
  bool give(size_t from, size_t to) {
    return end.receive(kStart + from, stream().subspan(from, to - from));
  }
  [[nodiscard]] size_t boundary(size_t i) const {
    return i < encoder.boundaries.size() ? encoder.boundaries[i] - kStart : encoder.stream.size();
  }
  /// Everything came up once, in order, and nothing is left behind.
  void expect_all() {
    EXPECT_EQ(end.user.delivered, expected);
    EXPECT_EQ(end.user.placed.size(), expected.size());
    EXPECT_EQ(end.user.faults, 0);
    EXPECT_TRUE(end.user.errors.empty());
    EXPECT_EQ(held_octets(*end.own_store), 0u);
    EXPECT_EQ(end.counters.fpdus_in, expected.size());
    EXPECT_EQ(end.stream.aborts, 0);
  }

  MpaEnd end;
  SlowEncoder encoder;
  std::vector<Octets> expected;
};

Config config_of(bool markers, bool crc = true) {
  Config config;
  config.markers_receive = markers;
  config.crc = crc;
  return config;
}

// MPA-3-06 MPA-5.2-01 DDP-3-07 MPA-4.4-08-b: sender to receiver, each
// marker position, each pad.
// UNH-MPA-2-05 UNH-MPA-2-07
TEST(FpduRx, RoundTripOfEveryMarkerPositionAndPad_MPA_4_3_12_MPA_4_3_11) {
  for (uint32_t shift = 0; shift < 512; shift += 4) {
    Config markers = config_of(true);
    test::MpaPair pair({}, markers);
    pair.start();
    std::vector<Octets> all;
    if (shift == 4) continue;
    if (shift != 0) all.push_back(numbered_ulpdu(99, shift == 8 ? 506 : shift - 10));
    for (uint32_t i = 0; i < 8; ++i) all.push_back(numbered_ulpdu(i, 700 + i));
    pair.a.user.to_send.assign(all.begin(), all.end());
    while (auto record = pair.a.pull(1460)) {
      ASSERT_TRUE(pair.b.receive(record->offset, record->octets));
    }
    ASSERT_EQ(pair.b.user.delivered, all) << shift;
    ASSERT_EQ(pair.b.user.faults, 0);
    for (const auto& placed : pair.b.user.placed) ASSERT_TRUE(placed.in_order);
    ASSERT_EQ(pair.b.counters.held_octets, 0u);
    ASSERT_EQ(pair.b.stream.traces[TraceKind::InOrder], static_cast<int>(all.size()));
  }
}

// Pads of other octets than zero are nothing to the receiver, in one segment, cut, and
// ahead of the order; only the CRC covers them.
TEST(FpduRx, PadsAreIgnoredButForTheCrc_MPA_4_1_04) {
  for (const bool crc : {false, true}) {
    for (const bool markers : {false, true}) {
      for (size_t cut = 0; cut < 4; ++cut) {
        Receiver rx(config_of(markers, crc));
        std::vector<size_t> pads;  // where the pads are
        for (uint32_t i = 0; i < 6; ++i) {
          rx.add(i, 693 + i);  // pads of 1, 0, 3, 2, 1, 0
          const size_t pad = (4 - (693 + i + 2) % 4) % 4;
          const size_t end = rx.encoder.stream.size();
          size_t last = end - 4;  // a marker may stand between pad and CRC
          if (markers && last % 512 == 4) last -= 4;
          for (size_t k = 1; k <= pad; ++k) {
            EXPECT_EQ(rx.encoder.stream[last - k], 0);
            rx.encoder.stream[last - k] = static_cast<uint8_t>(0xa0 + k);
            pads.push_back(last - k);
          }
          if (!crc) continue;
          const size_t begin = rx.boundary(i);
          base::store_le32(&rx.encoder.stream[end - 4],
                           test::slow_crc32c(rx.stream().subspan(begin, end - 4 - begin)));
        }
        EXPECT_EQ(pads.size(), 7u);
        const std::array<std::vector<size_t>, 4> at{{{0, rx.boundary(6)},
                                                     {rx.boundary(2), rx.boundary(6), 0},
                                                     {0, pads[0], pads[3], rx.boundary(6)},
                                                     {pads[3], rx.boundary(6), 0}}};
        const std::vector<size_t>& cuts = at[cut];
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          const bool back = cuts[i] > cuts[i + 1];  // the front comes last
          ASSERT_TRUE(back ? rx.give(0, cuts[0]) : rx.give(cuts[i], cuts[i + 1]));
        }
        rx.expect_all();
        // The same with a pad that the CRC does not know.
        if (!crc) continue;
        rx.add(6, 693);
        const size_t begin = rx.boundary(6);
        rx.encoder
            .stream[rx.stream().size() - (markers && rx.stream().size() % 512 == 8 ? 9 : 5)] ^= 1;
        EXPECT_FALSE(rx.give(begin, rx.stream().size()));
        EXPECT_EQ(rx.end.user.delivered.size(), 6u);
      }
    }
  }
}

// MPA-5.2-01: every length of a ULPDU, also 0 and the longest, arbitrary cuts.
// UNH-MPA-2-01
TEST(FpduRx, LengthsFromZeroToTheLongest_MPA_4_1_01_MPA_6_05) {
  for (const bool markers : {false, true}) {
    Receiver rx(config_of(markers));
    for (const size_t length :
         {0, 1, 2, 3, 4, 5, 17, 18, 505, 506, 507, 1023, 64768, 65533, 65534, 65535}) {
      rx.add(static_cast<uint32_t>(length), length);
    }
    for (size_t at = 0; at < rx.stream().size(); at += 1460) {
      rx.give(at, std::min(at + 1460, rx.stream().size()));
    }
    rx.expect_all();
    EXPECT_GT(rx.end.counters.held_octets, 0u);
  }
}

// MPAA-7.1-03: one octet at a time.
TEST(FpduRx, OneOctetSegments_MPA_5_1_04_BUG_15) {
  for (const bool markers : {false, true}) {
    Receiver rx(config_of(markers));
    for (uint32_t i = 0; i < 6; ++i) rx.add(i, 100 + i * 101);
    for (size_t at = 0; at < rx.stream().size(); ++at) rx.give(at, at + 1);
    rx.expect_all();
  }
}

// MPA-6-05: cut in three at every place, and the parts in every order.
// UNH-MPA-2-09
TEST(FpduRx, EveryCutInEveryOrder_MPA_5_1_04_MPA00_7_4_1_01) {
  for (const bool markers : {false, true}) {
    Receiver sample(config_of(markers));
    for (uint32_t i = 0; i < 4; ++i) sample.add(i, 150 + i * 77);
    const size_t size = sample.stream().size();
    for (size_t cut = 1; cut < size; cut += test::by_form(3, 1)) {
      for (const bool swapped : {false, true}) {
        Receiver rx(config_of(markers));
        for (uint32_t i = 0; i < 4; ++i) rx.add(i, 150 + i * 77);
        if (swapped) rx.give(cut, size);
        rx.give(0, cut);
        if (!swapped) rx.give(cut, size);
        rx.expect_all();
        if (HasFailure()) FAIL() << "cut at " << cut << " swapped " << swapped;
      }
    }
  }
}

// MPA-7.1.5-03: all permutations of five segments, aligned and not.
// UNH-MPA-2-11
TEST(FpduRx, AllPermutationsOfFiveSegments_MPA_6_03_MPA_6_04_MPA_3_07) {
  for (const bool markers : {false, true}) {
    for (const bool aligned : {false, true}) {
      std::array<size_t, 5> order{0, 1, 2, 3, 4};
      do {
        Receiver rx(config_of(markers));
        for (uint32_t i = 0; i < 10; ++i) rx.add(i, 600 + i);
        std::array<size_t, 6> cuts{};
        for (size_t i = 0; i <= 5; ++i) {
          cuts[i] = aligned ? rx.boundary(2 * i) : rx.stream().size() * i / 5;
        }
        for (const size_t k : order) ASSERT_TRUE(rx.give(cuts[k], cuts[k + 1]));
        rx.expect_all();
        const auto early =
            static_cast<size_t>(std::count_if(rx.end.user.placed.begin(), rx.end.user.placed.end(),
                                              [](auto& p) { return !p.in_order; }));
        if (!markers) {
          EXPECT_EQ(early, 0u);  // MPA-6-06
        } else if (aligned) {
          EXPECT_EQ(rx.end.counters.held_octets, 0u);
        }
        if (HasFailure()) FAIL() << order[0] << order[1] << order[2] << order[3] << order[4];
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }
}

/// FPDUs so small that a marker tells of some of them alone.
void add_small(Receiver& rx, uint32_t count) {
  for (uint32_t k = 0; k < count; ++k) rx.add(k, 100);
}

size_t located(const Receiver& rx) { return rx.end.user.placed.size(); }

// Without a marker of its own an FPDU is found behind a proven one.
TEST(FpduRx, FoundBehindAProvenOne_MPA_6_04_MPA00_7_4_01) {
  constexpr uint32_t kFpdus = 20;
  size_t only_behind = 0;
  for (size_t i = 1; i + 2 <= kFpdus; ++i) {
    Receiver rx(config_of(true)), alone(config_of(true));
    for (Receiver* of : {&rx, &alone}) add_small(*of, kFpdus);
    rx.give(rx.boundary(i), rx.boundary(i + 1));
    if (located(rx) == 0) continue;
    rx.give(rx.boundary(i + 1), rx.boundary(i + 2));
    EXPECT_EQ(located(rx), 2u) << i;
    alone.give(alone.boundary(i + 1), alone.boundary(i + 2));
    if (located(alone) != 0) continue;
    ++only_behind;
    // It may have been there first.
    alone.give(alone.boundary(i), alone.boundary(i + 1));
    EXPECT_EQ(located(alone), 2u) << i;
    EXPECT_EQ(held_octets(*alone.end.own_store), 0u);
  }
  EXPECT_GT(only_behind, 0u);
}

// It need not be the last one that was proven.
TEST(FpduRx, FoundBehindAProvenOneBeforeOthers_MPA_6_04_MPA00_7_4_01) {
  constexpr uint32_t kFpdus = 20;
  size_t found = 0;
  for (size_t i = 1; i + 8 <= kFpdus; ++i) {
    Receiver rx(config_of(true)), alone(config_of(true));
    for (Receiver* of : {&rx, &alone}) add_small(*of, kFpdus);
    alone.give(alone.boundary(i + 1), alone.boundary(i + 2));
    if (located(alone) != 0) continue;  // a marker tells of it
    rx.give(rx.boundary(i), rx.boundary(i + 1));
    if (located(rx) == 0) continue;
    for (size_t later = i + 3; later < kFpdus && located(rx) == 1; ++later) {
      rx.give(rx.boundary(later), rx.boundary(later + 1));
    }
    ASSERT_EQ(located(rx), 2u) << i;
    rx.give(rx.boundary(i + 1), rx.boundary(i + 2));
    EXPECT_EQ(located(rx), 3u) << i;
    ++found;
  }
  EXPECT_GT(found, 0u);
}

// Parts of located FPDUs complete out of order, whichever part is first.
TEST(FpduRx, HeldPartsAreCompletedOutOfOrder_MPA_6_03_MPA_6_04) {
  for (const bool head_first : {false, true}) {
    Receiver rx(config_of(true));
    for (uint32_t i = 0; i < 4; ++i) rx.add(i, 1200);
    const size_t begin = rx.boundary(2), cut = begin + 700, end = rx.boundary(3);
    rx.give(head_first ? begin : cut, head_first ? cut : end);
    EXPECT_TRUE(rx.end.user.placed.empty());
    rx.give(head_first ? cut : begin, head_first ? end : cut);
    ASSERT_EQ(rx.end.user.placed.size(), 1u);
    EXPECT_FALSE(rx.end.user.placed[0].in_order);
    EXPECT_TRUE(rx.end.user.delivered.empty());
    EXPECT_EQ(held_octets(*rx.end.own_store), 0u);
    EXPECT_EQ(rx.end.session->receive_room(), Config{}.receive_window);
    rx.give(end, rx.stream().size());
    rx.give(0, begin);
    rx.expect_all();
  }
}

// An FPDU behind the rest of a located one goes to its place without being held.
TEST(FpduRx, FoundBehindTheRestOfALocatedOne_MPA_6_04_MPA00_7_4_01) {
  constexpr size_t kFpdus = 60;
  size_t found = 0;
  for (size_t i = 1; i + 2 <= kFpdus; ++i) {
    Receiver rx(config_of(true));
    for (uint32_t k = 0; k < kFpdus; ++k) rx.add(k, 100);
    const size_t begin = rx.boundary(i), cut = begin + 60, end = rx.boundary(i + 1);
    if ((begin + 511) / 512 * 512 + 4 > cut) continue;  // no marker tells where it begins
    ++found;
    rx.give(begin, cut);
    rx.give(cut, rx.boundary(i + 2));
    EXPECT_EQ(rx.end.user.placed.size(), 2u) << i;
    EXPECT_EQ(rx.end.counters.held_octets, end - begin) << i;
  }
  EXPECT_GT(found, 2u);
}

// Without markers octets that look like an FPDU are not believed out of order.
TEST(FpduRx, NothingIsLocatedWithoutMarkers_MPA_6_06) {
  Receiver rx(config_of(false));
  for (uint32_t i = 0; i < 3; ++i) rx.add(i, 400);
  rx.give(rx.boundary(1), rx.boundary(3));
  EXPECT_TRUE(rx.end.user.placed.empty());
  EXPECT_EQ(rx.end.stream.traces[TraceKind::Held], 1);
  EXPECT_EQ(rx.end.session->receive_room(),
            Config{}.receive_window - (rx.boundary(3) - rx.boundary(1)));
  rx.give(0, rx.boundary(1));
  rx.expect_all();
  EXPECT_GT(rx.end.stream.grew, 0);
}

// The user holds out of order: asked again when the order is there. And out_of_order = false.
TEST(FpduRx, HoldVerdictIsAskedAgainInOrder_MPA_3_07) {
  for (const bool by_config : {false, true}) {
    Config config = config_of(true);
    config.out_of_order = !by_config;
    Receiver rx(config);
    for (uint32_t i = 0; i < 9; ++i) rx.add(i, 300);
    rx.end.user.hold_early = !by_config;
    rx.give(rx.boundary(6), rx.boundary(9));
    rx.give(rx.boundary(1), rx.boundary(4));
    rx.give(rx.boundary(4), rx.boundary(6));
    EXPECT_TRUE(rx.end.user.placed.empty());
    rx.give(0, rx.boundary(1));
    rx.expect_all();
  }
}

// Random streams, random segments, random order, duplicates; with and without markers and CRC.
TEST(FpduRx, RandomSegmentsInRandomOrder_MPA_5_1_04_MPA_7_1_5_03) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    base::Prng prng(seed);
    Receiver rx(config_of(prng.chance(0.7), prng.chance(0.8)));
    const auto count = static_cast<uint32_t>(prng.between(1, 60));
    const uint64_t longest = prng.chance(0.1) ? 20000 : prng.chance(0.5) ? 1442 : 60;
    for (uint32_t i = 0; i < count; ++i) rx.add(i, prng.below(longest));
    rx.end.user.hold_early = prng.chance(0.1);
    std::vector<std::pair<size_t, size_t>> segments;
    const bool aligned = prng.chance(0.3);
    for (size_t at = 0; at < rx.stream().size();) {
      size_t to = at + prng.between(1, 1460);
      if (aligned) {
        const auto next = std::lower_bound(rx.encoder.boundaries.begin(),
                                           rx.encoder.boundaries.end(), kStart + to);
        to = next == rx.encoder.boundaries.end() ? rx.stream().size() : *next - kStart;
      }
      to = std::min(to, rx.stream().size());
      segments.emplace_back(at, to);
      at = to;
    }
    while (!segments.empty()) {
      const size_t k = prng.chance(0.5) ? 0 : prng.below(segments.size());
      const auto [from, to] = segments[k];
      if (prng.chance(0.1)) rx.give(from, to);
      if (!rx.give(from, to)) continue;  // a suspicious cut is dropped at most twice
      segments.erase(segments.begin() + static_cast<long>(k));
    }
    rx.expect_all();
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// MPA-8-08: dropped before commit, healed by the retransmission.
// UNH-MPA-2-12
TEST(FpduRx, BadCrcIsDroppedAndHealed_MPA_8_07_MPA_4_4_09) {
  for (const bool markers : {false, true}) {
    Receiver rx(config_of(markers));
    for (uint32_t i = 0; i < 3; ++i) rx.add(i, 1000);
    for (size_t at = rx.boundary(1); at < rx.boundary(2); at += 3) {
      Receiver one(config_of(markers));
      for (uint32_t i = 0; i < 3; ++i) one.add(i, 1000);
      one.give(0, one.boundary(1));
      if (markers) one.give(one.boundary(2), one.boundary(3));
      one.encoder.stream[at] ^= 0x10;
      const bool accepted = one.give(one.boundary(1), one.boundary(2));
      one.encoder.stream[at] ^= 0x10;
      const bool length = at - rx.boundary(1) < 2 + (markers && rx.boundary(1) % 512 == 0 ? 4 : 0);
      if (length) continue;  // a wrong length is a cut FPDU at first sight
      ASSERT_FALSE(accepted) << at;
      ASSERT_EQ(one.end.user.placed.size(), markers ? 2u : 1u);
      ASSERT_EQ(one.end.counters.crc_drops, 1u);
      ASSERT_EQ(one.end.stream.traces[TraceKind::CrcDropped], 1);
      ASSERT_TRUE(one.give(one.boundary(1), one.boundary(2)));
      if (!markers) one.give(one.boundary(2), one.boundary(3));
      one.expect_all();
    }
  }
}

// MPA-6-01: silent drop off.
// DDP-3-06
TEST(FpduRx, BadCrcInOrderIsErrorTwo_MPA_8_02_MPA_8_09_MPA_8_10) {
  for (const bool markers : {false, true}) {
    Config config = config_of(markers);
    config.silent_drop = false;
    Receiver rx(config);
    for (uint32_t i = 0; i < 6; ++i) rx.add(i, 300);
    rx.encoder.stream[rx.boundary(2) + 100] ^= 1;
    ASSERT_TRUE(rx.give(0, rx.boundary(4)));
    EXPECT_EQ(rx.end.user.delivered.size(), 2u);
    EXPECT_EQ(rx.end.user.placed.size(), 2u);
    EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::Crc});
    EXPECT_EQ(rx.end.counters.crc_errors, 1u);
    ASSERT_TRUE(rx.give(rx.boundary(5), rx.boundary(6)));
    ASSERT_TRUE(rx.give(rx.boundary(4), rx.boundary(5)));
    EXPECT_EQ(rx.end.user.delivered.size(), 2u);
    EXPECT_EQ(rx.end.user.placed.size(), 2u);
    EXPECT_EQ(rx.end.user.errors.size(), 1u);
    EXPECT_GT(rx.end.counters.discarded_octets, 0u);
    EXPECT_EQ(rx.end.stream.closes + rx.end.stream.aborts, 0);
    rx.end.user.to_send = {numbered_ulpdu(1, 60)};  // the Terminate still leaves
    EXPECT_FALSE(rx.end.pull_all().empty());
  }
}

// Out of order without silent drop: the error waits for its turn.
TEST(FpduRx, BadCrcOutOfOrderWaitsForTheOrder_MPA_8_02_MPA_6_01) {
  for (const bool markers : {false, true}) {
    Config config = config_of(markers);
    config.silent_drop = false;
    Receiver rx(config);
    for (uint32_t i = 0; i < 6; ++i) rx.add(i, 700);
    rx.encoder.stream[rx.boundary(3) + 100] ^= 1;
    for (const size_t k : {5, 3, 2, 4, 1}) ASSERT_TRUE(rx.give(rx.boundary(k), rx.boundary(k + 1)));
    EXPECT_TRUE(rx.end.user.errors.empty());
    rx.give(0, rx.boundary(1));
    EXPECT_EQ(rx.end.user.delivered.size(), 3u);
    EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::Crc});
    EXPECT_EQ(held_octets(*rx.end.own_store), 0u);
  }
}

// A fault of the source is reported after drop_limit drops.
TEST(FpduRx, DropLimitThenError_MPA_8_08) {
  Config config = config_of(false);
  config.drop_limit = 3;
  Receiver rx(config);
  rx.add(1, 300);
  rx.encoder.stream[50] ^= 1;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(rx.give(0, rx.boundary(1)));
  EXPECT_TRUE(rx.end.user.errors.empty());
  EXPECT_TRUE(rx.give(0, rx.boundary(1)));
  EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::Crc});
  EXPECT_EQ(rx.end.counters.crc_drops, 3u);
}

// The failing FPDU began in an earlier, committed segment: no drop can heal it.
TEST(FpduRx, BadCrcOverTwoSegmentsIsErrorTwo_MPA_8_02) {
  Receiver rx(config_of(false));
  rx.add(1, 300);
  rx.add(2, 300);
  rx.encoder.stream[rx.boundary(1) + 20] ^= 1;
  ASSERT_TRUE(rx.give(0, rx.boundary(1) + 100));
  EXPECT_FALSE(rx.give(rx.boundary(1) + 100, rx.boundary(2)));  // it might have been this one
  EXPECT_EQ(rx.end.counters.crc_drops, 1u);
  ASSERT_TRUE(rx.give(rx.boundary(1) + 100, rx.boundary(2)));
  EXPECT_EQ(rx.end.user.delivered.size(), 1u);
  EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::Crc});
}

void repair_crc(Octets& stream, size_t begin, size_t end) {
  base::store_le32(stream.data() + end - 4,
                   test::slow_crc32c({stream.data() + begin, end - 4 - begin}));
}

// Valid CRC, but a marker that points elsewhere; low and reserved
// bits are ignored.
// MPA-5.2-02: in order, too. MPA-8-09: after this error, too.
// UNH-MPA-2-06 UNH-MPA-2-08
TEST(FpduRx, MarkerAndLengthDisagree_MPA_8_03_MPA_4_2_01_MPA_4_2_02) {
  for (const bool wrong : {false, true}) {
    for (const bool in_order : {false, true}) {
      Receiver rx(config_of(true));
      for (uint32_t i = 0; i < 3; ++i) rx.add(i, 1200);
      const size_t begin = rx.boundary(1), end = rx.boundary(2);
      const size_t second = (begin + 511) / 512 * 512 + 512;  // the second marker of the FPDU
      uint8_t* marker = rx.encoder.stream.data() + second;
      ASSERT_LT(second, end);
      marker[0] = 0xaa, marker[1] = 0x55;
      marker[3] = static_cast<uint8_t>(wrong ? marker[3] + 8 : marker[3] | 3);
      repair_crc(rx.encoder.stream, begin, end);
      if (in_order) rx.give(0, begin);
      ASSERT_TRUE(rx.give(begin, end));
      if (!in_order) rx.give(0, begin);
      rx.give(end, rx.stream().size());
      if (!wrong) {
        rx.expect_all();
        continue;
      }
      EXPECT_EQ(rx.end.user.delivered.size(), 1u);
      EXPECT_EQ(rx.end.user.placed.size(), 1u) << "nothing behind the error goes up";
      EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::MarkerMismatch});
      EXPECT_EQ(rx.end.counters.marker_errors, 1u);
      EXPECT_EQ(held_octets(*rx.end.own_store), 0u);
    }
  }
}

// Without CRC on both sides the field is there and may hold anything.
TEST(FpduRx, WithoutCrcItsFieldIsNotLookedAt_MPA_4_1_05) {
  for (const bool markers : {false, true}) {
    Receiver rx(config_of(markers, false));
    for (uint32_t i = 0; i < 4; ++i) rx.add(i, 300);
    for (uint32_t i = 1; i <= 4; ++i) {
      for (size_t k = 1; k <= 4; ++k) rx.encoder.stream[rx.boundary(i) - k] ^= 0xa5;
    }
    ASSERT_TRUE(rx.give(0, rx.stream().size()));
    rx.expect_all();
  }
}

// MPA-5.2-01: on the stream in order the lengths suffice.
// The second marker of an FPDU with a good CRC points elsewhere. It is looked at when all
// are, and always without CRC; otherwise the FPDU is as good as any, in order and out of order.
TEST(FpduRx, FurtherMarkersAreCheckedByChoice_MPA_8_05) {
  EXPECT_TRUE(Config{}.check_all_markers);
  for (const bool all : {true, false}) {
    for (const bool crc : {true, false}) {
      for (const bool in_order : {true, false}) {
        Config config = config_of(true, crc);
        config.check_all_markers = all;
        Receiver rx(config);
        for (uint32_t i = 0; i < 3; ++i) rx.add(i, 1200);
        const size_t begin = rx.boundary(1), end = rx.boundary(2);
        rx.encoder.stream[(begin + 511) / 512 * 512 + 512 + 3] += 8;
        if (crc) repair_crc(rx.encoder.stream, begin, end);
        if (in_order) rx.give(0, begin);
        ASSERT_TRUE(rx.give(begin, end));
        if (!in_order) rx.give(0, begin);
        rx.give(end, rx.stream().size());
        if (!all && crc) {
          rx.expect_all();
          continue;
        }
        EXPECT_EQ(rx.end.user.delivered.size(), 1u);
        EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::MarkerMismatch});
      }
    }
  }
}

// When the gap closes, the lengths lead past the start of an FPDU that a marker located.
TEST(FpduRx, ClosedGapContradictsAMarker_MPA_8_04) {
  for (const bool in_pieces : {false, true}) {
    Config config = config_of(true);
    config.silent_drop = false;
    Receiver rx(config);
    for (uint32_t i = 0; i < 3; ++i) rx.add(i, 1200);
    rx.encoder.stream[rx.boundary(1)] = 0x06;  // FPDU 1 now claims to be longer
    ASSERT_TRUE(rx.give(0, rx.boundary(1)));
    // What contradicts the marker is known before it, or behind it.
    const size_t cut = rx.boundary(1) + (in_pieces ? 700 : 0);
    if (in_pieces) rx.give(rx.boundary(1), cut);
    ASSERT_TRUE(rx.give(rx.boundary(2), rx.boundary(3)));
    ASSERT_EQ(rx.end.user.placed.size(), 2u);
    rx.give(cut, rx.boundary(2));
    EXPECT_EQ(rx.end.user.delivered.size(), 1u);
    EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::MarkerMismatch});
  }
}

// Whatever FPDUPTR says, out of order and in order, nothing wrong is delivered.
TEST(FpduRx, HostileFpduptr_MPA_4_3_13) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    base::Prng prng(seed);
    Config config = config_of(true, prng.chance(0.7));
    config.silent_drop = prng.chance(0.5);
    config.drop_limit = 2;
    Receiver rx(config);
    for (uint32_t i = 0; i < 8; ++i) rx.add(i, prng.below(1500));
    const size_t size = rx.stream().size();
    for (int i = 0; i < 3; ++i) {
      const size_t at = prng.below(size / 512 + 1) * 512;
      if (at + 4 > size) continue;
      base::store_be16(rx.encoder.stream.data() + at + 2, static_cast<uint16_t>(prng.next32()));
      if (prng.chance(0.3)) rx.encoder.stream[prng.below(size)] ^= 0x80;
    }
    for (int i = 0; i < 40; ++i) {
      const size_t from = prng.below(size);
      rx.give(from, std::min<size_t>(size, from + prng.between(1, 1460)));
    }
    for (int i = 0; i < 20 && rx.end.complete < kStart + size; ++i) {
      rx.give(rx.end.complete - kStart, std::min<size_t>(size, rx.end.complete - kStart + 1460));
    }
    ASSERT_LE(rx.end.user.errors.size(), 1u);
    ASSERT_EQ(rx.end.user.faults, 0);
    if (config.crc) {
      ASSERT_LE(rx.end.user.delivered.size(), 8u);
      for (size_t i = 0; i < rx.end.user.delivered.size(); ++i) {
        ASSERT_EQ(rx.end.user.delivered[i], rx.expected[i]) << seed;
      }
    }
  }
}

// Wholly random octets: no read outside, no crash.
TEST(FpduRx, RandomOctets_MPA_4_3_13) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    base::Prng prng(seed);
    Config config = config_of(prng.chance(0.7), prng.chance(0.3));
    config.silent_drop = prng.chance(0.3);
    Receiver rx(config);
    Octets junk(20000);
    for (uint8_t& octet : junk) octet = prng.chance(0.5) ? 0 : static_cast<uint8_t>(prng.next32());
    for (int i = 0; i < 100; ++i) {
      const size_t from = prng.below(junk.size());
      const size_t n = std::min<size_t>(junk.size() - from, prng.between(1, 3000));
      rx.end.receive(kStart + from, {junk.data() + from, n});
    }
    ASSERT_EQ(rx.end.user.faults, 0);
    ASSERT_LE(rx.end.user.errors.size(), 1u);
  }
}

// A damaged length on an aligned stream is dropped; a true cut gets through when it comes again.
TEST(FpduRx, SuspiciousCutOnAnAlignedStream_MPA_8_07) {
  Receiver rx(config_of(false));
  rx.end.sends_again = false;
  for (uint32_t i = 0; i < 12; ++i) rx.add(i, 1000);
  for (size_t i = 0; i < 9; ++i) ASSERT_TRUE(rx.give(rx.boundary(i), rx.boundary(i + 1)));
  rx.encoder.stream[rx.boundary(9)] ^= 0x20;
  EXPECT_FALSE(rx.give(rx.boundary(9), rx.boundary(10)));
  rx.encoder.stream[rx.boundary(9)] ^= 0x20;
  EXPECT_TRUE(rx.give(rx.boundary(9), rx.boundary(10)));
  const size_t cut = rx.boundary(10) + 500;
  EXPECT_FALSE(rx.give(rx.boundary(10), cut));
  EXPECT_TRUE(rx.give(rx.boundary(10), cut));
  EXPECT_TRUE(rx.give(cut, rx.stream().size()));
  EXPECT_EQ(rx.end.counters.suspicious_drops, 2u);
  EXPECT_EQ(rx.end.stream.traces[TraceKind::Suspected], 2);
  rx.expect_all();
}

// A middlebox that cuts one segment in ten: the cuts are soon believed. Lengths that are damaged as
// often are suspected for ever, as they come back otherwise.
TEST(FpduRx, SuspicionEndsWhereCutsAreTrue_MPA_8_07) {
  for (const bool true_cuts : {true, false}) {
    Receiver rx(config_of(false));
    rx.end.sends_again = false;
    constexpr uint32_t kFpdus = 2000;
    for (uint32_t i = 0; i < kFpdus; ++i) rx.add(i, 1000);
    for (size_t i = 0; i < kFpdus; ++i) {
      const size_t begin = rx.boundary(i), end = rx.boundary(i + 1);
      if (i % 10 == 9 && true_cuts && rx.give(begin, begin + 500)) {
        ASSERT_TRUE(rx.give(begin + 500, end));
        continue;
      }
      if (i % 10 == 9 && !true_cuts) {
        rx.encoder.stream[begin] ^= 0x20;
        ASSERT_FALSE(rx.give(begin, end)) << i;
        rx.encoder.stream[begin] ^= 0x20;
      }
      ASSERT_TRUE(rx.give(begin, end)) << i;
    }
    EXPECT_EQ(rx.end.counters.suspicious_drops, true_cuts ? 5u : kFpdus / 10);
    rx.expect_all();
  }
}

// A sender whose path became narrow cuts an FPDU into more pieces than drops are counted
// of, and sends all of them again and again.
TEST(FpduRx, AnFpduCutIntoManyPiecesArrives_MPA_8_07) {
  Receiver rx(config_of(false));
  rx.end.sends_again = false;
  for (uint32_t i = 0; i < 9; ++i) rx.add(i, 1000);
  rx.add(9, 9000);
  for (size_t i = 0; i < 9; ++i) ASSERT_TRUE(rx.give(rx.boundary(i), rx.boundary(i + 1)));
  constexpr size_t kPiece = 500;
  std::vector<bool> taken((rx.stream().size() - rx.boundary(9) + kPiece - 1) / kPiece);
  for (uint32_t round = 0; round < 4; ++round) {
    for (size_t i = 0; i < taken.size(); ++i) {
      const size_t begin = rx.boundary(9) + i * kPiece;
      if (!taken[i]) taken[i] = rx.give(begin, std::min(begin + kPiece, rx.stream().size()));
    }
  }
  EXPECT_EQ(rx.end.counters.suspicious_drops, 5u);
  rx.expect_all();
}

// MPA-5.1-03: many tiny FPDUs in one segment, also more than are handled in one go.
TEST(FpduRx, ManyTinyFpdusInOneSegment_MPAA_6_06) {
  for (const uint32_t count : {64u, 128u, 129u, 700u}) {
    for (const bool markers : {false, true}) {
      Receiver rx(config_of(markers));
      for (uint32_t i = 0; i < count; ++i) rx.add(i, 18);
      ASSERT_TRUE(rx.give(0, rx.stream().size()));
      rx.expect_all();
      if (count <= framing::kLocatedMax) {
        EXPECT_EQ(rx.end.counters.held_octets, 0u);
      }
      Receiver late(config_of(markers));
      for (uint32_t i = 0; i < count; ++i) late.add(i, 18);
      ASSERT_TRUE(late.give(512, late.stream().size()));
      ASSERT_TRUE(late.give(0, 512));
      late.expect_all();
    }
  }
}

// discard_received(): from there on nothing goes up, TCP goes on.
TEST(FpduRx, DiscardFromInsideACallback_MPA_8_09) {
  Receiver rx(config_of(false));
  for (uint32_t i = 0; i < 6; ++i) rx.add(i, 200);
  rx.end.user.discard_after = 2;
  rx.give(rx.boundary(4), rx.boundary(6));
  rx.give(0, rx.boundary(4));
  EXPECT_EQ(rx.end.user.delivered.size(), 2u);
  EXPECT_EQ(held_octets(*rx.end.own_store), 0u);
  EXPECT_TRUE(rx.end.user.errors.empty());
}

// MPA-7.1.2-09: the first FPDU is told of before it is delivered; who discards then gets nothing.
TEST(FpduRx, DiscardOnTheFirstFpdu_MPA_8_09) {
  Receiver rx(config_of(true));
  rx.end.user.on_may_send = [&] { rx.end.session->discard_received(); };
  for (uint32_t i = 0; i < 3; ++i) rx.add(i, 100);
  rx.give(0, rx.stream().size());
  EXPECT_EQ(rx.end.user.may_sends, 1);
  EXPECT_TRUE(rx.end.user.delivered.empty());
  EXPECT_EQ(held_octets(*rx.end.own_store), 0u);
}

// MPA-8-01 MPA00-5.1-01: FIN at a boundary and inside an FPDU; the end is
// told once.
// UNH-MPA-2-14
TEST(FpduRx, PeerFinishedCleanOrNot_MPA_7_2_02_MPA_3_08) {
  for (const bool clean : {false, true}) {
    Receiver rx(config_of(false));
    rx.add(1, 200);
    rx.add(2, 200);
    rx.give(0, clean ? rx.boundary(2) : rx.boundary(1) + 10);
    rx.end.session->peer_finished(rx.end.now);
    EXPECT_EQ(rx.end.user.finished, std::vector{clean});
    rx.end.user.to_send = {numbered_ulpdu(3, 60)};  // MPA-7.2-01
    EXPECT_FALSE(rx.end.pull_all().empty());
    rx.end.session->ended(StreamEnd::Closed, rx.end.now);
    EXPECT_EQ(rx.end.user.ends, std::vector{StreamEnd::Closed});
    EXPECT_TRUE(rx.end.events.failures.empty());
  }
}

// Behind a wrong FPDU nothing is looked at any more, also before the order tells of it.
TEST(FpduRx, WhatFollowsAnErrorIsCountedAndThrownAway) {
  Receiver rx(config_of(false));
  rx.end.stream.traits_value.can_drop = false;
  rx.end.session->attach(rx.end.stream);
  for (uint32_t i = 0; i < 3; ++i) rx.add(i, 200);
  rx.encoder.stream[50] ^= 1;
  const size_t size = rx.stream().size();
  const auto place = [&rx](size_t from, size_t to) {
    const base::Range range{kStart + from, kStart + to};
    const base::ByteView octets = rx.stream().subspan(from, to - from);
    ASSERT_EQ(rx.end.session->inspect(range, octets, rx.end.now), llp::InspectVerdict::Accept);
    rx.end.session->place(range, octets, true, rx.end.now);
  };
  place(0, rx.boundary(2));
  EXPECT_EQ(rx.end.counters.discarded_octets, rx.boundary(2));
  place(rx.boundary(2), size);
  EXPECT_EQ(rx.end.counters.discarded_octets, size);
  EXPECT_TRUE(rx.end.user.errors.empty());
  rx.end.session->ordered(kStart + size, rx.end.now);
  EXPECT_EQ(rx.end.user.errors, std::vector{FramingError::Crc});
  EXPECT_TRUE(rx.end.user.placed.empty());
}

}  // namespace
}  // namespace rnic::mpa
