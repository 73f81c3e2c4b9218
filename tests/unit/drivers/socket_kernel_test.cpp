// The socket driver over a simulated system: what a real one does too seldom to wait for.

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "../../support/logged.hpp"
#include "on_kernel.hpp"

namespace rnic::socket {
namespace {

// A connection that can write no more ends, although its peer says nothing: what had come from the
// peer is read before.
TEST_F(OnKernel, AWriteErrorEndsAConnectionWhosePeerIsSilent) {
  connect(near_, far_);
  network_.set_most_broken(1);
  SystemFaults faults;
  faults.mute = 1;
  kernels_[0]->set_faults(faults);
  near_.queue(100);
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(left().counters().resets_in, 1u);
  ASSERT_TRUE(run_until([&] { return far_.how_ended.has_value(); }));
  EXPECT_TRUE(left().quiescent() && right().quiescent());
}

// What the configuration says of a connection is said to the system.
TEST_F(OnKernel, OptionsOfAConnection) {
  config_.keep_alive = true;
  config_.keep_alive_idle = std::chrono::seconds(7);
  config_.keep_alive_interval = std::chrono::seconds(3);
  config_.keep_alive_count = 5;
  config_.user_timeout = std::chrono::milliseconds(4321);
  transports_[0] = std::move(*Transport::open(config_, now_, *kernels_[0]));
  connect(near_, far_);
  const std::map<std::pair<int, int>, int> told = kernels_[0]->options();
  const auto option = [&](int level, int name) {
    const auto found = told.find({level, name});
    return found == told.end() ? -1 : found->second;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 7);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 4321);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
  // Unasked for there is no keep-alive.
  EXPECT_EQ(kernels_[1]->options().count({SOL_SOCKET, SO_KEEPALIVE}), 0u);
}

// The timer of an open that was given up is given up, too: whoever gets the place is left alone.
TEST_F(OnKernel, ATimerDoesNotOutliveItsConnection) {
  RecordUser gone{1, 2};
  auto stream = left().connect({}, {kernels_[1]->address(), 9}, gone, now_);
  ASSERT_TRUE(stream.has_value());
  (*stream)->abort();
  turn();
  EXPECT_EQ(gone.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(left().next_deadline(), base::kNever);
  connect(near_, far_);
  now_ += config_.connect_timeout + std::chrono::seconds(1);
  turns(10);
  EXPECT_FALSE(near_.how_ended);
  near_.queue(1000);
  EXPECT_TRUE(run_until([&] { return far_.ordered_to == 1000; }));
}

// What a connection held is there for others when it ends: those that wait for it look again,
// without an event of their own.
TEST_F(OnKernel, AnEndWakesThoseThatWaitForSpace) {
  Waiting waiting{2, 1};
  RecordUser other_near{1, 2};
  RecordUser other_far{2, 1};
  connect(near_, waiting);
  connect(other_near, other_far);
  near_.queue(1000);
  turns(1000);  // it has come piece by piece, and each was looked at
  const uint32_t asked = waiting.asked;
  EXPECT_GT(asked, 0u);
  waiting.open = true;
  turns(1000);
  EXPECT_EQ(waiting.asked, asked) << "nothing has told that there is room";
  other_far.stream->abort();
  ASSERT_TRUE(run_until([&] { return waiting.ordered_to == 1000; }));
  EXPECT_TRUE(waiting.clean());
}

// So they do when a connection that goes on gives back what it held.
TEST_F(OnKernel, RoomThatGrewElsewhereWakesThoseThatWaitForSpace) {
  Waiting waiting{2, 1};
  RecordUser other_near{1, 2};
  RecordUser other_far{2, 1};
  connect(near_, waiting);
  connect(other_near, other_far);
  near_.queue(1000);
  turns(1000);
  waiting.open = true;
  turns(1000);
  EXPECT_EQ(waiting.ordered_to, 0u);
  other_far.stream->room_grew();
  EXPECT_EQ(right().next_deadline(), base::Now{});
  ASSERT_TRUE(run_until([&] { return waiting.ordered_to == 1000; }));
  EXPECT_FALSE(other_far.how_ended);
}

/// Two places, and an owner who gives up the oldest stream for a newcomer.
class TwoPlaces : public OnKernel, private llp::Acceptor {
 protected:
  TwoPlaces() { config_.max_connections = 2; }
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override {
    llp::StreamUser* user = acceptor_.accept(stream, local, remote, now);
    if (user != nullptr) streams_.push_back(&stream);
    return user;
  }
  bool make_room(base::Now) override {
    if (streams_.empty()) return false;
    streams_.front()->abort();
    streams_.pop_front();
    return true;
  }
  [[nodiscard]] llp::Acceptor& yielding() { return *this; }

  std::deque<llp::Stream*> streams_;
};

// All places can be used. When another peer waits in the backlog, the owner is asked to give up one
// that is worth less.
TEST_F(TwoPlaces, OneGivesWayForAPeerThatWaits) {
  Config clients = config_;
  clients.max_connections = 3;
  transports_[0] = std::move(*Transport::open(clients, now_, *kernels_[0]));
  ASSERT_TRUE(right().unlisten({{}, kPort}).has_value());
  ASSERT_TRUE(right().listen({{}, kPort}, yielding()).has_value());
  std::deque<RecordUser> nears, fars;
  for (uint64_t i = 0; i < 5; ++i) {
    connect(nears.emplace_back(1, 2), fars.emplace_back(2, 1));
    const uint64_t places_made = i < 2 ? 0 : i - 1;
    EXPECT_EQ(right().counters().places_made, places_made);
    const uint32_t live = i == 0 ? 1 : 2;
    EXPECT_TRUE(run_until([&] { return left().live_connections() == live; }));
    EXPECT_EQ(right().live_connections(), live);
    if (i < 2) continue;
    EXPECT_EQ(fars[i - 2].how_ended, StreamEnd::Aborted);
    EXPECT_EQ(nears[i - 2].how_ended, StreamEnd::PeerReset);
  }
  EXPECT_EQ(right().counters().accepts, 5u);
  EXPECT_EQ(right().counters().accepts_deferred, 0u);
}

/// An owner who takes a stream and thinks better of it within the call.
class EndsAtOnce : public OnKernel, private llp::Acceptor {
 protected:
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override {
    llp::StreamUser* user = acceptor_.accept(stream, local, remote, now);
    stream.abort();
    return user;
  }
  bool make_room(base::Now) override { return false; }
  [[nodiscard]] llp::Acceptor& hasty() { return *this; }
};

TEST_F(EndsAtOnce, NothingIsEstablished) {
  ASSERT_TRUE(right().unlisten({{}, kPort}).has_value());
  ASSERT_TRUE(right().listen({{}, kPort}, hasty()).has_value());
  acceptor_.next.push_back(&far_);
  ASSERT_TRUE(left().connect({}, {kernels_[1]->address(), kPort}, near_, now_).has_value());
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(far_.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(near_.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(right().counters().accepts, 1u);
  EXPECT_EQ(right().counters().established, 0u);
  EXPECT_EQ(right().counters().aborted, 1u);
  EXPECT_TRUE(left().quiescent() && right().quiescent());
}

// What was looked at and taken as a whole is handed up as a whole, in however many pieces the
// system gives it, and however often it is interrupted or says that there is nothing.
TEST_F(OnKernel, WhatIsTakenAsAWholeComesAsAWhole) {
  Waiting waiting{2, 1};
  waiting.open = true;
  connect(near_, waiting);
  near_.queue(config_.send_buffer / 4);
  waiting.open = false;
  turns(2000);
  EXPECT_EQ(waiting.ordered_to, 0u);
  SystemFaults faults;
  faults.partial = 0.9;
  faults.interrupted = 0.5;
  faults.again = 0.3;
  kernels_[1]->set_faults(faults);
  uint64_t asked_for = 0;
  waiting.on_place = [&](base::Range range) { EXPECT_EQ(range.size(), asked_for); };
  waiting.on_take = [&](base::Range range) { asked_for = range.size(); };
  waiting.open = true;
  waiting.stream->room_grew();
  ASSERT_TRUE(run_until([&] { return waiting.ordered_to == config_.send_buffer / 4; }));
  // What is owed by the system counts when it is read.
  EXPECT_EQ(right().counters().reads, kernels_[1]->totals().reads);
  EXPECT_EQ(right().counters().octets_in, kernels_[1]->totals().octets_in);
  EXPECT_TRUE(waiting.clean());
}

// What was taken as a whole is out of the system's buffer before it is handed up: a user who then
// has room for nothing leaves the peer all of the system's window.
TEST_F(OnKernel, WhatIsTakenLeavesTheSystemsBuffer) {
  Waiting waiting{2, 1};
  connect(near_, waiting);
  near_.queue(1000);
  turns(1000);
  waiting.on_place = [&](base::Range range) {
    if (range.end == 1000) waiting.room = 0;
    EXPECT_EQ(right().counters().octets_in, range.end);
  };
  waiting.open = true;
  waiting.stream->room_grew();
  ASSERT_TRUE(run_until([&] { return waiting.ordered_to == 1000; }));
  turns(100);
  EXPECT_EQ(right().counters().octets_in, 1000u);
  EXPECT_EQ(kernels_[1]->totals().octets_in, 1000u);
}

// What was looked at and taken is handed up although the connection breaks before it is read; the
// error is told behind it.
TEST_F(OnKernel, WhatWasSeenIsHandedUpBeforeAnError) {
  Waiting waiting{2, 1};
  connect(near_, waiting);
  near_.queue(1000);
  turns(1000);
  network_.set_most_broken(1);
  SystemFaults faults;
  faults.fatal = 1;
  waiting.on_take = [&](base::Range) { kernels_[1]->set_faults(faults); };
  waiting.open = true;
  waiting.stream->room_grew();
  ASSERT_TRUE(run_until([&] { return waiting.how_ended.has_value(); }));
  EXPECT_EQ(waiting.ordered_to, 1000u);
  EXPECT_NE(waiting.how_ended, StreamEnd::Closed);
  EXPECT_NE(waiting.how_ended, StreamEnd::Aborted);
}

// No event follows ENOBUFS and ENOMEM: the driver asks again by itself, and does not spin.
TEST_F(OnKernel, ShortMemoryIsWaitedFor) {
  connect(near_, far_);
  SystemFaults faults;
  faults.no_memory = 1;
  kernels_[0]->set_faults(faults);
  near_.queue(1000);
  turns(100);
  EXPECT_EQ(left().counters().send_waits, 1u);
  now_ += std::chrono::milliseconds(1);
  turns(100);
  EXPECT_EQ(left().counters().send_waits, 2u);
  kernels_[0]->set_faults({});
  now_ += std::chrono::milliseconds(1);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 1000; }));
  // The timer is another one for what it watches over next.
  near_.stream->close();
  far_.stream->close();
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Closed);
}

// What was looked for and done leaves nothing to look for: the driver may sleep.
TEST_F(OnKernel, NothingIsDueWhereNothingWaits) {
  connect(near_, far_);
  near_.queue(100);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 100; }));
  turns(10);
  near_.queue(100);
  const auto half_turn = [&] {
    now_ += std::chrono::microseconds(1);
    network_.advance(now_);
    right().receive(now_, nothing_);
  };
  left().output(now_);
  for (int i = 0; i < 20'000 && far_.ordered_to != 200; ++i) half_turn();
  ASSERT_EQ(far_.ordered_to, 200u);
  half_turn();
  EXPECT_NE(right().next_deadline(), base::Now{});
  // Nor does a close that repeats what was said before.
  near_.stream->close();
  EXPECT_EQ(left().next_deadline(), base::Now{});
  turns(10);
  EXPECT_EQ(left().counters().half_closes, 1u);
  near_.stream->close();
  EXPECT_NE(left().next_deadline(), base::Now{});
}

// A user who is ready before the connection is there, or while the system takes nothing, makes
// nobody look: what has to be waited for is told by an event.
TEST_F(OnKernel, NothingIsDueBeforeAReadyUserCanSend) {
  acceptor_.next.push_back(&far_);
  near_.stream = *left().connect({}, {kernels_[1]->address(), kPort}, near_, now_);
  left().output(now_);
  near_.queue(100);
  EXPECT_GT(left().next_deadline(), now_) << "the handshake is not over";
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 100; }));
  SystemFaults faults;
  faults.no_memory = 1;
  kernels_[0]->set_faults(faults);
  near_.queue(100);
  EXPECT_LE(left().next_deadline(), now_);
  left().output(now_);
  EXPECT_EQ(left().counters().send_waits, 1u);
  near_.queue(100);
  EXPECT_GT(left().next_deadline(), now_) << "the system has no memory for the first";
  kernels_[0]->set_faults({});
  now_ += std::chrono::milliseconds(1);
  EXPECT_TRUE(run_until([&] { return far_.ordered_to == 300; }));
}

// An abort is the last word of a user: of what he sent he is told nothing more.
TEST_F(OnKernel, NothingIsReleasedBehindAnAbort) {
  class Aborting final : public RecordUser {
   public:
    using RecordUser::RecordUser;
    void released(const llp::RecordTag& tag, uint64_t end) override {
      RecordUser::released(tag, end);
      ++releases;
      stream->abort();
    }
    int releases = 0;
  };
  Aborting aborting{1, 2};
  connect(aborting, far_);
  for (int i = 0; i < 5; ++i) aborting.queue(100);
  ASSERT_TRUE(run_until([&] { return aborting.how_ended.has_value(); }));
  EXPECT_EQ(aborting.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(aborting.releases, 1);
}

// `::` is both IP versions, one address of IPv6 is none of IPv4; a listener of IPv4 does not ask.
TEST_F(OnKernel, AListenerSaysWhichVersionsItTakes) {
  const std::pair option{static_cast<int>(IPPROTO_IPV6), static_cast<int>(IPV6_V6ONLY)};
  const auto told = [&](const IpAddress& address) -> std::optional<int> {
    Kernel kernel(network_, plan_, IpAddress::v4(0x0a000009), 5000);
    auto transport = std::move(*Transport::open(config_, now_, kernel));
    static_cast<void>(transport->listen({address, kPort}, acceptor_));
    const auto options = kernel.options();
    const auto found = options.find(option);
    return found == options.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(told({}), 0);
  EXPECT_EQ(told(IpAddress{0xfd00000000000000, 9}), 1);
  EXPECT_EQ(told(IpAddress::v4(0x0a000009)), std::nullopt);
}

// A connection goes out from the device's address, which is not here in this test, where the caller
// leaves it open; where he does not, from his.
TEST_F(OnKernel, TheSourceIsTheCallersOrTheDevices) {
  config_.addresses = {IpAddress::v4(0x0a090909)};
  transports_[0] = std::move(*Transport::open(config_, now_, *kernels_[0]));
  const Endpoint there{kernels_[1]->address(), kPort};
  EXPECT_FALSE(left().connect({}, there, near_, now_).has_value());
  const auto stream = left().connect({kernels_[0]->address(), 0}, there, near_, now_);
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ((*stream)->local().address, kernels_[0]->address());
  near_.stream = *stream;
  acceptor_.next.push_back(&far_);
  EXPECT_TRUE(run_until([&] { return near_.is_established && far_.is_established; }));
}

// Each connection costs as much as the one before, and there is nothing beside them.
TEST_F(OnKernel, MemoryIsToldByTheConnection) {
  const auto octets = [&](uint32_t connections) {
    config_.max_connections = connections;
    uint64_t sum = 0;
    for (const base::MemoryUse& use : Transport::memory_use(config_)) sum += use.octets;
    return sum;
  };
  for (const uint32_t n : {1u, 64u, 10'000u}) EXPECT_EQ(octets(2 * n), 2 * octets(n)) << n;
  EXPECT_GE(octets(1), 7 * sizeof(base::Handle) + sizeof(Connection));
}

/// A system on which each segment that is asked for has another size.
class ShiftingPath : public OnKernel {
 protected:
  ShiftingPath() {
    plan_.mss = 1111;
    plan_.new_mss = 1;
  }
};

// EMSS is what TCP_MAXSEG says, at the beginning and when records are asked for some time later.
TEST_F(ShiftingPath, EmssFollowsIt) {
  connect(near_, far_);
  EXPECT_EQ(left().counters().emss_unknown, 0u);
  EXPECT_EQ(right().counters().emss_unknown, 0u);
  for (int i = 0; i < 50; ++i) {
    near_.queue(88);
    now_ += KnownEmss::kAskedAgain;
    turns(3);
    if (near_.changed_emss != 0) {
      EXPECT_EQ(near_.changed_emss, near_.stream->emss());
    }
  }
  EXPECT_GT(left().counters().emss_changes, 10u);
}

// What the system lacks now it may have later: the connection waits in the backlog. Any other error
// is that of one connection.
TEST_F(OnKernel, EachScarcityDefersAnAccept) {
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EPROTO, EPERM}) {
    Refusing system(*kernels_[1]);
    transports_[1] = std::move(*Transport::open(config_, now_, system));
    ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
    RecordUser near{1, 2};
    RecordUser far{2, 1};
    system.accept_error = error;
    near.stream = *left().connect({}, {kernels_[1]->address(), kPort}, near, now_);
    const auto refused = [&] {
      return right().counters().accepts_deferred + right().counters().accept_errors;
    };
    ASSERT_TRUE(run_until([&] { return refused() != 0; })) << error;
    const bool scarce = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    EXPECT_EQ(right().counters().accept_errors == 0, scarce) << error;
    EXPECT_EQ(right().counters().accepts_deferred != 0, scarce) << error;
    system.accept_error = 0;
    acceptor_.next.push_back(&far);
    EXPECT_TRUE(run_until([&] { return far.is_established; })) << error;
    near.stream->abort();
    ASSERT_TRUE(run_until([&] { return far.how_ended.has_value(); }));
    transports_[1].reset();
  }
}

// An error that the driver does not know is counted and told, and ends the connection as any other.
TEST_F(OnKernel, UnknownErrorsAreCounted) {
  Refusing system(*kernels_[0]);
  transports_[0] = std::move(*Transport::open(config_, now_, system));
  for (const int error : {ECONNRESET, EIO}) {
    RecordUser near{1, 2};
    RecordUser far{2, 1};
    connect(near, far);
    test::Logged log;
    system.send_error = error;
    near.queue(100);
    ASSERT_TRUE(run_until([&] { return near.how_ended && far.how_ended; })) << error;
    const std::string said = log.take();
    EXPECT_EQ(said.find("Input/output error") != std::string::npos, error == EIO) << said;
    EXPECT_EQ(left().counters().errors, error == EIO ? 1u : 0u);
    system.send_error = 0;
  }
  transports_[0].reset();
}

// What cannot be written any more ends a connection although octets of its peer are there for which
// its user has no room: none of them is handed up, and nobody waits for room.
TEST_F(OnRefusing, AWriteErrorDoesNotWaitForRoom) {
  Refusing& system = refuse(0);
  connect(near_, far_);
  near_.room = 0;
  far_.queue(100);
  ASSERT_TRUE(run_until([&] { return left().counters().receive_waits == 1; }));
  system.send_error = EPIPE;
  near_.queue(100);
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(near_.ordered_to, 0u);
  EXPECT_EQ(left().counters().errors, 0u);
}

// The same where its user looks at what came, and takes nothing.
TEST_F(OnRefusing, AWriteErrorDoesNotWaitForSpace) {
  Refusing& system = refuse(0);
  Waiting waiting{1, 2};
  connect(waiting, far_);
  far_.queue(100);
  ASSERT_TRUE(run_until([&] { return left().counters().receive_waits == 1; }));
  const uint32_t asked = waiting.asked;
  system.send_error = EHOSTUNREACH;
  waiting.queue(100);
  ASSERT_TRUE(run_until([&] { return waiting.how_ended.has_value(); }));
  EXPECT_EQ(waiting.how_ended, StreamEnd::Unreachable);
  EXPECT_EQ(waiting.asked, asked + 1) << "the user had the last chance to take it";
  EXPECT_EQ(waiting.ordered_to, 0u);
}

// While octets in front of the FIN are not acknowledged the close is not late: user_timeout watches
// over them.
TEST_F(OnRefusing, ACloseIsNotLateWhileOctetsAreOnTheirWay) {
  Refusing& system = refuse(0);
  connect(near_, far_);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  system.outstanding = 2;  // the FIN counts as one
  now_ += config_.close_timeout;
  turns(10);
  EXPECT_FALSE(near_.how_ended);
  EXPECT_GT(left().next_deadline(), now_ + config_.close_timeout / 2) << "it looks again later";
  EXPECT_LE(left().next_deadline(), now_ + config_.close_timeout);
  system.outstanding = 1;
  now_ += config_.close_timeout + std::chrono::milliseconds(1);
  turns(10);
  EXPECT_EQ(near_.how_ended, StreamEnd::TimedOut);
}

// A system without IPv6 has IPv4 for whoever listens at every address, and nothing for one of IPv6.
TEST_F(OnRefusing, WithoutIpv6) {
  Refusing& system = refuse(1);
  system.has_ipv6 = false;
  const auto refused = right().listen({IpAddress{0xfd00000000000000, 9}, kPort}, acceptor_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
  EXPECT_EQ(system.bound, AF_INET);
  connect(near_, far_);
}

TEST_F(OnRefusing, NoMoreListenersThanTheLimit) {
  config_.max_listeners = 2;
  refuse(1);
  ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
  ASSERT_TRUE(right().listen({{}, kPort + 1}, acceptor_).has_value());
  const auto refused = right().listen({{}, kPort + 2}, acceptor_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(refused.error().message, "no listener left: raise tcp.max_listeners (now 2)");
  ASSERT_TRUE(right().unlisten({{}, kPort}).has_value());
  EXPECT_TRUE(right().listen({{}, kPort + 2}, acceptor_).has_value());
}

// What cannot be watched is given up, and leaves no descriptor behind.
TEST_F(OnRefusing, WhatCannotBeWatchedIsGivenUp) {
  Refusing& system = refuse(1);
  system.watch_error = ENOSPC;
  const size_t before = kernels_[1]->open_descriptors();
  const auto listening = right().listen({{}, kPort}, acceptor_);
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, ErrorCode::Environment);
  EXPECT_TRUE(listening.error().message.starts_with("listen: ")) << listening.error().message;
  EXPECT_EQ(kernels_[1]->open_descriptors(), before);
  system.watch_error = 0;
  ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
  system.watch_error = ENOSPC;
  acceptor_.next.push_back(&far_);
  near_.stream = *left().connect({}, there(), near_, now_);
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::PeerReset) << "no orderly end";
  EXPECT_EQ(far_.how_ended, StreamEnd::Aborted);
  EXPECT_FALSE(far_.is_established);
  EXPECT_EQ(right().counters().accepts, 1u);
  EXPECT_EQ(right().counters().aborted, 1u);
  EXPECT_EQ(kernels_[1]->open_descriptors(), before + 1) << "the listener's";

  RecordUser active{1, 2};
  active.stream = *right().connect({}, {kernels_[0]->address(), 9}, active, now_);
  turn();
  EXPECT_EQ(active.how_ended, StreamEnd::Aborted);
  EXPECT_TRUE(right().quiescent());
}

// A connection for which there is no memory is refused; its place is there for the next one.
TEST_F(OnRefusing, AConnectionForWhichThereIsNoMemoryIsRefused) {
  config_.max_connections = 1;
  Refusing& system = refuse(1);
  ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
  system.has_memory = false;
  near_.stream = *left().connect({}, there(), near_, now_);
  ASSERT_TRUE(run_until([&] { return right().counters().accepts_refused == 1; }));
  EXPECT_EQ(acceptor_.accepted, 0u) << "the device is not asked";
  EXPECT_TRUE(right().quiescent());
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::PeerReset) << "as everybody is who is refused";
  system.has_memory = true;
  RecordUser near{1, 2};
  connect(near, far_);
}

// connect() says at once what it knows: nobody listens is an end like that of a later answer, all
// else is an error of the call.
TEST_F(OnRefusing, WhatConnectSaysAtOnce) {
  Refusing& system = refuse(0);
  system.connect_error = ECONNREFUSED;
  const auto stream = left().connect({}, there(), near_, now_);
  ASSERT_TRUE(stream);
  EXPECT_FALSE(near_.how_ended) << "not inside of the call";
  turn();
  EXPECT_EQ(near_.how_ended, StreamEnd::Refused);
  EXPECT_EQ(left().counters().refused, 1u);
  system.connect_error = ENETUNREACH;
  const auto failed = left().connect({}, there(), near_, now_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::Unreachable);
  EXPECT_TRUE(failed.error().message.starts_with("connect to 10.0.0.2:7000: "))
      << failed.error().message;
  EXPECT_TRUE(left().quiescent());
}

// Where TCP_MAXSEG says nothing TCP_INFO is asked.
TEST_F(OnRefusing, TcpInfoTellsEmss) {
  refuse(0).info_mss = 1234;
  connect(near_, far_);
  EXPECT_EQ(near_.established_emss, 1234u);
  EXPECT_EQ(left().counters().emss_unknown, 0u);
}

/// Keeps what it is told.
class Sink final : public base::TraceSink {
 public:
  void record(TraceKind kind, base::Range range, base::Now) override {
    ranges[kind].push_back(range);
  }
  std::map<TraceKind, std::vector<base::Range>> ranges;
};

// A trace shows each record that the system has taken, and how far the peer's stream has come.
TEST_F(OnKernel, ATraceShowsRecordsAndDeliveries) {
  connect(near_, far_);
  Sink sent, received;
  near_.stream->set_trace(&sent);
  far_.stream->set_trace(&received);
  EXPECT_EQ(near_.stream->trace(), &sent);
  for (const uint32_t length : {100u, 700u, 33u}) near_.queue(length);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 833; }));
  using Ranges = std::vector<base::Range>;
  EXPECT_EQ(sent.ranges[TraceKind::Sent], (Ranges{{0, 100}, {100, 800}, {800, 833}}));
  ASSERT_FALSE(received.ranges[TraceKind::Delivered].empty());
  EXPECT_EQ(received.ranges[TraceKind::Delivered].back(), (base::Range{0, 833}));
  near_.stream->set_trace(nullptr);
  far_.stream->set_trace(nullptr);
}

}  // namespace
}  // namespace rnic::socket
