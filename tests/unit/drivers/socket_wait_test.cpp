// Messages that find no receive posted and wait for one (RFC 5041 s.7.1), over sockets of the
// system: nothing is read meanwhile, and the system's window holds the peer back.

#include "on_sockets.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;

DeviceConfig framed_by(Framing framing) {
  DeviceConfig config;
  config.framing = framing;
  config.mpa.markers_receive = true;
  config.tuf.middlebox_limit = 1;
  return config;
}

/// A pair of queue pairs, of which the right one lets messages wait. The parameter is the framing.
class WaitingOnSockets : public OnSockets, public ::testing::WithParamInterface<Framing> {
 protected:
  static constexpr uint32_t kOctets = 1000;

  explicit WaitingOnSockets(base::Duration limit = std::chrono::hours(1))
      : OnSockets(1, sockets(), framed_by(GetParam()), framed_by(GetParam()), limit),
        source_(64 << 10),
        target_(64 << 10) {
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<uint8_t>(i * 7 + i / 251);
    from_ = add(0, source_, kRights);
    to_ = add(1, target_, kRights);
    connect();
  }

  void send(uint32_t length) {
    SendRequest request = work(Opcode::Send, source_, from_);
    request.sges = {{reinterpret_cast<uint64_t>(source_.data()), length, from_.value}};
    ASSERT_EQ(qps_[0][0]->post_send(request), PostResult::Ok);
  }
  void write(uint32_t length) {
    SendRequest request = work(Opcode::Write, source_, from_);
    request.sges = {{reinterpret_cast<uint64_t>(source_.data()), length, from_.value}};
    request.remote = {to_.value, reinterpret_cast<uint64_t>(target_.data())};
    ASSERT_EQ(qps_[0][0]->post_send(request), PostResult::Ok);
  }
  void post(uint64_t id) {
    ReceiveRequest request{.id = id};
    request.sges = {{reinterpret_cast<uint64_t>(target_.data()),
                     static_cast<uint32_t>(target_.size()), to_.value}};
    ASSERT_EQ(qps_[1][0]->post_receive(request), PostResult::Ok);
  }
  bool run_until_waiting() {
    return run_until([&] { return qps_[1][0]->waits_for_receive(); });
  }
  Completion received() {
    Completion done;
    EXPECT_TRUE(run_until([&] { return receive_cqs_[1]->poll({&done, 1}) == 1; }));
    return done;
  }
  void drop_completions_of_sends() {
    std::array<Completion, 64> done;
    while (cqs_[0]->poll(done) != 0) continue;
  }
  [[nodiscard]] const rdmap::Counters& counters() { return devices_[1]->rdmap_counters(); }

  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  mem::Stag from_;
  mem::Stag to_;
};

TEST_P(WaitingOnSockets, APostedReceiveResumesIt) {
  send(kOctets);
  write(64 << 10);
  ASSERT_TRUE(run_until_waiting());
  turns(1000);
  EXPECT_TRUE(qps_[1][0]->waits_for_receive());
  EXPECT_EQ(counters().writes_in, 0u) << "nothing is delivered past the message that waits";
  EXPECT_TRUE(devices_[1]->info(*qps_[1][0], now_).waits_for_receive);
  post(10);
  const Completion done = received();
  EXPECT_EQ(done.id, 10u);
  EXPECT_EQ(done.length, kOctets);
  ASSERT_TRUE(run_until([&] { return target_ == source_; }));
  EXPECT_EQ(counters().receive_waits, 1u);
  EXPECT_EQ(counters().receive_waits_expired, 0u);
}

// More than both ends' systems hold: the sender's completions stop until the wait is over.
TEST_P(WaitingOnSockets, ThePeerIsHeldBack) {
  constexpr uint32_t kWrites = 60;
  send(kOctets);
  for (uint32_t i = 0; i < kWrites; ++i) write(64 << 10);
  ASSERT_TRUE(run_until_waiting());
  uint32_t taken = 0;
  std::array<Completion, 64> done;
  const auto count = [&] { return taken += cqs_[0]->poll(done); };
  run_until([&, last = uint32_t{0}, idle = 0]() mutable {
    idle = count() == last ? idle + 1 : 0;
    last = taken;
    return idle == 2000;
  });
  EXPECT_LT(taken, kWrites) << "nothing holds the peer back";
  post(1);
  EXPECT_EQ(received().length, kOctets);
  EXPECT_TRUE(run_until([&] { return count() == kWrites + 1; }));
  EXPECT_TRUE(run_until([&] { return counters().writes_in == kWrites; }));
  EXPECT_EQ(target_, source_);
}

TEST_P(WaitingOnSockets, AThousandWaitsInARow) {
  for (uint32_t i = 0; i < 1000; ++i) {
    send(100 + i);
    if (i % 4 == 3) write(900);
    ASSERT_TRUE(run_until_waiting()) << i;
    post(i);
    const Completion done = received();
    ASSERT_EQ(done.id, i);
    ASSERT_EQ(done.length, 100 + i);
    drop_completions_of_sends();
  }
  EXPECT_EQ(counters().receive_waits, 1000u);
}

// Octets of a Write stay with the system behind the message that waits.
TEST_P(WaitingOnSockets, ThePeersCloseComesBehindTheMessages) {
  send(kOctets);
  write(64 << 10);
  ASSERT_TRUE(run_until_waiting());
  ASSERT_TRUE(devices_[0]->disconnect(*qps_[0][0]).has_value());
  run_until([n = 2000]() mutable { return n-- == 0; });  // the FIN has come, and was looked at
  EXPECT_TRUE(qps_[1][0]->waits_for_receive());
  post(10);
  EXPECT_EQ(received().length, kOctets);
  EXPECT_TRUE(event<event::PeerClosed>(1));
  EXPECT_EQ(target_, source_);
}

// The receive is posted when the peer has gone already, and before the device has looked.
TEST_P(WaitingOnSockets, AReceivePostedInTimeOutlivesThePeersClose) {
  send(kOctets);
  ASSERT_TRUE(run_until_waiting());
  ASSERT_TRUE(devices_[0]->disconnect(*qps_[0][0]).has_value());
  run_until([&, n = 2000]() mutable { return n-- == 0; }, 0);  // the FIN leaves
  post(10);
  EXPECT_EQ(received().length, kOctets);
  EXPECT_TRUE(event<event::PeerClosed>(1));
}

TEST_P(WaitingOnSockets, ThePeersResetEndsItAtOnce) {
  send(kOctets);
  write(64 << 10);
  ASSERT_TRUE(run_until_waiting());
  ASSERT_TRUE(devices_[0]->modify_qp(*qps_[0][0], {.state = QueuePairState::Error}, now_));
  std::optional<Event> next;
  ASSERT_TRUE(run_until([&] {
    next = devices_[1]->poll_event();
    return next.has_value();
  }));
  EXPECT_TRUE(std::holds_alternative<event::Disconnected>(*next));
  EXPECT_FALSE(qps_[1][0]->waits_for_receive());
  EXPECT_EQ(counters().receive_waits_expired, 0u);
}

class ShortWait : public WaitingOnSockets {
 protected:
  static constexpr base::Duration kLimit = milliseconds(5);
  ShortWait() : WaitingOnSockets(kLimit) {}
};

TEST_P(ShortWait, TheLimitEndsItWithATerminate) {
  send(kOctets);
  ASSERT_TRUE(run_until_waiting());
  const base::Now began = now_;
  const auto sent = event<event::TerminateSent>(1);
  ASSERT_TRUE(sent);
  EXPECT_GE(now_ - began, kLimit - milliseconds(1));
  EXPECT_EQ(sent->fault.layer, FaultLayer::Ddp);
  EXPECT_EQ(sent->fault.code, 0x02) << "no buffer";
  EXPECT_EQ(counters().receive_waits_expired, 1u);
  EXPECT_TRUE(event<event::TerminateReceived>(0));
}

const auto kBoth = ::testing::Values(Framing::Mpa, Framing::Tuf);
const auto kName = [](const ::testing::TestParamInfo<Framing>& info) {
  return info.param == Framing::Mpa ? "Mpa" : "Tuf";
};
INSTANTIATE_TEST_SUITE_P(Framings, WaitingOnSockets, kBoth, kName);
INSTANTIATE_TEST_SUITE_P(Framings, ShortWait, kBoth, kName);

}  // namespace
}  // namespace rnic::device
