/// \file
/// Streaming sockets of a device: plain TCP beside the queue pairs, for start-up phases, tools and
/// tests.
///
/// The worker owns streams and listeners; an application thread works on a StreamSocket through its
/// two byte rings and its commands, and rings its doorbell.
///
/// The stream of a socket can become an RDMA connection (RFC 5044 s.7.1.3): from the position of
/// that change on, its octets belong to the MPA session, for good or until a reject ends MPA.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "device/socket_table.hpp"
#include "llp/stream_switch.hpp"
#include "mpa/mpa.hpp"
#include "tcp/byte_stream.hpp"
#include "tcp/ring_pool.hpp"

namespace rnic::device {

class StreamSocket;

/// Plain streams have nothing to choose at their beginning.
struct StreamSetup {};

/// The memory of all rings, and the counter of waits for a ring.
struct StreamShared {
  StreamShared(const Limits& limits, DeviceCounters& counters)
      : rings(limits.stream_buffer,
              static_cast<uint32_t>(limits.stream_octets / std::max(limits.stream_buffer, 1u))),
        buffer_waits(counters.stream_buffer_waits) {}

  [[nodiscard]] uint32_t first_room() const { return rings.block_octets(); }

  tcp::RingPool rings;  // a socket takes each of its rings when it first needs it
  uint64_t& buffer_waits;
};

struct StreamKind {
  using Octets = tcp::ByteStream;
  using Socket = StreamSocket;
  using Setup = StreamSetup;
  [[nodiscard]] static Status check(const Setup&) { return {}; }
  using Shared = StreamShared;
  static uint32_t max_sockets(const Limits& limits) { return limits.max_streams; }
  static constexpr const char* kLimit = "limits.max_streams";
  static constexpr const char* kName = "streaming socket";
  static constexpr const char* kListen = "listen_stream";
  static constexpr uint32_t kBacklog = 128;
  static constexpr uint64_t DeviceCounters::*kOpened = &DeviceCounters::streams_opened;
  static constexpr uint64_t DeviceCounters::*kAccepted = &DeviceCounters::streams_accepted;
  static constexpr uint64_t DeviceCounters::*kRefused = &DeviceCounters::streams_refused;
  static constexpr const char* kWithoutPort =
      "a device on sockets of the system has no streams of plain octets: open a socket of the "
      "system itself, or give the device a port of its own";
};

class StreamSocket final : public TcpSocket<StreamKind> {
 public:
  StreamSocket(const Place<StreamSocket>& place, const StreamSetup&, StreamShared& shared);

  // --- Application side ---

  /// \return whether an MPA session has the stream; if so, nothing may be put or taken
  [[nodiscard]] bool is_converted() const override {
    return converted_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint64_t unacknowledged_octets() const override {
    return is_converted() ? 0 : ByteStream::unacknowledged();
  }

  // --- Worker's side ---

  Status begin(llp::Stream& stream, const StreamSetup&) {
    attach(stream);
    return {};
  }
  /// Takes the ring for octets to be sent. ResourceExhausted when limits.stream_octets are in use.
  Status reserve_ring();
  /// Success when a conversion now would lose no octets that came; otherwise the reason.
  [[nodiscard]] Status can_be_converted() const;
  /// The octets that follow in either direction belong to the session. \param session is attached
  /// to stream()
  void convert_to(mpa::Session& session, base::ByteView last_message, base::Now now);
  /// The session has left MPA: the octets that follow belong to the application again.
  void stream_again(mpa::Session& session, base::Now now);

  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void validate() const {
    ByteStream::validate();
    switch_.validate();
  }

 private:
  StreamShared& shared_;
  std::atomic<bool> converted_{false};
  llp::StreamSwitch switch_;  // the user of the stream from convert_to() on
};

using StreamTable = SocketTable<StreamKind>;
using StreamListener = SocketListener<StreamKind>;

}  // namespace rnic::device
