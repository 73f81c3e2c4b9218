#include "tcp/connection_table.hpp"

#include "shared_parts.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kSlots = 3;

/// What a connection is made of.
struct Table {
  tcp::Connection* insert(uint16_t port) { return table.insert(here, there(port), parts.shared); }
  [[nodiscard]] Endpoint there(uint16_t port) const { return {IpAddress::v4(0x0a000002), port}; }

  const Endpoint here{IpAddress::v4(0x0a000001), 4420};
  SharedParts parts;
  tcp::ConnectionTable table{kSlots, SharedParts::kSecret};
};

TEST(ConnectionTable, FindsByBothEndpoints) {
  Table t;
  tcp::Connection* const c = t.insert(1);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->local(), t.here);
  EXPECT_EQ(c->remote(), t.there(1));
  EXPECT_EQ(t.table.get(c->handle()), c);
  EXPECT_TRUE(t.table.contains(t.here, t.there(1)));
  EXPECT_EQ(t.table.find(t.here, t.there(1)), c);
  EXPECT_EQ(t.table.find(t.here, t.there(2)), nullptr);
  EXPECT_EQ(t.table.find(t.there(1), t.here), nullptr);
  t.table.validate();
}

TEST(ConnectionTable, RemembersWhatWasFoundLastAsLongAsItIsThere) {
  Table t;
  tcp::Connection* const one = t.insert(1);
  tcp::Connection* const two = t.insert(2);
  EXPECT_EQ(t.table.last_found(), nullptr);
  EXPECT_EQ(t.table.find(t.here, t.there(2)), two);
  EXPECT_EQ(t.table.last_found(), two);
  t.table.erase(*one);
  EXPECT_EQ(t.table.last_found(), two);
  t.table.erase(*two);
  EXPECT_EQ(t.table.last_found(), nullptr);
  t.table.validate();
}

TEST(ConnectionTable, IsFullAtItsLimitAndAPlaceComesBack) {
  Table t;
  for (uint16_t port = 1; port <= kSlots; ++port) {
    EXPECT_FALSE(t.table.full());
    ASSERT_NE(t.insert(port), nullptr);
  }
  EXPECT_TRUE(t.table.full());
  EXPECT_EQ(t.insert(kSlots + 1), nullptr);
  EXPECT_FALSE(t.table.contains(t.here, t.there(kSlots + 1)));
  tcp::Connection* const gone = t.table.find(t.here, t.there(2));
  const base::Handle stale = gone->handle();
  t.table.erase(*gone);
  EXPECT_EQ(t.table.live(), kSlots - 1);
  EXPECT_FALSE(t.table.contains(t.here, t.there(2)));
  EXPECT_NE(t.insert(kSlots + 1), nullptr);
  EXPECT_EQ(t.table.get(stale), nullptr) << "its place is another's";
  t.table.validate();
  uint32_t seen = 0;
  t.table.for_each([&](tcp::Connection& c) {
    ++seen;
    t.table.erase(c);
  });
  EXPECT_EQ(seen, kSlots);
  EXPECT_EQ(t.table.live(), 0u);
}

}  // namespace
}  // namespace rnic::testing
