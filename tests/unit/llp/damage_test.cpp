// validate() of what the lower layer keeps: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "llp/admission.hpp"
#include "llp/admitted.hpp"
#include "llp/stream_switch.hpp"
#include "support/record_user.hpp"

namespace rnic::llp {
namespace {

using test::notices;

RNIC_OPEN(Admission, holders_)
RNIC_OPEN(Admission, ranks_)
RNIC_OPEN(Admission, seats_)
RNIC_OPEN(Admission, size_)
RNIC_OPEN(Admitted, table_)
RNIC_OPEN(StreamSwitch, count_)
RNIC_OPEN(StreamSwitch, parts_)

TEST(Damage, OfWhoIsAdmitted) {
  Admission table(4, {1, 2});
  const IpAddress often = IpAddress::v4(0x0a000001);
  table.enter(often, {1, 1});
  table.enter(often, {2, 1});
  table.enter(IpAddress::v4(0x0a000002), {3, 1});
  auto& ranks = ranks_(table);
  ASSERT_EQ(ranks.size(), 2u);
  auto& first = holders_(table)[ranks[0]];
  const auto notes = [&](std::string_view check, auto damage) { notices(table, check, damage); };
  notes("llp/admission.cpp: holder.rank == rank", [&] { first.rank = 1; });
  notes("llp/admission.cpp: !before(", [&] {
    std::swap(ranks[0], ranks[1]);
    holders_(table)[ranks[0]].rank = 0;
    holders_(table)[ranks[1]].rank = 1;
  });
  notes("llp/admission.cpp: seats_[i].older == older",
        [&] { seats_(table)[first.oldest].older = 3; });
  notes("llp/admission.cpp: seats_[older].number < seats_[i].number",
        [&] { seats_(table)[first.youngest].number = 0; });
  notes("llp/admission.cpp: ++count <= holder.count", [&] { first.count = 1; });
  notes("llp/admission.cpp: older == holder.youngest", [&] { first.youngest = first.oldest; });
  notes("llp/admission.cpp: seated == size_", [&] { ++size_(table); });
}

TEST(Damage, OfASeat) {
  Admission table(4, {1, 2});
  Admitted seat;
  notices(seat, "llp/admitted.hpp: table_->size() != 0", [&] { table_(seat) = &table; });
}

TEST(Damage, OfTheUsersOfAStream) {
  testing::RecordUser user{1, 2};
  StreamSwitch users;
  auto& parts = parts_(users);
  const auto two = [&] {
    count_(users) = 2;
    parts[0].user = parts[1].user = &user;
  };
  const auto notes = [&](std::string_view check, auto damage) { notices(users, check, damage); };
  notes("llp/stream_switch.hpp: parts_[0].user != nullptr", [&] { count_(users) = 1; });
  notes("llp/stream_switch.hpp: parts_[i].user != nullptr", [&] {
    two();
    parts[1].user = nullptr;
  });
  notes("llp/stream_switch.hpp: parts_[i - 1].sent_from <=", [&] {
    two();
    parts[0].sent_from = 1;
  });
  notes("llp/stream_switch.hpp: parts_[i - 1].received_from <=", [&] {
    two();
    parts[0].received_from = 1;
  });
}

}  // namespace
}  // namespace rnic::llp
