// Half-open connections where no cookie may be sent: who gives way to a newcomer.

#include "tcp/half_open.hpp"

#include "raw_peer.hpp"
#include "support/logged.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kPlaces = 8;

tcp::Config without_cookies() {
  tcp::Config config = RawPeer::bare();
  config.syn_cookies = false;
  config.max_half_open = config.max_half_open_per_listener = kPlaces;
  return config;
}

IpAddress stranger(uint32_t number) { return IpAddress::v4(0x0a630000u + number); }

class HalfOpen : public ::testing::Test {
 protected:
  HalfOpen() : HalfOpen(without_cookies()) {}
  explicit HalfOpen(const tcp::Config& config) : p(config) { p.acceptor.next.push_back(&p.user); }

  void syn(const IpAddress& from, uint16_t port) {
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = port, .source = from});
  }
  void honest_syn() { p.inject({.seq = kIrs, .flags = flag::kSyn}); }
  /// The third segment of the handshake. \return the connection stands
  bool honest_ack() {
    p.egress.sent.clear();
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    return p.user.is_established;
  }
  [[nodiscard]] const tcp::Counters& counters() const { return p.stack.counters(); }

  RawPeer p;
};

TEST_F(HalfOpen, TheOldestGivesWayWhereEachHasOne) {
  for (uint16_t i = 1; i <= kPlaces; ++i) syn(stranger(i), i);
  honest_syn();
  for (uint16_t i = 1; i < kPlaces; ++i) syn(stranger(100u + i), i);
  EXPECT_EQ(counters().half_open_displaced, 2 * kPlaces - kPlaces);
  EXPECT_EQ(counters().syn_dropped, 0u);
  EXPECT_EQ(p.stack.live_connections(), kPlaces);
  EXPECT_TRUE(honest_ack()) << "seven came after it, and there are eight places";
}

TEST_F(HalfOpen, WhoGaveWayIsToldWhenItGoesOn) {
  honest_syn();
  for (uint16_t i = 1; i <= kPlaces; ++i) syn(stranger(i), i);
  EXPECT_FALSE(honest_ack());
  EXPECT_TRUE((p.next().flags & flag::kRst) != 0);
  EXPECT_EQ(p.acceptor.accepted, 0u);
  honest_syn();
  EXPECT_TRUE(honest_ack()) << "the next attempt finds a place";
}

// However many come from there.
TEST_F(HalfOpen, OneAddressTakesNoPlaceThatAnotherOneHas) {
  syn(stranger(2), 1);
  honest_syn();
  for (uint16_t i = 1; i <= 1000; ++i) syn(stranger(1), i);
  EXPECT_EQ(counters().half_open_displaced, 1002 - kPlaces);
  EXPECT_TRUE(honest_ack());
  p.inject({.seq = kIrs, .flags = flag::kSyn});
  p.egress.sent.clear();
  EXPECT_EQ(p.stack.live_connections(), kPlaces) << "seven half open, and the honest one";
}

// Also where the flood comes in the peer's own name: the newest have the places.
TEST_F(HalfOpen, AmongOnesOwnTheOldestGivesWay) {
  for (uint16_t i = 1; i <= 100; ++i) syn(RawPeer::kPeer, static_cast<uint16_t>(2000 + i));
  honest_syn();
  for (uint16_t i = 1; i < kPlaces; ++i) syn(RawPeer::kPeer, static_cast<uint16_t>(3000 + i));
  EXPECT_TRUE(honest_ack());
}

TEST_F(HalfOpen, TheLogHasOneLineForMany) {
  test::Logged log;
  for (uint16_t i = 1; i <= 50; ++i) syn(stranger(1), i);
  const std::string said = log.take();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("1 half-open connection from 10.99.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("tcp.max_half_open is reached"), std::string::npos) << said;
  EXPECT_NE(said.find("8 of them from there"), std::string::npos) << said;
}

class TwoListeners : public HalfOpen {
 protected:
  TwoListeners() : HalfOpen(config()) {
    EXPECT_TRUE(p.stack.listen({RawPeer::kUs, kOther}, other_).has_value());
  }
  static tcp::Config config() {
    tcp::Config config = without_cookies();
    config.max_half_open_per_listener = kPlaces / 2;
    return config;
  }
  static constexpr uint16_t kOther = 4421;
  UserAcceptor other_;
};

// The limit of a listener is kept by its own: those of the other one do not give way.
TEST_F(TwoListeners, EachKeepsItsLimitByItsOwn) {
  honest_syn();
  p.our_port = kOther;
  for (uint16_t i = 1; i <= 100; ++i) syn(stranger(i), i);
  p.our_port = RawPeer::kOurPort;
  EXPECT_EQ(counters().half_open_displaced, 100 - kPlaces / 2);
  EXPECT_EQ(p.stack.live_connections(), 1 + kPlaces / 2);
  EXPECT_TRUE(honest_ack());
  p.stack.validate();
}

TEST_F(TwoListeners, UnlistenForgetsThem) {
  p.our_port = kOther;
  for (uint16_t i = 1; i <= 10; ++i) syn(stranger(i), i);
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, kOther}).has_value());
  p.stack.output(p.now);
  EXPECT_EQ(p.stack.live_connections(), 0u);
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, kOther}, other_).has_value());
  for (uint16_t i = 1; i <= 10; ++i) syn(stranger(i), i);
  EXPECT_EQ(p.stack.live_connections(), kPlaces / 2);
}

// Half-open connections never take all places, cookies or not: the other half is for connections.
TEST(HalfOpenPlaces, HalfOfAllAtMost) {
  for (const bool cookies : {false, true}) {
    tcp::Config config = without_cookies();
    config.syn_cookies = cookies;
    config.max_connections = kPlaces;
    RawPeer p(config);
    for (uint16_t i = 1; i <= 100; ++i) {
      p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = i, .source = stranger(i)});
    }
    EXPECT_EQ(p.stack.live_connections(), kPlaces / 2);
    EXPECT_EQ(p.stack.counters().syn_dropped, 0u);
    EXPECT_EQ(p.stack.counters().half_open_displaced, cookies ? 0 : 100 - kPlaces / 2);
  }
}

// A listener's own limit of one has a place that is given on, one of none has no place.
TEST(HalfOpenPlaces, OneIsGivenOnAndNoneIsRefused) {
  for (const uint32_t limit : {1u, 0u}) {
    tcp::Config config = without_cookies();
    config.max_half_open_per_listener = limit;
    RawPeer p(config);
    for (uint16_t i = 1; i <= 3; ++i) {
      p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = i, .source = stranger(i)});
    }
    EXPECT_EQ(p.stack.live_connections(), limit);
    EXPECT_EQ(p.egress.sent.size(), 3 * limit);
    EXPECT_EQ(p.stack.counters().half_open_displaced, 2 * limit);
    EXPECT_EQ(p.stack.counters().syn_dropped, 3 * (1 - limit));
  }
}

/// The class alone, of which handles are all that it knows of a connection.
class HalfOpenClass : public ::testing::Test {
 protected:
  static tcp::Config config(uint32_t all, uint32_t of_listener, bool cookies = false) {
    tcp::Config config;
    config.syn_cookies = cookies;
    config.max_half_open = all;
    config.max_half_open_per_listener = of_listener;
    return config;
  }
  /// The next connection, from one address each or from one of all.
  tcp::HalfOpenSeat enter(tcp::HalfOpen& half_open, tcp::HalfOpenPlaces& listener, uint32_t from) {
    tcp::HalfOpenSeat seat;
    half_open.enter(seat, listener, stranger(from), {next_++, 1});
    half_open.validate();
    listener.validate();
    return seat;
  }

  uint32_t next_ = 0;
};

TEST_F(HalfOpenClass, CountsForAllAndForTheListener) {
  tcp::HalfOpen half_open(config(3, 2), {1, 2});
  tcp::HalfOpenPlaces one = half_open.places_of_listener();
  tcp::HalfOpenPlaces other = half_open.places_of_listener();
  tcp::HalfOpenSeat first = enter(half_open, one, 1);
  enter(half_open, one, 2);
  EXPECT_FALSE(half_open.has_place(one));
  EXPECT_TRUE(half_open.has_place(other));
  enter(half_open, other, 3);
  EXPECT_FALSE(half_open.has_place(other)) << "there are three in all";
  EXPECT_EQ(half_open.live(), 3u);
  half_open.leave(first);
  half_open.leave(first);
  EXPECT_EQ(first.of_listener, nullptr);
  EXPECT_EQ(half_open.live(), 2u) << "it leaves once";
  EXPECT_TRUE(half_open.has_place(one));
  EXPECT_EQ(one.taken(), 1u);
  half_open.validate();
  one.validate();
}

TEST_F(HalfOpenClass, WhoseLimitIsReachedGivesOneOfItsOwnAway) {
  tcp::HalfOpen half_open(config(3, 2), {1, 2});
  tcp::HalfOpenPlaces one = half_open.places_of_listener();
  tcp::HalfOpenPlaces other = half_open.places_of_listener();
  enter(half_open, other, 1);
  enter(half_open, one, 2);
  tcp::HalfOpenSeat last = enter(half_open, one, 3);
  EXPECT_EQ(half_open.gives_way(one, stranger(9)), (base::Handle{0, 1})) << "the oldest of all";
  half_open.leave(last);
  enter(half_open, one, 3);
  tcp::HalfOpen wide(config(8, 2), {1, 2});
  tcp::HalfOpenPlaces narrow = wide.places_of_listener();
  tcp::HalfOpenPlaces beside = wide.places_of_listener();
  enter(wide, beside, 1);
  const uint32_t oldest = next_;
  enter(wide, narrow, 2);
  enter(wide, narrow, 3);
  EXPECT_EQ(wide.gives_way(narrow, stranger(9)), (base::Handle{oldest, 1})) << "of the listener";
}

TEST_F(HalfOpenClass, NobodyGivesWayWhereThereAreCookies) {
  tcp::HalfOpen half_open(config(1, 1, true), {1, 2});
  tcp::HalfOpenPlaces listener = half_open.places_of_listener();
  enter(half_open, listener, 1);
  EXPECT_FALSE(half_open.has_place(listener));
  EXPECT_FALSE(half_open.gives_way(listener, stranger(2)).valid());
  EXPECT_EQ(listener.held_by(stranger(1)), 0u);
}

}  // namespace
}  // namespace rnic::testing
