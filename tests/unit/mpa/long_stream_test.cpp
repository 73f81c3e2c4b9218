// A stream whose offsets pass 2^32: the next four gigaoctets are as the first.
#include <gtest/gtest.h>

#include <algorithm>

#include "mpa/fpdu_writer.hpp"
#include "start_frames.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

constexpr uint64_t kWrap = uint64_t{1} << 32;

// 2^32 lies at every place of an FPDU and of the marker grid: before it, in
// its header, between the header and each of its markers, in a marker, behind it.
TEST(LongStream, FpdusAroundTheWrapEqualTheSlowEncoder_MPA_4_3_06_MPA_4_3_05) {
  constexpr uint32_t kLength = 801;
  uint32_t between = 0;
  for (uint32_t into = 0; into < 512; into += 4) {           // grid: where 2^32 lies in it
    for (uint32_t before = 0; before < 864; before += 12) {  // the FPDU begins so far below 2^32
      // The FPDU in front of it ends there; a grid that begins low enough for one.
      const uint64_t start = kWrap - 2048 - into;
      const uint64_t begin = kWrap - before;
      const MarkerGrid grid(true, start);
      // Nothing begins in a marker or right behind one.
      if ((begin - start) % 512 == 4) continue;
      const auto front = static_cast<uint32_t>(begin - start);
      SlowEncoder slow(start, true);
      slow.stream.resize(front);
      slow.add(numbered_ulpdu(before, kLength));
      Octets room(1000);
      llp::Frame frame(room.data(), 1000);
      FpduWriter writer(grid, begin, true, kLength, frame);
      writer.write(kLength, numbered_ulpdu(before, kLength), {});
      ASSERT_TRUE(writer.complete());
      room.resize(frame.length());
      ASSERT_EQ(room, Octets(slow.stream.begin() + front, slow.stream.end()))
          << into << " " << before;
      between += before != 0;
    }
  }
  EXPECT_GT(between, 9'000u);
}

/// Both ends took over a connection that has carried `carried` octets each way.
struct LatePair {
  explicit LatePair(uint64_t carried, const Config& config)
      : a(framing::Role::Initiator, config), b(framing::Role::Responder, config) {
    for (MpaEnd* end : {&a, &b}) {
      end->sent = end->complete = carried;
      end->committed[0] = carried;
    }
    b.session->take_over(1460, carried, {}, b.now);
    a.session->take_over(1460, carried, {}, a.now);
    b.receive(carried, a.pull_all());
    b.session->accept({}, b.now);
    a.receive(carried, b.pull_all());
  }
  MpaEnd a, b;
};

// Sessions across 2^32: each octet is the slow encoder's, and segments in
// three orders are located, by their markers where one is missing, and taken.
TEST(LongStream, SessionsAcrossTheWrap_MPA_4_3_05_MPA_4_3_06) {
  Config config;
  config.markers_receive = true;
  uint64_t early = 0;
  for (uint32_t before = 24; before < 3200; before += 12) {
    for (const uint32_t order : {0u, 1u, 2u}) {
      const uint64_t full = kWrap - before + 20;
      LatePair pair(kWrap - before, config);
      ASSERT_TRUE(pair.b.session->full_operation());
      SlowEncoder encoder(full, true);
      std::vector<Octets> expected;
      for (uint32_t i = 0; i < 5; ++i) {
        expected.push_back(numbered_ulpdu(i, 600 + i));
        encoder.add(expected.back());
        pair.a.user.to_send.push_back(expected.back());
      }
      std::vector<MpaEnd::Record> records;
      Octets all;
      while (auto record = pair.a.pull(1460)) {
        ASSERT_EQ(record->offset, encoder.boundaries[records.size()]);
        all.insert(all.end(), record->octets.begin(), record->octets.end());
        records.push_back(std::move(*record));
      }
      ASSERT_EQ(all, encoder.stream) << before;
      ASSERT_EQ(records.size(), 5u);
      if (order == 1) std::reverse(records.begin(), records.end());
      if (order == 2) std::rotate(records.begin(), records.begin() + 1, records.end());
      for (const auto& record : records) {
        ASSERT_TRUE(pair.b.receive(record.offset, record.octets)) << before;
      }
      ASSERT_EQ(pair.b.user.delivered, expected) << before << " " << order;
      ASSERT_EQ(pair.b.user.placed.size(), 5u);
      ASSERT_EQ(pair.b.user.faults, 0);
      early += pair.b.counters.placed_early_octets;
      if (order == 1) {  // every segment has a marker: none needs to be held
        ASSERT_EQ(pair.b.counters.held_octets, 0u) << before;
      }
    }
  }
  EXPECT_GT(early, 500'000u);
}

}  // namespace
}  // namespace rnic::mpa
