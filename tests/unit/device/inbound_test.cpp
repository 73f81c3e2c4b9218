// Inbound associations under pressure: who gives way, who is refused, and what everybody is told.

#include "stream_pair.hpp"
#include "support/logged.hpp"

namespace rnic::device {
namespace {

/// Strangers are streaming sockets of the left device: TCP, and octets of their choice.
class Inbound : public Streams {
 protected:
  Inbound() : Inbound([](DeviceConfig&) {}) {}
  explicit Inbound(const Tweak& tweak)
      : Streams([&](DeviceConfig& config) {
          config.limits.max_starting = 2;
          tweak(config);
        }) {}

  StreamSocket* stranger() {
    auto socket = left().device->connect_stream(right_end(), {}, now_);
    EXPECT_TRUE(socket.has_value());
    EXPECT_TRUE(run_until([&] { return (*socket)->is_established(); }));
    run_for(std::chrono::milliseconds(1));
    return *socket;
  }
  StreamSocket* stranger(const std::vector<uint8_t>& octets) {
    StreamSocket* socket = stranger();
    send(left(), socket, octets);
    run_for(std::chrono::milliseconds(1));
    return socket;
  }
  [[nodiscard]] const DeviceCounters& counters() { return right().device->device_counters(); }
};

// Octets of a Request do not help: it has to be whole.
TEST_F(Inbound, TheOldestWithoutAWholeRequestGivesWay_SEC_6_4_1_02) {
  StreamSocket* first = stranger({'M', 'P', 'A', ' '});
  StreamSocket* second = stranger();
  EXPECT_FALSE(first->how_ended());
  EXPECT_EQ(counters().starts_displaced, 0u);
  StreamSocket* third = stranger();
  ASSERT_TRUE(first->how_ended());
  EXPECT_EQ(*first->how_ended(), StreamEnd::PeerReset);
  EXPECT_FALSE(second->how_ended());
  EXPECT_FALSE(third->how_ended());
  EXPECT_EQ(counters().starts_displaced, 1u);
}

TEST_F(Inbound, WhoWasLetGoIsToldToTheApplication) {
  StreamSocket* first = stranger();
  stranger();
  EXPECT_FALSE(right().has<event::RequestFailed>());
  stranger();
  EXPECT_EQ(counters().starts_displaced, 1u);
  EXPECT_EQ(*first->how_ended(), StreamEnd::PeerReset);
  const auto event = right().take<event::RequestFailed>();
  ASSERT_TRUE(event.has_value());
  EXPECT_NE(event->detail.find("limits.max_starting"), std::string::npos) << event->detail;
  EXPECT_FALSE(right().has<event::RequestFailed>());
  EXPECT_EQ(right().device->live_connections(), 2u);
}

// One line for many, and it names the cause and where they come from.
TEST_F(Inbound, TheLogHasOneLineForMany) {
  test::Logged log;
  for (int i = 0; i < 6; ++i) stranger();
  const std::string said = log.take();
  EXPECT_EQ(counters().starts_displaced, 4u);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("1 inbound association from 10.0.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("limits.max_starting"), std::string::npos) << said;
  run_for(std::chrono::seconds(11));
  test::Logged later;
  stranger();
  EXPECT_NE(later.take().find("4 inbound associations, at last from 10.0.0.1:"), std::string::npos);
}

// A start-up that has failed closes as TCP does, and holds no place that somebody else needs.
class Lingering : public Inbound {
 protected:
  Lingering() : Inbound([](DeviceConfig& c) { c.tcp.close_timeout = std::chrono::hours(1); }) {}
};

TEST_F(Lingering, FailedStartUpsAreResetForOthers) {
  StreamSocket* first = stranger(octets(40, 'x'));
  StreamSocket* second = stranger(octets(40, 'x'));
  EXPECT_EQ(right().device->live_connections(), 2u) << "closing, and the peer does not";
  EXPECT_FALSE(first->how_ended());
  StreamSocket* third = stranger(octets(40, 'x'));
  EXPECT_EQ(counters().lingering_reset, 1u);
  EXPECT_TRUE(first->how_ended());
  EXPECT_FALSE(second->how_ended());
  EXPECT_FALSE(third->how_ended());
  EXPECT_EQ(counters().starts_displaced, 0u);
}

class FewConnections : public Inbound {
 protected:
  FewConnections()
      : Inbound([](DeviceConfig& c) {
          if (c.name == "right") c.limits.max_connections = 2;
        }) {}
};

// Strangers do not keep the device's own application from connecting either.
TEST_F(FewConnections, AnActiveOpenFindsItsPlace) {
  ASSERT_TRUE(left().device->listen(kPort + 1).has_value());
  stranger();
  stranger();
  QueuePair* qp = right().make_qp();
  const Endpoint there{left().device->config().net.address, kPort + 1};
  ASSERT_TRUE(right().device->connect(*qp, there, {}, now_).has_value());
  EXPECT_EQ(counters().starts_displaced, 1u);
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
}

TEST_F(FewConnections, NobodyGivesWayForACallThatFails) {
  StreamSocket* first = stranger();
  stranger();
  QueuePair* qp = right().make_qp();
  const Endpoint nowhere{IpAddress::v4(0xc0a80001), kPort};
  EXPECT_FALSE(right().device->connect(*qp, nowhere, {}, now_).has_value());
  run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(counters().starts_displaced, 0u);
  EXPECT_FALSE(first->how_ended());
}

/// Few connections, of which those that have failed close slowly.
class FewThatLinger : public Inbound {
 protected:
  FewThatLinger()
      : Inbound([](DeviceConfig& c) {
          c.tcp.close_timeout = std::chrono::hours(1);
          c.limits.max_starting = 4;
          if (c.name == "right") c.limits.max_connections = 2;
        }) {}
};

// A start-up that has failed gives its place to the next one, before one that may come to something
// does; each is counted.
TEST_F(FewThatLinger, FailedStartUpsGiveTheirPlacesFirst) {
  StreamSocket* silent = stranger();
  StreamSocket* failed = stranger(octets(40, 'x'));
  EXPECT_EQ(right().device->live_connections(), 2u);
  EXPECT_EQ(counters().lingering_reset, 0u);
  StreamSocket* next = stranger();
  EXPECT_EQ(counters().lingering_reset, 1u);
  EXPECT_EQ(counters().starts_displaced, 0u);
  EXPECT_TRUE(failed->how_ended());
  EXPECT_FALSE(silent->how_ended());
  EXPECT_FALSE(next->how_ended());
}

// Established ones hold their places: who asks then is refused, and the log says why.
TEST_F(FewConnections, EstablishedOnesDoNotGiveWay_SEC_6_4_1_01) {
  QueuePair* theirs[] = {left().make_qp(), left().make_qp()};
  QueuePair* ours[] = {right().make_qp(), right().make_qp()};
  for (int i = 0; i < 2; ++i) DevicePair::connect(theirs[i], ours[i]);
  test::Logged log;
  StreamSocket* late = stranger();
  EXPECT_EQ(*late->how_ended(), StreamEnd::PeerReset);
  EXPECT_EQ(counters().requests_refused, 1u);
  EXPECT_EQ(counters().starts_displaced, 0u);
  EXPECT_NE(log.take().find("limits.max_connections"), std::string::npos);
  EXPECT_FALSE(right().has<event::Disconnected>());
}

// TCP's own table is full: whoever has said nothing makes room there, too.
class FewTcpConnections : public Inbound {
 protected:
  FewTcpConnections()
      : Inbound([](DeviceConfig& c) {
          c.limits.max_starting = 16;
          if (c.name != "right") return;
          c.limits.max_connections = 16;
          c.tcp.max_connections = 4;
          c.tcp.max_half_open = c.tcp.max_half_open_per_listener = 4;
        }) {}
};

TEST_F(FewTcpConnections, TheLastPlaceIsKeptFree) {
  for (int i = 0; i < 8; ++i) stranger();
  EXPECT_EQ(right().device->tcp_counters().syn_dropped, 0u);
  EXPECT_EQ(right().device->tcp_counters().places_made, 5u);
  EXPECT_EQ(counters().starts_displaced, 5u);
  DevicePair::connect(left().make_qp(), right().make_qp());
}

// It is not the number of start-ups that lets them go, and neither the log nor the event says so.
TEST_F(FewTcpConnections, WhatIsFullIsNamed) {
  test::Logged log;
  for (int i = 0; i < 4; ++i) stranger();
  const std::string said = log.take();
  EXPECT_NE(said.find("all places for connections are in use"), std::string::npos) << said;
  EXPECT_NE(said.find("limits.max_connections"), std::string::npos) << said;
  EXPECT_EQ(said.find("limits.max_starting"), std::string::npos) << said;
  const auto event = right().take<event::RequestFailed>();
  ASSERT_TRUE(event.has_value());
  EXPECT_NE(event->detail.find("limits.max_connections"), std::string::npos) << event->detail;
  EXPECT_EQ(event->detail.find("limits.max_starting"), std::string::npos) << event->detail;
}

class FewAnswers : public Inbound {
 protected:
  FewAnswers() : Inbound([](DeviceConfig& c) { c.limits.max_pending_requests = 1; }) {}
};

// What is refused although the peer did all it has to: the client is told of a reset and of its
// possible causes, the server's log of the one that it was.
TEST_F(FewAnswers, TooManyUnansweredRequestsAreToldOnBothSides) {
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  test::Logged log;
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  const std::string told = left().take<event::ConnectFailed>()->detail;
  EXPECT_NE(told.find("reset the connection instead of replying"), std::string::npos) << told;
  EXPECT_NE(told.find("a limit of it"), std::string::npos) << told;
  EXPECT_NE(log.take().find("limits.max_pending_requests"), std::string::npos);
  EXPECT_EQ(counters().requests_refused, 2u) << "with the second attempt (RFC 6581 s.10)";
  // The one that waits is as it was.
  const auto request = right().take<event::ConnectRequest>();
  EXPECT_TRUE(right().device->accept(request->request, *right().make_qp(), {}, now_).has_value());
}

}  // namespace
}  // namespace rnic::device
