// Every table has a limit: hold space per session and per device, placed FPDUs, ranges.
#include <gtest/gtest.h>

#include "framing/hold_store.hpp"
#include "start_frames.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

void begin(MpaEnd& end, const Config& config) {
  MpaEnd peer(framing::Role::Initiator, config);
  peer.establish();
  end.establish();
  end.receive(0, peer.pull_all());
  end.session->accept({}, end.now);
  end.pull_all();
}

Octets stream_of(uint32_t count, size_t length, bool markers,
                 std::vector<Octets>* expected = nullptr) {
  SlowEncoder encoder(kStart, markers);
  for (uint32_t i = 0; i < count; ++i) {
    encoder.add(numbered_ulpdu(i, length));
    if (expected != nullptr) expected->push_back(numbered_ulpdu(i, length));
  }
  return encoder.stream;
}

// The per-connection limit: dropped before commit, and progress in order all the same.
TEST(Limits, HoldLimitDropsBeforeCommitAndTheOrderStillMoves) {
  Config config;
  config.hold_limit = 3000;
  MpaEnd end(framing::Role::Responder, config);
  begin(end, config);
  std::vector<Octets> expected;
  const Octets stream = stream_of(10, 1000, false, &expected);
  const base::ByteView octets(stream);
  EXPECT_TRUE(end.receive(kStart + 1008, octets.subspan(1008, 1500)));
  EXPECT_TRUE(end.receive(kStart + 2508, octets.subspan(2508, 1500)));
  EXPECT_FALSE(end.receive(kStart + 4008, octets.subspan(4008, 1)));
  EXPECT_EQ(end.counters.hold_refused, 1u);
  EXPECT_EQ(end.session->receive_room(), config.receive_window - 3000);
  // In pieces through the gap: only the kept-back space is left.
  for (size_t at = 0; at < 1008; at += 100) {
    ASSERT_TRUE(end.receive(kStart + at, octets.subspan(at, std::min<size_t>(100, 1008 - at))));
  }
  ASSERT_TRUE(end.receive(kStart + 4008, octets.subspan(4008)));
  EXPECT_EQ(end.user.delivered, expected);
  EXPECT_EQ(held_octets(*end.own_store), 0u);
}

// What cannot be held now is not damaged: TCP uses what the segment has before it.
TEST(Limits, NoRoomIsNotADrop) {
  Config config;
  config.hold_limit = 3000;
  MpaEnd end(framing::Role::Responder, config);
  begin(end, config);
  const Octets stream = stream_of(10, 1000, false);
  const base::ByteView octets(stream);
  ASSERT_TRUE(end.receive(kStart + 1008, octets.subspan(1008, 3000)));
  const auto inspect = [&](size_t from, size_t size) {
    return end.session->inspect({kStart + from, kStart + from + size}, octets.subspan(from, size),
                                end.now);
  };
  EXPECT_EQ(inspect(4032, 1008), llp::InspectVerdict::NoRoom);
  EXPECT_EQ(inspect(4032, 1000), llp::InspectVerdict::Drop) << "a cut FPDU, the first time";
  EXPECT_EQ(inspect(4032, 1000), llp::InspectVerdict::NoRoom);
  EXPECT_EQ(end.counters.hold_refused, 2u);
}

// The parts of a segment are accepted one by one before any is kept: each alone would fit.
TEST(Limits, PartsOfOneSegmentFindRoomTogether) {
  for (const uint32_t limit : {3000u, 4000u}) {
    Config config;
    config.hold_limit = limit;
    MpaEnd end(framing::Role::Responder, config);
    begin(end, config);
    const Octets stream = stream_of(10, 1000, false);
    const base::ByteView octets(stream);
    const auto inspect = [&](size_t from, size_t to) {
      return end.session->inspect({kStart + from, kStart + to}, octets.subspan(from, to - from),
                                  end.now);
    };
    const auto island = [&] { return end.receive(kStart + 4032, octets.subspan(4032, 100)); };
    ASSERT_TRUE(island() || island()) << "a cut FPDU is suspicious the first time";
    auto verdict = llp::InspectVerdict::Drop;
    for (int i = 0; i < 3 && verdict == llp::InspectVerdict::Drop; ++i) {
      end.session->clipped({kStart + 3032, kStart + 6660});
      verdict = inspect(3032, 4032);
      if (verdict == llp::InspectVerdict::Accept) verdict = inspect(4132, 6660);
    }
    EXPECT_EQ(verdict, limit == 3000 ? llp::InspectVerdict::NoRoom : llp::InspectVerdict::Accept);
    EXPECT_EQ(inspect(4132, 6660), llp::InspectVerdict::Accept) << "a segment of its own";
  }
}

// One device without hold space of its own: the longest FPDU still gets through, one connection at
// a time.
// MPA-A.5.2-01 MPA00-13.2-02: far more than an MTU, or 140 octets.
TEST(Limits, LongestFpduWithoutHoldSpace_MPA_4_1_01) {
  for (const bool markers : {false, true}) {
    Config config;
    config.markers_receive = markers;
    config.hold_limit = 0;
    const framing::HoldStorePtr store = framing::make_hold_store(0);
    MpaEnd one(framing::Role::Responder, config, {}, 0, store.get());
    MpaEnd two(framing::Role::Responder, config, {}, 0, store.get());
    begin(one, config);
    begin(two, config);
    std::vector<Octets> expected;
    const Octets stream = stream_of(2, 65535, markers, &expected);
    const base::ByteView octets(stream);
    ASSERT_TRUE(one.receive(kStart, octets.first(1460)));
    EXPECT_FALSE(two.receive(kStart, octets.first(1460)));
    EXPECT_FALSE(one.receive(kStart + 2920, octets.subspan(2920, 1460)));
    for (MpaEnd* end : {&one, &two}) {
      for (size_t at = 0; at < stream.size(); at += 1460) {
        ASSERT_TRUE(end->receive(kStart + at,
                                 octets.subspan(at, std::min<size_t>(1460, stream.size() - at))));
      }
      EXPECT_EQ(end->user.delivered, expected);
    }
    EXPECT_EQ(held_octets(*store), 0u);
  }
}

// early_limit: the rest is held, and nothing is lost.
TEST(Limits, EarlyLimitHoldsTheRest) {
  Config config;
  config.markers_receive = true;
  config.early_limit = 3;
  MpaEnd end(framing::Role::Responder, config);
  begin(end, config);
  std::vector<Octets> expected;
  const Octets stream =
      stream_of(10, 490, true, &expected);  // 504 octets, then 512 with their marker
  const base::ByteView octets(stream);
  size_t first = 4 + 496;
  ASSERT_TRUE(end.receive(kStart + first, octets.subspan(first, 1400)));
  ASSERT_TRUE(end.receive(kStart + first + 1400, octets.subspan(first + 1400)));
  EXPECT_EQ(end.user.placed.size(), 3u);
  EXPECT_GT(held_octets(*end.own_store), 0u);
  ASSERT_TRUE(end.receive(kStart, octets.first(first)));
  EXPECT_EQ(end.user.delivered, expected);
  EXPECT_EQ(held_octets(*end.own_store), 0u);
}

// The limit is of those that wait, not of those that ever have: what was delivered counts no more.
TEST(Limits, DeliveredFpdusAreEarlyNoMore) {
  Config config;
  config.markers_receive = true;
  config.early_limit = 1;
  MpaEnd end(framing::Role::Responder, config);
  begin(end, config);
  SlowEncoder encoder(kStart, true);
  for (uint32_t i = 0; i < 9; ++i) encoder.add(numbered_ulpdu(i, 600));
  encoder.boundaries.push_back(kStart + encoder.stream.size());
  const auto give = [&](size_t i) {
    const uint64_t from = encoder.boundaries[i] - kStart, to = encoder.boundaries[i + 1] - kStart;
    ASSERT_TRUE(
        end.receive(kStart + from, base::ByteView(encoder.stream).subspan(from, to - from)));
  };
  for (size_t i = 1; i < 9; i += 2) {
    give(i);
    ASSERT_EQ(end.user.placed.size(), i) << "placed ahead of the one before it";
    EXPECT_FALSE(end.user.placed.back().in_order);
    give(i - 1);
    EXPECT_EQ(end.user.delivered.size(), i + 1);
  }
}

// A transport that asks before it takes octets out of the system's buffer is told of the space that
// is kept back for one FPDU, too: also of the rest of one that has begun.
TEST(Limits, TheRestOfAnFpduIsTakenIntoTheReserve) {
  Config config;
  config.hold_limit = 0;
  MpaEnd end(framing::Role::Responder, config, {}, 0);
  begin(end, config);
  const Octets stream = stream_of(1, 1000, false);
  const base::ByteView octets(stream);
  for (const auto& [from, to] : {std::pair<size_t, size_t>{0, 400}, {400, 900}, {900, 1008}}) {
    const base::ByteView part = octets.subspan(from, to - from);
    EXPECT_EQ(end.session->takes({kStart + from, kStart + to}, part), part.size());
    ASSERT_TRUE(end.receive(kStart + from, part));
  }
  EXPECT_EQ(end.user.delivered.size(), 1u);
}

// Every other octet: the number of held ranges is limited, the refused ones are dropped.
TEST(Limits, RangesAreLimited) {
  MpaEnd end(framing::Role::Responder, {});
  begin(end, {});
  std::vector<Octets> expected;
  const Octets stream = stream_of(4, 1000, false, &expected);
  int refused = 0;
  for (size_t at = 1; at < stream.size(); at += 2) {
    if (!end.receive(kStart + at, {stream.data() + at, 1})) ++refused;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(end.counters.hold_refused, static_cast<uint64_t>(refused));
  for (size_t at = 0; at < stream.size(); at += 700) {
    ASSERT_TRUE(
        end.receive(kStart + at, {stream.data() + at, std::min<size_t>(700, stream.size() - at)}));
  }
  EXPECT_EQ(end.user.delivered, expected);
}

// A session that goes away gives everything back.
TEST(Limits, NothingIsLeftBehindByASession) {
  const framing::HoldStorePtr store = framing::make_hold_store(1u << 20);
  Config config;
  config.markers_receive = true;
  for (int i = 0; i < 100; ++i) {
    MpaEnd end(framing::Role::Responder, config, {}, 0, store.get());
    begin(end, config);
    const Octets stream = stream_of(40, 1000, true);
    end.receive(kStart + 1100, {stream.data() + 1100, 20000});
    EXPECT_FALSE(end.user.placed.empty());
    EXPECT_GT(held_octets(*store), 0u);
  }
  EXPECT_EQ(held_octets(*store), 0u);
  EXPECT_EQ(store->general_free(), (1u << 20) / framing::HoldStore::kPageSize);
}

/// The stream below it cannot drop what it has taken.
void over_a_line(MpaEnd& end) {
  end.stream.traits_value.can_drop = false;
  end.session->attach(end.stream);
}

// Segments that come before the order is told of have a descriptor for each FPDU. What finds none
// is held, and what comes behind that is judged as a segment of its own.
TEST(Limits, InOrderWithoutDescriptorsIsHeld) {
  constexpr uint32_t kEach = 64;
  constexpr size_t kSize = 24;  // of an FPDU
  MpaEnd end(framing::Role::Responder, {});
  begin(end, {});
  const uint32_t descriptors = end.own_store->placed().free();
  ASSERT_EQ(descriptors % kEach, 0u);
  const uint32_t segments = descriptors / kEach + 2;
  std::vector<Octets> expected;
  Octets stream = stream_of(segments * kEach, 18, false, &expected);
  ASSERT_EQ(stream.size(), segments * kEach * kSize);
  const auto inspect = [&](uint32_t i) {
    const size_t from = i * kEach * kSize;
    return end.session->inspect({kStart + from, kStart + from + kEach * kSize},
                                base::ByteView(stream).subspan(from, kEach * kSize), end.now);
  };
  for (uint32_t i = 0; i < segments; ++i) {
    const size_t from = i * kEach * kSize;
    if (i + 1 == segments) {  // its first FPDU is sound, another one is not
      stream[from + kSize + 5] ^= 1;
      EXPECT_EQ(inspect(i), llp::InspectVerdict::Drop);
      EXPECT_EQ(end.counters.crc_drops, 1u);
      stream[from + kSize + 5] ^= 1;
    }
    ASSERT_EQ(inspect(i), llp::InspectVerdict::Accept) << i;
    end.session->place({kStart + from, kStart + from + kEach * kSize},
                       base::ByteView(stream).subspan(from, kEach * kSize), true, end.now);
  }
  EXPECT_EQ(end.user.placed.size(), descriptors);
  EXPECT_EQ(held_octets(*end.own_store), 2 * kEach * kSize);
  end.session->ordered(kStart + stream.size(), end.now);
  EXPECT_EQ(end.user.delivered, expected);
  EXPECT_TRUE(end.user.errors.empty());
  EXPECT_EQ(held_octets(*end.own_store), 0u);
}

// A transport that cannot drop, and hands up more than takes() has allowed, has its stream aborted.
TEST(Limits, WhatCannotBeDroppedAndNotHeldEndsTheStream) {
  Config config;
  config.hold_limit = 0;
  const framing::HoldStorePtr store = framing::make_hold_store(0);
  MpaEnd one(framing::Role::Responder, config, {}, 0, store.get());
  MpaEnd two(framing::Role::Responder, config, {}, 0, store.get());
  std::vector<Octets> expected;
  const Octets stream = stream_of(1, 1000, false, &expected);
  const base::ByteView octets(stream);
  for (MpaEnd* end : {&one, &two}) {
    over_a_line(*end);
    begin(*end, config);
  }
  ASSERT_TRUE(one.receive(kStart, octets.first(400)));
  EXPECT_EQ(two.session->takes({kStart, kStart + 400}, octets.first(400)), 0u);
  two.receive(kStart, octets.first(400));
  EXPECT_EQ(two.counters.hold_refused, 1u);
  EXPECT_EQ(two.stream.aborts, 1);
  EXPECT_EQ(two.session->held(), 0u);
  EXPECT_EQ(held_octets(*store), 400u);
  ASSERT_TRUE(one.receive(kStart + 400, octets.subspan(400)));
  EXPECT_EQ(one.user.delivered, expected);
  EXPECT_EQ(one.stream.aborts, 0);
  // What still comes of it is counted, and goes nowhere.
  two.receive(kStart + 400, octets.subspan(400));
  EXPECT_EQ(two.counters.discarded_octets, stream.size() - 400);
  EXPECT_TRUE(two.user.placed.empty());
}

// What is refused is counted as that, and once: with the rest of an FPDU that finds no room nothing
// behind it in the segment is looked at.
TEST(Limits, ARefusedRestIsNotCountedAsDiscarded) {
  Config no_hold;
  no_hold.hold_limit = 0;
  constexpr uint32_t kPage = framing::HoldStore::kPageSize;
  const framing::HoldStorePtr store = framing::make_hold_store(kPage);
  MpaEnd one(framing::Role::Responder, no_hold, {}, 0, store.get());
  MpaEnd two(framing::Role::Responder, {}, {}, 0, store.get());
  const Octets stream = stream_of(2, 3000, false);
  const base::ByteView octets(stream);
  for (MpaEnd* end : {&one, &two}) over_a_line(*end);
  begin(one, no_hold);
  begin(two, {});
  // One page for everybody, which the second takes, and the reserve, which the first one has.
  constexpr size_t kFirst = kPage - kStart;
  ASSERT_TRUE(one.receive(kStart, octets.first(400)));
  ASSERT_TRUE(two.receive(kStart, octets.first(kFirst)));
  EXPECT_EQ(two.session->held(), kFirst);
  two.receive(kStart + kFirst, octets.subspan(kFirst));
  EXPECT_EQ(two.counters.hold_refused, 1u);
  EXPECT_EQ(two.counters.discarded_octets, 0u);
  EXPECT_EQ(two.stream.aborts, 1);
  EXPECT_EQ(two.session->held(), 0u);
  EXPECT_TRUE(two.user.placed.empty());
}

// A start-up has no room for what overtakes its frame, and it comes again.
TEST(Limits, WithoutHoldSpaceAStartFrameComesInOrder) {
  Config config;
  config.hold_limit = 0;
  MpaEnd end(framing::Role::Responder, config, {}, 0);
  end.establish();
  const Octets request = request_frame(0x40, 1, {1, 2, 3});
  const base::ByteView piece = base::ByteView(request).subspan(10, 5);
  EXPECT_EQ(end.session->inspect({10, 15}, piece, end.now), llp::InspectVerdict::NoRoom);
  EXPECT_EQ(end.counters.hold_refused, 1u);
  ASSERT_TRUE(end.receive(0, request));
  EXPECT_EQ(end.events.requests, (std::vector<Octets>{{1, 2, 3}}));
  EXPECT_EQ(end.counters.hold_refused, 1u);
}

}  // namespace
}  // namespace rnic::mpa
