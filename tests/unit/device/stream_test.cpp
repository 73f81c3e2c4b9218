// Streaming sockets of two devices on a simulated link: life, limits, ends.

#include "stream_pair.hpp"
#include "support/live_memory.hpp"

namespace rnic::device {
namespace {

TEST_F(Streams, OctetsBothWays) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  EXPECT_EQ(pair[0]->local(), pair[1]->remote());
  EXPECT_EQ(pair[0]->remote(), pair[1]->local());
  EXPECT_EQ(left().device->streams().shared().rings.taken(), 0u);  // idle: no memory
  const auto there = octets(10000, 1);
  const auto back = octets(12345, 2);
  send(left(), pair[0], there);
  send(right(), pair[1], back);
  EXPECT_EQ(receive(right(), pair[1], there.size()), there);
  EXPECT_EQ(receive(left(), pair[0], back.size()), back);
  EXPECT_EQ(left().device->streams().shared().rings.taken(), 2u);
  finish(pair);
  listener->stop(now_);
  expect_nothing_left();
}

// An active open that has begun is counted by who opened it, and one that cannot begin is not.
TEST_F(Streams, OpensAreCounted) {
  StreamListener* listener = listen();
  const auto first = connected(listener);
  const auto second = connected(listener);
  const Endpoint own{left().device->config().net.address, kStreamPort};
  EXPECT_FALSE(left().device->connect_stream(own, {}, now_).has_value());
  EXPECT_EQ(left().device->device_counters().streams_opened, 2u);
  EXPECT_EQ(right().device->device_counters().streams_opened, 0u);
  finish(first);
  finish(second);
}

TEST_F(Streams, AHalfClosedStreamStillReceives) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  send(left(), pair[0], octets(100, 3));
  tell(left(), pair[0], StreamSocket::kFinish);
  EXPECT_TRUE(run_until([&] { return pair[1]->peer_has_finished(); }));
  EXPECT_EQ(receive(right(), pair[1], 100), octets(100, 3));
  EXPECT_FALSE(pair[1]->how_ended());
  const auto back = octets(5 * kRing, 4);
  size_t sent = 0;
  std::vector<uint8_t> got;
  ASSERT_TRUE(pair[1]->reserve_ring().has_value());
  EXPECT_TRUE(run_until([&] {
    sent += pair[1]->put(base::ByteView(back).subspan(sent));
    tell(right(), pair[1]);
    std::array<uint8_t, 3000> piece;
    got.insert(got.end(), piece.begin(), piece.begin() + pair[0]->take(piece));
    if (pair[0]->room_is_news()) tell(left(), pair[0]);
    return got.size() == back.size();
  }));
  EXPECT_EQ(got, back);
  tell(right(), pair[1], StreamSocket::kFinish);
  EXPECT_TRUE(run_until([&] { return pair[0]->how_ended() && pair[1]->how_ended(); }));
  EXPECT_EQ(pair[0]->how_ended(), StreamEnd::Closed);
  release(pair);
  expect_nothing_left();
}

// The peer is told of room by eighths of the ring, and of the last octet.
TEST_F(Streams, RoomIsNewsByEighths) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  send(left(), pair[0], octets(kRing / 2, 3));
  ASSERT_TRUE(run_until([&] { return pair[1]->readable() == kRing / 2; }));
  std::vector<uint8_t> out(kRing);
  const auto take = [&](uint32_t n) { return pair[1]->take(base::ByteSpan(out).first(n)); };
  EXPECT_FALSE(pair[1]->room_is_news());
  EXPECT_EQ(take(kRing / 8 - 1), kRing / 8 - 1);
  EXPECT_FALSE(pair[1]->room_is_news());
  EXPECT_EQ(take(1), 1u);
  EXPECT_TRUE(pair[1]->room_is_news());
  tell(right(), pair[1]);
  run_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(pair[1]->room_is_news());
  EXPECT_EQ(take(kRing / 2 - kRing / 8 - 1), kRing / 2 - kRing / 8 - 1);
  tell(right(), pair[1]);
  run_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(pair[1]->room_is_news());
  EXPECT_EQ(take(1), 1u);
  EXPECT_TRUE(pair[1]->room_is_news()) << "the ring is empty";
  finish(pair);
  expect_nothing_left();
}

TEST_F(Streams, AHalfClosedStreamLivesAsLongAsItIsHeld) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  tell(left(), pair[0], StreamSocket::kFinish);
  run_for(std::chrono::minutes(10));  // tcp.close_timeout is 5 s
  EXPECT_FALSE(pair[0]->how_ended());
  EXPECT_FALSE(pair[1]->how_ended());
  send(right(), pair[1], octets(100, 3));
  EXPECT_EQ(receive(left(), pair[0], 100), octets(100, 3));
  // Let go, its peer has to end soon.
  release({pair[0], nullptr});
  run_for(std::chrono::seconds(4));
  EXPECT_FALSE(pair[1]->how_ended());
  run_for(std::chrono::seconds(10));
  EXPECT_EQ(pair[1]->how_ended(), StreamEnd::PeerReset);
  release({nullptr, pair[1]});
  expect_nothing_left();
}

TEST_F(Streams, WhatWasPutBeforeTheHandshakeIsSent) {
  StreamListener* listener = listen();
  StreamSocket* near = connect();
  ASSERT_TRUE(near->reserve_ring().has_value());
  EXPECT_EQ(near->put(octets(500, 9)), 500u);
  tell(left(), near, StreamSocket::kFinish);
  StreamSocket* far = nullptr;
  ASSERT_TRUE(run_until([&] { return (far = listener->next()) != nullptr; }));
  EXPECT_EQ(receive(right(), far, 500), octets(500, 9));
  EXPECT_TRUE(run_until([&] { return far->peer_has_finished(); }));
  release({near, far});
  expect_nothing_left();
}

TEST_F(Streams, AbortIsAReset) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  send(left(), pair[0], octets(100, 3));
  ASSERT_TRUE(run_until([&] { return pair[1]->readable() == 100; }));
  tell(left(), pair[0], StreamSocket::kAbort);
  EXPECT_TRUE(run_until([&] { return pair[0]->how_ended() && pair[1]->how_ended(); }));
  EXPECT_EQ(pair[0]->how_ended(), StreamEnd::Aborted);
  EXPECT_EQ(pair[1]->how_ended(), StreamEnd::PeerReset);
  EXPECT_EQ(receive(right(), pair[1], 100), octets(100, 3));  // what came is still there
  release(pair);
  expect_nothing_left();
}

// TCP-9293-3.6.1-01
TEST_F(Streams, ClosedWithUnreadOctetsIsAReset) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  send(left(), pair[0], octets(100, 3));
  ASSERT_TRUE(run_until([&] { return pair[1]->readable() == 100; }));
  release({nullptr, pair[1]});
  EXPECT_TRUE(run_until([&] { return pair[0]->how_ended().has_value(); }));
  EXPECT_EQ(pair[0]->how_ended(), StreamEnd::PeerReset);
  EXPECT_EQ(right().device->tcp_counters().half_duplex_resets, 1u);
  release({pair[0], nullptr});
  expect_nothing_left();
}

// TCP-9293-3.6.1-01
TEST_F(Streams, OctetsForAClosedStreamAreAnsweredByAReset) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  release({nullptr, pair[1]});
  ASSERT_TRUE(run_until([&] { return pair[0]->peer_has_finished(); }));
  EXPECT_FALSE(pair[0]->how_ended());
  send(left(), pair[0], octets(1, 3));
  EXPECT_TRUE(run_until([&] { return pair[0]->how_ended().has_value(); }));
  EXPECT_EQ(pair[0]->how_ended(), StreamEnd::PeerReset);
  EXPECT_EQ(right().device->tcp_counters().half_duplex_resets, 1u);
  release({pair[0], nullptr});
  expect_nothing_left();
}

TEST_F(Streams, AClosedStreamDeliversWhatWasSent) {
  StreamListener* listener = listen();
  const auto pair = connected(listener);
  send(left(), pair[0], octets(kRing, 3));
  release({pair[0], nullptr});
  EXPECT_EQ(receive(right(), pair[1], kRing), octets(kRing, 3));
  EXPECT_TRUE(run_until([&] { return pair[1]->peer_has_finished(); }));
  release({nullptr, pair[1]});
  expect_nothing_left();
}

TEST_F(Streams, NobodyListens) {
  StreamSocket* near = connect();
  EXPECT_TRUE(run_until([&] { return near->how_ended().has_value(); }));
  EXPECT_EQ(near->how_ended(), StreamEnd::Refused);
  EXPECT_FALSE(near->is_established());
  release({near, nullptr});
  expect_nothing_left();
}

TEST_F(Streams, AConnectingStreamIsLetGo) {
  // Nobody has this address.
  const auto made =
      left().device->connect_stream({IpAddress::v4(0x0a00004d), kStreamPort}, {}, now_);
  ASSERT_TRUE(made.has_value());
  StreamSocket* near = *made;
  run_for(std::chrono::milliseconds(5));
  release({near, nullptr});
  EXPECT_TRUE(run_until([&] { return left().device->streams().live() == 0; }));
}

TEST_F(Streams, AFullBacklogRefuses) {
  StreamListener* listener = listen(2);
  std::array<StreamSocket*, 3> near{connect(), connect(), connect()};
  EXPECT_TRUE(run_until([&] {
    return std::any_of(near.begin(), near.end(), [](auto* s) { return s->how_ended(); });
  }));
  EXPECT_EQ(right().device->device_counters().streams_accepted, 2u);
  EXPECT_EQ(right().device->device_counters().streams_refused, 1u);
  for (StreamSocket* socket : near) release({socket, nullptr});
  while (StreamSocket* far = listener->next()) release({nullptr, far});
  expect_nothing_left();
}

TEST_F(Streams, UnlistenAbortsWhatNobodyAccepted) {
  StreamListener* listener = listen();
  StreamSocket* near = connect();
  ASSERT_TRUE(run_until([&] { return right().device->streams().live() == 1; }));
  listener->stop(now_);
  EXPECT_TRUE(run_until([&] { return near->how_ended().has_value(); }));
  EXPECT_EQ(near->how_ended(), StreamEnd::PeerReset);
  release({near, nullptr});
  expect_nothing_left();
}

TEST_F(Streams, NoMoreThanTheLimit) {
  std::vector<StreamSocket*> sockets;
  for (int i = 0; i < 8; ++i) sockets.push_back(connect());
  const auto more = left().device->connect_stream(right_end(kStreamPort), {}, now_);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(more.error().message.find("limits.max_streams"), std::string::npos);
  for (StreamSocket* socket : sockets) release({socket, nullptr});
  expect_nothing_left();
}

TEST_F(Streams, AddressesAndBacklogsThatCannotBe) {
  EXPECT_FALSE(right().device->listen_stream({{}, kStreamPort}, 0, {}).has_value());
  EXPECT_FALSE(right().device->listen_stream({{}, kStreamPort}, 9, {}).has_value());
  EXPECT_FALSE(right().device->listen_stream({IpAddress::v4(0x0a0000fe), 0}, 1, {}).has_value());
  listen();
  const auto twice = right().device->listen_stream({{}, kStreamPort}, 1, {});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, ErrorCode::AlreadyExists);
  const auto nowhere =
      left().device->connect_stream({IpAddress::v4(0xe0000001), kStreamPort}, {}, now_);
  EXPECT_FALSE(nowhere.has_value());
  EXPECT_EQ(left().device->streams().live(), 0u);
}

// Where no way leads is told, with what helps, and nothing is begun.
TEST_F(Streams, AConnectWithoutARouteIsTold) {
  Device& device = *left().device;
  const auto far = device.connect_stream({IpAddress::v4(0xc0a80001), kStreamPort}, {}, now_);
  ASSERT_FALSE(far.has_value());
  EXPECT_EQ(far.error().code, ErrorCode::Unreachable);
  EXPECT_NE(far.error().message.find("configure a gateway"), std::string::npos);
  const auto own = device.connect_stream({device.config().net.address, kStreamPort}, {}, now_);
  ASSERT_FALSE(own.has_value());
  EXPECT_EQ(own.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(own.error().message.find("this device's own address"), std::string::npos);
  EXPECT_EQ(device.device_counters().streams_opened, 0u);
}

/// The devices differ from the defaults in what every connection of theirs shall be.
class OwnOptions : public Streams {
 protected:
  OwnOptions()
      : Streams([](DeviceConfig& config) {
          config.tcp.nagle = !tcp::Config{}.nagle;
          config.tcp.user_timeout = std::chrono::seconds(77);
        }) {}
};

// A stream without options of its own gets those of the device's configuration.
TEST_F(OwnOptions, StreamsHaveThemUnlessToldOtherwise) {
  const auto listener = right().device->listen_stream({{}, kStreamPort}, 4);
  ASSERT_TRUE(listener.has_value());
  const auto near = left().device->connect_stream(right_end(kStreamPort), {}, now_);
  ASSERT_TRUE(near.has_value());
  StreamSocket* far = nullptr;
  ASSERT_TRUE(run_until([&] { return (far = (*listener)->next()) != nullptr; }));
  for (const auto& options :
       {left().device->streams().options(**near), right().device->streams().options(*far),
        Result<tcp::ConnectionOptions>(left().device->default_options())}) {
    ASSERT_TRUE(options.has_value());
    EXPECT_EQ(options->nagle, !tcp::Config{}.nagle);
    EXPECT_EQ(options->user_timeout, std::chrono::seconds(77));
  }
}

/// Rings for one stream's send and one stream's receive, at either side.
// What keeps the sockets that nobody needs any more is emptied with them: however many there were.
TEST_F(Streams, SocketsThatAreGoneCostNoMemory) {
  StreamListener* listener = listen();
  const auto waves = [&](int n) {
    while (n-- != 0) {
      finish(connected(listener));
      run_until([&] {
        return left().device->streams().live() == 0 && right().device->streams().live() == 0;
      });
      run_for(std::chrono::milliseconds(100));  // out of TIME-WAIT
    }
    return test::live_octets();
  };
  const int64_t before = waves(12);
  EXPECT_EQ(waves(60), before);
}

class ScarceRings : public Streams {
 protected:
  ScarceRings() : Streams([](DeviceConfig& config) { config.limits.stream_octets = 2 * kRing; }) {}
};

TEST_F(ScarceRings, OthersWaitUntilOneIsGivenBack) {
  StreamListener* listener = listen();
  const auto first = connected(listener);
  const auto second = connected(listener);
  const auto third = connected(listener);
  send(left(), first[0], octets(100, 1));
  send(left(), second[0], octets(100, 2));
  EXPECT_EQ(receive(right(), first[1], 100), octets(100, 1));
  EXPECT_EQ(receive(right(), second[1], 100), octets(100, 2));
  const auto none = third[0]->reserve_ring();
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("limits.stream_octets"), std::string::npos);
  finish(first);
  ASSERT_TRUE(run_until([&] { return left().device->streams().shared().rings.taken() == 1; }));
  send(left(), third[0], octets(100, 3));
  EXPECT_EQ(receive(right(), third[1], 100), octets(100, 3));
  finish(second);
  finish(third);
  expect_nothing_left();
}

TEST_F(ScarceRings, AReceiverWithoutARingMakesThePeerRepeat) {
  StreamListener* listener = listen();
  const auto first = connected(listener);
  const auto second = connected(listener);
  ASSERT_TRUE(first[1]->reserve_ring().has_value());
  ASSERT_TRUE(second[1]->reserve_ring().has_value());
  send(left(), first[0], octets(100, 1));
  run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(first[1]->readable(), 0u);
  EXPECT_GT(right().device->device_counters().stream_buffer_waits, 0u);
  tell(right(), second[1], StreamSocket::kAbort | StreamSocket::kRelease);
  EXPECT_EQ(receive(right(), first[1], 100), octets(100, 1));
  finish(first);
  release({second[0], nullptr});
  expect_nothing_left();
}

}  // namespace
}  // namespace rnic::device
