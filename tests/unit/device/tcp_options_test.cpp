// What an application chooses for TCP below an RDMA connection, or below those of a listener: seen
// on the wire from the handshake on, and at no other connection.

#include "device_pair.hpp"
#include "support/fake_nic.hpp"
#include "wire/tcp.hpp"

namespace rnic::device {
namespace {

/// Two devices on NICs whose frames are looked at.
class TcpChoices : public ::testing::Test {
 protected:
  struct Seen {
    bool syn = false;
    bool ece_and_cwr = false;
    uint8_t traffic_class = 0;
    uint8_t ttl = 0;
    uint16_t port = 0;  // the listener's
  };

  TcpChoices() {
    base::set_log_level(base::LogLevel::Off);
    for (uint32_t i = 0; i < 2; ++i) {
      DeviceConfig config;
      config.net.address = IpAddress::v4(0x0a000001 + i);
      config.seed = i + 1;
      hosts_[i] = std::make_unique<Host>(config, nics_[i]->queue(0), now_);
      // What comes to a NIC was sent by the other one.
      nics_[i]->passes = [this, i](const std::vector<uint8_t>& frame) {
        look(1 - i, frame);
        return !cut_;
      };
    }
  }
  Host& left() { return *hosts_[0]; }
  Host& right() { return *hosts_[1]; }

  void look(uint32_t sender, const std::vector<uint8_t>& frame) {
    if (base::load_be16(frame.data() + wire::kEtherTypeAt) != wire::kEtherTypeIpv4) return;
    const uint8_t* const ip = frame.data() + wire::kEtherHeader;
    const uint8_t* const tcp = ip + wire::kIpv4Header;
    seen_[sender].push_back({(tcp[13] & 0x02) != 0, (tcp[13] & 0xc0) == 0xc0,
                             static_cast<uint8_t>(ip[1] & 0xfc), ip[8],
                             base::load_be16(tcp + (sender == 0 ? 2 : 0))});
  }
  bool run_until(const std::function<bool()>& done, base::Duration limit) {
    const base::Now end = now_ + limit;
    while (now_ < end && !done()) {
      const uint32_t work = left().device->poll(now_) + right().device->poll(now_);
      const base::Now next =
          base::earlier(left().device->next_deadline(), right().device->next_deadline());
      now_ += work != 0 ? base::Duration(1000)
                        : std::clamp(next - now_, base::Duration(1000), base::Duration(10'000'000));
    }
    return done();
  }
  /// \return the left end
  QueuePair* connect(uint16_t port, const ConnectOptions& options,
                     const ConnectOptions& answer = {}) {
    QueuePair* a = left().make_qp();
    QueuePair* b = right().make_qp();
    EXPECT_TRUE(left()
                    .device->connect(*a, {IpAddress::v4(0x0a000002), port}, {}, now_, options)
                    .has_value());
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }, kPatience));
    const auto asked = right().take<event::ConnectRequest>();
    EXPECT_TRUE(right().device->accept(asked->request, *b, {}, now_, answer).has_value());
    EXPECT_TRUE(run_until([&] { return left().has<event::Established>(); }, kPatience));
    left().take<event::Established>();
    return a;
  }

  static constexpr base::Duration kPatience = std::chrono::seconds(10);
  base::Now now_ = base::from_nanos(1'000'000'000);
  std::array<std::vector<Seen>, 2> seen_;  // by sender; devices that end send, too
  bool cut_ = false;
  std::vector<std::unique_ptr<test::FakeNic>> nics_ = test::connected_nics(1500);
  std::array<std::unique_ptr<Host>, 2> hosts_;
};

TEST_F(TcpChoices, AreObeyedFromTheFirstSegmentOn) {
  const ListenOptions marked{.tcp = {.ecn = Ecn::Accept, .dscp = 10, .hop_limit = 7}};
  ASSERT_TRUE(right().device->listen({{}, 7000}, marked).has_value());
  ASSERT_TRUE(right().device->listen({{}, 7001}).has_value());
  connect(7000, {.tcp = {.ecn = Ecn::Offer, .dscp = 46, .hop_limit = 9}});
  connect(7001, {});
  ASSERT_FALSE(seen_[0].empty() || seen_[1].empty());
  for (const Seen& frame : seen_[0]) {
    EXPECT_EQ(frame.traffic_class, frame.port == 7000 ? 46 << 2 : 0);
    EXPECT_EQ(frame.ttl, frame.port == 7000 ? 9 : 64);
    EXPECT_EQ(frame.syn && frame.ece_and_cwr, frame.syn && frame.port == 7000)
        << "RFC 3168 s.6.1.1";
  }
  for (const Seen& frame : seen_[1]) {
    EXPECT_EQ(frame.traffic_class, frame.port == 7000 ? 10 << 2 : 0);
    EXPECT_EQ(frame.ttl, frame.port == 7000 ? 7 : 64);
  }
}

TEST_F(TcpChoices, OfAnAnswerReplaceThoseOfTheListener) {
  const ListenOptions marked{.tcp = {.dscp = 10, .hop_limit = 7}};
  ASSERT_TRUE(right().device->listen({{}, 7000}, marked).has_value());
  connect(7000, {}, {.tcp = {.dscp = 20}});
  seen_[1].clear();
  run_until([] { return false; }, std::chrono::milliseconds(300));
  QueuePair* again = connect(7000, {}, {.tcp = {.dscp = 20}});
  ASSERT_TRUE(left().device->disconnect(*again).has_value());
  run_until([] { return false; }, std::chrono::seconds(1));
  EXPECT_EQ(seen_[1].front().traffic_class, 10 << 2) << "the handshake is the listener's";
  EXPECT_EQ(seen_[1].back().traffic_class, 20 << 2);
  for (const Seen& frame : seen_[1]) EXPECT_EQ(frame.ttl, 7);
}

TEST_F(TcpChoices, ChangeWhileTheConnectionLives) {
  ASSERT_TRUE(right().device->listen({{}, 7000}).has_value());
  QueuePair* const qp = connect(7000, {.tcp = {.dscp = 46, .hop_limit = 9}});
  const auto modify = [&](const QueuePairChange& change) {
    return left().device->modify_qp(*qp, change, now_);
  };
  ASSERT_TRUE(modify({.answer_close = false, .tcp = TcpOptions{.dscp = 20}}).has_value());
  seen_[0].clear();
  ASSERT_TRUE(left().device->disconnect(*qp).has_value());
  run_until([] { return false; }, std::chrono::milliseconds(100));
  ASSERT_FALSE(seen_[0].empty());
  for (const Seen& frame : seen_[0]) {
    EXPECT_EQ(frame.traffic_class, 20 << 2);
    EXPECT_EQ(frame.ttl, 9) << "what is not set stays";
  }
  const auto refused = [&](const QueuePairChange& change, ErrorCode code, const char* word) {
    const Status status = modify(change);
    ASSERT_FALSE(status.has_value()) << word;
    EXPECT_EQ(status.error().code, code);
    EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
  };
  refused({.tcp = TcpOptions{.dscp = 64}}, ErrorCode::InvalidArgument, "QueuePairChange::tcp");
  refused({.state = QueuePairState::Error, .tcp = TcpOptions{.dscp = 1}},
          ErrorCode::InvalidArgument, "where the state changes");
  EXPECT_NE(qp->state(), QueuePairState::Error);
  QueuePair* const idle = left().make_qp();
  const Status none = left().device->modify_qp(*idle, {.tcp = TcpOptions{.dscp = 1}}, now_);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::WrongState);
}

// RFC 6581 s.10: the second attempt is another connection, with the same options.
TEST_F(TcpChoices, HoldForASecondAttempt) {
  ASSERT_TRUE(right().device->listen({{}, 7000}, {.start = {.revision = 1}}).has_value());
  connect(7000, {.tcp = {.dscp = 46}});
  EXPECT_EQ(left().device->device_counters().connects_redialed, 1u);
  EXPECT_EQ(std::count_if(seen_[0].begin(), seen_[0].end(), [](const Seen& f) { return f.syn; }),
            2);
  for (const Seen& frame : seen_[0]) EXPECT_EQ(frame.traffic_class, 46 << 2);
}

TEST_F(TcpChoices, ASilentPeerIsProbedWhereItWasAsked) {
  ASSERT_TRUE(right().device->listen({{}, 7000}).has_value());
  connect(7000, {});
  run_until([] { return false; }, std::chrono::seconds(30));
  EXPECT_EQ(left().device->tcp_counters().keep_alive_probes, 0u);
  connect(7000, {.tcp = {.keep_alive = true,
                         .keep_alive_idle = std::chrono::seconds(2),
                         .keep_alive_interval = std::chrono::seconds(1),
                         .keep_alive_count = 3}});
  run_until([] { return false; }, std::chrono::seconds(5));
  EXPECT_GE(left().device->tcp_counters().keep_alive_probes, 2u);
  cut_ = true;
  EXPECT_TRUE(
      run_until([&] { return left().has<event::Disconnected>(); }, std::chrono::seconds(10)));
  EXPECT_EQ(left().device->tcp_counters().keep_alive_timeouts, 1u);
}

TEST_F(TcpChoices, ABadOneIsRefusedAndBeginsNothing) {
  QueuePair* a = left().make_qp();
  const Endpoint there{IpAddress::v4(0x0a000002), 7000};
  for (const TcpOptions& bad :
       {TcpOptions{.keep_alive_count = 1}, TcpOptions{.user_timeout = std::chrono::milliseconds(0)},
        TcpOptions{.dscp = 64}, TcpOptions{.max_segment = 63},
        TcpOptions{.keep_alive_idle = std::chrono::milliseconds(-1)},
        TcpOptions{.congestion_control = static_cast<CongestionControl>(9)}}) {
    const Status refused = left().device->connect(*a, there, {}, now_, {.tcp = bad});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_FALSE(a->used());
    EXPECT_FALSE(right().device->listen({{}, 7000}, {.tcp = bad}).has_value());
  }
  EXPECT_EQ(left().device->live_connections(), 0u);
}

}  // namespace
}  // namespace rnic::device
