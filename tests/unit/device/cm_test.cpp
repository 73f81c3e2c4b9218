// Connection management at its corners: errors of the start-up as the peer reads them and as the
// application is told, roles that do not fit, requests that are gone, both ends at once.

#include <set>

#include "stream_pair.hpp"
#include "support/logged.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::device {
namespace {

using test::Logged;

/// Connects that were told of their end, one way or another.
size_t outcomes(Host& host) {
  return host.count<event::Established>() + host.count<event::Rejected>() +
         host.count<event::ConnectFailed>();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The left device has a Send as its only kind of RTR and sends no markers.
class StartErrors : public Streams {
 protected:
  StartErrors()
      : Streams([](DeviceConfig& config) {
          if (config.name == "right") return;
          config.mpa.rtr_write = config.mpa.rtr_read = false;
          config.mpa.markers_send_allowed = false;
        }) {}

  static std::vector<uint8_t> reply(uint8_t flags, uint16_t first, uint16_t second) {
    constexpr char kKey[] = "MPA ID Rep Frame";
    std::vector<uint8_t> out(kKey, kKey + 16);
    out.insert(out.end(),
               {flags, 2, 0, 4, static_cast<uint8_t>(first >> 8), static_cast<uint8_t>(first),
                static_cast<uint8_t>(second >> 8), static_cast<uint8_t>(second)});
    return out;
  }
  struct Case {
    const char* what;
    std::vector<uint8_t> bad;
    uint8_t code;
    const char* named;
    size_t markers;  // octets in front of the FPDU
    std::vector<uint8_t> good;
  };
  QueuePair* make_qp() {
    QueuePairSpec spec;
    spec.pd = *left().device->alloc_pd();
    spec.send_cq = spec.receive_cq = *left().device->create_cq(64);
    spec.ird = spec.ord = 4;
    return *left().device->create_qp(spec);
  }
  /// The left device asks for peer to peer, and its Request has come.
  StreamSocket* request_of(QueuePair* qp, StreamListener* listener) {
    const ConnectOptions options{.peer_to_peer = true};
    EXPECT_TRUE(left().device->connect(*qp, right_end(kStreamPort), {}, now_, options).has_value());
    StreamSocket* peer = nullptr;
    EXPECT_TRUE(run_until([&] { return (peer = listener->next()) != nullptr; }));
    EXPECT_EQ(receive(right(), peer, 24).at(20) & 0xc0, 0xc0) << "A and B";
    return peer;
  }
  void expect_told(const Case& c, QueuePair* qp, const std::string& said) {
    ++failures_;
    const auto failed = left().take<event::ConnectFailed>();
    const auto told = left().take<event::TerminateSent>();
    ASSERT_TRUE(failed && told);
    EXPECT_EQ(failed->qp, qp->number());
    EXPECT_FALSE(failed->detail.empty());
    EXPECT_EQ(told->qp, qp->number());
    EXPECT_EQ(told->fault.layer, FaultLayer::Llp);
    EXPECT_EQ(told->fault.type, 0);
    EXPECT_EQ(told->fault.code, c.code);
    EXPECT_TRUE(has(told->detail, c.named)) << told->detail;
    EXPECT_TRUE(has(said, told->detail)) << said;
    EXPECT_TRUE(has(said, failed->detail)) << said;
    EXPECT_TRUE(has(said, to_string(right_end(kStreamPort)))) << said;
    EXPECT_EQ(left().device->mpa_counters().start_terminates, failures_);
    EXPECT_EQ(left().device->device_counters().connects_failed, failures_);
    EXPECT_EQ(left().device->rdmap_counters().faults_llp, failures_);
  }
  /// Length 22, the untagged header of queue 2, opcode 7, MSN 1; 2/0, the code, no headers.
  static void expect_on_the_wire(const Case& c, const std::vector<uint8_t>& heard) {
    ASSERT_EQ(heard.size(), c.markers + 28);
    const uint8_t* fpdu = heard.data() + c.markers;
    EXPECT_EQ(base::load_be32(heard.data()), c.markers != 0 ? 0u : 0x00164147u);
    EXPECT_EQ(base::load_be32(fpdu), 0x00164147u);
    EXPECT_EQ(base::load_be32(fpdu + 2 + 6), 2u);
    EXPECT_EQ(base::load_be32(fpdu + 2 + 10), 1u);
    EXPECT_EQ(base::load_be32(fpdu + 2 + 18), 0x20000000u | uint32_t{c.code} << 16);
  }
  void expect_flushed(QueuePair* qp) {
    const auto flushed = left().completions(qp->spec().receive_cq);
    ASSERT_EQ(flushed.size(), 1u);
    EXPECT_EQ(flushed[0].id, 77u);
    EXPECT_EQ(flushed[0].status, CompletionStatus::Flushed);
    EXPECT_EQ(qp->post_send({}), PostResult::Ok);
    run_for(std::chrono::milliseconds(1));
    EXPECT_EQ(left().completions(qp->spec().send_cq).at(0).status, CompletionStatus::Flushed);
  }

 private:
  uint64_t failures_ = 0;
};

// Each error of the start-up has its
// Terminate on the wire, one outcome, one TerminateSent with the same code, a line in the log and
// its counters. The nearest Reply that fits starts.
// UNH-MPA-1-18 UNH-MPA-1-19
TEST_F(StartErrors, OnTheWireAndToTheUser_CM6581_8_01_CM6581_9_1_06_CM6581_9_2_05_CM6581_9_3_01) {
  const Case kCases[] = {
      {"ORD above the IRD", reply(0x50, 0xc004, 5), 6, "insufficient IRD resources", 0,
       reply(0x50, 0xc004, 4)},
      {"another RTR", reply(0x50, 0x8004, 0x8004), 7, "no matching RTR option", 0,
       reply(0x50, 0xc004, 0x8004)},
      {"markers", reply(0xd0, 0xc004, 4), 5, "local catastrophic error", 4, reply(0x50, 0xc004, 4)},
  };
  auto listener = right().device->listen_stream({{}, kStreamPort}, 4, {});
  ASSERT_TRUE(listener.has_value());
  for (const Case& c : kCases) {
    for (const bool fits : {true, false}) {
      SCOPED_TRACE(std::string(c.what) + (fits ? ": fits" : ""));
      QueuePair* qp = make_qp();
      ASSERT_EQ(qp->post_receive({.id = 77}), PostResult::Ok);
      StreamSocket* peer = request_of(qp, *listener);
      ASSERT_NE(peer, nullptr);
      const uint64_t sent = left().device->rdmap_counters().terminates_out;
      Logged log;
      send(right(), peer, fits ? c.good : c.bad);
      ASSERT_TRUE(run_until([&] { return outcomes(left()) != 0; }));
      run_for(std::chrono::milliseconds(300));
      const std::string said = log.take();
      EXPECT_EQ(outcomes(left()), 1u);
      std::vector<uint8_t> heard(100);
      heard.resize(peer->take(heard));
      EXPECT_EQ(left().device->rdmap_counters().terminates_out, sent + (fits ? 0 : 1));
      if (fits) {
        EXPECT_TRUE(left().has<event::Established>());
        EXPECT_EQ(heard.size(), 24u) << "the RTR";
        EXPECT_EQ(said, "");
      } else {
        expect_told(c, qp, said);
        expect_on_the_wire(c, heard);
        expect_flushed(qp);
      }
      tell(right(), peer, StreamSocket::kAbort | StreamSocket::kRelease);
      run_for(std::chrono::milliseconds(100));
      EXPECT_TRUE(left().device->destroy_qp(qp).has_value());
      left().collect();
      left().events.clear();
    }
  }
  expect_nothing_left();
}

// A Request at fault reaches no application; the log says from whom, and what. A flood of
// them does not flood the log.
TEST_F(StartErrors, ARequestAtFaultIsLogged_MPA_8_06) {
  Logged log;
  for (uint32_t i = 0; i < 40; ++i) {
    auto socket = left().device->connect_stream(right_end(), {}, now_);
    ASSERT_TRUE(socket.has_value());
    ASSERT_TRUE(run_until([&] { return (*socket)->is_established(); }));
    send(left(), *socket, std::vector<uint8_t>(20, 'x'));
    ASSERT_TRUE(
        run_until([&] { return right().device->mpa_counters().start_bad_frames == i + 1; }));
    tell(left(), *socket, StreamSocket::kAbort | StreamSocket::kRelease);
    ASSERT_TRUE(run_until([&] { return left().device->streams().live() == 0; }));
  }
  const std::string said = log.take();
  EXPECT_TRUE(has(said, "right: start-up from 10.0.0.1:")) << said;
  EXPECT_TRUE(has(said, "does not speak MPA")) << said;
  EXPECT_LT(std::count(said.begin(), said.end(), '\n'), 15);
  EXPECT_GE(std::count(said.begin(), said.end(), '\n'), 10);
  EXPECT_EQ(right().device->mpa_counters().start_bad_frames, 40u);
  right().collect();
  EXPECT_EQ(right().count<event::RequestFailed>(), 40u);
  ASSERT_EQ(right().events.size(), 40u);
  while (const auto event = right().take<event::RequestFailed>()) {
    EXPECT_EQ(event->fault.value().layer, FaultLayer::Llp);
    EXPECT_EQ(event->fault.value().code, 4);
    EXPECT_TRUE(has(event->detail, "does not speak MPA")) << event->detail;
  }
}

/// Two streaming sockets of one connection, and a queue pair on either side.
class Roles : public Streams {
 protected:
  void SetUp() override {
    pair_ = connected(listen());
    a_ = left().make_qp();
    b_ = right().make_qp();
  }
  void expect_all_ends() {
    release(pair_);
    EXPECT_TRUE(left().device->destroy_qp(a_).has_value());
    EXPECT_TRUE(right().device->destroy_qp(b_).has_value());
    expect_nothing_left();
  }
  std::array<StreamSocket*, 2> pair_{};
  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
};

// Both applications connect over the connection that they have: two Requests cross.
// Each is told once that there are two initiators, no FPDU leaves, and TCP ends.
// UNH-MPA-1-22
TEST_F(Roles, TwoInitiatorsAreToldApart_MPA_7_1_2_10) {
  Logged log;
  ASSERT_TRUE(left().device->connect(*a_, *pair_[0], {}, now_).has_value());
  ASSERT_TRUE(right().device->connect(*b_, *pair_[1], {}, now_).has_value());
  ASSERT_EQ(a_->post_receive({.id = 1}), PostResult::Ok);
  ASSERT_TRUE(run_until([&] { return pair_[0]->how_ended() && pair_[1]->how_ended(); }));
  run_for(std::chrono::seconds(1));
  const std::string said = log.take();
  for (Host* host : {&left(), &right()}) {
    EXPECT_EQ(outcomes(*host), 1u);
    const auto failed = host->take<event::ConnectFailed>();
    ASSERT_TRUE(failed);
    EXPECT_TRUE(has(failed->detail, "both ends are initiators")) << failed->detail;
    EXPECT_TRUE(has(said, host->device->config().name + ": start-up towards")) << said;
    EXPECT_EQ(host->device->mpa_counters().start_bad_frames, 1u);
    EXPECT_EQ(host->device->mpa_counters().fpdus_out, 0u);
    EXPECT_EQ(host->device->rdmap_counters().terminates_out, 0u);
  }
  EXPECT_EQ(left().completions(a_->spec().receive_cq).size(), 1u);
  expect_all_ends();
}

// Both wait for a Request that nobody sends; both give up at their time.
TEST_F(Roles, TwoRespondersTimeOut_MPA_7_1_2_16) {
  Logged log;
  ASSERT_TRUE(left().device->await_rdma(*pair_[0], {}, now_).has_value());
  ASSERT_TRUE(right().device->await_rdma(*pair_[1], {}, now_).has_value());
  const base::Duration patience = left().device->config().mpa.start_timeout;
  run_for(patience - std::chrono::seconds(1));
  EXPECT_FALSE(pair_[0]->how_ended() || pair_[1]->how_ended());
  ASSERT_TRUE(run_until([&] { return pair_[0]->how_ended() && pair_[1]->how_ended(); }));
  const std::string said = log.take();
  // Of two timers of the same length one may close what the other waits for.
  const uint64_t timeouts =
      left().device->mpa_counters().start_timeouts + right().device->mpa_counters().start_timeouts;
  EXPECT_GE(timeouts, 1u);
  EXPECT_EQ(timeouts + left().device->mpa_counters().start_ends +
                right().device->mpa_counters().start_ends,
            2u);
  EXPECT_TRUE(has(said, "not finished in time")) << said;
  for (Host* host : {&left(), &right()}) {
    host->collect();
    EXPECT_EQ(host->count<event::RequestFailed>(), host->events.size());
    EXPECT_EQ(host->events.size(), 1u) << "no application was asked";
  }
  expect_all_ends();
}

// With last streaming messages each takes the other's for a Request, and sees at its first octet
// that it is none.
TEST_F(Roles, TwoRespondersWithLastMessages_MPA_7_1_5_02) {
  ASSERT_TRUE(left().device->await_rdma(*pair_[0], octets(50, 1), now_).has_value());
  ASSERT_TRUE(right().device->await_rdma(*pair_[1], octets(50, 9), now_).has_value());
  ASSERT_TRUE(run_until([&] { return pair_[0]->how_ended() && pair_[1]->how_ended(); },
                        std::chrono::seconds(5)));
  EXPECT_GE(left().device->mpa_counters().start_bad_frames +
                right().device->mpa_counters().start_bad_frames,
            1u);
  expect_all_ends();
}

class Requests : public DevicePair {
 protected:
  Requests()
      : DevicePair([](DeviceConfig& config) {
          config.tcp.time_wait = std::chrono::milliseconds(1);
          if (config.name == "right") config.mpa.start_timeout = std::chrono::seconds(5);
        }) {}
  event::ConnectRequest request_from(QueuePair* qp) {
    EXPECT_TRUE(left().device->connect(*qp, right_end(), {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    return *right().take<event::ConnectRequest>();
  }
};

// Every way in which a request can be gone; the answer fails, says so, and leaves the queue
// pair as it was. The same queue pair serves the next request.
TEST_F(Requests, AnswersToWhatIsGone_CM_02) {
  struct Case {
    const char* what;
    std::function<void(QueuePair*, const event::ConnectRequest&)> go;
  };
  QueuePair* other = right().make_qp();
  const Case kCases[] = {
      {"reset by the peer",
       [&](QueuePair* a, const event::ConnectRequest&) {
         EXPECT_TRUE(left().device->destroy_qp(a).has_value());
         EXPECT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
       }},
      {"given up by the peer",
       [&](QueuePair* a, const event::ConnectRequest&) {
         EXPECT_TRUE(left().device->disconnect(*a).has_value());
         EXPECT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
       }},
      {"timed out",
       [&](QueuePair*, const event::ConnectRequest&) {
         EXPECT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
       }},
      {"rejected",
       [&](QueuePair*, const event::ConnectRequest& e) {
         EXPECT_TRUE(right().device->reject(e.request, {}, now_).has_value());
       }},
      {"accepted",
       [&](QueuePair*, const event::ConnectRequest& e) {
         EXPECT_TRUE(right().device->accept(e.request, *other, {}, now_).has_value());
       }},
      {"accepted, and over",
       [&](QueuePair* a, const event::ConnectRequest& e) {
         QueuePair* b = right().make_qp();
         EXPECT_TRUE(right().device->accept(e.request, *b, {}, now_).has_value());
         EXPECT_TRUE(run_until([&] { return left().has<event::Established>(); }));
         EXPECT_TRUE(left().device->destroy_qp(a).has_value());
         EXPECT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
       }},
  };
  QueuePair* b = right().make_qp();
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    QueuePair* a = left().make_qp();
    const auto request = request_from(a);
    c.go(a, request);
    for (int again = 0; again < 2; ++again) {
      const auto accepted = right().device->accept(request.request, *b, {}, now_);
      const auto rejected = right().device->reject(request.request, {}, now_);
      ASSERT_FALSE(accepted.has_value() || rejected.has_value());
      EXPECT_EQ(accepted.error().code, ErrorCode::NotFound);
      EXPECT_EQ(rejected.error().code, ErrorCode::NotFound);
      EXPECT_TRUE(has(accepted.error().message, "gone or was answered"));
      run_for(std::chrono::milliseconds(100));
    }
    EXPECT_FALSE(b->used());
    EXPECT_LE(right().count<event::RequestWithdrawn>(), 1u);
    right().events.clear();
    left().collect();
    left().events.clear();
  }
  // A handle that never was.
  EXPECT_FALSE(right().device->accept(RequestHandle{}, *b, {}, now_).has_value());
  EXPECT_FALSE(right().device->reject(RequestHandle{}, {}, now_).has_value());
  const auto last = request_from(left().make_qp());
  ASSERT_TRUE(right().device->accept(last.request, *b, {}, now_).has_value());
  EXPECT_TRUE(run_until([&] { return right().has<event::Established>(); }));
}

// The peer's reset is in the port when the application accepts: the answer is taken, and one
// event tells how it ended.
TEST_F(Requests, AnAnswerThatCrossesAReset_CM_02) {
  for (const bool reset : {true, false}) {
    QueuePair* a = left().make_qp();
    QueuePair* b = right().make_qp();
    const auto request = request_from(a);
    if (reset) {
      ASSERT_TRUE(left().device->destroy_qp(a).has_value());
      left().device->poll(now_);
      now_ += std::chrono::milliseconds(1);
    }
    ASSERT_TRUE(right().device->accept(request.request, *b, {}, now_).has_value());
    run_for(std::chrono::seconds(20));
    EXPECT_EQ(right().count<event::Established>(), reset ? 0u : 1u);
    EXPECT_EQ(right().count<event::RequestWithdrawn>(), reset ? 1u : 0u);
    EXPECT_EQ(right().device->live_connections(), reset ? 0u : 1u);
    right().events.clear();
  }
}

// The listener goes while a request waits: it can be answered all the same.
TEST_F(Requests, TheListenerGoesFirst_CM_02) {
  QueuePair* a = left().make_qp();
  const auto request = request_from(a);
  ASSERT_TRUE(right().device->unlisten({{}, kPort}).has_value());
  ASSERT_TRUE(right().device->accept(request.request, *right().make_qp(), {}, now_).has_value());
  EXPECT_TRUE(run_until([&] { return left().has<event::Established>(); }));
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
}

// DDP-6.2.1-01: both disconnect at once with work outstanding both ways: what was posted
// before is carried out and completes once, what is posted behind is flushed, and both ends close.
TEST_F(Requests, BothDisconnectWithWorkOutstanding_CM_04) {
  for (const uint32_t size : {10u, 3000u, 60'000u}) {
    std::array<QueuePair*, 2> qps{left().make_qp(), right().make_qp()};
    connect(qps[0], qps[1]);
    std::array<std::vector<uint8_t>, 2> source{octets(size, 1), octets(size, 2)};
    std::array<std::vector<uint8_t>, 2> sink{std::vector<uint8_t>(size),
                                             std::vector<uint8_t>(size)};
    std::array<mem::Stag, 2> from, to;
    for (size_t i = 0; i < 2; ++i) {
      from[i] = hosts_[i]->add(source[i], qps[i]->spec().pd, {});
      to[i] = hosts_[i]->add(sink[i], qps[i]->spec().pd, Access::RemoteWrite);
      ASSERT_EQ(qps[i]->post_receive({.id = 50}), PostResult::Ok);
      ASSERT_EQ(qps[i]->post_receive({.id = 51}), PostResult::Ok);
    }
    for (size_t i = 0; i < 2; ++i) {
      auto write = work(Opcode::Write, 1, source[i], from[i], size);
      write.remote = {to[1 - i].value, reinterpret_cast<uint64_t>(sink[1 - i].data())};
      ASSERT_EQ(qps[i]->post_send(write), PostResult::Ok);
      ASSERT_EQ(qps[i]->post_send({.id = 2}), PostResult::Ok);  // an empty Send
      ASSERT_TRUE(hosts_[i]->device->disconnect(*qps[i]).has_value());
      ASSERT_EQ(qps[i]->post_send({.id = 3}), PostResult::Ok);
      ASSERT_TRUE(hosts_[i]->device->disconnect(*qps[i]).has_value()) << "again";
    }
    ASSERT_TRUE(run_until(
        [&] { return left().has<event::Disconnected>() && right().has<event::Disconnected>(); }));
    run_for(std::chrono::milliseconds(100));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(hosts_[i]->count<event::Disconnected>(), 1u);
      EXPECT_EQ(hosts_[i]->take<event::Disconnected>()->end, StreamEnd::Closed);
      const auto done = hosts_[i]->completions(qps[i]->spec().send_cq);
      ASSERT_EQ(done.size(), 3u);
      for (size_t n = 0; n < 3; ++n) {
        EXPECT_EQ(done[n].id, n + 1);
        EXPECT_EQ(done[n].status, n < 2 ? CompletionStatus::Success : CompletionStatus::Flushed);
      }
      const auto got = hosts_[i]->completions(qps[i]->spec().receive_cq);
      ASSERT_EQ(got.size(), 2u);
      EXPECT_EQ(got[0].status, CompletionStatus::Success);
      EXPECT_EQ(got[1].status, CompletionStatus::Flushed);
      EXPECT_EQ(sink[i], source[1 - i]);
      EXPECT_TRUE(hosts_[i]->device->destroy_qp(qps[i]).has_value());
      hosts_[i]->events.clear();
    }
  }
  expect_all_returned();
}

// One end disconnects, the other destroys its queue pair at the same moment.
TEST_F(Requests, OneDisconnectsAndOneDestroys_CM_04) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  connect(a, b);
  ASSERT_TRUE(left().device->disconnect(*a).has_value());
  ASSERT_TRUE(right().device->destroy_qp(b).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Disconnected>(); }));
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(left().count<event::Disconnected>(), 1u);
  right().collect();
  EXPECT_TRUE(right().events.empty());
  EXPECT_TRUE(left().device->destroy_qp(a).has_value());
  expect_all_returned();
}

// A queue pair that is destroyed under its connection is kept until the stream has ended, and no
// longer.
TEST_F(Requests, WhatWasDestroyedConnectedIsNotKept) {
  for (int i = 0; i < 3; ++i) {
    QueuePair* a = left().make_qp();
    QueuePair* b = right().make_qp();
    connect(a, b);
    ASSERT_TRUE(right().device->destroy_qp(b).has_value());
    EXPECT_FALSE(right().device->quiescent());
    ASSERT_TRUE(run_until([&] { return left().has<event::Disconnected>(); }));
    left().events.clear();
    ASSERT_TRUE(left().device->destroy_qp(a).has_value());
    run_for(std::chrono::seconds(1));
    EXPECT_TRUE(right().device->quiescent());
  }
  expect_all_returned();
}

/// The right device's application reads no events, and there is room for few.
class Unread : public Streams {
 protected:
  static constexpr uint32_t kEvents = 16;
  Unread()
      : Streams([](DeviceConfig& config) {
          if (config.name == "right") config.limits.max_events = kEvents;
        }) {}
};

// Start-ups that strangers spoil take at most a quarter of the room for events: a request that is
// in order is still told, and what was not told is counted.
TEST_F(Unread, StrangersLeaveRoomForRequests) {
  for (uint32_t i = 0; i < 2 * kEvents; ++i) {
    StreamSocket* stranger = *left().device->connect_stream(right_end(), {}, now_);
    ASSERT_TRUE(run_until([&] { return stranger->is_established(); }));
    send(left(), stranger, octets(64, 9));
    ASSERT_TRUE(run_until([&] { return stranger->how_ended().has_value(); })) << i;
    tell(left(), stranger, StreamSocket::kRelease);
    run_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(right().device->device_counters().connects_failed, 2 * kEvents);
  QueuePair* honest = left().make_qp();
  ASSERT_TRUE(left().device->connect(*honest, right_end(), {}, now_).has_value());
  run_for(std::chrono::milliseconds(10));
  EXPECT_EQ(right().device->device_counters().events_lost, 2 * kEvents - kEvents / 4);
  EXPECT_EQ(right().count<event::RequestFailed>(), kEvents / 4);
  EXPECT_EQ(right().count<event::ConnectRequest>(), 1u);
}

// RDMAP-6.2-01: an end inside an FPDU is no graceful one: code 2/0/01, told with
// Disconnected and in the log, counted; nothing of the FPDU completes. Behind an FPDU it is.
// UNH-MPA-2-14
TEST_F(StartErrors, AnEndInsideAnFpdu_MPA_8_01) {
  for (const bool inside : {true, false}) {
    QueuePair* b = right().make_qp();
    ASSERT_EQ(b->post_receive({.id = 5}), PostResult::Ok);
    auto socket = left().device->connect_stream(right_end(), {}, now_);
    ASSERT_TRUE(run_until([&] { return (*socket)->is_established(); }));
    constexpr char kKey[] = "MPA ID Req Frame";
    std::vector<uint8_t> request(kKey, kKey + 16);
    request.insert(request.end(), {0x40, 1, 0, 0});
    send(left(), *socket, request);
    ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto asked = right().take<event::ConnectRequest>();
    ASSERT_TRUE(right().device->accept(asked->request, *b, {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return right().has<event::Established>(); }));
    right().take<event::Established>();
    // The zero-length Send of MSN 1, its CRC as in the vectors of RFC 5044.
    std::vector<uint8_t> fpdu{0, 0x12, 0x41, 0x43, 0, 0, 0, 0, 0,    0,    0,    0,
                              0, 0,    0,    1,    0, 0, 0, 0, 0x58, 0x7b, 0xe8, 0xc4};
    if (inside) fpdu.pop_back();
    Logged log;
    send(left(), *socket, fpdu);
    tell(left(), *socket, StreamSocket::kFinish);
    if (!inside) {
      ASSERT_TRUE(run_until([&] { return right().has<event::PeerClosed>(); }));
      ASSERT_TRUE(right().device->disconnect(*b).has_value());
    }
    ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
    const std::string said = log.take();
    const auto end = right().take<event::Disconnected>();
    ASSERT_EQ(end->fault.has_value(), inside);
    if (inside) {
      EXPECT_EQ(end->fault->layer, FaultLayer::Llp);
      EXPECT_EQ(end->fault->code, 1);
    }
    EXPECT_EQ(has(end->detail, "TCP connection closed or lost"), inside) << end->detail;
    EXPECT_EQ(has(said, "TCP connection closed or lost"), inside) << said;
    EXPECT_EQ(right().device->rdmap_counters().faults_llp, 1u);
    const auto done = right().completions(b->spec().receive_cq);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, inside ? CompletionStatus::Flushed : CompletionStatus::Success);
    tell(left(), *socket, StreamSocket::kAbort | StreamSocket::kRelease);
    EXPECT_TRUE(right().device->destroy_qp(b).has_value());
    run_for(std::chrono::milliseconds(100));
    right().collect();
    right().events.clear();
  }
}

// What the queue pair cannot do is refused before anything is said to the peer.
TEST_F(Requests, AnAnswerBeyondTheQueuePairIsRefused) {
  QueuePair* near = left().make_qp();
  QueuePair* far = right().make_qp();
  ASSERT_TRUE(left().device->connect(*near, right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto asked = right().take<event::ConnectRequest>();
  const auto answer = [&](uint32_t ird) {
    return right().device->accept(asked->request, *far, {}, now_, {.ird = ird});
  };
  const auto refused = answer(far->spec().ird + 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            "IRD or ORD of the connection is above the queue pair's: create it with more");
  EXPECT_FALSE(far->used());
  EXPECT_TRUE(answer(far->spec().ird).has_value()) << "the request is still there";
  EXPECT_TRUE(run_until([&] { return left().has<event::Established>(); }));
}

TEST_F(Requests, PrivateDataOfUlpFramingIsBounded) {
  QueuePair* qp = left().make_qp();
  const ConnectOptions framed{.framing = Framing::Tuf};
  const auto refused = left().device->connect(*qp, right_end(), octets(513, 1), now_, framed);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "private data of 513 octets: at most 512 with ULP framing");
  EXPECT_FALSE(qp->used());
  EXPECT_TRUE(left().device->connect(*qp, right_end(), octets(512, 1), now_, framed).has_value());
}

/// The left device gives a start-up one second.
class Impatient : public DevicePair {
 protected:
  Impatient()
      : DevicePair([](DeviceConfig& config) {
          if (config.name == "left") config.mpa.start_timeout = std::chrono::seconds(1);
        }) {}
};

// A peer that is slow to answer TCP has its whole time for the Reply, and no more than that.
TEST_F(Impatient, TheTimeForAReplyBeginsWithTheConnection) {
  QueuePair* qp = left().make_qp();
  ASSERT_TRUE(left().device->connect(*qp, right_end(), {}, now_).has_value());
  const base::Now answered = now_ + std::chrono::milliseconds(2500);
  while (now_ < answered) {  // nothing is heard from the right one
    if (left().device->poll(now_) != 0) continue;
    now_ =
        std::clamp(left().device->next_deadline(), now_ + std::chrono::milliseconds(1), answered);
  }
  EXPECT_FALSE(left().has<event::ConnectFailed>());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const base::Now asked = now_;
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(left().take<event::ConnectFailed>()->detail, "start-up not finished in time");
  EXPECT_NEAR(std::chrono::duration<double>(now_ - asked).count(), 1.0, 0.01);
}

/// A transport that only keeps who wanted to speak.
class FakeTransport final : public llp::Transport {
 public:
  Result<Endpoint> reserve(const Endpoint& local) override { return local; }
  Status unreserve(const Endpoint&) override { return {}; }
  Result<Endpoint> listen(const Endpoint& local, llp::Acceptor&, llp::PortClaim,
                          const TcpOptions&) override {
    return local;
  }
  Status unlisten(const Endpoint&) override { return {}; }
  Result<llp::Stream*> connect(const Endpoint&, const Endpoint&, llp::StreamUser& who, base::Now,
                               llp::PortClaim, const TcpOptions& options) override {
    user = &who;
    chosen = options;
    return &stream;
  }
  Status choose(llp::Stream&, const TcpOptions& options, base::Now) override {
    chosen = options;
    return {};
  }
  void on_timers(base::Now) override {}
  void output(base::Now) override {}
  [[nodiscard]] base::Now next_deadline() const override { return base::kNever; }

  test::FakeStream stream;
  llp::StreamUser* user = nullptr;
  TcpOptions chosen;
};

class OtherTransport : public ::testing::Test {
 protected:
  OtherTransport() : device_({}, transport_, base::Now{}) {
    base::set_log_level(base::LogLevel::Off);
    QueuePairSpec spec;
    spec.pd = *device_.alloc_pd();
    spec.send_cq = spec.receive_cq = *device_.create_cq(16);
    qp_ = *device_.create_qp(spec);
  }
  Status connect(const ConnectOptions& options = {}) {
    return device_.connect(*qp_, {IpAddress::v4(0x0a000002), kPort}, {}, {}, options);
  }

  FakeTransport transport_;
  Device device_;
  QueuePair* qp_ = nullptr;
};

TEST_F(OtherTransport, ItsSegmentsAreNoChoiceOfTheDevice) {
  Status refused = connect({.packing = false});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            "packing is the choice of a device with a port of its own; of a device on sockets it "
            "is the system's: leave it out");
  for (const TcpOptions& systems :
       {TcpOptions{.congestion_control = CongestionControl::Cubic}, TcpOptions{.ecn = Ecn::Offer},
        TcpOptions{.pacing = false}}) {
    refused = connect({.tcp = systems});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
    EXPECT_NE(refused.error().message.find("ConnectOptions::tcp"), std::string::npos);
  }
  refused = connect({.tcp = {.dscp = 64}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(transport_.user, nullptr);
  EXPECT_TRUE(connect({.tcp = {.nagle = true, .dscp = 10}}).has_value());
  EXPECT_EQ(transport_.chosen, (TcpOptions{.nagle = true, .dscp = 10}));
}

// A turn counts what it has served, doorbells too, and is idle where it has served nothing.
TEST_F(OtherTransport, ATurnTellsWhatItHasServed) {
  EXPECT_EQ(device_.poll(base::from_nanos(1)), 0u);
  EXPECT_EQ(device_.device_counters().busy_polls, 0u);
  ASSERT_EQ(qp_->post_receive({}), PostResult::Ok);
  EXPECT_EQ(device_.poll(base::from_nanos(2)), 1u);
  EXPECT_EQ(device_.poll(base::from_nanos(3)), 0u);
  EXPECT_EQ(device_.device_counters().busy_polls, 1u);
}

// A connection that has ended in the middle of a turn is taken away at the end of the turn, not by
// the next one that begins: whoever told of the end may still be at it.
TEST_F(OtherTransport, WhatHasEndedStaysUntilTheTurnEnds) {
  ASSERT_TRUE(connect().has_value());
  transport_.user->ended(StreamEnd::Refused, {});
  EXPECT_EQ(device_.live_connections(), 1u);
  QueuePair* next = *device_.create_qp(qp_->spec());
  const Endpoint there{IpAddress::v4(0x0a000002), kPort};
  ASSERT_TRUE(device_.connect(*next, there, {}, {}).has_value());
  EXPECT_EQ(device_.live_connections(), 2u) << "the one that has ended is among them";
  device_.poll(base::from_nanos(1));
  EXPECT_EQ(device_.live_connections(), 1u);
}

// Why there was never a connection is told as the transport has it.
class NeverConnected
    : public OtherTransport,
      public ::testing::WithParamInterface<std::pair<StreamEnd, framing::StartFailure>> {};

TEST_P(NeverConnected, IsToldWithItsReason_CM_01) {
  const auto& [end, why] = GetParam();
  ASSERT_TRUE(connect().has_value());
  ASSERT_NE(transport_.user, nullptr);
  transport_.user->ended(end, {});
  const auto event = device_.poll_event();
  ASSERT_TRUE(event && std::holds_alternative<event::ConnectFailed>(*event));
  const auto& failed = std::get<event::ConnectFailed>(*event);
  EXPECT_EQ(failed.end, end);
  EXPECT_EQ(failed.fault.value().code, static_cast<uint8_t>(llp::FramingError::Closed));
  EXPECT_EQ(failed.detail, framing::to_string(why));
}

INSTANTIATE_TEST_SUITE_P(
    Ends, NeverConnected,
    ::testing::Values(std::pair{StreamEnd::Unreachable, framing::StartFailure::Unreachable},
                      std::pair{StreamEnd::Refused, framing::StartFailure::Refused},
                      std::pair{StreamEnd::TimedOut, framing::StartFailure::Unanswered}));

}  // namespace
}  // namespace rnic::device
