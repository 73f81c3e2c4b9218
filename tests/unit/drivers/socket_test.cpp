// The socket driver over 127.0.0.1 and ::1. The octets travel through the system, in real time: the
// loops end when what they wait for is there. The driver's own time is virtual.

#include "socket/socket.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>

#include "../../support/record_user.hpp"

namespace rnic::socket {

namespace {

using testing::RecordUser;
using testing::UserAcceptor;

const IpAddress kV4 = IpAddress::v4(0x7f000001);
const IpAddress kV6{0, 1};

class NoDoorbells final : public llp::BeforeHandUp {
 public:
  void before_hand_up() override { ++called; }
  int called = 0;
};

/// A port that nobody listens on now.
uint16_t free_port() {
  const Descriptor probe(own_system().socket(AF_INET, SOCK_STREAM, 0));
  SystemAddress address(Endpoint{kV4, 0});
  EXPECT_EQ(bind(probe.get(), address.get(), address.size), 0);
  EXPECT_EQ(getsockname(probe.get(), address.get(), &address.size), 0);
  return address.endpoint().port;
}

class SocketDriver : public ::testing::Test {
 protected:
  void open(const Config& left = {}, const Config& right = {}) {
    left_ = std::move(*Transport::open(left, now_));
    right_ = std::move(*Transport::open(right, now_));
  }
  void turn() {
    now_ += std::chrono::microseconds(1);
    for (Transport* each : {left_.get(), right_.get()}) {
      each->receive(now_, doorbells_);
      if (each->next_deadline() <= now_) each->on_timers(now_);
      each->output(now_);
    }
  }
  template <typename Done>
  bool run_until(Done&& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) turn();
    return done();
  }
  void turns(int n) {
    for (int i = 0; i < n; ++i) turn();
  }
  /// Connects `from` to `to`.
  void connect(RecordUser& from, RecordUser& to, IpAddress address = kV4) {
    if (port_ == 0) listen(address);
    acceptor_.next.push_back(&to);
    auto stream = left_->connect({}, {address, port_}, from, now_);
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    from.stream = *stream;
    ASSERT_TRUE(run_until([&] { return from.is_established && to.is_established; }));
  }
  void listen(IpAddress address) {
    port_ = free_port();
    const auto listening = right_->listen({address, port_}, acceptor_);
    ASSERT_TRUE(listening.has_value()) << listening.error().message;
  }

  base::Now now_{std::chrono::seconds(1)};
  NoDoorbells doorbells_;
  UserAcceptor acceptor_;
  uint16_t port_ = 0;
  std::unique_ptr<Transport> left_;
  std::unique_ptr<Transport> right_;
  RecordUser near_{1, 2};
  RecordUser far_{2, 1};
};

// MPA-5.1-01: the system's word is used; without it the path's MTU less the headers to be expected.
TEST(SocketEmss, TheBestThatIsKnown) {
  EXPECT_EQ(choose_emss({.send_mss = 1428, .path_mtu = 9000, .configured_mtu = 576}), 1428u);
  EXPECT_EQ(choose_emss({.path_mtu = 1500, .v4 = true}), 1448u);
  EXPECT_EQ(choose_emss({.path_mtu = 1500, .v4 = false}), 1428u);
  EXPECT_EQ(choose_emss({.path_mtu = 9000, .configured_mtu = 576}), 8948u);
}

// MPA00-5.1.1-02
TEST(SocketEmss, UnknownIs1460Or536) {
  EXPECT_EQ(choose_emss({}), 1460u);
  EXPECT_EQ(choose_emss({.configured_mtu = 1500}), 1460u);
  EXPECT_EQ(choose_emss({.configured_mtu = 9000}), 1460u);
  EXPECT_EQ(choose_emss({.configured_mtu = 1499}), 536u);
  // A descriptor that is no socket tells nothing.
  EXPECT_EQ(choose_emss(ask_system(own_system(), -1, true, 1500)), 1460u);
  EXPECT_EQ(choose_emss(ask_system(own_system(), -1, true, 576)), 536u);
}

TEST(SocketErrors, WhatTheSystemSays) {
  EXPECT_EQ(end_of(ECONNREFUSED, true), StreamEnd::Refused);
  EXPECT_EQ(end_of(ETIMEDOUT, false), StreamEnd::TimedOut);
  EXPECT_EQ(end_of(EHOSTUNREACH, true), StreamEnd::Unreachable);
  EXPECT_EQ(end_of(ENETUNREACH, false), StreamEnd::Unreachable);
  EXPECT_EQ(end_of(ECONNRESET, false), StreamEnd::PeerReset);
  EXPECT_EQ(end_of(EPIPE, false), StreamEnd::PeerReset);
  EXPECT_TRUE(is_known(EPIPE));
  EXPECT_FALSE(is_known(EBADF));
}

TEST(SocketErrors, EachHasItsCodeAndItsRemedy) {
  const struct {
    std::initializer_list<int> errors;
    ErrorCode code;
    const char* remedy;
  } rows[] = {
      {{EADDRINUSE}, ErrorCode::AlreadyExists, "choose another port"},
      {{EADDRNOTAVAIL}, ErrorCode::InvalidArgument, "see \"ip address\""},
      {{EACCES, EPERM}, ErrorCode::PermissionDenied, "below 1024 and needs rights"},
      {{EMFILE, ENFILE}, ErrorCode::ResourceExhausted, "(ulimit -n)"},
      {{ENETUNREACH}, ErrorCode::Unreachable, "Network is unreachable"},
      {{EHOSTUNREACH}, ErrorCode::Unreachable, "No route to host"},
      {{EAFNOSUPPORT}, ErrorCode::Unsupported, "does not have this version of IP"},
      {{EINVAL}, ErrorCode::InvalidArgument, "Invalid argument"},
      {{EIO}, ErrorCode::Environment, "Input/output error"},
  };
  for (const auto& row : rows) {
    for (const int error : row.errors) {
      const Error made = system_error("a call", error);
      EXPECT_EQ(made.code, row.code) << made.message;
      EXPECT_TRUE(made.message.starts_with("a call: ")) << made.message;
      EXPECT_TRUE(made.message.ends_with(row.remedy)) << made.message;
    }
  }
}

TEST(SocketErrors, APortThatIsBoundHasItsAddress) {
  const Endpoint bound{kV4, 7}, chosen{kV4, 0}, remote{kV4, 8};
  const Error twice = connect_error(bound, remote, EADDRNOTAVAIL);
  EXPECT_EQ(twice.code, ErrorCode::AlreadyExists);
  EXPECT_TRUE(twice.message.starts_with("connect: " + to_string(bound) + " to "));
  EXPECT_EQ(connect_error(chosen, remote, EADDRNOTAVAIL).code, ErrorCode::InvalidArgument);
  EXPECT_EQ(connect_error(bound, remote, ENETUNREACH).code, ErrorCode::Unreachable);
}

TEST_F(SocketDriver, BothWaysOverBothVersionsOfIp) {
  for (const IpAddress address : {kV4, kV6}) {
    SCOPED_TRACE(to_string(address));
    open();
    port_ = 0;
    RecordUser near{1, 2};
    RecordUser far{2, 1};
    connect(near, far, address);
    EXPECT_EQ(near.stream->remote(), (Endpoint{address, port_}));
    EXPECT_EQ(near.stream->local(), far.stream->remote());
    EXPECT_EQ(near.stream->remote(), far.stream->local());
    const llp::StreamTraits traits = near.stream->traits();
    EXPECT_FALSE(traits.can_drop || traits.out_of_order || traits.release_on_ack);
    uint64_t all = 0;
    for (uint32_t length = 1; length < 60'000; length += 997) {
      near.queue(length);
      far.queue(length);
      all += length;
    }
    ASSERT_TRUE(run_until([&] { return near.ordered_to == all && far.ordered_to == all; }));
    EXPECT_TRUE(near.clean() && far.clean());
    EXPECT_EQ(near.released_to, all);
    EXPECT_EQ(near.rebuilds, 0u);
    EXPECT_GT(doorbells_.called, 0);
    EXPECT_EQ(left_->counters().octets_out, all);
    EXPECT_EQ(right_->counters().octets_in, all);
  }
}

// A listener without an address serves both versions of IP, and tells IPv4 addresses as such.
TEST_F(SocketDriver, ListensOnEveryAddress) {
  open();
  listen({});
  connect(near_, far_, kV4);
  EXPECT_TRUE(far_.stream->remote().address.is_v4());
  RecordUser near{1, 2};
  RecordUser far{2, 1};
  connect(near, far, kV6);
  EXPECT_EQ(far.stream->remote().address, kV6);
  EXPECT_EQ(right_->counters().accepts, 2u);
}

// MPA-A.1-02: EMSS is the system's, a change is told before the next pull.
TEST_F(SocketDriver, EmssFollowsTheSystem) {
  open();
  connect(near_, far_);
  EXPECT_EQ(near_.established_emss, near_.stream->emss());
  for (int i = 0; i < 400; ++i) near_.queue(60'000);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 400u * 60'000; }));
  EXPECT_TRUE(far_.clean());
  if (left_->counters().emss_changes != 0) {
    EXPECT_EQ(near_.changed_emss, near_.stream->emss());
  } else {
    EXPECT_EQ(near_.changed_emss, 0u);
  }
  EXPECT_EQ(left_->counters().emss_unknown, 0u);
}

// What the peer does not read stays bounded: here, and there.
TEST_F(SocketDriver, BackPressure) {
  Config small;
  small.send_buffer = 16 << 10;
  small.system_send_buffer = 32 << 10;
  small.system_receive_buffer = 32 << 10;
  open(small, small);
  connect(near_, far_);
  far_.room = 0;
  constexpr uint64_t kAll = 2000 * 4096;
  for (int i = 0; i < 2000; ++i) near_.queue(4096);
  ASSERT_TRUE(run_until([&] { return left_->counters().send_waits != 0; }));
  turns(200);
  EXPECT_EQ(far_.ordered_to, 0u);
  EXPECT_LT(near_.pulled, 1u << 20);
  EXPECT_LE(near_.pulled - near_.released_to, small.send_buffer);
  EXPECT_LE(near_.stream->emss(), small.send_buffer);
  EXPECT_EQ(right_->counters().receive_waits, 1u);
  far_.room = 4u << 20;
  far_.stream->room_grew();
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == kAll; }));
  EXPECT_TRUE(far_.clean());
  EXPECT_EQ(near_.released_to, kAll);
}

// Urgent data are no part of the stream. A read ends where they were, and what lies behind them
// comes up all the same.
TEST_F(SocketDriver, UrgentDataStopNoStream) {
  open();
  listen(kV4);
  acceptor_.next.push_back(&far_);
  const Descriptor peer(own_system().socket(AF_INET, SOCK_STREAM, 0));
  const SystemAddress there(Endpoint{kV4, port_});
  ASSERT_EQ(::connect(peer.get(), there.get(), there.size), 0);
  ASSERT_TRUE(run_until([&] { return far_.is_established; }));
  std::array<uint8_t, 10> octets{};
  uint64_t sent = 0;
  const auto send_next = [&] {
    for (uint8_t& octet : octets) octet = testing::octet_at(sent++, 1);
    ASSERT_EQ(send(peer.get(), octets.data(), octets.size(), MSG_NOSIGNAL), 10);
  };
  for (int i = 0; i < 20; ++i) {
    send_next();
    ASSERT_EQ(send(peer.get(), "u", 1, MSG_NOSIGNAL | MSG_OOB), 1);
    send_next();
    ASSERT_TRUE(run_until([&] { return far_.ordered_to == sent; })) << i;
  }
  EXPECT_TRUE(far_.clean());
  ASSERT_EQ(shutdown(peer.get(), SHUT_WR), 0);
  EXPECT_TRUE(run_until([&] { return far_.peer_has_finished; }));
}

// MPA00-5.1-01: each side is told that the other one closes; the other direction goes on.
TEST_F(SocketDriver, HalfClose) {
  open();
  connect(near_, far_);
  near_.queue(5000);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  EXPECT_EQ(far_.ordered_to, 5000u);
  EXPECT_FALSE(far_.how_ended || near_.how_ended);
  EXPECT_EQ(left_->counters().half_closes, 1u);
  far_.queue(100'000);
  ASSERT_TRUE(run_until([&] { return near_.ordered_to == 100'000; }));
  EXPECT_FALSE(near_.peer_has_finished);
  far_.stream->close();
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Closed);
  EXPECT_EQ(far_.how_ended, StreamEnd::Closed);
  EXPECT_TRUE(left_->quiescent() && right_->quiescent());
}

// What was queued before the close goes out before the FIN, also where the system takes
// it in many pieces.
TEST_F(SocketDriver, CloseWaitsForWhatIsQueued_MPA_7_2_01) {
  Config small;
  small.system_send_buffer = small.system_receive_buffer = 16 << 10;
  open(small, small);
  connect(near_, far_);
  constexpr uint32_t kRecords = 200, kLength = 20'000;
  for (uint32_t i = 0; i < kRecords; ++i) near_.queue(kLength);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  EXPECT_EQ(far_.ordered_to, uint64_t{kRecords} * kLength);
  EXPECT_GT(left_->counters().send_waits, 0u);
}

// The peer's FIN does not come: RST after the close time-out, in the driver's own time.
TEST_F(SocketDriver, CloseTimesOut) {
  open();
  connect(near_, far_);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  EXPECT_FALSE(near_.how_ended);
  now_ += std::chrono::seconds(6);
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::TimedOut);
  EXPECT_EQ(far_.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(left_->counters().timed_out, 1u);
}

TEST_F(SocketDriver, Resets) {
  open();
  connect(near_, far_);
  near_.queue(100);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 100; }));
  near_.stream->abort();
  EXPECT_FALSE(near_.how_ended);  // not inside the call
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(far_.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(left_->counters().aborted, 1u);
  EXPECT_EQ(right_->counters().resets_in, 1u);
}

// What the system has taken comes, although the sender has gone before the peer has read it.
TEST_F(SocketDriver, WhatWasTakenComesWhenTheUserLeaves) {
  Config small;
  small.system_receive_buffer = 16 << 10;
  open({}, small);
  connect(near_, far_);
  far_.room = 0;
  constexpr uint64_t kAll = 100'000;
  near_.queue(kAll);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return near_.released_to == kAll; }));
  near_.stream->leave();
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Closed);
  EXPECT_EQ(far_.ordered_to, 0u);
  far_.room = 4u << 20;
  far_.stream->room_grew();
  ASSERT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  EXPECT_EQ(far_.ordered_to, kAll);
  EXPECT_TRUE(far_.clean());
  EXPECT_EQ(left_->counters().aborted, 0u);
}

TEST_F(SocketDriver, AUserThatLeavesWithoutClosingResets) {
  open();
  connect(near_, far_);
  near_.queue(100);
  near_.stream->leave();
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(far_.how_ended, StreamEnd::PeerReset);
}

// Octets that came before the reset are handed up although writing has failed.
TEST_F(SocketDriver, ReadsWhatCameBeforeTheEnd) {
  open();
  connect(near_, far_);
  near_.queue(3000);
  near_.stream->close();
  left_->output(now_);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 3000; }));
  EXPECT_TRUE(far_.clean());
}

TEST_F(SocketDriver, NobodyListens) {
  open();
  auto stream = left_->connect({}, {kV4, free_port()}, near_, now_);
  ASSERT_TRUE(stream.has_value());
  near_.stream = *stream;
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Refused);
  EXPECT_FALSE(near_.is_established);
  EXPECT_EQ(left_->counters().refused, 1u);
}

// A peer whose backlog is full does not answer; the time-out is the driver's.
TEST_F(SocketDriver, ConnectTimesOut) {
  open();
  const Descriptor deaf(own_system().socket(AF_INET, SOCK_STREAM, 0));
  SystemAddress address(Endpoint{kV4, 0});
  ASSERT_EQ(bind(deaf.get(), address.get(), address.size), 0);
  ASSERT_EQ(::listen(deaf.get(), 0), 0);
  ASSERT_EQ(getsockname(deaf.get(), address.get(), &address.size), 0);
  std::array<Descriptor, 4> fill;
  for (Descriptor& one : fill) {
    one = std::move(*open_socket(own_system(), AF_INET));
    ::connect(one.get(), address.get(), address.size);
  }
  auto stream = left_->connect({}, address.endpoint(), near_, now_);
  ASSERT_TRUE(stream.has_value());
  turns(200);
  ASSERT_FALSE(near_.is_established);
  now_ += std::chrono::seconds(179);
  turns(3);
  EXPECT_FALSE(near_.how_ended);
  now_ += std::chrono::seconds(2);
  turns(3);
  EXPECT_EQ(near_.how_ended, StreamEnd::TimedOut);
}

TEST_F(SocketDriver, TheDeviceSaysNo) {
  open();
  listen(kV4);
  auto stream = left_->connect({}, {kV4, port_}, near_, now_);
  ASSERT_TRUE(stream.has_value());
  near_.stream = *stream;
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(right_->counters().accepts_refused, 1u);
  EXPECT_TRUE(right_->quiescent());
}

// At its limit the driver leaves connections in the system's backlog, and takes them later.
TEST_F(SocketDriver, ConnectionsWaitInTheBacklog) {
  Config one;
  one.max_connections = 1;
  open({}, one);
  connect(near_, far_);
  RecordUser second_near{1, 2};
  RecordUser second_far{2, 1};
  acceptor_.next.push_back(&second_far);
  second_near.stream = *left_->connect({}, {kV4, port_}, second_near, now_);
  ASSERT_TRUE(run_until([&] { return right_->counters().accepts_deferred > 3; }));
  EXPECT_FALSE(second_far.is_established);
  // A connection in the backlog does not keep the poller awake: a deadline makes the driver look
  // again.
  pollfd descriptor{right_->arm().value(), POLLIN, 0};
  EXPECT_EQ(::poll(&descriptor, 1, 0), 0);
  EXPECT_GT(right_->next_deadline(), now_);
  EXPECT_LE(right_->next_deadline(), now_ + std::chrono::milliseconds(10));
  near_.stream->abort();
  ASSERT_TRUE(run_until([&] { return second_far.is_established; }));
  EXPECT_FALSE(right_->connect({}, {kV4, port_}, near_, now_).has_value());
}

// A descriptor of somebody else ends a sleep, and is nothing to be served.
TEST_F(SocketDriver, SleepsUntilADescriptorOfItsCallersIsReadable) {
  open();
  const int bell = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  ASSERT_TRUE(right_->wake_by(bell));
  EXPECT_FALSE(right_->wake_by(bell)) << "epoll has it already";
  right_->arm();
  right_->sleep();
  EXPECT_GT(right_->next_deadline(), now_);
  EXPECT_EQ(right_->receive(now_, doorbells_), 0u);
  connect(near_, far_);
  near_.queue(88);
  near_.stream->ready();
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 88; }));
  close(bell);
  near_.stream->abort();
}

TEST_F(SocketDriver, TakenAddressesAndMissingOnes) {
  Config wanting;
  wanting.addresses = {IpAddress::v4(0xcb007101)};  // 203.0.113.1: documentation only
  open({}, wanting);
  const uint16_t port = free_port();
  ASSERT_TRUE(left_->listen({kV4, port}, acceptor_).has_value());
  const auto again = left_->listen({kV4, port}, acceptor_);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::AlreadyExists);
  const auto other = right_->listen({kV4, port}, acceptor_);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, ErrorCode::AlreadyExists);
  const auto missing = right_->listen({{}, free_port()}, acceptor_);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(missing.error().message.find("does not have the address"), std::string::npos);
  EXPECT_TRUE(left_->unlisten({kV4, port}).has_value());
  EXPECT_FALSE(left_->unlisten({kV4, port}).has_value());
  EXPECT_TRUE(right_->listen({kV4, port}, acceptor_).has_value());
}

// The system chooses the port, nobody else gets it, and it is the same at each address.
TEST_F(SocketDriver, APortThatTheSystemChooses) {
  Config two;
  two.addresses = {kV4, kV6};
  open(two, {});
  const auto listening = right_->listen({kV4, 0}, acceptor_);
  ASSERT_TRUE(listening.has_value()) << listening.error().message;
  EXPECT_EQ(listening->address, kV4);
  port_ = listening->port;
  ASSERT_NE(port_, 0);
  EXPECT_EQ(left_->listen({kV4, port_}, acceptor_).error().code, ErrorCode::AlreadyExists);
  connect(near_, far_);
  const auto another = right_->listen({kV4, 0}, acceptor_);
  ASSERT_TRUE(another.has_value());
  EXPECT_NE(another->port, port_);
  EXPECT_TRUE(right_->unlisten(*listening).has_value());

  const auto both = left_->listen({{}, 0}, acceptor_);
  ASSERT_TRUE(both.has_value()) << both.error().message;
  for (const IpAddress& each : {kV4, kV6}) {
    RecordUser asks{1, 2}, answers{2, 1};
    acceptor_.next.push_back(&answers);
    auto stream = right_->connect({}, {each, both->port}, asks, now_);
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    asks.stream = *stream;
    EXPECT_TRUE(run_until([&] { return asks.is_established && answers.is_established; }));
    asks.stream->abort();
    EXPECT_TRUE(run_until([&] { return answers.how_ended.has_value(); }));
  }
  EXPECT_TRUE(left_->unlisten(*both).has_value());
}

// A port of one's own with whatever address the system has, in the peer's family.
TEST_F(SocketDriver, ConnectsFromAPortOfBothVersionsOfIp) {
  for (const IpAddress& address : {kV4, kV6}) {
    open();
    listen(address);
    const uint16_t port = free_port();
    RecordUser near{1, 2};
    RecordUser far{2, 1};
    acceptor_.next.push_back(&far);
    auto stream = left_->connect({{}, port}, {address, port_}, near, now_);
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    near.stream = *stream;
    ASSERT_TRUE(run_until([&] { return near.is_established && far.is_established; }));
    EXPECT_EQ((*stream)->local().port, port);
    (*stream)->abort();
    ASSERT_TRUE(run_until([&] { return near.how_ended && far.how_ended; }));
  }
}

// MPA-A.2-01: Nagle's algorithm is off unless it is asked for; several small records share a
// segment, unless that is switched off.
TEST_F(SocketDriver, PackingAndNagle) {
  Config single;
  single.pack_records = false;
  open({}, single);
  connect(near_, far_);
  for (int i = 0; i < 50; ++i) near_.queue(32);
  for (int i = 0; i < 50; ++i) far_.queue(32);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 1600 && near_.ordered_to == 1600; }));
  EXPECT_EQ(left_->counters().records_out, 50u);
  EXPECT_LT(left_->counters().segments_out, 3u);
  EXPECT_EQ(right_->counters().segments_out, 50u);
  EXPECT_LT(right_->counters().writes, 10u);  // many segments, few calls
}

// What the system was told of this connection.
TEST_F(SocketDriver, NagleIsAskedForOnly_MPA_A_2_01) {
  for (const bool nagle : {false, true}) {
    Config config;
    config.nagle = nagle;
    open(config, {});
    port_ = 0;
    RecordUser near{1, 2};
    RecordUser far{2, 1};
    connect(near, far);
    int found = 0;
    for (int fd = 0; fd < 1024; ++fd) {
      SystemAddress own, peer;
      if (getsockname(fd, own.get(), &own.size) != 0 ||
          getpeername(fd, peer.get(), &peer.size) != 0) {
        continue;
      }
      if (own.endpoint() != near.stream->local() || peer.endpoint().port != port_) continue;
      ++found;
      int no_delay = -1;
      socklen_t size = sizeof no_delay;
      ASSERT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
      EXPECT_EQ(no_delay != 0, !nagle);
    }
    EXPECT_EQ(found, 1);
  }
}

}  // namespace
}  // namespace rnic::socket
