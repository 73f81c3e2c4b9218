// Names of hosts, ends of queue pairs, connects that are cancelled: over the wire and over sockets.

#include <algorithm>
#include <chrono>
#include <string>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

template <typename T>
ErrorCode refusal_of(const tl::expected<T, Error>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? ErrorCode{} : result.error().code;
}

struct ConnectingMode {
  const char* name;
  bool sockets;
  bool threaded;
};

class VerbsConnecting : public testing::TestWithParam<ConnectingMode> {
 protected:
  [[nodiscard]] static Config config() {
    return GetParam().sockets ? socket_config(GetParam().threaded)
                              : loopback_config(GetParam().threaded);
  }
  World world_{config()};
};

INSTANTIATE_TEST_SUITE_P(Modes, VerbsConnecting,
                         testing::Values(ConnectingMode{"WireInline", false, false},
                                         ConnectingMode{"WireThreaded", false, true},
                                         ConnectingMode{"SocketsInline", true, false},
                                         ConnectingMode{"SocketsThreaded", true, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(VerbsConnecting, BothEndsAreTold) {
  Side a(world_.left);
  Side b(world_.right);
  EXPECT_EQ(refusal_of(a.qp.local()), ErrorCode::WrongState);
  EXPECT_EQ(refusal_of(a.qp.remote()), ErrorCode::WrongState);
  world_.connect(a, b);
  EXPECT_EQ(must(a.qp.remote()), (Endpoint{world_.right.address(), 7471}));
  EXPECT_EQ(must(b.qp.local()), must(a.qp.remote()));
  EXPECT_EQ(must(b.qp.remote()), must(a.qp.local()));
  EXPECT_EQ(must(a.qp.local()).address, world_.left.address());
  EXPECT_NE(must(a.qp.local()).port, 0);
  world_.disconnect(a, b);
}

TEST_P(VerbsConnecting, ARequestNamesItsListener) {
  const Endpoint here{world_.right.address(), 7480};
  must(world_.right.listen(here));
  Side a(world_.left);
  must(a.qp.connect(here));
  const auto asked = world_.await<event::ConnectRequest>(world_.right);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->listener, here);
  EXPECT_EQ(asked->remote, must(a.qp.local()));
  must(world_.right.reject(asked->request));
}

TEST_P(VerbsConnecting, ACancelledConnectFails) {
  must(world_.right.listen(7481));
  Side a(world_.left);
  EXPECT_EQ(refusal_of(a.qp.cancel_connect()), ErrorCode::WrongState);
  must(a.qp.connect({world_.right.address(), 7481}));
  ASSERT_TRUE(world_.await<event::ConnectRequest>(world_.right));
  must(a.qp.cancel_connect());
  const auto failed = world_.await<event::ConnectFailed>(world_.left, a.qp.number());
  ASSERT_TRUE(failed);
  EXPECT_NE(failed->detail.find("cancelled"), std::string::npos) << failed->detail;
  EXPECT_TRUE(world_.await<event::RequestWithdrawn>(world_.right));
  EXPECT_EQ(refusal_of(a.qp.cancel_connect()), ErrorCode::WrongState);
}

TEST_P(VerbsConnecting, AConnectHasItsTimeOut) {
  must(world_.right.listen(7482));
  Side a(world_.left);
  ConnectOptions options;
  options.start.timeout = std::chrono::milliseconds(20);
  must(a.qp.connect({world_.right.address(), 7482}, {}, options));
  const auto failed = world_.await<event::ConnectFailed>(world_.left, a.qp.number());
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->end, StreamEnd::TimedOut);
}

TEST_P(VerbsConnecting, AConnectHasItsSource) {
  must(world_.right.listen(7483));
  const Endpoint source{world_.left.address(), 7484};
  ConnectOptions options;
  options.source = source;
  for (int i = 0; i < 2; ++i) {  // the port is free again at once
    Side a(world_.left);
    must(a.qp.connect({world_.right.address(), 7483}, {}, options));
    const auto asked = world_.await<event::ConnectRequest>(world_.right);
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->remote, source);
    EXPECT_EQ(must(a.qp.local()), source);
    must(a.qp.cancel_connect());
    ASSERT_TRUE(world_.await<event::ConnectFailed>(world_.left, a.qp.number()));
    ASSERT_TRUE(world_.await<event::RequestWithdrawn>(world_.right));
  }
  Side a(world_.left);
  options.source.address = IpAddress::v4(0xc0000201);  // 192.0.2.1, which nobody has
  EXPECT_EQ(refusal_of(a.qp.connect({world_.right.address(), 7483}, {}, options)),
            ErrorCode::InvalidArgument);
}

TEST(Resolve, AddressesAreTheirOwnNames) {
  EXPECT_EQ(must(resolve("10.1.2.3", 7)), std::vector{at("10.1.2.3", 7)});
  EXPECT_EQ(must(resolve("fd00::7", 65535)), std::vector{at("fd00::7", 65535)});
}

TEST(Resolve, ANameOfThisMachine) {
  const auto found = must(resolve("localhost", 7471));
  const bool known = std::ranges::any_of(found, [](const Endpoint& end) {
    return end == at("127.0.0.1", 7471) || end == at("::1", 7471);
  });
  EXPECT_TRUE(known);
  for (const Endpoint& end : found) EXPECT_EQ(std::ranges::count(found, end), 1);
}

TEST(Resolve, WhatIsNoName) {
  EXPECT_EQ(refusal_of(resolve("", 1)), ErrorCode::InvalidArgument);
  EXPECT_EQ(refusal_of(resolve(std::string("10.0.0.1\0x", 10), 1)), ErrorCode::InvalidArgument);
  EXPECT_EQ(refusal_of(resolve(std::string(255, 'x'), 1)), ErrorCode::InvalidArgument);
  // A part of it is longer than any name's, so that no server is asked.
  const auto nobody = resolve(std::string(200, 'x') + ".invalid", 1);
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().message.find(".invalid"), std::string::npos);
}

}  // namespace
}  // namespace rnic::test
