// What one connection, or one listener, has its own way: start-up policy, source, time-out, cancel,
// backlog, fall-back.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;

class Connecting : public DevicePair {
 protected:
  Status connect(QueuePair& qp, const ConnectOptions& options = {}, uint16_t port = kPort) {
    return left().device->connect(qp, right_end(port), {}, now_, options);
  }
  std::optional<event::ConnectRequest> request() {
    run_until([&] { return right().has<event::ConnectRequest>(); });
    return right().take<event::ConnectRequest>();
  }
  std::optional<event::ConnectFailed> failure() {
    run_until([&] { return left().has<event::ConnectFailed>(); });
    return left().take<event::ConnectFailed>();
  }
  struct Ends {
    QueuePair* near = nullptr;
    QueuePair* far = nullptr;
    std::optional<event::Established> told_near, told_far;
  };
  /// A connection to a listener of the right device, and what is told of it.
  Ends establish(const ConnectOptions& options = {}, uint16_t port = kPort) {
    Ends ends{left().make_qp(), right().make_qp(), {}, {}};
    EXPECT_TRUE(connect(*ends.near, options, port).has_value());
    const auto asked = request();
    if (!asked) return ends;
    EXPECT_TRUE(right().device->accept(asked->request, *ends.far, {}, now_).has_value());
    run_until(
        [&] { return left().has<event::Established>() && right().has<event::Established>(); });
    ends.told_near = left().take<event::Established>();
    ends.told_far = right().take<event::Established>();
    return ends;
  }
  void listen(uint16_t port, const ListenOptions& options) {
    const auto done = right().device->listen(Endpoint{{}, port}, options);
    EXPECT_TRUE(done.has_value()) << done.error().message;
  }
  /// Sends one message; \return whether the peer's receive has completed.
  bool one_message(Host& from, QueuePair* sender, Host& to, QueuePair* receiver) {
    std::vector<uint8_t> source = octets(100, 1), sink(100);
    const mem::Stag a = from.add(source, sender->spec().pd, Access::LocalWrite);
    const mem::Stag b = to.add(sink, receiver->spec().pd, Access::LocalWrite);
    EXPECT_EQ(receiver->post_receive(receive(1, sink, b, 100)), PostResult::Ok);
    EXPECT_EQ(sender->post_send(work(Opcode::Send, 2, source, a, 100)), PostResult::Ok);
    run_until([&] { return sink == source; });
    return sink == source && !to.completions(receiver->spec().receive_cq).empty();
  }
};

// --- who asks whom ---

TEST_F(Connecting, ARequestNamesTheListenerWhosePortWasChosen) {
  const auto listening = right().device->listen(right_end(0));
  ASSERT_TRUE(listening.has_value());
  QueuePair* qp = left().make_qp();
  ASSERT_TRUE(connect(*qp, {}, listening->port).has_value());
  const auto asked = request();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->listener, *listening);
  EXPECT_TRUE(right().device->unlisten(*listening).has_value());
}

TEST_F(Connecting, ARequestNamesItsListenerAndBothEnds_CM_02) {
  const Endpoint one{right_end().address, 100};
  ASSERT_TRUE(right().device->listen(one).has_value());
  for (const uint16_t port : {kPort, uint16_t{100}}) {
    QueuePair* qp = left().make_qp();
    ASSERT_TRUE(connect(*qp, {.ird = 3, .ord = 2}, port).has_value());
    const auto asked = request();
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->listener, port == 100 ? one : (Endpoint{{}, kPort}));
    EXPECT_EQ(asked->local, right_end(port));
    EXPECT_EQ(asked->remote.address, left().device->config().net.address);
    EXPECT_NE(asked->remote.port, 0);
    EXPECT_EQ(asked->facts.peer_ird, 3u);
    EXPECT_EQ(asked->facts.peer_ord, 2u);
    ASSERT_TRUE(right().device->reject(asked->request, {}, now_).has_value());
  }
}

TEST_F(Connecting, AQueuePairKnowsBothEnds) {
  QueuePair* idle = left().make_qp();
  EXPECT_FALSE(left().device->info(*idle, now_).connected);
  const Ends ends = establish();
  ASSERT_TRUE(ends.told_near && ends.told_far);
  const QueuePairInfo near = left().device->info(*ends.near, now_);
  const QueuePairInfo far = right().device->info(*ends.far, now_);
  ASSERT_TRUE(near.connected && far.connected);
  EXPECT_EQ(near.local, ends.told_near->local);
  EXPECT_EQ(near.remote, right_end());
  EXPECT_EQ(far.local, right_end());
  EXPECT_EQ(far.remote, near.local);
}

// --- where from ---

TEST_F(Connecting, FromAChosenAddressAndPort) {
  const Endpoint source{left().device->config().net.address, 5555};
  QueuePair* qp = left().make_qp();
  ASSERT_TRUE(connect(*qp, {.source = source}).has_value());
  const auto asked = request();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->remote, source);
  const Status twice = connect(*left().make_qp(), {.source = source});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, ErrorCode::AlreadyExists);
  ASSERT_TRUE(connect(*left().make_qp(), {.source = {{}, 5556}}).has_value());
  EXPECT_EQ(request()->remote, (Endpoint{source.address, 5556}));
}

TEST_F(Connecting, FromNoAddressOfItsOwn) {
  for (const IpAddress& foreign :
       {right_end().address, IpAddress(0xfd00'0000'0000'0000, 7), IpAddress::v4(0xe0000001)}) {
    const Status refused = connect(*left().make_qp(), {.source = {foreign, 0}});
    ASSERT_FALSE(refused.has_value()) << to_string(foreign);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(refused.error().message.find("this device"), std::string::npos);
  }
  EXPECT_EQ(left().device->live_connections(), 0u);
}

// --- for how long ---

TEST_F(Connecting, ATimeOutOfItsOwn) {
  const base::Now begun = now_;
  ASSERT_TRUE(connect(*left().make_qp(), {.start = {.timeout = milliseconds(700)}}).has_value());
  ASSERT_TRUE(request());  // and nobody answers it
  const auto failed = failure();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->end, StreamEnd::TimedOut);
  EXPECT_NEAR(std::chrono::duration<double>(now_ - begun).count(), 0.7, 0.01);
  EXPECT_EQ(left().device->device_counters().connects_redialed, 0u);
}

TEST_F(Connecting, AListenersTimeOutIsItsOwn) {
  listen(100, {.start = {.timeout = milliseconds(300)}});
  ASSERT_TRUE(connect(*left().make_qp(), {.start = {.timeout = milliseconds(10'000)}}, 100));
  ASSERT_TRUE(request());
  const base::Now asked = now_;
  ASSERT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  EXPECT_NEAR(std::chrono::duration<double>(now_ - asked).count(), 0.3, 0.01);
}

TEST_F(Connecting, CancelledBeforeTcpAnswers) {
  QueuePair* qp = left().make_qp();
  EXPECT_EQ(left().device->cancel_connect(*qp).error().code, ErrorCode::WrongState);
  ASSERT_TRUE(connect(*qp).has_value());
  ASSERT_TRUE(left().device->cancel_connect(*qp).has_value());
  const auto failed = failure();
  ASSERT_TRUE(failed);
  EXPECT_NE(failed->detail.find("cancelled"), std::string::npos) << failed->detail;
  EXPECT_EQ(failed->qp, qp->number());
  EXPECT_EQ(left().device->cancel_connect(*qp).error().code, ErrorCode::WrongState);
  run_for(milliseconds(100));
  EXPECT_FALSE(left().has<event::ConnectFailed>());
  // Another attempt of the same queue pair.
  ASSERT_TRUE(left().device->modify_qp(*qp, {.state = QueuePairState::Idle}, now_).has_value());
  ASSERT_TRUE(connect(*qp).has_value());
  EXPECT_TRUE(request());
}

// The peer's request goes with it, and there is no second attempt.
TEST_F(Connecting, CancelledBeforeTheReply) {
  QueuePair* qp = left().make_qp();
  ASSERT_TRUE(connect(*qp).has_value());
  ASSERT_TRUE(request());
  ASSERT_TRUE(left().device->cancel_connect(*qp).has_value());
  ASSERT_TRUE(failure());
  EXPECT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  EXPECT_EQ(left().device->device_counters().connects_redialed, 0u);
  expect_all_returned();
}

TEST_F(Connecting, AConnectionIsNotCancelled) {
  const Ends ends = establish();
  ASSERT_TRUE(ends.told_near);
  EXPECT_EQ(left().device->cancel_connect(*ends.near).error().code, ErrorCode::WrongState);
  EXPECT_EQ(right().device->cancel_connect(*ends.far).error().code, ErrorCode::WrongState);
  EXPECT_TRUE(one_message(left(), ends.near, right(), ends.far));
}

// --- how many ---

TEST_F(Connecting, ABacklogIsTheListenersOwn) {
  listen(100, {.backlog = 2});
  std::vector<event::ConnectRequest> asked;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(connect(*left().make_qp(), {.start = {.fall_back = false}}, 100).has_value());
    asked.push_back(request().value());
  }
  QueuePair* third = left().make_qp();
  ASSERT_TRUE(connect(*third, {.start = {.fall_back = false}}, 100).has_value());
  ASSERT_TRUE(failure());
  const DeviceCounters& counters = right().device->device_counters();
  EXPECT_EQ(counters.requests_beyond_backlog, 1u);
  EXPECT_EQ(counters.requests_refused, 0u);
  EXPECT_FALSE(right().has<event::ConnectRequest>());
  // Another listener has its own, and an answer makes room.
  ASSERT_TRUE(connect(*left().make_qp()).has_value());
  ASSERT_TRUE(request());
  ASSERT_TRUE(right().device->reject(asked[0].request, {}, now_).has_value());
  ASSERT_TRUE(connect(*left().make_qp(), {}, 100).has_value());
  EXPECT_TRUE(request());
  // So does one that was given up, and a listener that comes anew begins at 0.
  ASSERT_TRUE(right().device->unlisten({{}, 100}).has_value());
  listen(100, {.backlog = 1});
  ASSERT_TRUE(right().device->reject(asked[1].request, {}, now_).has_value());
  ASSERT_TRUE(connect(*left().make_qp(), {}, 100).has_value());
  EXPECT_TRUE(request());
  EXPECT_EQ(counters.requests_beyond_backlog, 1u);
}

// --- policies ---

// One program speaks to peers of each kind at once: each listener stands for one.
TEST_F(Connecting, PeersOfEachKindAtOnce) {
  listen(100, {.start = {.revision = 0}});                // the draft's profile
  listen(101, {.start = {.revision = 1}});                // as siw has it
  listen(102, {.start = {.revision = 2, .crc = false}});  // of today, on a safe path
  listen(103, {.start = {.markers_receive = true}});      // wants markers
  listen(104, {.framing = Framing::Tuf, .start = {.timeout = milliseconds(500)}});
  const auto met = [&](uint16_t port, const ConnectOptions& options) {
    Ends ends = establish(options, port);
    EXPECT_TRUE(ends.told_near && ends.told_far) << port;
    if (!ends.told_near || !ends.told_far) return ConnectionFacts{};
    EXPECT_TRUE(one_message(left(), ends.near, right(), ends.far)) << port;
    EXPECT_TRUE(one_message(right(), ends.far, left(), ends.near)) << port;
    return ends.told_near->facts;
  };
  EXPECT_EQ(met(100, {.start = {.revision = 0}}).revision, 0);
  EXPECT_EQ(met(101, {.start = {.revision = 1}}).revision, 1);
  const ConnectionFacts bare = met(102, {.start = {.crc = false}});
  EXPECT_EQ(bare.revision, 2);
  EXPECT_FALSE(bare.crc);
  EXPECT_TRUE(met(102, {}).crc) << "one side's wish is enough";
  EXPECT_TRUE(met(103, {}).markers_send);
  EXPECT_FALSE(met(kPort, {}).markers_send);
  EXPECT_TRUE(met(kPort, {.start = {.markers_receive = true}}).markers_receive);
  met(104, {.framing = Framing::Tuf});
}

TEST_F(Connecting, MarkersAreRefusedByOneListener) {
  listen(100, {.start = {.markers_send = false}});
  ASSERT_TRUE(
      connect(*left().make_qp(), {.start = {.markers_receive = true, .fall_back = false}}, 100)
          .has_value());
  EXPECT_TRUE(failure());
  EXPECT_TRUE(establish({.start = {.markers_receive = true}}).told_near);
}

TEST_F(Connecting, EachRtrOfAListener_CM6581_9_2_04) {
  constexpr RtrKinds kKinds[] = {{true, false, false}, {false, true, false}, {false, false, true}};
  constexpr Rtr kTold[] = {Rtr::Send, Rtr::Write, Rtr::Read};
  for (uint16_t i = 0; i < 3; ++i) {
    const auto port = static_cast<uint16_t>(100 + i);
    listen(port, {.start = {.rtr = kKinds[i]}});
    const Ends ends = establish({.peer_to_peer = true}, port);
    ASSERT_TRUE(ends.told_near);
    EXPECT_EQ(ends.told_near->facts.rtr, kTold[i]);
  }
}

TEST_F(Connecting, TheFirstFpduIsDelayedOnOneConnection) {
  const Ends late = establish({.start = {.first_fpdu_delay = milliseconds(50)}});
  ASSERT_TRUE(late.told_near);
  const base::Now begun = now_;
  ASSERT_TRUE(one_message(left(), late.near, right(), late.far));
  EXPECT_GT(now_ - begun, milliseconds(45));
  const Ends prompt = establish();
  const base::Now again = now_;
  ASSERT_TRUE(one_message(left(), prompt.near, right(), prompt.far));
  EXPECT_LT(now_ - again, milliseconds(5));
}

TEST_F(Connecting, PoliciesThatCanNeverBeAreRefused) {
  const std::vector<StartPolicy> wrong{
      {.revision = 3},
      {.rtr = RtrKinds{false, false, false}},
      {.first_fpdu_delay = milliseconds(-1)},
      {.first_fpdu_delay = milliseconds(60'001)},
      {.timeout = milliseconds(9)},
      {.timeout = milliseconds(3'600'001)},
      {.rtr_timeout = milliseconds(0)},
      {.rtr_timeout = milliseconds(3'600'001)},
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    const Status dialled = connect(*left().make_qp(1, 4), {.start = wrong[i]});
    ASSERT_FALSE(dialled.has_value()) << i;
    EXPECT_EQ(dialled.error().code, ErrorCode::InvalidArgument) << i;
    const auto heard = right().device->listen(Endpoint{{}, 100}, {.start = wrong[i]});
    ASSERT_FALSE(heard.has_value()) << i;
    EXPECT_EQ(heard.error().code, ErrorCode::InvalidArgument) << i;
  }
  EXPECT_FALSE(right().device->listen(Endpoint{{}, 100}, {.backlog = 0}).has_value());
  const ListenOptions mixed{.framing = Framing::Tuf, .start = {.crc = true}};
  EXPECT_FALSE(right().device->listen(Endpoint{{}, 100}, mixed).has_value());
  EXPECT_TRUE(right().device->listen(Endpoint{{}, 100}).has_value()) << "nothing was left behind";
}

// --- an older peer ---

// RFC 6581 s.10: revision 1 has no RTR, so that the application has to allow it.
TEST_F(Connecting, PeerToPeerFallsBackWhereItMay_BUG_18_CM6581_10_02) {
  listen(100, {.start = {.revision = 1}});
  const Ends ends = establish({.start = {.fall_back = true}, .peer_to_peer = true}, 100);
  ASSERT_TRUE(ends.told_near && ends.told_far);
  EXPECT_EQ(ends.told_near->facts.revision, 1);
  EXPECT_TRUE(ends.told_near->facts.fell_back);
  EXPECT_FALSE(ends.told_near->facts.peer_to_peer);
  EXPECT_FALSE(ends.told_far->facts.fell_back);
  EXPECT_EQ(left().device->device_counters().connects_redialed, 1u);
  EXPECT_TRUE(one_message(left(), ends.near, right(), ends.far));
  const Ends first = establish({.start = {.fall_back = true}, .peer_to_peer = true});
  ASSERT_TRUE(first.told_near);
  EXPECT_EQ(first.told_near->facts.revision, 2);
  EXPECT_FALSE(first.told_near->facts.fell_back);
}

TEST_F(Connecting, NoFallBackWhereItMayNot_BUG_18) {
  listen(100, {.start = {.revision = 1}});
  ASSERT_TRUE(connect(*left().make_qp(), {.start = {.fall_back = false}}, 100).has_value());
  EXPECT_TRUE(failure());
  EXPECT_EQ(left().device->device_counters().connects_redialed, 0u);
}

// The second attempt keeps the address that was chosen, and what else the policy says.
TEST_F(Connecting, AFallBackKeepsWhatWasChosen) {
  listen(100, {.start = {.revision = 1}});
  const Endpoint source{left().device->config().net.address, 6000};
  QueuePair* qp = left().make_qp();
  const base::Now begun = now_;
  const ConnectOptions options{.start = {.timeout = milliseconds(400)}, .source = source};
  ASSERT_TRUE(connect(*qp, options, 100).has_value());
  const auto asked = request();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->facts.revision, 1);
  EXPECT_EQ(asked->remote.address, source.address);
  EXPECT_NE(asked->remote.port, source.port);
  ASSERT_TRUE(failure());
  EXPECT_LT(now_ - begun, milliseconds(900));
}

// --- the peer's first FPDU (RFC 5044 s.7.1.2 rule 4) ---

class FirstFpdu : public Connecting {
 protected:
  FirstFpdu() {
    listen(100, {.start = {.revision = 1, .rtr_timeout = milliseconds(80)}});
    ends_ = establish({.start = {.revision = 1}}, 100);
    source_ = octets(50, 3);
    stag_ = right().add(source_, ends_.far->spec().pd, Access::LocalWrite);
  }
  void post() {
    EXPECT_EQ(ends_.far->post_send(work(Opcode::Send, 9, source_, stag_, 50)), PostResult::Ok);
  }

  Ends ends_;
  std::vector<uint8_t> source_;
  mem::Stag stag_;
};

TEST_F(FirstFpdu, ARequestThatWaitsForItTooLongIsTold) {
  run_for(milliseconds(500));
  EXPECT_FALSE(right().has<event::FirstFpduOverdue>()) << "nothing waits";
  const base::Now posted = now_;
  post();
  base::Now turned{};  // the turn that tells of it; time has gone on behind it
  ASSERT_TRUE(run_until([&] {
    if (right().has<event::FirstFpduOverdue>()) return true;
    turned = now_;
    return false;
  }));
  EXPECT_NEAR(std::chrono::duration<double>(turned - posted).count(), 0.08, 0.005);
  const auto told = right().take<event::FirstFpduOverdue>();
  EXPECT_EQ(told->qp, ends_.far->number());
  EXPECT_EQ(told->local, right_end(100));
  EXPECT_NE(told->detail.find("first FPDU"), std::string::npos);
  post();
  run_for(milliseconds(500));
  EXPECT_FALSE(right().has<event::FirstFpduOverdue>()) << "it is told once";
  EXPECT_EQ(right().device->device_counters().first_fpdus_overdue, 1u);
  // Nothing has ended.
  std::vector<uint8_t> sink(50);
  const mem::Stag stag = left().add(sink, ends_.near->spec().pd, Access::LocalWrite);
  ASSERT_EQ(ends_.near->post_receive(receive(1, sink, stag, 50)), PostResult::Ok);
  ASSERT_EQ(ends_.near->post_receive(receive(2, sink, stag, 50)), PostResult::Ok);
  EXPECT_TRUE(one_message(left(), ends_.near, right(), ends_.far));
  EXPECT_TRUE(run_until([&] { return sink == source_; }));
}

TEST_F(FirstFpdu, OneThatComesInTimeIsNot) {
  std::vector<uint8_t> sink(50);
  const mem::Stag stag = left().add(sink, ends_.near->spec().pd, Access::LocalWrite);
  ASSERT_EQ(ends_.near->post_receive(receive(1, sink, stag, 50)), PostResult::Ok);
  post();
  run_for(milliseconds(40));
  EXPECT_TRUE(one_message(left(), ends_.near, right(), ends_.far));
  run_for(milliseconds(500));
  EXPECT_FALSE(right().has<event::FirstFpduOverdue>());
  EXPECT_EQ(sink, source_);
}

}  // namespace
}  // namespace rnic::device
