// validate() of the containers: each of its checks fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "base/interval_set.hpp"
#include "base/page_store.hpp"
#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "base/zero_array.hpp"

namespace rnic::base {
namespace {

using test::notices;
using Ranges = IntervalSet<4>;
using Numbers = Slab<int>;

RNIC_OPEN(FreeNumbers, back_)
RNIC_OPEN(FreeNumbers, back_count_)
RNIC_OPEN(Numbers, slots_)
RNIC_OPEN(Ranges, count_)
RNIC_OPEN(Ranges, ranges_)
RNIC_OPEN(PageStore, blocks_)
RNIC_OPEN_HIDDEN(PageStore::Block, last_)
RNIC_OPEN_HIDDEN(PageStore::Block, taken_)
RNIC_OPEN(TimerWheel, armed_)
RNIC_OPEN(TimerWheel, heads_)
RNIC_OPEN(TimerWheel, not_before_)
RNIC_OPEN(TimerWheel, occupied_)

TEST(Damage, OfASetOfRanges) {
  Ranges set;
  set.insert({10, 20});
  set.insert({30, 40});
  notices(set, "base/interval_set.hpp: count_ <= Capacity", [&] { count_(set) = 5; });
  notices(set, "base/interval_set.hpp: !ranges_[i].empty()", [&] { ranges_(set)[1].end = 30; });
  notices(set, "base/interval_set.hpp: ranges_[i - 1].end < ranges_[i].begin",
          [&] { ranges_(set)[0].end = 30; });
}

TEST(Damage, OfFreeNumbers) {
  FreeNumbers numbers(4);
  numbers.give(numbers.take());
  notices(numbers, "base/zero_array.hpp: back_count_ <= fresh_", [&] { back_count_(numbers) = 2; });
  notices(numbers, "base/zero_array.hpp: !there[back_[i]]", [&] { back_(numbers)[0] = 1; });
}

TEST(Damage, OfASlab) {
  Numbers slab(4);
  const Handle handle = slab.emplace(7);
  notices(slab, "base/slab.hpp: count == live()", [&] { slots_(slab)[handle.index].live = false; });
}

TEST(Damage, OfAPageStore) {
  PageStore store;
  const auto* const run = store.take(2);
  store.validate();
  const auto taken = [&]() -> auto& { return taken_(*blocks_(store)[0]); };
  const auto last = [&]() -> auto& { return last_(*blocks_(store)[0]); };
  notices(store, "base/page_store.hpp: !is_empty()", [&] { taken().reset(); });
  notices(store, "base/page_store.hpp: (last_ & ~taken_).none()", [&] { last().set(2); });
  notices(store, "base/page_store.hpp: (taken_ & ~last_ &", [&] { last().reset(); });
  store.give(run);
}

TEST(Damage, OfATimerWheel) {
  const Now begin = from_nanos(1'000'000'000);
  TimerWheel wheel(begin);
  TimerNode node;
  wheel.arm(node, begin + std::chrono::milliseconds(1));
  const auto notes = [&](std::string_view check, auto damage) { notices(wheel, check, damage); };
  notes("base/timer_wheel.cpp: (occupied_[level] >> slot & 1) ==", [&] { occupied_(wheel) = {}; });
  notes("base/timer_wheel.cpp: node->bucket == bucket", [&] { ++node.bucket; });
  notes("base/timer_wheel.cpp: due <=", [&] { node.deadline = begin; });
  notes("base/timer_wheel.cpp: head.prev == before",
        [&] { heads_(wheel)[node.bucket].prev = &heads_(wheel)[node.bucket]; });
  notes("base/timer_wheel.cpp: armed == armed_", [&] { ++armed_(wheel); });
  notes("base/timer_wheel.cpp: not_before_ <= next_deadline()",
        [&] { not_before_(wheel) = kNever; });
  wheel.cancel(node);
}

}  // namespace
}  // namespace rnic::base
