// Segments of whole FPDUs in order, taken in one go: nothing of them is placed before all of it is
// proven, with markers and without.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using llp::InspectVerdict;
using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

/// A responder that has had its first FPDU, and the stream that its peer goes on with.
struct Begun {
  explicit Begun(const Config& config)
      : end(framing::Role::Responder, config), encoder(kBegin, config.markers_receive, config.crc) {
    MpaEnd peer(framing::Role::Initiator, config);
    peer.establish();
    end.establish();
    end.receive(0, peer.pull_all());
    end.session->accept({}, end.now);
    end.pull_all();
    add(0, 40);
    EXPECT_TRUE(end.receive(kBegin, encoder.stream));
  }
  /// Adds FPDUs, and gives the segment that they are.
  Octets add(uint32_t number, size_t length, uint32_t count = 1) {
    begin = kBegin + encoder.stream.size();
    for (uint32_t i = 0; i < count; ++i) encoder.add(numbered_ulpdu(number + i, length));
    return {encoder.stream.begin() + static_cast<long>(begin - kBegin), encoder.stream.end()};
  }
  [[nodiscard]] base::Range range(const Octets& segment) const {
    return {begin, begin + segment.size()};
  }
  InspectVerdict inspect(const Octets& segment) {
    return end.session->inspect(range(segment), segment, end.now);
  }
  bool place(const Octets& segment) {
    return end.session->place_ordered(range(segment), segment, end.now);
  }

  static constexpr uint64_t kBegin = 20;
  MpaEnd end;
  SlowEncoder encoder;
  uint64_t begin = 0;  // of the segment added last
};

Config with_markers(bool markers) {
  Config config;
  config.markers_receive = markers;
  return config;
}

// Each octet of each FPDU is damaged in turn, but for those that tell a length.
TEST(FpduFastPath, DamageIsRefusedBeforeAnythingIsPlaced_MPA_6_01_MPA_8_07) {
  for (const bool markers : {false, true}) {
    for (const uint32_t count : {1u, 3u}) {
      Begun rx(with_markers(markers));
      const Octets right = rx.add(1, 60, count);
      const size_t last = rx.encoder.boundaries.back() - rx.begin;
      for (size_t at = last + 2; at < right.size(); ++at) {
        Begun fresh(with_markers(markers));
        Octets wrong = fresh.add(1, 60, count);
        ASSERT_EQ(wrong, right);
        wrong[at] ^= 0x10;
        EXPECT_EQ(fresh.inspect(wrong), InspectVerdict::Drop) << at;
        EXPECT_EQ(fresh.end.user.placed.size(), 1u) << at;
        EXPECT_EQ(fresh.end.counters.crc_drops, 1u) << at;
        EXPECT_FALSE(fresh.place(wrong)) << "what was refused is no plain segment";
      }
      EXPECT_EQ(rx.inspect(right), InspectVerdict::Accept);
      EXPECT_EQ(rx.end.user.placed.size(), 1u) << "a verdict places nothing";
      EXPECT_TRUE(rx.place(right));
      EXPECT_EQ(rx.end.user.delivered.size(), 1 + count);
      EXPECT_EQ(rx.end.user.faults, 0);
    }
  }
}

// Without the silent drop the damaged FPDU is committed, those before it are delivered, and it is
// error 2.
TEST(FpduFastPath, DamageWithoutSilentDropIsErrorTwo_MPA_8_02_MPA_6_01) {
  for (const bool markers : {false, true}) {
    Config config = with_markers(markers);
    config.silent_drop = false;
    Begun rx(config);
    Octets segment = rx.add(1, 60, 3);
    segment.back() ^= 1;
    EXPECT_EQ(rx.inspect(segment), InspectVerdict::Accept);
    EXPECT_FALSE(rx.place(segment));
    rx.end.session->ordered(rx.range(segment).end, rx.end.now);
    EXPECT_EQ(rx.end.user.delivered.size(), 3u);
    EXPECT_EQ(rx.end.user.placed.size(), 3u);
    EXPECT_EQ(rx.end.user.errors, std::vector<llp::FramingError>{llp::FramingError::Crc});
  }
}

// A marker stands anywhere: in front of an FPDU, inside the header that is delivered, in the
// payload, and before the CRC.
TEST(FpduFastPath, MarkersAtEachPlace_MPA_4_3_12) {
  Begun rx(with_markers(true));
  std::mt19937 random(1);
  uint64_t places = 0;
  for (uint32_t i = 1; i < 1000; ++i) {
    const size_t length = 40 + random() % 1400;
    const Octets segment = rx.add(i, length);
    places |= uint64_t{1} << (rx.begin - Begun::kBegin) % 512 / 8;
    ASSERT_EQ(rx.inspect(segment), InspectVerdict::Accept) << i;
    ASSERT_TRUE(rx.place(segment)) << i;
    ASSERT_EQ(rx.end.user.delivered.size(), 1 + i);
    ASSERT_EQ(rx.end.user.delivered.back(), numbered_ulpdu(i, length));
  }
  EXPECT_EQ(places, UINT64_MAX);
  EXPECT_EQ(rx.end.user.faults, 0);
  EXPECT_EQ(rx.end.counters.fpdus_in, 1000u);
}

// Before full operation there is no such way: the octets belong to the start-up.
TEST(FpduFastPath, NotForAStartFrame) {
  MpaEnd responder(framing::Role::Responder, {});
  MpaEnd peer(framing::Role::Initiator, {});
  peer.establish();
  responder.establish();
  const Octets request = peer.pull_all();
  const base::Range range{0, request.size()};
  ASSERT_EQ(responder.session->inspect(range, request, responder.now), InspectVerdict::Accept);
  EXPECT_FALSE(responder.session->place_ordered(range, request, responder.now));
  EXPECT_EQ(responder.events.requests.size(), 1u);
}

// More FPDUs than are listed of a segment: the rest of it takes the general way.
TEST(FpduFastPath, NotForMoreFpdusThanAreListed) {
  Begun rx({});
  const Octets segment = rx.add(1, 8, framing::kLocatedMax + 1);
  EXPECT_TRUE(rx.end.receive(rx.begin, segment));
  EXPECT_EQ(rx.end.user.delivered.size(), framing::kLocatedMax + 2);
  const Octets most = rx.add(1000, 8, framing::kLocatedMax);
  EXPECT_EQ(rx.inspect(most), InspectVerdict::Accept);
  EXPECT_TRUE(rx.place(most));
}

}  // namespace
}  // namespace rnic::mpa
