// limits.silence: established inbound connections that have been silent give way, and no others.

#include "stream_pair.hpp"
#include "support/logged.hpp"

namespace rnic::device {
namespace {

constexpr base::Duration kSilence = std::chrono::seconds(10);
constexpr base::Duration kLonger = kSilence * 5 / 4 + std::chrono::milliseconds(1);

class Silence : public Streams {
 protected:
  Silence() : Silence([](DeviceConfig&) {}) {}
  explicit Silence(const Tweak& tweak)
      : Streams([&](DeviceConfig& c) {
          if (c.name != "right") return;
          c.limits.max_connections = 2;
          c.limits.silence = kSilence;
          tweak(c);
        }) {}

  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      theirs[i] = left().make_qp();
      ours[i] = right().make_qp();
      DevicePair::connect(theirs[i], ours[i]);
    }
  }
  /// Somebody else, over TCP alone. \return it was taken
  bool newcomer() {
    auto socket = left().device->connect_stream(right_end(), {}, now_);
    EXPECT_TRUE(socket.has_value());
    EXPECT_TRUE(run_until([&] { return (*socket)->is_established() || (*socket)->how_ended(); }));
    run_until([] { return false; }, std::chrono::milliseconds(1));
    return !(*socket)->how_ended();
  }
  /// A message of nothing, which has a receive.
  void say(Host& from, QueuePair* sender, Host& to, QueuePair* receiver) {
    ASSERT_EQ(receiver->post_receive({}), PostResult::Ok);
    SendRequest send;
    send.opcode = Opcode::Send;
    ASSERT_EQ(sender->post_send(send), PostResult::Ok);
    ASSERT_TRUE(run_until([&] { return !to.completions(receiver->spec().receive_cq).empty(); }));
    ASSERT_TRUE(run_until([&] { return !from.completions(sender->spec().send_cq).empty(); }));
  }
  void sleep(base::Duration span) { run_for(span); }
  [[nodiscard]] const DeviceCounters& counters() { return right().device->device_counters(); }

  QueuePair* theirs[2] = {};
  QueuePair* ours[2] = {};
};

TEST_F(Silence, TheLongestSilentGivesWay) {
  sleep(kSilence / 2);
  EXPECT_FALSE(newcomer()) << "nobody has been silent for long enough";
  EXPECT_EQ(counters().silent_displaced, 0u);
  say(left(), theirs[0], right(), ours[0]);
  sleep(kSilence * 3 / 4);
  test::Logged log;
  EXPECT_TRUE(newcomer());
  EXPECT_EQ(counters().silent_displaced, 1u);
  const auto event = right().take<event::Disconnected>();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->qp, ours[1]->number()) << "the other one has spoken since";
  EXPECT_NE(event->detail.find("limits.silence"), std::string::npos) << event->detail;
  EXPECT_EQ(event->end, StreamEnd::Aborted);
  const std::string said = log.take();
  EXPECT_NE(said.find("1 inbound association from 10.0.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("limits.silence"), std::string::npos) << said;
  // The peer whose association was ended is told so.
  ASSERT_TRUE(run_until([&] { return left().has<event::Disconnected>(); }));
  const auto told = left().take<event::Disconnected>();
  EXPECT_EQ(told->qp, theirs[1]->number());
  EXPECT_EQ(told->end, StreamEnd::PeerReset);
}

// Nobody who speaks, and nobody for whom the place is not needed.
TEST_F(Silence, NobodyGivesWayWithoutNeed) {
  sleep(kSilence * 100);
  EXPECT_EQ(counters().silent_displaced, 0u);
  EXPECT_FALSE(right().has<event::Disconnected>());
  say(left(), theirs[0], right(), ours[0]);
  say(left(), theirs[1], right(), ours[1]);
  EXPECT_FALSE(newcomer());
  EXPECT_EQ(counters().silent_displaced, 0u);
}

// What this side does counts, too: the peer has nothing to say to it.
TEST_F(Silence, OurOwnMessagesCount) {
  // RFC 5044 s.7.1.2: a responder sends behind the initiator's first FPDU.
  for (int i : {0, 1}) say(left(), theirs[i], right(), ours[i]);
  for (int i = 0; i < 6; ++i) {
    sleep(kSilence / 3);
    say(right(), ours[0], left(), theirs[0]);
    say(right(), ours[1], left(), theirs[1]);
  }
  EXPECT_FALSE(newcomer());
}

// A Read that the peer does not answer is work, however long it takes.
TEST_F(Silence, WhoseAnswerIsAwaitedStays) {
  sleep(kLonger);
  std::vector<uint8_t> memory(8);
  const mem::Stag sink = right().add(memory, ours[0]->spec().pd, Access::LocalWrite);
  ASSERT_EQ(ours[0]->post_send(work(Opcode::Read, 1, memory, sink, 8)), PostResult::Ok);
  right().device->poll(now_);  // the left one does not hear of it
  QueuePair* newcomer = right().make_qp();
  const Endpoint there{left().device->config().net.address, kPort + 1};
  ASSERT_TRUE(right().device->connect(*newcomer, there, {}, now_).has_value());
  right().device->poll(now_);
  EXPECT_EQ(counters().silent_displaced, 1u);
  EXPECT_EQ(right().take<event::Disconnected>()->qp, ours[1]->number());
  EXPECT_FALSE(right().has<event::Disconnected>());
}

class Many : public Silence {
 protected:
  Many()
      : Silence([](DeviceConfig& c) {
          c.limits.max_connections = 6;
          c.limits.max_starting = 4;
        }) {}
};

// Start-ups without a Request displace silent connections only as long as they hold no more than
// half of their places.
TEST_F(Many, StartUpsBeyondTheirHalfGiveWayFirst) {
  for (int i = 0; i < 2; ++i) DevicePair::connect(left().make_qp(), right().make_qp());
  sleep(kLonger);
  EXPECT_TRUE(newcomer());
  EXPECT_TRUE(newcomer());
  EXPECT_EQ(counters().silent_displaced, 0u) << "six places";
  EXPECT_TRUE(newcomer());
  EXPECT_EQ(counters().silent_displaced, 1u);
  EXPECT_EQ(counters().starts_displaced, 0u);
  EXPECT_TRUE(newcomer());
  EXPECT_TRUE(newcomer());
  EXPECT_EQ(counters().silent_displaced, 1u) << "three start-ups of four places";
  EXPECT_EQ(counters().starts_displaced, 2u);
}

class NeverSilent : public Silence {
 protected:
  NeverSilent() : Silence([](DeviceConfig& c) { c.limits.silence = {}; }) {}
};

TEST_F(NeverSilent, ByDefaultNobodyGivesWay) {
  EXPECT_EQ(Limits{}.silence, base::Duration(0));
  sleep(std::chrono::hours(1));
  EXPECT_FALSE(newcomer());
  EXPECT_EQ(counters().requests_refused, 1u);
  EXPECT_FALSE(right().has<event::Disconnected>());
}

class Outbound : public Silence {
 protected:
  void SetUp() override {
    ASSERT_TRUE(left().device->listen(kPort + 1).has_value());
    const Endpoint there{left().device->config().net.address, kPort + 1};
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(right().device->connect(*right().make_qp(), there, {}, now_).has_value());
      ASSERT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
      const auto request = left().take<event::ConnectRequest>();
      ASSERT_TRUE(left().device->accept(request->request, *left().make_qp(), {}, now_).has_value());
      ASSERT_TRUE(run_until([&] { return right().take<event::Established>().has_value(); }));
    }
  }
};

// The application of this device asked for those.
TEST_F(Outbound, OnesStay) {
  sleep(kLonger);
  EXPECT_FALSE(newcomer());
  EXPECT_EQ(counters().silent_displaced, 0u);
}

}  // namespace
}  // namespace rnic::device
