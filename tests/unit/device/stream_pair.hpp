/// \file
/// Two devices with streaming sockets on a simulated link.
#pragma once

#include "device_pair.hpp"

namespace rnic::device {

inline constexpr uint16_t kStreamPort = 9000;
inline constexpr uint32_t kRing = 16 * 1024;

class Streams : public DevicePair {
 protected:
  Streams() : Streams([](DeviceConfig&) {}) {}
  explicit Streams(const Tweak& tweak)
      : DevicePair([&](DeviceConfig& config) {
          config.limits.max_streams = 8;
          config.limits.stream_buffer = kRing;
          config.limits.stream_octets = 16 * kRing;
          config.tcp.time_wait = std::chrono::milliseconds(10);
          tweak(config);
        }) {}

  StreamListener* listen(uint32_t backlog = 4) {
    auto listener = right().device->listen_stream({{}, kStreamPort}, backlog, {});
    EXPECT_TRUE(listener.has_value());
    return *listener;
  }
  StreamSocket* connect() {
    auto socket = left().device->connect_stream(right_end(kStreamPort), {}, now_);
    EXPECT_TRUE(socket.has_value()) << socket.error().message;
    return *socket;
  }
  /// A connection: [0] ours on the left, [1] the accepted one on the right.
  std::array<StreamSocket*, 2> connected(StreamListener* listener) {
    StreamSocket* near = connect();
    StreamSocket* far = nullptr;
    EXPECT_TRUE(run_until([&] { return (far = listener->next()) != nullptr; }));
    EXPECT_TRUE(run_until([&] { return near->is_established(); }));
    return {near, far};
  }
  static void tell(Host& host, StreamSocket* socket, uint8_t wishes = 0) {
    const uint32_t number = socket->doorbell();
    if (wishes != 0) socket->request(wishes);
    host.device->ring_doorbell(number);
  }
  void send(Host& host, StreamSocket* socket, const std::vector<uint8_t>& octets) {
    EXPECT_TRUE(socket->reserve_ring().has_value());
    size_t sent = 0;
    EXPECT_TRUE(run_until([&] {
      sent += socket->put(base::ByteView(octets).subspan(sent));
      tell(host, socket);
      return sent == octets.size();
    }));
  }
  std::vector<uint8_t> receive(Host& host, StreamSocket* socket, size_t n) {
    std::vector<uint8_t> all(n);
    size_t got = 0;
    EXPECT_TRUE(run_until([&] {
      got += socket->take(base::ByteSpan(all).subspan(got));
      if (socket->room_is_news()) tell(host, socket);
      return got == n;
    })) << got;
    return all;
  }
  /// Both ends finish, see the other's end, and are let go.
  void finish(std::array<StreamSocket*, 2> pair) {
    tell(left(), pair[0], StreamSocket::kFinish);
    tell(right(), pair[1], StreamSocket::kFinish);
    EXPECT_TRUE(run_until([&] { return pair[0]->how_ended() && pair[1]->how_ended(); }));
    EXPECT_EQ(pair[0]->how_ended(), StreamEnd::Closed);
    EXPECT_EQ(pair[1]->how_ended(), StreamEnd::Closed);
    release(pair);
  }
  void release(std::array<StreamSocket*, 2> pair) {
    if (pair[0] != nullptr) tell(left(), pair[0], StreamSocket::kRelease);
    if (pair[1] != nullptr) tell(right(), pair[1], StreamSocket::kRelease);
  }
  void expect_nothing_left() {
    run_until([&] {
      return left().device->streams().live() == 0 && right().device->streams().live() == 0;
    });
    for (Host* host : {&left(), &right()}) {
      EXPECT_EQ(host->device->streams().live(), 0u);
      EXPECT_EQ(host->device->streams().shared().rings.taken(), 0u);
    }
    expect_all_returned();
  }
};

}  // namespace rnic::device
