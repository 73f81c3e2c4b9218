// Ports that are reserved: nobody but the holder listens there or connects from there.

#include "pair.hpp"

namespace rnic::testing {
namespace {

using llp::PortClaim;

constexpr Endpoint kHere{kAddressA, 7471};
constexpr Endpoint kEverywhere{{}, 7471};
constexpr Endpoint kElsewhere{IpAddress::v4(0x0a000007), 7471};
constexpr Endpoint kPeer{kAddressB, kPort};

template <typename T>
void expect_refused(const Result<T>& result, ErrorCode code, const std::string& text) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, code);
  EXPECT_EQ(result.error().message, text);
}

class Reserved : public ::testing::Test {
 protected:
  explicit Reserved(const tcp::Config& config = {}) : p(config) {}

  tcp::Stack& stack() { return p.link.a; }
  /// The other end connects to that endpoint of this one. \return whether it is established
  bool is_reached(const Endpoint& there, RecordUser& user, RecordUser& peer) {
    acceptor.next = {&user};
    EXPECT_TRUE(p.link.b.connect({kAddressB, 0}, there, peer, p.link.now).has_value());
    p.link.run_until([&] { return user.is_established || peer.how_ended; }, seconds(10));
    return peer.is_established;
  }

  Pair p;
  UserAcceptor acceptor;
};

TEST_F(Reserved, OthersDoNotListenThere) {
  EXPECT_EQ(*stack().reserve(kHere), kHere);
  for (const Endpoint& there : {kHere, kEverywhere}) {
    const std::string text = to_string(there) + " is reserved for another use; choose another port";
    expect_refused(stack().listen(there, acceptor), ErrorCode::AlreadyExists, "listen: " + text);
    expect_refused(stack().reserve(there), ErrorCode::AlreadyExists, "reserve: " + text);
  }
  EXPECT_TRUE(stack().listen(kElsewhere, acceptor).has_value());
  expect_refused(stack().reserve(kElsewhere), ErrorCode::AlreadyExists,
                 "reserve: 10.0.0.7:7471 is listened on; choose another port");
  RecordUser user{1, 2}, peer{2, 1};
  EXPECT_FALSE(is_reached(kHere, user, peer));
  EXPECT_EQ(peer.how_ended, StreamEnd::Refused);
  stack().validate();
  ASSERT_TRUE(stack().unreserve(kHere).has_value());
  EXPECT_TRUE(stack().listen(kHere, acceptor).has_value());
}

TEST_F(Reserved, AllAddressesAreReservedByNone) {
  EXPECT_EQ(*stack().reserve(kEverywhere), kEverywhere);
  for (const Endpoint& there : {kHere, kEverywhere, kElsewhere}) {
    EXPECT_FALSE(stack().listen(there, acceptor).has_value()) << to_string(there);
    EXPECT_FALSE(stack().reserve(there).has_value()) << to_string(there);
  }
  ASSERT_TRUE(stack().unreserve(kEverywhere).has_value());
  ASSERT_TRUE(stack().listen(kEverywhere, acceptor).has_value());
  expect_refused(stack().reserve(kHere), ErrorCode::AlreadyExists,
                 "reserve: 10.0.0.1:7471 is listened on; choose another port");
}

TEST_F(Reserved, ItsHolderListens) {
  ASSERT_TRUE(stack().reserve(kHere).has_value());
  EXPECT_EQ(*stack().listen(kHere, acceptor, PortClaim::Reserved), kHere);
  RecordUser user{1, 2}, peer{2, 1};
  EXPECT_TRUE(is_reached(kHere, user, peer));
  EXPECT_EQ(acceptor.accepted, 1u);
  stack().validate();
  expect_refused(stack().listen(kHere, acceptor, PortClaim::Reserved), ErrorCode::NotFound,
                 "listen: nobody has reserved 10.0.0.1:7471: use what reserve() returned");
  EXPECT_FALSE(stack().unreserve(kHere).has_value()) << "it is listened on";
  ASSERT_TRUE(stack().unlisten(kHere).has_value());
  EXPECT_TRUE(stack().reserve(kHere).has_value()) << "connections that live are not in the way";
}

TEST_F(Reserved, UnlistenEndsNoReservation) {
  ASSERT_TRUE(stack().reserve(kHere).has_value());
  EXPECT_EQ(stack().unlisten(kHere).error().code, ErrorCode::NotFound);
  EXPECT_TRUE(stack().unreserve(kHere).has_value());
  EXPECT_EQ(stack().unreserve(kHere).error().code, ErrorCode::NotFound);
  // Whoever ends one for all addresses does not end one for a single address.
  ASSERT_TRUE(stack().reserve(kHere).has_value());
  EXPECT_EQ(stack().unreserve(kEverywhere).error().code, ErrorCode::NotFound);
  EXPECT_FALSE(stack().listen(kHere, acceptor).has_value());
}

TEST_F(Reserved, ItsHolderConnectsFromThere) {
  ASSERT_TRUE(stack().reserve(kHere).has_value());
  RecordUser user{1, 2};
  expect_refused(stack().connect(kHere, kPeer, user, p.link.now), ErrorCode::AlreadyExists,
                 "connect: 10.0.0.1:7471 is reserved for another use; choose another port");
  // After an error it is reserved as before.
  EXPECT_FALSE(stack().connect(kHere, {kAddressB, 0}, user, p.link.now, PortClaim::Reserved));
  EXPECT_FALSE(stack().listen(kHere, acceptor).has_value());
  const auto stream = stack().connect(kHere, kPeer, user, p.link.now, PortClaim::Reserved);
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ((*stream)->local(), kHere);
  ASSERT_TRUE(p.link.run_until([&] { return user.is_established; }, seconds(10)));
  EXPECT_TRUE(stack().listen(kHere, acceptor).has_value()) << "the reservation is over";
  expect_refused(stack().connect(kElsewhere, kPeer, user, p.link.now, PortClaim::Reserved),
                 ErrorCode::NotFound,
                 "connect: nobody has reserved 10.0.0.7:7471: use what reserve() returned");
}

TEST_F(Reserved, OneForAllAddressesIsTheSourceOfAny) {
  ASSERT_TRUE(stack().reserve(kEverywhere).has_value());
  RecordUser user{1, 2};
  EXPECT_FALSE(stack().connect(kHere, kPeer, user, p.link.now).has_value());
  EXPECT_TRUE(stack().connect(kHere, kPeer, user, p.link.now, PortClaim::Reserved).has_value());
  EXPECT_TRUE(stack().listen(kElsewhere, acceptor).has_value());
}

tcp::Config three_ports() {
  tcp::Config config;
  config.ephemeral_first = 65533;
  return config;
}

class OfThree : public Reserved {
 protected:
  OfThree() : Reserved(three_ports()) {}
};

TEST_F(OfThree, NobodyIsGivenIt) {
  const Endpoint reserved = *stack().reserve({kAddressA, 0});
  EXPECT_GE(reserved.port, 65533);
  const auto here = stack().listen({{}, 0}, acceptor);
  ASSERT_TRUE(here.has_value());
  EXPECT_NE(here->port, reserved.port);
  RecordUser first{1, 2}, second{3, 4};
  const auto stream = stack().connect({kAddressA, 0}, kPeer, first, p.link.now);
  ASSERT_TRUE(stream.has_value());
  EXPECT_NE((*stream)->local().port, reserved.port);
  EXPECT_NE((*stream)->local().port, here->port);
  // All that is left is reserved, and not given even now.
  EXPECT_EQ(stack().connect({kAddressA, 0}, kPeer, second, p.link.now).error().code,
            ErrorCode::ResourceExhausted);
  ASSERT_TRUE(stack().unreserve(reserved).has_value());
  const auto last = stack().connect({kAddressA, 0}, kPeer, second, p.link.now);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ((*last)->local(), reserved);
}

TEST_F(OfThree, WhereNoPortIsLeftNoneIsReserved) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stack().reserve({kAddressA, 0}).has_value());
  expect_refused(stack().reserve({{}, 0}), ErrorCode::ResourceExhausted,
                 "reserve: no free port; lower tcp.ephemeral_first or unlisten() one");
}

tcp::Config two_listeners() {
  tcp::Config config;
  config.max_listeners = 2;
  return config;
}

class OfTwo : public Reserved {
 protected:
  OfTwo() : Reserved(two_listeners()) {}
};

TEST_F(OfTwo, ItTakesTheListenersPlace) {
  ASSERT_TRUE(stack().reserve(kHere).has_value());
  ASSERT_TRUE(stack().listen(kElsewhere, acceptor).has_value());
  expect_refused(stack().reserve({kAddressA, 80}), ErrorCode::ResourceExhausted,
                 "reserve: all listeners in use; raise tcp.max_listeners");
  EXPECT_TRUE(stack().listen(kHere, acceptor, PortClaim::Reserved).has_value());
  ASSERT_TRUE(stack().unlisten(kHere).has_value());
  EXPECT_TRUE(stack().reserve({kAddressA, 80}).has_value());
}

}  // namespace
}  // namespace rnic::testing
