// Where FPDUs begin (RFC 5044 s.6): the markers that tell, what is held until they come, and what
// must not be taken over from elsewhere.
#include <gtest/gtest.h>

#include <optional>

#include "base/endian.hpp"
#include "framing/receiver.hpp"
#include "mpa/fpdu_locator.hpp"
#include "start_frames.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

/// A responder with markers in full operation, and a stream for it.
struct MarkedReceiver {
  explicit MarkedReceiver(const std::vector<size_t>& lengths)
      : end(framing::Role::Responder, with_markers()), encoder(kStart, true) {
    for (const size_t length : lengths) {
      expected.push_back(numbered_ulpdu(static_cast<uint32_t>(expected.size()), length));
      encoder.add(expected.back());
    }
    MpaEnd peer(framing::Role::Initiator, {});
    peer.establish();
    end.establish();
    end.receive(0, peer.pull_all());
    end.session->accept({}, end.now);
    end.pull_all();
  }
  static Config with_markers() {
    Config config;
    config.markers_receive = true;
    config.silent_drop = false;
    return config;
  }
  void give(size_t from, size_t to) {
    EXPECT_TRUE(
        end.receive(kStart + from, base::ByteView(encoder.stream).subspan(from, to - from)));
  }
  [[nodiscard]] size_t boundary(size_t i) const {
    return i < encoder.boundaries.size() ? encoder.boundaries[i] - kStart : encoder.stream.size();
  }
  void expect_all() {
    EXPECT_EQ(end.user.delivered, expected);
    EXPECT_EQ(end.user.faults, 0);
    EXPECT_EQ(held_octets(*end.own_store), 0u);
  }

  MpaEnd end;
  SlowEncoder encoder;
  std::vector<Octets> expected;
};

// RFC 5044 s.4.3: a marker between two FPDUs belongs to the second and says 0. It locates the one
// that begins with it, also where it is the only marker of the segment.
TEST(Locating, AMarkerBetweenFpdusLocatesTheSecond_MPA_6_03) {
  MarkedReceiver rx({502, 100, 100});
  ASSERT_EQ(rx.boundary(1), 512u);
  rx.give(rx.boundary(1), rx.boundary(3));
  ASSERT_EQ(rx.end.user.placed.size(), 2u);
  EXPECT_EQ(rx.end.counters.held_octets, 0u);
  rx.give(0, rx.boundary(1));
  rx.expect_all();
}

// The rest of an FPDU is held before one that went to its place out of order. When the
// beginning comes, which has no marker, the marker in the rest tells where it begins.
TEST(Locating, AHeldRestLocatesItsBeginning_MPA_6_03_MPA_6_04) {
  MarkedReceiver rx({100, 600, 600, 100});
  const size_t first = rx.boundary(1), second = rx.boundary(2), third = rx.boundary(3);
  ASSERT_TRUE(first < 512 && 512 < second && second < 1024 && 1024 + 4 < third);
  rx.give(512, 1100);
  EXPECT_TRUE(rx.end.user.placed.empty());
  rx.give(1100, third);
  ASSERT_EQ(rx.end.user.placed.size(), 1u);
  EXPECT_EQ(held_octets(*rx.end.own_store), second - 512);
  rx.give(first, 512);
  ASSERT_EQ(rx.end.user.placed.size(), 2u);
  EXPECT_EQ(rx.end.user.placed[1].octets, rx.expected[1]);
  EXPECT_EQ(held_octets(*rx.end.own_store), 0u);
  rx.give(third, rx.boundary(4));
  rx.give(0, first);
  rx.expect_all();
}

struct NoListener final : framing::ReceiverOwner {
  void broken(framing::PduError, base::Now) override { ADD_FAILURE(); }
};

// What stands behind a start frame in its segment is placed without being inspected. The receiver
// looks for the FPDUs in it by itself, whatever was found in the octets of an earlier connection's
// receiver, though that one was at the same place in memory and its segment at the same offset.
TEST(Locating, NothingIsTakenOverFromAnEarlierConnection) {
  const framing::HoldStorePtr store = framing::make_hold_store(1u << 20);
  const Config config;
  Counters counters;
  NoListener owner;
  test::FakeStream stream;
  std::optional<FpduReceiver> receiver;
  for (const bool long_first : {false, true}) {
    const std::vector<Octets> sent{numbered_ulpdu(1, long_first ? 300 : 100),
                                   numbered_ulpdu(2, long_first ? 100 : 300)};
    SlowEncoder encoder(kStart, false);
    for (const Octets& ulpdu : sent) encoder.add(ulpdu);
    test::FakeFramingUser user;
    FpduLocator locator(config, *store, counters);
    locator.start(kStart, {});  // with CRCs
    receiver.emplace(*store, framing::ReceiverLimits{.hold = 1000, .early = 10},
                     framing::ReceiverCounters{counters.fpdus_in, counters.placed_in_order_octets,
                                               counters.placed_early_octets, counters.held_octets,
                                               counters.hold_refused, counters.discarded_octets},
                     locator, owner);
    receiver->attach(&stream);
    receiver->bind(&user);
    receiver->start(kStart);
    const uint64_t end = kStart + encoder.stream.size();
    receiver->place({kStart, end}, encoder.stream, {});
    receiver->ordered(end, {});
    EXPECT_EQ(user.delivered, sent);
    EXPECT_TRUE(user.errors.empty());
    receiver.reset();
  }
}

// An FPDU that was located says by its length what belongs to it. A marker inside of it
// that points into its ULPDU does not make an FPDU of the octets there.
TEST(Locating, NoMarkerSpeaksAgainstALocatedLength_MPA_6_04) {
  MarkedReceiver r({300, 3000});
  const size_t first = r.boundary(1);
  Octets& stream = r.encoder.stream;
  // What it carries looks like an FPDU, up to the CRC; and the next marker says so.
  SlowEncoder inner(0, false);
  inner.add(numbered_ulpdu(7, 20));
  constexpr size_t kInner = 1100, kMarker = 3 * 512;
  static_assert(kInner > 2 * 512 + 4 && kInner + 28 <= kMarker);
  ASSERT_LE(inner.stream.size(), 28u);
  std::copy(inner.stream.begin(), inner.stream.end(), stream.begin() + kInner);
  base::store_be16(&stream[kMarker + 2], kMarker - kInner);
  r.give(first, 1000);  // a marker tells where the second one begins
  r.give(1000, 2000);
  EXPECT_TRUE(r.end.user.placed.empty());
  EXPECT_EQ(r.end.counters.placed_early_octets, 0u);
  EXPECT_EQ(r.end.session->held(), 2000 - first);
}

}  // namespace
}  // namespace rnic::mpa
