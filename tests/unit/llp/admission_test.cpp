// The choice of the association that gives way when a table is full.

#include "llp/admission.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/prng.hpp"

namespace rnic::llp {
namespace {

constexpr std::array<uint64_t, 2> kSecret{3, 4};

IpAddress v4(uint32_t host) { return IpAddress::v4(0x0a000000u + host); }
base::Handle handle(uint32_t i) { return {i, 1}; }

TEST(Admission, NobodyIsHere) {
  const Admission table(4, kSecret);
  EXPECT_FALSE(table.gives_way().valid());
  EXPECT_FALSE(table.gives_way(v4(1)).valid());
  EXPECT_EQ(table.held_by(v4(1)), 0u);
}

TEST(Admission, TheOldestOfAllWhereEachHasOne) {
  Admission table(4, kSecret);
  for (uint32_t i = 0; i < 4; ++i) table.enter(v4(i), handle(i));
  EXPECT_TRUE(table.full());
  EXPECT_EQ(table.gives_way(), handle(0));
  EXPECT_EQ(table.gives_way(v4(9)), handle(0));
}

TEST(Admission, TheOldestOfTheAddressThatHoldsMost_SEC_6_4_1_02) {
  Admission table(8, kSecret);
  table.enter(v4(1), handle(0));  // older than all, and alone
  table.enter(v4(2), handle(1));
  const uint32_t first = table.enter(v4(3), handle(2));
  table.enter(v4(3), handle(3));
  EXPECT_EQ(table.gives_way(), handle(2));
  table.leave(first);
  EXPECT_EQ(table.gives_way(), handle(0)) << "now each holds one";
}

// Two hold as many: the newcomer's own address pays.
TEST(Admission, TheNewcomerCountsForItsAddress_SEC_6_4_1_02) {
  Admission table(4, kSecret);
  table.enter(v4(1), handle(0));
  table.enter(v4(2), handle(1));
  EXPECT_EQ(table.gives_way(v4(2)), handle(1));
  EXPECT_EQ(table.gives_way(v4(1)), handle(0));
  EXPECT_EQ(table.gives_way(v4(3)), handle(0));
}

// A host chooses the lower half of its IPv6 address as it likes.
TEST(Admission, AnIPv6NetworkCountsAsOne) {
  Admission table(4, kSecret);
  table.enter(IpAddress(0x20010db800000001, 5), handle(0));
  table.enter(IpAddress(0x20010db800000002, 7), handle(1));
  table.enter(IpAddress(0x20010db800000002, 8), handle(2));
  EXPECT_EQ(table.gives_way(), handle(1));
  EXPECT_EQ(table.held_by(IpAddress(0x20010db800000002, 1234)), 2u);
  // Mapped addresses of IPv4 share their upper half, and are not one network for that.
  table.enter(v4(1), handle(3));
  EXPECT_EQ(table.held_by(v4(2)), 0u);
}

/// The rule of Admission, found by looking at everything.
class Plain {
 public:
  struct Entry {
    IpAddress from;
    base::Handle who;
    uint32_t seat;
  };
  [[nodiscard]] base::Handle gives_way(const IpAddress* newcomer) const {
    std::map<IpAddress, uint32_t> held;
    for (const Entry& entry : entries) ++held[entry.from];
    if (newcomer != nullptr && held.contains(*newcomer)) ++held[*newcomer];
    const Entry* first = nullptr;
    for (const Entry& entry : entries) {
      if (first == nullptr || held[entry.from] > held[first->from]) first = &entry;
    }
    return first == nullptr ? base::Handle{} : first->who;
  }
  std::vector<Entry> entries;  // oldest first
};

TEST(Admission, AgreesWithThePlainSearch) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng random(seed);
    const auto hosts = static_cast<uint32_t>(1 + random.below(12));
    Admission table(16, kSecret);
    Plain plain;
    for (uint32_t step = 0; step < 2000; ++step) {
      const IpAddress from = v4(static_cast<uint32_t>(random.below(hosts)));
      if (!table.full() && random.below(2) == 0) {
        plain.entries.push_back({from, handle(step), table.enter(from, handle(step))});
      } else if (!plain.entries.empty()) {
        const auto gone =
            plain.entries.begin() + static_cast<ptrdiff_t>(random.below(plain.entries.size()));
        table.leave(gone->seat);
        plain.entries.erase(gone);
      }
      ASSERT_EQ(table.size(), plain.entries.size());
      ASSERT_EQ(table.gives_way(), plain.gives_way(nullptr)) << "seed " << seed << " step " << step;
      ASSERT_EQ(table.gives_way(from), plain.gives_way(&from));
    }
  }
}

}  // namespace
}  // namespace rnic::llp
