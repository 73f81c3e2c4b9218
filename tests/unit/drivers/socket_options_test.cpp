// What an application chooses for TCP below one connection, over sockets of the system: the system
// is asked what it has been told.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <optional>

#include "on_sockets.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TcpOptionsOnSockets : public OnSockets {
 protected:
  /// The descriptor of this process whose connection has these ends.
  static int descriptor_of(const Endpoint& local, const Endpoint& remote) {
    for (int fd = 3; fd < 1024; ++fd) {
      socket::SystemAddress here, there;
      if (getsockname(fd, here.get(), &here.size) != 0) continue;
      if (getpeername(fd, there.get(), &there.size) != 0) continue;
      if (here.endpoint() == local && there.endpoint() == remote) return fd;
    }
    ADD_FAILURE() << "no socket has that connection";
    return -1;
  }
  /// The descriptors of both ends of the connection that there is.
  std::array<int, 2> descriptors() {
    const QueuePairInfo info = devices_[0]->info(*qps_[0][0], now_);
    return {descriptor_of(info.local, info.remote), descriptor_of(info.remote, info.local)};
  }
  static int told(int descriptor, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(descriptor, level, name, &value, &size), 0) << level << " " << name;
    return value;
  }
  void connect(const ConnectOptions& options, const ListenOptions& of_listener,
               const ConnectOptions& answer) {
    const auto there = devices_[1]->listen(Endpoint{IpAddress::v4(0x7f000001), 0}, of_listener);
    ASSERT_TRUE(there.has_value()) << there.error().message;
    const Status begun = devices_[0]->connect(*qps_[0][0], *there, {}, now_, options);
    ASSERT_TRUE(begun.has_value()) << begun.error().message;
    const auto asked = event<event::ConnectRequest>(1);
    ASSERT_TRUE(asked);
    ASSERT_TRUE(devices_[1]->accept(asked->request, *qps_[1][0], {}, now_, answer).has_value());
    ASSERT_TRUE(event<event::Established>(0));
    ASSERT_TRUE(event<event::Established>(1));
  }
  void expect_refused(const Status& status, const char* name) {
    ASSERT_FALSE(status.has_value()) << name;
    EXPECT_EQ(status.error().code, ErrorCode::Unsupported);
    EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
  }
};

TEST_F(TcpOptionsOnSockets, EachIsToldToTheSystem) {
  connect({.tcp = {.nagle = true,
                   .keep_alive = true,
                   .keep_alive_idle = milliseconds(6'001),
                   .keep_alive_interval = seconds(3),
                   .keep_alive_count = 5,
                   .user_timeout = milliseconds(1234),
                   .dscp = 46,
                   .hop_limit = 9,
                   .max_segment = 1000}},
          {.tcp = {.dscp = 10, .hop_limit = 7}}, {.tcp = {.dscp = 20}});
  const auto [near, far] = descriptors();
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_EQ(told(near, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_KEEPIDLE), 7) << "whole seconds, rounded up";
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_KEEPINTVL), 3);
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_KEEPCNT), 5);
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_USER_TIMEOUT), 1234);
  EXPECT_EQ(told(near, IPPROTO_IP, IP_TOS), 46 << 2);
  EXPECT_EQ(told(near, IPPROTO_IP, IP_TTL), 9);
  EXPECT_LE(told(near, IPPROTO_TCP, TCP_MAXSEG), 1000);
  EXPECT_EQ(told(far, IPPROTO_IP, IP_TOS), 20 << 2) << "the answer's replaces the listener's";
  EXPECT_EQ(told(far, IPPROTO_IP, IP_TTL), 7) << "the listener's";
  EXPECT_EQ(told(far, IPPROTO_TCP, TCP_NODELAY), 1) << "the configuration's";
  EXPECT_EQ(told(far, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(transports_[0]->counters().options_refused, 0u);
  EXPECT_EQ(transports_[1]->counters().options_refused, 0u);
}

TEST_F(TcpOptionsOnSockets, ChangeWhileTheConnectionLives) {
  connect({.tcp = {.dscp = 46, .hop_limit = 9}}, {}, {});
  const TcpOptions change{.nagle = true, .user_timeout = seconds(2), .dscp = 20, .hop_limit = 0};
  ASSERT_TRUE(devices_[0]->modify_qp(*qps_[0][0], {.tcp = change}, now_).has_value());
  const int near = descriptors()[0];
  EXPECT_EQ(told(near, IPPROTO_IP, IP_TOS), 20 << 2);
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_USER_TIMEOUT), 2000);
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_NE(told(near, IPPROTO_IP, IP_TTL), 9) << "0: the system's own";
  ASSERT_TRUE(devices_[0]->modify_qp(*qps_[0][0], {.tcp = TcpOptions{.dscp = 0}}, now_));
  EXPECT_EQ(told(near, IPPROTO_IP, IP_TOS), 0);
  EXPECT_EQ(told(near, IPPROTO_TCP, TCP_USER_TIMEOUT), 2000) << "what is not set stays";
}

// Linux has segments of 88 octets and more.
TEST_F(TcpOptionsOnSockets, WhatTheSystemDoesNotTakeIsNamed) {
  const TcpOptions small{.dscp = 46, .max_segment = 70};
  const Endpoint here{IpAddress::v4(0x7f000001), 0};
  const auto listening = devices_[1]->listen(here, {.tcp = small});
  expect_refused(listening ? Status{} : tl::unexpected(listening.error()), "max_segment");
  const Endpoint there = listen();
  expect_refused(devices_[0]->connect(*qps_[0][0], there, {}, now_, {.tcp = small}), "max_segment");
  expect_refused(devices_[0]->connect(*qps_[0][0], there, {}, now_, {.tcp = {.pacing = true}}),
                 "pacing");
  EXPECT_EQ(devices_[0]->live_connections(), 0u);
  OnSockets::connect(0, there);
  expect_refused(devices_[0]->modify_qp(*qps_[0][0], {.tcp = small}, now_), "max_segment");
  EXPECT_EQ(told(descriptors()[0], IPPROTO_IP, IP_TOS), 46 << 2) << "the others are set";
  EXPECT_EQ(transports_[0]->counters().options_refused, 1u);
}

}  // namespace
}  // namespace rnic::device
