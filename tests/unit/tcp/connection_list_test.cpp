#include "tcp/connection_list.hpp"

#include <deque>

#include "base/prng.hpp"
#include "core_parts.hpp"

namespace rnic::testing {
namespace {

/// Three connections, each with a place in one list.
struct Three {
  SharedParts parts;
  std::array<tcp::Connection, 3> connections{
      tcp::Connection(parts.shared), tcp::Connection(parts.shared), tcp::Connection(parts.shared)};
  std::array<tcp::ConnectionLink, 3> links{tcp::ConnectionLink(&connections[0]),
                                           tcp::ConnectionLink(&connections[1]),
                                           tcp::ConnectionLink(&connections[2])};
  /// Number of a connection; 3: nobody.
  [[nodiscard]] size_t number(const tcp::Connection* of) const {
    return of != nullptr ? static_cast<size_t>(of - connections.data()) : 3;
  }
};

TEST(ConnectionList, FirstInFirstOut) {
  Three t;
  tcp::ConnectionList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  for (const size_t i : {2, 0, 1}) list.push_back(t.links[i]);
  for (const size_t i : {2, 0, 1}) {
    EXPECT_TRUE(t.links[i].linked());
    EXPECT_EQ(t.number(list.front()), i);
    tcp::ConnectionList::erase(t.links[i]);
    EXPECT_FALSE(t.links[i].linked());
  }
  EXPECT_TRUE(list.empty());
}

TEST(ConnectionList, TellsWhoIsSecond) {
  Three t;
  tcp::ConnectionList list;
  EXPECT_EQ(list.second(), nullptr);
  list.push_back(t.links[1]);
  EXPECT_EQ(list.second(), nullptr);
  list.push_back(t.links[2]);
  EXPECT_EQ(t.number(list.second()), 2u);
  list.push_back(t.links[0]);
  EXPECT_EQ(t.number(list.second()), 2u);
  tcp::ConnectionList::erase(t.links[1]);
  EXPECT_EQ(t.number(list.second()), 0u);
}

TEST(ConnectionList, TellsWhoIsThird) {
  Three t;
  tcp::ConnectionList list;
  list.push_back(t.links[1]);
  list.push_back(t.links[2]);
  EXPECT_EQ(list.third(), nullptr);
  list.push_back(t.links[0]);
  EXPECT_EQ(t.number(list.third()), 0u);
  tcp::ConnectionList::erase(t.links[2]);
  EXPECT_EQ(list.third(), nullptr);
}

TEST(ConnectionList, TellsWhetherThereIsOneOrSeveral) {
  Three t;
  tcp::ConnectionList list;
  EXPECT_FALSE(list.has_second());
  EXPECT_EQ(list.only(), nullptr);
  list.push_back(t.links[1]);
  EXPECT_FALSE(list.has_second());
  EXPECT_EQ(t.number(list.only()), 1u);
  list.push_back(t.links[2]);
  EXPECT_TRUE(list.has_second());
  EXPECT_EQ(list.only(), nullptr);
}

TEST(ConnectionList, WhoStandsInItKeepsThePlaceAndWhoDoesNotMayBeTakenOut) {
  Three t;
  tcp::ConnectionList list;
  tcp::ConnectionList::erase(t.links[0]);
  list.push_back(t.links[0]);
  list.push_back(t.links[1]);
  list.push_back(t.links[0]);
  EXPECT_EQ(t.number(list.front()), 0u);
  tcp::ConnectionList::erase(t.links[0]);
  tcp::ConnectionList::erase(t.links[0]);
  EXPECT_EQ(t.number(list.front()), 1u);
  list.push_back(t.links[0]);
  tcp::ConnectionList::erase(t.links[1]);
  EXPECT_EQ(t.number(list.front()), 0u);
}

TEST(ConnectionList, AgreesWithAnObviousOne) {
  Three t;
  tcp::ConnectionList list;
  std::deque<size_t> obvious;
  base::Prng random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto n = static_cast<size_t>(random.below(3));
    const auto at = std::find(obvious.begin(), obvious.end(), n);
    ASSERT_EQ(t.links[n].linked(), at != obvious.end()) << i;
    if (random.chance(0.5)) {
      list.push_back(t.links[n]);
      if (at == obvious.end()) obvious.push_back(n);
    } else {
      tcp::ConnectionList::erase(t.links[n]);
      if (at != obvious.end()) obvious.erase(at);
    }
    ASSERT_EQ(t.number(list.front()), obvious.empty() ? 3 : obvious.front()) << i;
    ASSERT_EQ(list.empty(), obvious.empty()) << i;
  }
}

TEST(ConnectionList, AppendsAnother) {
  Three t;
  tcp::ConnectionList list;
  tcp::ConnectionList other;
  list.append(other);
  EXPECT_TRUE(list.empty());
  list.push_back(t.links[2]);
  for (const size_t i : {0, 1}) other.push_back(t.links[i]);
  list.append(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(other.validate() + list.validate(), 3u);
  for (const size_t i : {2, 0, 1}) {
    EXPECT_EQ(t.number(list.front()), i);
    tcp::ConnectionList::erase(t.links[i]);
  }
  EXPECT_TRUE(list.empty());
}

TEST(Round, WhoWasServedAndHasMoreComesLast) {
  Three t;
  tcp::Round round;
  for (tcp::ConnectionLink& link : t.links) round.join(link);
  EXPECT_EQ(t.number(round.front()), 0u);
  round.put_last(t.links[0]);
  EXPECT_EQ(t.number(round.front()), 1u);
  tcp::Round::leave(t.links[1]);
  EXPECT_EQ(t.number(round.front()), 2u);
  round.put_last(t.links[2]);
  EXPECT_EQ(t.number(round.front()), 0u);
}

TEST(Round, IsPendingFromTheNewsUntilEverybodyHadATurn) {
  Three t;
  tcp::Round round;
  EXPECT_FALSE(round.pending());
  round.join(t.links[0]);
  EXPECT_TRUE(round.pending());
  round.turned(true);
  EXPECT_TRUE(round.pending()) << "a quantum was used up";
  round.turned(false);
  EXPECT_FALSE(round.pending());
  EXPECT_EQ(t.number(round.front()), 0u) << "it waits for something all the same";
  round.put_last(t.links[0]);
  EXPECT_FALSE(round.pending());
  round.join(t.links[0]);
  EXPECT_TRUE(round.pending()) << "news of one that has its place";
}

TEST(Round, WhoIsPutOffIsServedBesideTheOnlyOne) {
  Three t;
  tcp::Round round;
  EXPECT_EQ(round.only(), nullptr);
  EXPECT_TRUE(round.is_last());
  round.join(t.links[0]);
  EXPECT_EQ(t.number(round.only()), 0u);
  EXPECT_TRUE(round.is_last());
  round.put_off(t.links[0], base::from_nanos(1));
  round.join(t.links[1]);
  EXPECT_EQ(round.only(), nullptr);
  EXPECT_TRUE(round.is_last());
  round.begin(base::from_nanos(2));
  EXPECT_FALSE(round.is_last());
}

TEST(Round, WhoIsPutOffHasATurnNextTime) {
  Three t;
  tcp::Round round;
  const base::Now now{std::chrono::seconds(1)};
  for (const size_t i : {0, 1}) round.join(t.links[i]);
  round.begin(now);
  round.put_off(t.links[0], now);
  EXPECT_EQ(t.number(round.front()), 1u);
  round.put_off(t.links[1], now);
  EXPECT_EQ(round.front(), nullptr);
  round.turned(false);
  EXPECT_TRUE(round.pending());
  EXPECT_EQ(round.validate(), 2u);
  round.join(t.links[2]);
  tcp::Round::leave(t.links[1]);
  round.begin(now);
  for (const size_t i : {2, 0}) {
    EXPECT_EQ(t.number(round.front()), i);
    tcp::Round::leave(t.links[i]);
  }
  round.turned(false);
  EXPECT_FALSE(round.pending());
}

TEST(Round, AConnectionJoinsItAsLongAsItLives) {
  CoreParts c;
  c.core.ask_turn();
  EXPECT_FALSE(c.core.in_round()) << "it is CLOSED";
  c.establish();
  c.core.ask_turn();
  EXPECT_EQ(c.round.front(), &c.connection);
  EXPECT_TRUE(c.round.pending());
}

}  // namespace
}  // namespace rnic::testing
