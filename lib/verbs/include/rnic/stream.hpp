/// \file
/// Streaming sockets of a Device: plain TCP connections on the device's own stack, beside its queue
/// pairs. For start-up phases, tools and tests.
///
///     auto listener = device.listen_stream(7000);
///     while (!(stream = listener->accept())) context.poll();
///     auto got = stream->receive(buffer);
///
/// Nothing blocks. send() and receive() move what there is room for, or what is there, through two
/// rings of memory that a stream has (key `limits.stream_buffer`, taken when first used, together
/// at most `limits.stream_octets`); the device moves the rest while it is polled (inline) or by its
/// worker (threaded). Waiting is Context::wait_until() with readable(), writable() or state().
///
/// Threads: one thread at a time for each Stream and for each StreamListener. In a threaded context
/// send(), receive(), finish_sending(), close(), abort() and accept() take no lock and never wait
/// for the worker, but for the first send() of a stream, which takes its ring there.
///
/// Ownership: handles; destroying a Stream closes it, destroying a StreamListener stops listening
/// and aborts what was not accepted. Destroy them before the context.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rnic/error.hpp"
#include "rnic/tcp_handle.hpp"
#include "rnic/transport.hpp"

namespace rnic {

namespace device {
class StreamSocket;
}  // namespace device

/// What one stream has its own way; what is not given is as the configuration says for all. Times
/// are 0 to 4,294,967,295 ms (49 days).
struct StreamOptions {
  std::optional<CongestionControl> congestion_control;
  std::optional<Ecn> ecn;          ///< counts at the handshake only
  std::optional<bool> pacing;      ///< spread a window over the round trip
  std::optional<bool> nagle;       ///< gather small sends (RFC 9293 s.3.7.4)
  std::optional<bool> keep_alive;  ///< probe a silent peer (RFC 9293 s.3.8.4)
  std::optional<std::chrono::milliseconds> keep_alive_idle;      ///< silence before the first probe
  std::optional<std::chrono::milliseconds> keep_alive_interval;  ///< between probes
  std::optional<uint32_t> keep_alive_count;  ///< probes without an answer before the end
  std::optional<std::chrono::milliseconds> user_timeout;  ///< without progress for so long: the end
  std::optional<uint8_t> dscp;                            ///< 0..63 (RFC 2474)
  std::optional<uint8_t> hop_limit;                       ///< TTL
  std::optional<uint16_t> max_segment;                    ///< octets of a segment's payload at most
};

struct StreamListenerOptions {
  uint32_t backlog = 128;  ///< connections that wait for accept(); more are refused (RST)
  StreamOptions stream;    ///< of the connections accepted
};

/// One TCP connection.
class Stream : public TcpHandle {
 public:
  Stream() = default;

  /// Queues octets to be sent. \return how many were taken: 0 when the ring is full.
  /// WrongState after finish_sending(); the error of the stream when it has ended;
  /// ResourceExhausted when there is no ring for it (limits.stream_octets).
  Result<size_t> send(std::span<const uint8_t> octets);
  /// Takes received octets. \return how many: 0 when nothing is there now, or at_end(). What came
  /// before a stream ended is still given; then the error of the stream, unless it ended Closed.
  Result<size_t> receive(std::span<uint8_t> octets);

  [[nodiscard]] uint64_t readable() const;  ///< octets that receive() has
  [[nodiscard]] uint64_t writable() const;  ///< octets that send() would take

  /// Makes an RDMA connection of the stream, as the side that is asked (RFC 5044 section 7.1.3):
  /// sends `last_message`, the last octets that it streams, and waits for the peer's MPA Request,
  /// which comes as a ConnectRequest event. After QueuePair::accept() the connection is the queue
  /// pair's; after Device::reject() the stream streams again. Until then send() and receive() are
  /// refused. WrongState, and nothing changes, when the stream is not open both ways or octets of
  /// the peer are unread. A stream is converted once. Waits for the worker.
  Status await_rdma(std::span<const uint8_t> last_message = {});
  /// It carries RDMA, or its MPA start-up.
  [[nodiscard]] bool is_converted() const;

  /// Changes what is given. InvalidArgument for a value out of its range, WrongState when it has
  /// ended. Waits for the worker.
  Status set_options(const StreamOptions& options);

 private:
  friend class Device;
  friend class QueuePair;
  friend class StreamListener;
  Stream(std::shared_ptr<verbs::DeviceRuntime> device, device::StreamSocket* socket);
  [[nodiscard]] device::StreamSocket& socket() const;
};

/// Accepts connections to one port.
class StreamListener : public TcpListener {
 public:
  StreamListener() = default;

  /// The oldest connection that waits, if there is one. It may have ended in the meantime.
  std::optional<Stream> accept();

 private:
  friend class Device;
  using TcpListener::TcpListener;
};

}  // namespace rnic
