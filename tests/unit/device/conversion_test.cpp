// Streaming connections that become RDMA connections, and back (RFC 5044 s.7.1.3 to s.7.1.5).

#include "stream_pair.hpp"

namespace rnic::device {
namespace {

class CountingTrace final : public base::TraceSink {
 public:
  void record(TraceKind, base::Range, base::Now) override { ++events; }
  uint64_t events = 0;
};

class Conversion : public Streams {
 protected:
  Conversion() = default;
  explicit Conversion(const Tweak& tweak) : Streams(tweak) {}
  void SetUp() override {
    listener_ = listen();
    pair_ = connected(listener_);
    a_ = left().make_qp();
    b_ = right().make_qp();
  }

  /// Octets from one application to the other, in streaming mode.
  void say(bool from_left, const std::vector<uint8_t>& octets) {
    Host& speaker = from_left ? left() : right();
    Host& listener = from_left ? right() : left();
    StreamSocket* from = pair_[from_left ? 0 : 1];
    StreamSocket* to = pair_[from_left ? 1 : 0];
    ASSERT_TRUE(from->reserve_ring().has_value());
    std::vector<uint8_t> heard(octets.size());
    size_t sent = 0, got = 0;
    EXPECT_TRUE(run_until([&] {
      const size_t put = from->put(base::ByteView(octets).subspan(sent));
      if (put != 0) tell(speaker, from);
      sent += put;
      got += to->take(base::ByteSpan(heard).subspan(got));
      if (to->room_is_news()) tell(listener, to);
      return got == octets.size();
    })) << sent
        << " " << got;
    EXPECT_TRUE(heard == octets);
  }
  /// The right side awaits, the left side asks. \return the request that came
  std::optional<event::ConnectRequest> request(const std::vector<uint8_t>& last_message = {}) {
    EXPECT_TRUE(right().device->await_rdma(*pair_[1], last_message, now_).has_value());
    if (!last_message.empty()) {
      EXPECT_EQ(receive(left(), pair_[0], last_message.size()), last_message);
    }
    const auto status = left().device->connect(*a_, *pair_[0], octets(5, 1), now_);
    EXPECT_TRUE(status.has_value()) << status.error().message;
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    auto event = right().take<event::ConnectRequest>();
    EXPECT_EQ(event->private_data, octets(5, 1));
    EXPECT_EQ(event->remote, pair_[1]->remote());
    return event;
  }
  void expect_send_arrives(Host& from, QueuePair* source, Host& to, QueuePair* sink) {
    std::vector<uint8_t> out = octets(30'000, 3), in(out.size());
    const mem::Stag read = from.add(out, source->spec().pd, Access::LocalRead);
    const mem::Stag written = to.add(in, sink->spec().pd, Access::LocalWrite);
    ASSERT_EQ(sink->post_receive(receive_work(in, written)), PostResult::Ok);
    ASSERT_EQ(source->post_send(work(Opcode::Send, 1, out, read, 30'000)), PostResult::Ok);
    size_t got = 0;
    EXPECT_TRUE(run_until([&] {
      got += to.completions(sink->spec().receive_cq).size();
      return got == 1;
    }));
    EXPECT_EQ(in, out);
  }
  static ReceiveRequest receive_work(const std::vector<uint8_t>& memory, mem::Stag stag) {
    return DevicePair::receive(1, memory, stag, static_cast<uint32_t>(memory.size()));
  }
  /// The right device does nothing for a while.
  void silence_of_the_right(base::Duration span) {
    const base::Now until = now_ + span;
    while (now_ < until) {
      if (left().device->poll(now_) != 0) continue;
      now_ = std::clamp(left().device->next_deadline(), now_ + std::chrono::milliseconds(1), until);
    }
  }
  void expect_all_ends() {
    release(pair_);
    EXPECT_TRUE(left().device->destroy_qp(a_).has_value());
    EXPECT_TRUE(right().device->destroy_qp(b_).has_value());
    expect_nothing_left();
  }

  void expect_all_ends_after_abort() {
    tell(left(), pair_[0], StreamSocket::kAbort);
    tell(right(), pair_[1], StreamSocket::kAbort);
    expect_all_ends();
  }

  StreamListener* listener_ = nullptr;
  std::array<StreamSocket*, 2> pair_{};
  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
};

// limits.max_pending_requests: streams that await a Request count from the first moment.
class OneConversion : public Streams {
 protected:
  OneConversion() : Streams([](DeviceConfig& config) { config.limits.max_pending_requests = 1; }) {}
};

TEST_F(OneConversion, NoMoreStreamsAwaitARequestThanTheLimit) {
  StreamListener* listener = listen();
  const auto one = connected(listener);
  const auto two = connected(listener);
  QueuePair* qp = left().make_qp();
  ASSERT_TRUE(right().device->await_rdma(*one[1], {}, now_).has_value());
  ASSERT_TRUE(left().device->connect(*qp, *one[0], {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto refused = right().device->await_rdma(*two[1], {}, now_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  for (const auto& pair : {one, two}) {
    tell(left(), pair[0], StreamSocket::kAbort);
    tell(right(), pair[1], StreamSocket::kAbort);
    release(pair);
  }
  EXPECT_TRUE(left().device->destroy_qp(qp).has_value());
  expect_nothing_left();
}

// MPA-7.1.3-01 MPA-7.1.5-02: Hello, Hello-Ack as the last streaming message, then RDMA.
TEST_F(Conversion, AStreamIsOpenedUsedAndConverted_CM_03) {
  for (const bool with_hello : {true, false}) {
    if (!with_hello) {
      pair_ = connected(listener_);
      a_ = left().make_qp();
      b_ = right().make_qp();
    } else {
      say(true, octets(40'000, 7));
      say(false, octets(111, 8));
    }
    const auto asked = request(with_hello ? octets(3000, 9) : std::vector<uint8_t>{});
    EXPECT_TRUE(pair_[0]->is_converted() && pair_[1]->is_converted());
    ASSERT_TRUE(right().device->accept(asked->request, *b_, octets(2, 4), now_).has_value());
    ASSERT_TRUE(run_until(
        [&] { return left().has<event::Established>() && right().has<event::Established>(); }));
    EXPECT_EQ(left().take<event::Established>()->private_data, octets(2, 4));
    EXPECT_TRUE(right().take<event::Established>());
    expect_send_arrives(left(), a_, right(), b_);
    expect_send_arrives(right(), b_, left(), a_);
    ASSERT_TRUE(left().device->disconnect(*a_).has_value());
    ASSERT_TRUE(run_until([&] { return right().has<event::PeerClosed>(); }));
    EXPECT_TRUE(right().take<event::PeerClosed>());
    ASSERT_TRUE(right().device->disconnect(*b_).has_value());
    ASSERT_TRUE(run_until([&] { return pair_[0]->how_ended() && pair_[1]->how_ended(); }));
    EXPECT_EQ(left().take<event::Disconnected>()->end, StreamEnd::Closed);
    EXPECT_EQ(right().take<event::Disconnected>()->end, StreamEnd::Closed);
    EXPECT_EQ(pair_[0]->how_ended(), StreamEnd::Closed);
    if (with_hello) release(pair_);
  }
  expect_all_ends();
}

// RFC 5044 s.5.1: FPDUs follow the size of the connection's segments, also where it changes behind
// the conversion.
TEST_F(Conversion, FpdusFollowTheSegmentsOfAConvertedStream) {
  const auto asked = request();
  ASSERT_TRUE(right().device->accept(asked->request, *b_, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Established>(); }));
  expect_send_arrives(left(), a_, right(), b_);
  const uint64_t before = left().device->mpa_counters().fpdus_out;
  EXPECT_LT(before, 30u);
  tcp::ConnectionOptions smaller = *left().device->streams().options(*pair_[0]);
  smaller.max_segment = 300;
  ASSERT_TRUE(left().device->streams().set_options(*pair_[0], smaller, now_).has_value());
  expect_send_arrives(left(), a_, right(), b_);
  EXPECT_GE(left().device->mpa_counters().fpdus_out - before, 30'000u / 300);
  expect_all_ends_after_abort();
}

// CM-03, MPA-7.1.2-04, MPA-7.1.2-08: a reject leaves MPA, and both applications stream on.
// The revision is a wish of this connection.
TEST_F(Conversion, TheRevisionIsWished) {
  ASSERT_TRUE(right().device->await_rdma(*pair_[1], {}, now_).has_value());
  const ConnectOptions first{.start = {.revision = 1}};
  ASSERT_TRUE(left().device->connect(*a_, *pair_[0], {}, now_, first).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  EXPECT_EQ(right().take<event::ConnectRequest>()->facts.revision, 1);
  expect_all_ends_after_abort();
}

TEST_F(Conversion, AfterARejectTheStreamGoesOn_CM_03) {
  say(true, octets(40'000, 7));
  const auto asked = request(octets(500, 2));
  CountingTrace trace;
  ASSERT_TRUE(left().device->set_trace(*a_, &trace));
  ASSERT_EQ(a_->post_receive({.id = 1}), PostResult::Ok);
  ASSERT_TRUE(right().device->reject(asked->request, octets(6, 6), now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Rejected>(); }));
  const uint64_t traced = trace.events;
  EXPECT_EQ(left().take<event::Rejected>()->private_data, octets(6, 6));
  ASSERT_TRUE(run_until([&] { return !pair_[0]->is_converted() && !pair_[1]->is_converted(); }));
  for (int i = 0; i < 3; ++i) {
    say(true, octets(50'000, 10));
    say(false, octets(70'001, 11));
  }
  EXPECT_EQ(trace.events, traced) << "it belongs to the queue pair, not to the stream";
  // The queue pair is free of it: what is done to it does not touch the stream.
  EXPECT_EQ(left().take<event::Disconnected>()->qp, a_->number());
  EXPECT_EQ(left().completions(a_->spec().receive_cq).size(), 1u);
  EXPECT_TRUE(left().device->destroy_qp(a_).has_value());
  say(false, octets(100, 12));
  finish(pair_);
  EXPECT_TRUE(right().device->destroy_qp(b_).has_value());
  expect_nothing_left();
}

// Octets of the streaming protocol are not lost, and not taken for MPA's.
TEST_F(Conversion, UnreadOctetsAreReported_MPA_7_1_5_01) {
  send(left(), pair_[0], octets(100, 1));
  ASSERT_TRUE(run_until([&] { return pair_[1]->readable() == 100; }));
  auto status = right().device->await_rdma(*pair_[1], {}, now_);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::WrongState);
  EXPECT_NE(status.error().message.find("unread"), std::string::npos);
  EXPECT_EQ(receive(right(), pair_[1], 100), octets(100, 1));
  EXPECT_TRUE(right().device->await_rdma(*pair_[1], {}, now_).has_value());
  expect_all_ends_after_abort();
}

TEST_F(Conversion, OnlyAnOpenStreamIsConverted) {
  StreamSocket* early = connect();
  EXPECT_FALSE(left().device->connect(*a_, *early, {}, now_).has_value());  // still connecting
  tell(left(), early, StreamSocket::kAbort | StreamSocket::kRelease);
  ASSERT_TRUE(right().device->await_rdma(*pair_[1], {}, now_).has_value());
  EXPECT_FALSE(right().device->await_rdma(*pair_[1], {}, now_).has_value());  // twice
  tell(left(), pair_[0], StreamSocket::kFinish);
  EXPECT_FALSE(left().device->connect(*a_, *pair_[0], {}, now_).has_value());  // finished
  EXPECT_FALSE(a_->used());  // nothing was begun: the queue pair is as good as new
  expect_all_ends_after_abort();
}

// MPA-7.1.2-10: who speaks something else is no MPA peer; the stream is closed and the error told.
TEST_F(Conversion, APeerThatStreamsOnIsToldApart) {
  ASSERT_TRUE(left().device->connect(*a_, *pair_[0], {}, now_).has_value());
  send(right(), pair_[1], octets(400, 1));
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_NE(left().take<event::ConnectFailed>()->detail.find("key"), std::string::npos);
  expect_all_ends_after_abort();
}

TEST_F(Conversion, ASilentPeerTimesOut) {
  ASSERT_TRUE(right().device->await_rdma(*pair_[1], {}, now_).has_value());
  EXPECT_TRUE(
      run_until([&] { return pair_[1]->how_ended().has_value(); }, std::chrono::minutes(10)));
  expect_all_ends();
}

// The application lets go of the socket while the queue pair uses the connection.
TEST_F(Conversion, TheSocketsHandleIsNotNeeded) {
  const auto asked = request();
  release(pair_);
  ASSERT_TRUE(right().device->accept(asked->request, *b_, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Established>(); }));
  expect_send_arrives(left(), a_, right(), b_);
  EXPECT_TRUE(left().device->destroy_qp(a_).has_value());
  EXPECT_TRUE(right().device->destroy_qp(b_).has_value());
  expect_nothing_left();
}

TEST_F(Conversion, UlpFramingBeginsWithTheConnection) {
  const ConnectOptions framed{.framing = Framing::Tuf};
  const auto refused = left().device->connect(*a_, *pair_[0], {}, now_, framed);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(refused.error().message,
            "a streaming connection becomes an RDMA connection over MPA only (RFC 5044 s.7.1.3): "
            "for ULP framing use connect() without a stream");
  EXPECT_FALSE(pair_[0]->is_converted());
  say(true, octets(100, 1));
  expect_all_ends_after_abort();
}

TEST_F(Conversion, AStreamThatThePeerHasFinishedIsNotConverted) {
  tell(left(), pair_[0], StreamSocket::kFinish);
  ASSERT_TRUE(run_until([&] { return pair_[1]->peer_has_finished(); }));
  const auto refused = right().device->await_rdma(*pair_[1], {}, now_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::WrongState);
  EXPECT_EQ(refused.error().message, "the peer has finished the stream: use another one");
  expect_all_ends_after_abort();
}

// Behind a reject octets come from the ring again, also for the second time.
TEST_F(Conversion, WhatIsLostBehindARejectIsSentAgain) {
  const auto asked = request();
  ASSERT_TRUE(right().device->reject(asked->request, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return !pair_[0]->is_converted() && !pair_[1]->is_converted(); }));
  say(true, octets(20'000, 1));
  run_for(std::chrono::milliseconds(100));
  const uint64_t before = left().device->tcp_counters().retransmitted_octets;
  ASSERT_EQ(pair_[0]->put(octets(500, 3)), 500u);
  tell(left(), pair_[0]);
  silence_of_the_right(std::chrono::milliseconds(400));
  EXPECT_GE(left().device->tcp_counters().retransmitted_octets, before + 500);
  EXPECT_EQ(receive(right(), pair_[1], 500), octets(500, 3));
  say(true, octets(20'000, 4));
  finish(pair_);
  expect_all_ends();
}

/// The left device has memory for one ring.
class OneRing : public Conversion {
 protected:
  OneRing()
      : Conversion([](DeviceConfig& config) {
          if (config.name == "left") config.limits.stream_octets = kRing;
        }) {}
};

// Its ring went to another socket while MPA had the stream: there is nowhere to put what comes.
TEST_F(OneRing, AStreamThatFindsNoneWhenItComesBackIsReset) {
  const auto asked = request();
  const auto other = connected(listener_);
  ASSERT_TRUE(other[0]->reserve_ring().has_value());
  EXPECT_EQ(left().device->device_counters().stream_buffer_waits, 0u);
  ASSERT_TRUE(right().device->reject(asked->request, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return pair_[0]->how_ended() && pair_[1]->how_ended(); }));
  EXPECT_EQ(pair_[0]->how_ended(), StreamEnd::Aborted);
  EXPECT_EQ(pair_[1]->how_ended(), StreamEnd::PeerReset);
  EXPECT_EQ(left().device->device_counters().stream_buffer_waits, 1u);
  EXPECT_TRUE(left().has<event::Rejected>()) << "the answer itself has come";
  release(other);
  expect_all_ends();
}

/// No window is ever as large as a segment.
class SmallWindows : public Conversion {
 protected:
  static constexpr uint32_t kSmall = 1024;
  static constexpr base::Duration kAtOnce = std::chrono::milliseconds(5);

  SmallWindows()
      : Conversion([](DeviceConfig& config) {
          config.limits.stream_buffer = kSmall;
          config.mpa.receive_window = kSmall;
        }) {}

  /// The left application puts octets, when all before them are acknowledged.
  void put(size_t n, uint8_t seed) {
    run_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(pair_[0]->reserve_ring().has_value());
    EXPECT_EQ(pair_[0]->put(octets(n, seed)), n);
  }
  /// \return they are there at once
  bool arrives(size_t n, uint8_t seed) {
    put(n, seed);
    const uint32_t before = pair_[1]->readable();
    tell(left(), pair_[0]);
    return run_until([&] { return pair_[1]->readable() == before + n; }, kAtOnce);
  }
};

// RFC 9293 s.3.8.6.2.1 (2): a Request that fits the window goes, whatever share of it that is;
// octets that were put before go first, and count.
TEST_F(SmallWindows, ARequestThatFitsDoesNotWait) {
  ASSERT_TRUE(arrives(700, 1));  // and are not read: scaled, a window of 256 is left
  put(200, 2);
  const ConnectOptions first{.start = {.revision = 1}};
  ASSERT_TRUE(left().device->connect(*a_, *pair_[0], octets(5, 1), now_, first));
  EXPECT_TRUE(run_until([&] { return pair_[1]->readable() == 700 + 200 + 25; }, kAtOnce));
  expect_all_ends_after_abort();
}

TEST_F(SmallWindows, ARequestThatDoesNotFitWaits) {
  ASSERT_TRUE(arrives(700, 1));
  put(240, 2);
  const ConnectOptions first{.start = {.revision = 1}};
  ASSERT_TRUE(left().device->connect(*a_, *pair_[0], octets(5, 1), now_, first));
  EXPECT_FALSE(run_until([&] { return pair_[1]->readable() != 700; }, kAtOnce))
      << "240 and 25 octets are more than the window, and that is less than half of the largest";
  EXPECT_TRUE(run_until([&] { return pair_[1]->readable() == 940; }));
  receive(right(), pair_[1], 940);
  EXPECT_TRUE(run_until([&] { return pair_[1]->readable() == 25; })) << "the Request";
  expect_all_ends_after_abort();
}

// Behind a reject the same rule is asked of the application's octets; they are sent
// again like any others, and follow the segments' size.
TEST_F(SmallWindows, BehindARejectTheStreamIsTheApplicationsInFull) {
  const auto asked = request();
  ASSERT_TRUE(right().device->reject(asked->request, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return !pair_[0]->is_converted() && !pair_[1]->is_converted(); }));
  for (uint8_t i = 0; i < 4; ++i) say(true, octets(900, i));  // what the session's window let in
  ASSERT_TRUE(arrives(700, 1));
  EXPECT_TRUE(arrives(100, 2)) << "a small message in a small window";
  std::vector<uint8_t> both = octets(700, 1);
  const std::vector<uint8_t> second = octets(100, 2);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(receive(right(), pair_[1], 800), both);
  // Nobody answers for a while.
  put(500, 3);
  tell(left(), pair_[0]);
  silence_of_the_right(std::chrono::milliseconds(400));
  EXPECT_GE(left().device->tcp_counters().retransmitted_octets, 500u);
  EXPECT_EQ(receive(right(), pair_[1], 500), octets(500, 3));
  tcp::ConnectionOptions smaller = *left().device->streams().options(*pair_[0]);
  smaller.max_segment = 300;
  ASSERT_TRUE(left().device->streams().set_options(*pair_[0], smaller, now_).has_value());
  say(true, octets(900, 4));
  EXPECT_LE(pair_[0]->stream()->emss(), 300u);
  finish(pair_);
  EXPECT_TRUE(left().device->destroy_qp(a_).has_value());
  EXPECT_TRUE(right().device->destroy_qp(b_).has_value());
  expect_nothing_left();
}

}  // namespace
}  // namespace rnic::device
