// validate() of what framings have in common: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "framing/arrivals.hpp"
#include "framing/hold_store.hpp"
#include "framing/placed_list.hpp"
#include "framing/pool.hpp"
#include "framing/segment_parts.hpp"
#include "framing/start_frame_sender.hpp"

namespace rnic::framing {
namespace {

using test::notices;
using Nodes = Pool<HeldRange>;

RNIC_OPEN(HeldOctets, count_)
RNIC_OPEN(HeldOctets, tail_)
RNIC_OPEN(HoldStore, general_used_)
RNIC_OPEN(HoldStore, octets_)
RNIC_OPEN(HoldStore, pages_)
RNIC_OPEN(HoldStore, reserve_used_)
RNIC_OPEN(Nodes, free_)
RNIC_OPEN(Nodes, head_)
RNIC_OPEN(PlacedList, early_)
RNIC_OPEN(PlacedList, tail_)
RNIC_OPEN(SegmentParts, parts_)
RNIC_OPEN(StartFrameSender, sent_)

TEST(Damage, OfHeldOctets) {
  HoldStore store(64 * 2048);
  HeldOctets held(store, 1u << 20);
  const std::vector<uint8_t> octets(2000);
  const uint32_t first = held.add({3000, 5000}, octets, false, kUnlocated);
  const uint32_t second = held.add({7000, 9000}, octets, false, kUnlocated);
  notices(held, "framing/hold_store.cpp: store_.use(id_, window) == in_window",
          [&] { ++pages_(store)[0].used; });
  notices(held, "framing/hold_store.cpp: node(i).prev == before",
          [&] { held.node(second).prev = kNone; });
  notices(held, "framing/hold_store.cpp: node(before).range.end < range.begin",
          [&] { held.node(second).range.begin = held.node(first).range.end; });
  notices(held, "framing/hold_store.cpp: before == tail_", [&] { tail_(held) = first; });
  notices(held, "framing/hold_store.cpp: count == count_", [&] { ++count_(held); });
}

TEST(Damage, OfAHoldStore) {
  HoldStore store(64 * 2048);
  HeldOctets held(store, 1u << 20);
  held.add({3000, 5000}, std::vector<uint8_t>(2000), false, kUnlocated);
  const auto notes = [&](std::string_view check, auto damage) { notices(store, check, damage); };
  notes("framing/hold_store.cpp: page.used <= kPage", [&] { pages_(store)[0].used = 1u << 20; });
  notes("framing/hold_store.cpp: page.session == reserve_session_",
        [&] { pages_(store)[0].reserve = true; });
  notes("framing/hold_store.cpp: general == general_used_", [&] { ++general_used_(store); });
  notes("framing/hold_store.cpp: reserve == reserve_used_", [&] { ++reserve_used_(store); });
  notes("framing/hold_store.cpp: octets <= octets_peak_", [&] { --octets_(store); });
}

TEST(Damage, OfAPool) {
  Nodes pool(4);
  pool.give(pool.take());
  notices(pool, "framing/pool.hpp: i < fresh_", [&] { head_(pool) = 3; });
  notices(pool, "framing/pool.hpp: free_ == back +", [&] { --free_(pool); });
}

TEST(Damage, OfPlacedPdus) {
  HoldStore store(64 * 2048);
  PlacedList placed(store, 4);
  placed.insert({.begin = 10, .end = 20}, true);
  placed.insert({.begin = 30, .end = 40}, true);
  PlacedPdu& front = *placed.front();
  const auto notes = [&](std::string_view check, auto damage) { notices(placed, check, damage); };
  notes("framing/placed_list.cpp: pdu.begin < pdu.end", [&] { front.end = front.begin; });
  notes("framing/placed_list.cpp: pool_[before].end <= pdu.begin", [&] { front.end = 31; });
  notes("framing/placed_list.cpp: before == tail_", [&] { tail_(placed) = kNone; });
  notes("framing/placed_list.cpp: early == early_", [&] { --early_(placed); });
}

/// Its cursors are the receiver's to write.
struct Arrived : Arrivals {
  explicit Arrived(HoldStore& store) : Arrivals(store, 1000, 4) {}
  using Arrivals::deliver_next_;
  using Arrivals::waits_;
};

TEST(Damage, OfArrivals) {
  HoldStore store(64 * 2048);
  Arrived arrivals(store);
  notices(arrivals, "framing/arrivals.hpp: deliver_next_ <= place_next_",
          [&] { arrivals.deliver_next_ = 1; });
  notices(arrivals, "framing/arrivals.hpp: !waits_ ||", [&] { arrivals.waits_ = true; });
  SegmentParts parts;
  notices(parts, "framing/segment_parts.hpp: first_ < end_", [&] { parts_(parts) = 1; });
  StartFrameSender sender;
  notices(sender, "framing/start_frame_sender.cpp: sent_ <= size_", [&] { sent_(sender) = 1; });
}

}  // namespace
}  // namespace rnic::framing
