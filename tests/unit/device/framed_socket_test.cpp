// Sockets of framed streams in their table: what an application left, wished for early, or asked
// for in vain.

#include "device_pair.hpp"
#include "support/live_memory.hpp"

namespace rnic::device {
namespace {

class FramedSockets : public DevicePair {
 protected:
  static constexpr uint16_t kFrames = 9100;

  FramedSockets()
      : DevicePair([](DeviceConfig& config) {
          config.limits.max_framed_streams = 8;
          config.tcp.time_wait = std::chrono::milliseconds(10);
        }) {}

  FramedListener* listen() {
    return *right().device->listen_framed({{}, kFrames}, 4, right().device->default_options(),
                                          FramingOptions::plain());
  }
  FramedSocket* connect() {
    return *left().device->connect_framed(right_end(kFrames), left().device->default_options(),
                                          FramingOptions::plain(), now_);
  }
  FramedSocket* accepted(FramedListener* listener) {
    FramedSocket* socket = nullptr;
    EXPECT_TRUE(run_until([&] { return (socket = listener->next()) != nullptr; }));
    return socket;
  }
  static void tell(Host& host, FramedSocket* socket, uint8_t wishes) {
    const uint32_t number = socket->doorbell();
    socket->request(wishes);
    host.device->ring_doorbell(number);
  }
  [[nodiscard]] bool none_left() {
    return left().device->framed().live() == 0 && right().device->framed().live() == 0;
  }
};

TEST_F(FramedSockets, EachSideKnowsBothEndpoints) {
  FramedListener* listener = listen();
  FramedSocket* near = connect();
  FramedSocket* far = accepted(listener);
  EXPECT_EQ(near->remote(), right_end(kFrames));
  EXPECT_EQ(near->local().address, left().device->config().net.address);
  EXPECT_EQ(far->local(), near->remote());
  EXPECT_EQ(far->remote(), near->local());
}

// The connection is gone from TCP, not from the application.
TEST_F(FramedSockets, AreThereUntilTheApplicationLetsThemGo) {
  FramedListener* listener = listen();
  FramedSocket* near = connect();
  FramedSocket* far = accepted(listener);
  tell(left(), near, FramedSocket::kFinish);
  tell(right(), far, FramedSocket::kFinish);
  ASSERT_TRUE(run_until([&] { return near->how_ended() && far->how_ended(); }));
  run_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(left().device->quiescent());
  EXPECT_FALSE(right().device->quiescent());
  tell(left(), near, FramedSocket::kRelease);
  tell(right(), far, FramedSocket::kRelease);
  EXPECT_TRUE(run_until([&] { return none_left(); }));
  EXPECT_TRUE(left().device->quiescent());
}

// To finish alone is a wish as the others are: the half close comes with the handshake.
TEST_F(FramedSockets, AWishFromBeforeTheHandshakeIsObeyed) {
  FramedListener* listener = listen();
  FramedSocket* near = connect();
  tell(left(), near, FramedSocket::kFinish);
  FramedSocket* far = accepted(listener);
  tell(right(), far, FramedSocket::kFinish);
  EXPECT_TRUE(run_until([&] { return near->how_ended() && far->how_ended(); }));
  EXPECT_EQ(near->how_ended(), StreamEnd::Closed);
}

// Marker mode needs frames that tell their length.
TEST_F(FramedSockets, ASetupThatCannotBeTakesNoPlace) {
  FramingOptions setup;
  setup.send_mode = FramedSendMode::Markers;
  setup.format.length_octets = 0;
  const Endpoint local{left().device->config().net.address, 0};
  FramedTable& table = left().device->framed();
  for (int i = 0; i < 20; ++i) {  // more often than there are places
    const auto refused =
        table.connect(local, right_end(kFrames), left().device->default_options(), setup, now_);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::Unsupported) << refused.error().message;
    run_for(std::chrono::milliseconds(100));
    EXPECT_EQ(table.live(), 0u);
  }
}

// What nobody has accepted is reset with its listener.
TEST_F(FramedSockets, UnlistenAbortsWhatNobodyAccepted) {
  FramedListener* listener = listen();
  FramedSocket* near = connect();
  ASSERT_TRUE(run_until([&] { return right().device->framed().live() == 1; }));
  run_for(std::chrono::milliseconds(10));
  listener->stop(now_);
  EXPECT_TRUE(run_until([&] { return near->how_ended() && right().device->framed().live() == 0; }));
  EXPECT_EQ(near->how_ended(), StreamEnd::PeerReset);
}

TEST_F(FramedSockets, ThoseThatAreGoneCostNoMemory) {
  FramedListener* listener = listen();
  const auto waves = [&](int n) {
    while (n-- != 0) {
      FramedSocket* near = connect();
      FramedSocket* far = accepted(listener);
      tell(left(), near, FramedSocket::kFinish | FramedSocket::kRelease);
      tell(right(), far, FramedSocket::kFinish | FramedSocket::kRelease);
      EXPECT_TRUE(run_until([&] { return none_left(); }));
      run_for(std::chrono::milliseconds(100));  // out of TIME-WAIT
    }
    return test::live_octets();
  };
  const int64_t before = waves(12);
  EXPECT_EQ(waves(60), before);
}

// A stream that cannot be begun gives its place and its rings back.
TEST_F(FramedSockets, AConnectWithoutARouteTakesNoPlace) {
  FramedTable& table = left().device->framed();
  const Endpoint local{left().device->config().net.address, 0};
  const Endpoint nowhere{IpAddress::v4(0), kFrames};
  for (int i = 0; i < 20; ++i) {  // more often than there are places
    const auto refused = table.connect(local, nowhere, left().device->default_options(),
                                       FramingOptions::plain(), now_);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument) << refused.error().message;
    EXPECT_EQ(table.live(), 0u);
    EXPECT_EQ(table.shared().rings.taken(), 0u);
  }
}

// A length field has four octets at most, and where there is none it is nowhere.
TEST_F(FramedSockets, FormatsThatCanBe) {
  const auto checked = [](uint8_t at, uint8_t octets) {
    FramingOptions setup = FramingOptions::plain();
    setup.format = {at, octets, 0};
    return FramedKind::check(setup);
  };
  for (uint8_t octets = 0; octets < 8; ++octets) {
    EXPECT_EQ(checked(0, octets).has_value(), octets <= 4) << int{octets};
    EXPECT_EQ(checked(9, octets).has_value(), octets >= 1 && octets <= 4) << int{octets};
  }
  EXPECT_EQ(checked(0, 5).error().code, ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace rnic::device
