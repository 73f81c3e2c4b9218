// Framing under DDP: what is placed when, what is delivered when, and what is held.
#include <numeric>

#include "session_pair.hpp"
#include "support/long_form.hpp"
#include "tuf/marker_grid.hpp"

namespace rnic::tuf {
namespace {

constexpr wire::TufKey kKey = SessionPair::kKeyA;

std::vector<Octets> ulpdus(size_t n, size_t size) {
  std::vector<Octets> all;
  for (size_t i = 0; i < n; ++i) {
    all.push_back(numbered_ulpdu(static_cast<uint32_t>(i), size + i * 3));
  }
  return all;
}

void expect_clean(const SessionPair& p, const std::vector<Octets>& sent, const std::string& what) {
  EXPECT_EQ(p.b.user.delivered, sent) << what;
  EXPECT_EQ(p.b.user.faults, 0) << what;
  EXPECT_TRUE(p.b.more.errors.empty()) << what;
  EXPECT_EQ(framing::held_octets(*p.b.hold_store), 0u) << what;
}

// On the wire, packed and not, with one key for all of them.
TEST(Session, FramesOnTheWire_TUF_5_01_TUF_5_02_TUF_5_05_TUF_5_06) {
  for (const bool packing : {false, true}) {
    SessionPair p(aligned(packing), aligned(packing));
    p.start();
    const std::vector<Octets> sent = ulpdus(20, 100);
    const auto records = p.send(sent);
    EXPECT_EQ(records.size(), packing ? 2u : 20u);
    size_t pdus = 0;
    for (const auto& r : records) {
      ASSERT_TRUE(wire::is_tuf_frame(r.octets, kKey));
      for (size_t at = 8; packing && at < r.octets.size();) {
        at += 2 + base::load_be16(&r.octets[at]);
        ASSERT_LE(at, r.octets.size());
        ++pdus;
      }
      if (!packing) {
        EXPECT_EQ(Octets(r.octets.begin() + 8, r.octets.end()), sent[pdus++]);
      }
      p.b.in.receive(r.offset, r.octets);
    }
    EXPECT_EQ(pdus, 20u);
    expect_clean(p, sent, "");
    p.a.release_all();
    EXPECT_EQ(p.a.user.sent.size(), 0u);  // each ULPDU released by its own name
    EXPECT_EQ(packed_ulpdus(*p.a.pack_store), 0u);
  }
}

// The store of names is full: single ones.
TEST(Session, PackingEndsWithItsStore) {
  SessionPair p(aligned(true), aligned(true));
  p.start();
  const std::vector<Octets> sent = ulpdus(100, 20);
  const auto records = p.send(sent);  // 64 names
  for (const auto& r : records) p.b.in.receive(r.offset, r.octets);
  expect_clean(p, sent, "");
  EXPECT_EQ(p.a.counters.packed_pdus_out, 64u);
  p.a.release_all();
  EXPECT_EQ(packed_ulpdus(*p.a.pack_store), 0u);
}

// Placed on arrival, whatever the order; delivered in order only. Every
// permutation of five segments, alignment mode (plain and packed) and marker mode.
TEST(Session, FiveSegmentsInEveryOrder_TUF_1_01_TUF_5_4_02) {
  const std::vector<Config> configs{aligned(), aligned(true), marked(512), marked(1000)};
  for (const Config& config : configs) {
    const bool align = config.align_receive;
    std::vector<int> order(5);
    std::iota(order.begin(), order.end(), 0);
    do {
      SessionPair p(config, config);
      p.start(config.packing && align ? 600 : 1460);
      const std::vector<Octets> sent = ulpdus(config.packing && align ? 20 : 5, 100);
      const auto records = p.send(sent);
      std::vector<Octets> segments;
      std::vector<uint64_t> offsets;
      if (align) {
        ASSERT_EQ(records.size(), 5u);
        for (const auto& r : records) segments.push_back(r.octets), offsets.push_back(r.offset);
      } else {
        // Cut anywhere: marker mode knows no alignment.
        const Octets all = p.framed();
        for (size_t i = 0; i < 5; ++i) {
          const size_t from = all.size() * i / 5;
          const size_t to = all.size() * (i + 1) / 5;
          segments.emplace_back(all.begin() + static_cast<long>(from),
                                all.begin() + static_cast<long>(to));
          offsets.push_back(p.first_octet + from);
        }
      }
      std::vector<bool> here(5);
      size_t placed_at_once = 0;
      for (const int i : order) {
        const size_t before = p.b.user.placed.size();
        ASSERT_TRUE(
            p.b.in.receive(offsets[static_cast<size_t>(i)], segments[static_cast<size_t>(i)]));
        here[static_cast<size_t>(i)] = true;
        placed_at_once += p.b.user.placed.size() - before;
        if (align) {
          EXPECT_GT(p.b.user.placed.size(), before);
        }
        // Nothing behind a hole is delivered.
        const size_t complete =
            static_cast<size_t>(std::find(here.begin(), here.end(), false) - here.begin());
        if (complete == 0) {
          EXPECT_TRUE(p.b.user.delivered.empty());
        }
        if (align && !config.packing) {
          EXPECT_EQ(p.b.user.delivered.size(), complete);
        }
      }
      EXPECT_EQ(placed_at_once, sent.size());
      expect_clean(p, sent, "");
      if (align) {
        EXPECT_EQ(p.b.counters.held_octets, 0u);
        EXPECT_EQ(p.b.counters.aligned_segments_in, 5u);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// The user cannot place ahead of the order: what is left of a framing PDU waits for it.
TEST(Session, TheUserMayAskToHold_TUF_5_4_02) {
  for (const bool packing : {false, true}) {
    SessionPair p(aligned(packing), aligned(packing));
    p.start(700);
    const std::vector<Octets> sent = ulpdus(12, 100);
    const auto records = p.send(sent);
    p.b.user.hold_early = true;
    for (size_t i = records.size(); i-- > 0;) p.b.in.receive(records[i].offset, records[i].octets);
    for (const auto& placed : p.b.user.placed) EXPECT_TRUE(placed.in_order);
    expect_clean(p, sent, "");
  }
  // In the middle of a packed one: the front is placed early, the rest is not.
  SessionPair p(aligned(true), aligned(true));
  p.start(700);
  const std::vector<Octets> sent = ulpdus(12, 100);
  const auto records = p.send(sent);
  p.b.in.receive(records[1].offset, records[1].octets);
  EXPECT_GT(p.b.user.placed.size(), 1u);
  p.b.user.hold_early = true;
  p.b.in.receive(records[2].offset, records[2].octets);
  p.b.user.hold_early = false;
  p.b.in.receive(records[0].offset, records[0].octets);
  for (size_t i = 3; i < records.size(); ++i) {
    p.b.in.receive(records[i].offset, records[i].octets);
  }
  expect_clean(p, sent, "");
}

// The same in marker mode, of each PDU that a marker finds.
TEST(Session, TheUserMayAskToHoldMarkedPdus) {
  SessionPair p(marked(512), marked(512));
  p.start(700);
  const std::vector<Octets> sent = ulpdus(12, 100);
  const auto records = p.send(sent);
  p.b.user.hold_early = true;
  for (size_t i = records.size(); i-- > 1;) p.b.in.receive(records[i].offset, records[i].octets);
  EXPECT_TRUE(p.b.user.placed.empty());
  EXPECT_GT(p.b.session->held(), 0u);
  p.b.in.receive(records[0].offset, records[0].octets);
  for (const auto& placed : p.b.user.placed) EXPECT_TRUE(placed.in_order);
  expect_clean(p, sent, "");
}

// Of a packed framing PDU that came early only the front had a place: behind it no header comes.
TEST(Session, TheRestOfAPackedFrameIsHeldForWantOfAPlace) {
  Config config = aligned(true);
  config.early_limit = 1;
  SessionPair p(config, config);
  p.start(700);
  const std::vector<Octets> sent = ulpdus(12, 100);
  const auto records = p.send(sent);
  p.b.in.receive(records[1].offset, records[1].octets);
  ASSERT_EQ(p.b.user.placed.size(), 1u);
  EXPECT_FALSE(p.b.user.placed[0].in_order);
  EXPECT_GT(p.b.session->held(), 0u);
  p.b.in.receive(records[0].offset, records[0].octets);
  for (size_t i = 2; i < records.size(); ++i) {
    p.b.in.receive(records[i].offset, records[i].octets);
  }
  expect_clean(p, sent, "");
}

// Out of order only an exact framing PDU is placed: one octet
// less, one more, one bit of length or key, and it waits, or ends the stream's use in order.
TEST(Session, OnlyTheExactFrame_TUF_5_4_01_TUF_5_4_03_TUF_5_4_04) {
  SessionPair p(aligned(), aligned());
  p.start();
  const std::vector<Octets> sent = ulpdus(3, 60);
  const auto records = p.send(sent);
  const Octets all = p.framed();
  const uint64_t second = records[1].offset;
  const size_t size = records[1].octets.size();
  // Shifted or cut: all but the exact one are held.
  for (size_t from = 0; from < 5; ++from) {
    for (size_t cut = 0; cut < 5; ++cut) {
      SessionPair q(aligned(), aligned());
      q.start();
      const uint64_t begin = second + from - 2;
      const uint64_t end = second + size + cut - 2;
      const base::ByteView octets = base::ByteView(all).subspan(begin - q.first_octet, end - begin);
      q.b.in.receive(begin, octets);
      const bool exact = from == 2 && cut == 2;
      EXPECT_EQ(q.b.user.placed.size(), exact ? 1u : 0u) << from << cut;
      EXPECT_EQ(q.b.counters.held_octets, exact ? 0u : octets.size());
      q.b.in.receive(q.first_octet, all);
      expect_clean(q, sent, "");
    }
  }
  for (size_t bit = 0; bit < 64; ++bit) {
    SessionPair q(aligned(), aligned());
    q.start();
    Octets broken = records[1].octets;
    broken[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
    q.b.in.receive(second, broken);
    EXPECT_TRUE(q.b.user.placed.empty()) << bit;
    q.b.in.receive(records[0].offset, records[0].octets);
    Octets more(70000);
    q.b.in.receive(second + size, more);
    ASSERT_EQ(q.b.user.delivered.size(),
              bit < 16 && q.b.more.errors[0] == framing::PduError::BadKey ? 2u : 1u)
        << bit;
    ASSERT_EQ(q.b.more.errors.size(), 1u) << bit;
    EXPECT_TRUE(q.b.more.errors[0] == framing::PduError::BadKey ||
                q.b.more.errors[0] == framing::PduError::BadLength);
    EXPECT_EQ(q.b.user.errors, std::vector{llp::FramingError::MarkerMismatch});
    EXPECT_EQ(framing::held_octets(*q.b.hold_store), 0u);
  }
}

// A middlebox that cuts three framing PDUs in three, in every way and either order.
TEST(Session, EveryResegmentation_TUF_5_2_06) {
  SessionPair p(aligned(), aligned());
  p.start();
  const std::vector<Octets> sent = ulpdus(3, 5);
  p.send(sent);
  const Octets all = p.framed();
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); ++j) {
      for (const bool swapped : {false, true}) {
        SessionPair q(aligned(), aligned());
        q.start();
        const auto receive = [&](size_t from, size_t to) {
          const base::ByteView octets = base::ByteView(all).subspan(from, to - from);
          if (!octets.empty()) q.b.in.receive(q.first_octet + from, octets);
        };
        if (!swapped) receive(0, i);
        receive(j, all.size());
        receive(i, j);
        if (swapped) receive(0, i);
        expect_clean(q, sent, std::to_string(i) + " " + std::to_string(j));
      }
    }
  }
}

// The right size and a wrong key, in order.
TEST(Session, AWrongKeyInOrder_TUF_5_4_04) {
  SessionPair p(aligned(), aligned());
  p.start();
  auto records = p.send(ulpdus(1, 500));
  records[0].octets[7] ^= 1;
  p.b.in.receive(records[0].offset, records[0].octets);
  EXPECT_TRUE(p.b.user.placed.empty());
  EXPECT_TRUE(p.b.user.delivered.empty());
  EXPECT_EQ(p.b.more.errors, std::vector{framing::PduError::BadKey});
  EXPECT_EQ(p.b.counters.bad_key_errors, 1u);
  EXPECT_EQ(p.b.counters.aligned_segments_in, 0u);
}

// Of a segment that overlaps an earlier one only a part is new: whatever it looks like.
TEST(Session, APartOfASegmentIsHeld_TUF_5_4_01) {
  SessionPair p(aligned(), aligned());
  p.start();
  std::vector<Octets> sent = ulpdus(2, 600);
  wire::store_tuf_header(&sent[1][200], {static_cast<uint16_t>(sent[1].size() - 208), kKey});
  const auto records = p.send(sent);
  const base::ByteView second = records[1].octets;
  p.b.in.receive(records[1].offset, second.first(208));
  p.b.in.receive(records[1].offset, second);  // new is what looks like a framing PDU
  EXPECT_TRUE(wire::is_tuf_frame(second.subspan(208), kKey));
  EXPECT_TRUE(p.b.user.placed.empty());
  p.b.in.receive(records[0].offset, records[0].octets);
  expect_clean(p, sent, "");
}

// A segment boundary at each octet of a marker: the octets behind are found by the copy
// that is whole. Where the header of a PDU is lost, placement goes on at the next one.
TEST(Session, CutMarkers_TUF_6_04_TUF_6_07) {
  SessionPair p(marked(512), marked(512));
  p.start();
  const std::vector<Octets> sent = ulpdus(12, 300);
  p.send(sent);
  const Octets all = p.framed();
  for (size_t marker = 512; marker + 4 < 2000; marker += 512) {
    for (size_t cut = 0; cut <= 4; ++cut) {
      for (const bool before : {false, true}) {
        SessionPair q(marked(512), marked(512));
        q.start();
        // One segment has the whole stream but its begin; or only what ends inside the marker.
        const size_t from = before ? marker - 200 : marker + cut;
        const size_t to = before ? marker + cut : all.size();
        const base::ByteView octets = base::ByteView(all).subspan(from, to - from);
        q.b.in.receive(q.first_octet + from, octets);
        if (!before) {
          const bool copy = cut <= 2;
          const size_t expected = base::load_be16(&all[marker]) + marker + 4;
          ASSERT_FALSE(q.b.user.placed.empty());
          // The first one placed is the one that this marker points to, or a later marker does.
          size_t at = 0;
          size_t first = sent.size();
          for (size_t i = 0, offset = 0; i < sent.size(); ++i) {
            MarkerGrid grid(0, 512);
            if (sent[i] == q.b.user.placed[0].octets) first = i, at = grid.after(offset);
            offset = grid.end_of(offset, 2 + sent[i].size());
          }
          ASSERT_LT(first, sent.size());
          if (copy) {
            EXPECT_EQ(at, expected) << marker << " " << cut;
          } else {
            EXPECT_GE(at, expected);
          }
          EXPECT_EQ(q.b.user.delivered.size(), 0u);
        } else {
          // What follows is adjacent: the copy at the end of the first leads into it.
          q.b.in.receive(q.first_octet + to, base::ByteView(all).subspan(to, 700));
          EXPECT_FALSE(q.b.user.placed.empty()) << marker << " " << cut;
        }
        q.b.in.receive(q.first_octet, all);
        expect_clean(q, sent, std::to_string(marker) + " " + std::to_string(cut));
      }
    }
  }
}

// Every place of a marker in a PDU, every length of a PDU around an interval,
// against every cut in two, in both orders.
TEST(Session, MarkersAgainstLengthsAgainstCuts_TUF_6_03_TUF_6_05) {
  for (size_t lead = 1; lead < 520; lead += test::by_form(9, 3)) {
    SessionPair p(marked(512), marked(512));
    p.start(1500);
    const std::vector<Octets> sent{numbered_ulpdu(1, lead), numbered_ulpdu(2, 505 + lead % 11),
                                   numbered_ulpdu(3, 30)};
    p.send(sent);
    const Octets all = p.framed();
    for (size_t cut = lead % 7; cut <= all.size(); cut += 13) {
      for (const bool swapped : {false, true}) {
        SessionPair q(marked(512), marked(512));
        q.start(1500);
        const base::ByteView view(all);
        if (swapped) q.b.in.receive(q.first_octet + cut, view.subspan(cut));
        q.b.in.receive(q.first_octet, view.first(cut));
        if (!swapped) q.b.in.receive(q.first_octet + cut, view.subspan(cut));
        ASSERT_EQ(q.b.user.delivered, sent) << lead << " " << cut << " " << swapped;
        ASSERT_TRUE(q.b.more.errors.empty());
        ASSERT_EQ(framing::held_octets(*q.b.hold_store), 0u);
      }
    }
  }
}

// Every bit of every marker: told, and never a PDU that was not sent.
TEST(Session, EveryBitOfAMarker_TUF_6_02) {
  SessionPair p(marked(512), marked(512));
  p.start();
  const std::vector<Octets> sent = ulpdus(6, 400);
  p.send(sent);
  const Octets all = p.framed();
  for (size_t marker = 0; marker + 4 <= all.size(); marker += 512) {
    for (size_t bit = 0; bit < 32; ++bit) {
      SessionPair q(marked(512), marked(512));
      q.start();
      Octets broken = all;
      broken[marker + bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
      q.b.in.receive(q.first_octet, broken);
      EXPECT_EQ(q.b.more.errors, std::vector{framing::PduError::BadMarker}) << marker << " " << bit;
      EXPECT_EQ(q.b.counters.bad_marker_errors, 1u);
      ASSERT_LT(q.b.user.delivered.size(), sent.size());
      EXPECT_TRUE(std::equal(q.b.user.delivered.begin(), q.b.user.delivered.end(), sent.begin()));
    }
  }
}

// A PDU was placed ahead of the order, and the length in front of it reaches into it: whichever of
// the two is wrong, neither is delivered. `late`: the first octets come last.
TEST(Session, ALengthThatReachesOverAPlacedPdu_TUF_6_02) {
  for (const bool marks : {false, true}) {
    for (const size_t late : {0u, 1u, 4u, 7u}) {
      const Config config = marks ? marked(512) : aligned();
      SessionPair p(config, config);
      p.start();
      const auto records = p.send(ulpdus(4, 400));
      const uint64_t first = p.first_octet;
      Octets all = p.framed();
      all[marks ? wire::kTufMarkerSize : 0] = 0x07;  // the first PDU has 1792 octets and more
      // By the marker in the third PDU the fourth is found.
      const size_t behind = records[marks ? 2 : 3].offset - first;
      const base::ByteView view(all);
      p.b.in.receive(first + behind, view.subspan(behind));
      ASSERT_EQ(p.b.user.placed.size(), 1u) << marks;
      p.b.in.receive(first + late, view.first(behind).subspan(late));
      if (late != 0) p.b.in.receive(first, view.first(late));
      EXPECT_EQ(p.b.more.errors, std::vector{framing::PduError::BadLength}) << marks << late;
      EXPECT_TRUE(p.b.user.delivered.empty()) << marks << late;
      EXPECT_EQ(framing::held_octets(*p.b.hold_store), 0u);
    }
  }
}

// A segment is lost in a full window: what has to be kept is bounded by a PDU and an
// interval, where a plain receiver keeps the window. Alignment mode keeps nothing at all.
TEST(Session, WhatALossCosts_TUF_6_08) {
  std::vector<std::pair<std::string, uint64_t>> figures;
  for (const uint16_t interval : {0, 512, 2048, 8192}) {
    const Config config = interval == 0 ? aligned() : marked(interval);
    SessionPair p(config, config);
    p.start();
    const std::vector<Octets> sent(300, numbered_ulpdu(7, 1300));
    p.send(sent);
    const Octets all = p.framed();
    const size_t segment = 1460;
    const size_t step = interval == 0 ? p.a.records.back().octets.size() : segment;
    uint64_t most = 0;
    for (size_t at = 0; at < all.size(); at += step) {
      if (at / step == 3) continue;  // lost
      const size_t n = std::min(step, all.size() - at);
      p.b.in.receive(p.first_octet + at, base::ByteView(all).subspan(at, n));
      most = std::max(most, framing::held_octets(*p.b.hold_store));
    }
    // What is cut at either side of the hole, and the segment in hand.
    EXPECT_LE(most, interval == 0 ? 0 : 1304u + interval + segment) << interval;
    EXPECT_GT(all.size(), 30u * 1460);
    p.b.in.receive(p.first_octet, all);
    EXPECT_EQ(p.b.user.delivered.size(), 300u);
    EXPECT_EQ(p.b.user.faults, 0);
  }
}

// Without out-of-order placement the same stream is held and comes out the same.
TEST(Session, OutOfOrderCanBeOff) {
  for (Config config : {aligned(), marked(512)}) {
    config.out_of_order = false;
    SessionPair p(config, config);
    p.start();
    const std::vector<Octets> sent = ulpdus(6, 700);
    const auto records = p.send(sent);
    for (size_t i = records.size(); i-- > 0;) p.b.in.receive(records[i].offset, records[i].octets);
    for (const auto& placed : p.b.user.placed) EXPECT_TRUE(placed.in_order);
    expect_clean(p, sent, "");
  }
}

// No hold space: dropped before commit, counted, and repeated.
TEST(Session, NoHoldSpace) {
  Config config = marked(512);
  config.hold_limit = 4000;
  SessionPair p(config, config);
  p.start();
  const std::vector<Octets> sent = ulpdus(8, 1300);
  p.send(sent);
  const Octets all = p.framed();
  bool dropped = false;
  for (size_t at = 1000; at < all.size(); at += 1000) {
    const size_t n = std::min<size_t>(300, all.size() - at);
    dropped = !p.b.in.receive(p.first_octet + at, base::ByteView(all).subspan(at, n)) || dropped;
  }
  EXPECT_EQ(dropped, p.b.counters.hold_refused != 0);
  for (size_t at = 0; at < all.size(); at += 500) {
    const size_t n = std::min<size_t>(500, all.size() - at);
    p.b.in.receive(p.first_octet + at, base::ByteView(all).subspan(at, n));
  }
  expect_clean(p, sent, "");
}

// What has to be held and finds no page is left to the peer to send again.
TEST(Session, WithoutAPageNothingIsTakenOutOfOrder) {
  SessionPair p(marked(512), marked(512), 0);
  p.start();
  const std::vector<Octets> sent = ulpdus(4, 1300);
  const auto records = p.send(sent);
  EXPECT_FALSE(p.b.in.receive(records[2].offset, records[2].octets));
  const base::Range last{records[3].offset, records[3].offset + records[3].octets.size()};
  EXPECT_EQ(p.b.session->inspect(last, records[3].octets, {}), llp::InspectVerdict::NoRoom);
  EXPECT_EQ(p.b.counters.hold_refused, 2u);
  EXPECT_EQ(p.b.session->held(), 0u);
  for (const auto& record : records) {
    EXPECT_TRUE(p.b.in.receive(record.offset, record.octets));
  }
  EXPECT_EQ(p.b.counters.hold_refused, 2u);
  expect_clean(p, sent, "");
}

// Two parts of one segment, each of which would find room: all are asked about before one is kept.
TEST(Session, PartsOfOneSegmentFindRoomTogether) {
  tuf::Config config = marked(512);
  config.hold_limit = 2500;
  SessionPair p(config, config);
  p.start();
  const auto records = p.send(ulpdus(4, 1300));
  const auto inspect = [&](size_t i) {
    const base::Range range{records[i].offset, records[i].offset + records[i].octets.size()};
    return p.b.session->inspect(range, records[i].octets, {});
  };
  p.b.session->clipped({records[1].offset, records[3].offset + records[3].octets.size()});
  EXPECT_EQ(inspect(1), llp::InspectVerdict::Accept);
  EXPECT_EQ(inspect(3), llp::InspectVerdict::NoRoom);
  EXPECT_EQ(inspect(1), llp::InspectVerdict::Accept);
}

TEST(Session, TellsHowFarTheOrderHasCome) {
  SessionPair p(aligned(), aligned());
  p.start();
  EXPECT_EQ(p.b.session->arrived(), p.first_octet);
  const auto records = p.send(ulpdus(3, 500));
  p.b.in.receive(records[1].offset, records[1].octets);
  EXPECT_EQ(p.b.session->arrived(), p.first_octet);
  p.b.in.receive(records[0].offset, records[0].octets);
  EXPECT_EQ(p.b.session->arrived(), records[2].offset);
}

TEST(Session, AbortsItsStreamAsLongAsThereIsOne) {
  SessionPair p;
  p.start();
  p.a.session->abort();
  EXPECT_EQ(p.a.stream.aborts, 1);
  p.a.session->ended(StreamEnd::Aborted, p.a.in.now);
  p.a.session->abort();
  p.a.session->close();
  EXPECT_EQ(p.a.stream.aborts, 1);
  EXPECT_EQ(p.a.stream.closes, 0);
}

// TUF-5.2-02: MULPDU follows EMSS.
TEST(Session, MulpduFollowsEmss_TUF_3_06_TUF_5_1_05) {
  SessionPair p(aligned(), aligned());
  p.start();
  EXPECT_EQ(p.a.session->mulpdu(), 1452u);
  for (const uint32_t emss : {1000u, 9000u, 65535u, 100u, 1460u}) {
    p.a.session->emss_changed(emss);
    p.a.emss = emss;
    const uint32_t expected = std::clamp(emss - 8, 128u, 64768u);
    EXPECT_EQ(p.a.session->mulpdu(), expected);
    EXPECT_EQ(p.a.user.mulpdus.back(), expected);
    // Never above what fits.
    p.a.user.to_send.push_back(numbered_ulpdu(1, emss - 8 > 64768 ? 64768 : emss - 8));
    const auto record = p.a.pull(emss);
    ASSERT_TRUE(record) << emss;
    EXPECT_LE(record->octets.size(), emss);
  }
  SessionPair q(marked(512), marked(512));
  q.start();
  EXPECT_EQ(q.a.session->mulpdu(), 1460u - 12 - 2);
}

// Hostile: noise in any place of the framed stream, in any order; nothing comes out twice, nothing
// that breaks, and the memory comes back.
TEST(Session, Noise) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    base::Prng random(seed);
    const Config config = seed % 2 == 0 ? aligned(seed % 4 == 0) : marked(512);
    SessionPair p(config, config);
    p.start();
    std::vector<Octets> sent;
    for (uint32_t i = 0; i < 8; ++i) sent.push_back(numbered_ulpdu(i, random.between(4, 1400)));
    p.send(sent);
    Octets all = p.framed();
    for (uint64_t i = random.below(4); i-- > 0;) {
      all[random.below(all.size())] = static_cast<uint8_t>(random.next());
    }
    for (int i = 0; i < 40; ++i) {
      const size_t at = random.below(all.size());
      const size_t n = random.between(1, std::min<size_t>(all.size() - at, 2000));
      p.b.in.receive(p.first_octet + at, base::ByteView(all).subspan(at, n));
    }
    for (size_t at = 0; at < all.size(); at += 1460) {
      const size_t n = std::min<size_t>(1460, all.size() - at);
      p.b.in.receive(p.first_octet + at, base::ByteView(all).subspan(at, n));
    }
    EXPECT_LE(p.b.user.delivered.size(), all.size() / 2);
    EXPECT_LE(p.b.more.errors.size(), 1u);
    p.b.session->ended(StreamEnd::PeerReset, p.b.in.now);
    EXPECT_EQ(framing::held_octets(*p.b.hold_store), 0u) << seed;
  }
}

// Told to the owner, too.
TEST(Session, MiddleboxIsTold_TUF_5_2_10) {
  Config config = aligned();
  config.middlebox_limit = 256;
  SessionPair p(config, config);
  p.start();
  const std::vector<Octets> sent = ulpdus(40, 1000);
  p.send(sent);
  const Octets all = p.framed();
  for (size_t at = 0; at < all.size(); at += 1460) {
    p.b.in.receive(p.first_octet + at,
                   base::ByteView(all).subspan(at, std::min<size_t>(1460, all.size() - at)));
  }
  EXPECT_EQ(p.b.more.middleboxes, 1);
  expect_clean(p, sent, "");
}

// Where TCP cuts a framing PDU of DDP.
TEST(Session, CutsAreNoLookalikes_TUF_5_2_07) {
  SessionPair p(aligned(), aligned());
  p.start();
  for (size_t size = 8; size < 600; ++size) {
    Octets piece(size);
    wire::store_tuf_header(piece.data(), {static_cast<uint16_t>(size - 8), kKey});
    EXPECT_EQ(p.a.session->cut(piece), size - 1);
    piece[7] ^= 1;
    EXPECT_EQ(p.a.session->cut(piece), size);
    piece[7] ^= 1;
    piece[1] ^= 1;
    EXPECT_EQ(p.a.session->cut(piece), size);
    EXPECT_EQ(p.a.session->cut(base::ByteView(piece).first(7)), 7u);
  }
}

}  // namespace
}  // namespace rnic::tuf
