/// \file
/// Streaming sockets of a Device: plain TCP connections on the device's own stack, beside its queue
/// pairs. For start-up phases, tools and tests.
///
///     auto listener = device.listen_stream(7000);
///     while (!(stream = listener->accept())) context.poll();
///     auto got = stream->receive(buffer);
///
/// No call blocks. A stream has two rings of memory: send() puts in as much as there is room for,
/// and receive() takes what is there. Each ring has `limits.stream_buffer` octets, is taken when it
/// is first used, and all rings together have at most `limits.stream_octets`. The device moves
/// octets between rings and network while it is polled (inline) or by its worker (threaded). To
/// wait, call Context::wait_until() with readable(), writable() or state().
///
/// Threads: one thread at a time for each Stream and for each StreamListener. In a threaded context
/// send(), receive(), finish_sending(), close(), abort() and accept() take no lock and never wait
/// for the worker, except the first send() of a stream, for which the worker takes the ring.
///
/// Ownership: the objects are handles. Destroying a Stream closes it; destroying a StreamListener
/// stops listening and aborts connections that were not accepted. Handles may be destroyed in any
/// order, before and after the context: its devices go with the last handle, and reset what is
/// still connected then. Until then workers serve the streams, while of inline devices nothing
/// moves unless somebody polls them (Device::poll()).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rnic/error.hpp"
#include "rnic/tcp_handle.hpp"
#include "rnic/tcp_options.hpp"
#include "rnic/transport.hpp"

namespace rnic {

namespace device {
class StreamSocket;
}  // namespace device

/// The options of one stream, framed or not: those of the TCP that it is.
using StreamOptions = TcpOptions;

struct StreamListenerOptions {
  /// Connections that wait for accept(), 1 to limits.max_streams; more are refused (RST). Nothing:
  /// 128, or limits.max_streams if that is less.
  std::optional<uint32_t> backlog{};
  StreamOptions stream{};  ///< options of accepted connections
};

/// One TCP connection.
class Stream : public TcpHandle {
 public:
  Stream() = default;

  /// Queues octets to be sent. \return how many were taken: 0 when the ring is full. WrongState:
  /// after finish_sending(). ResourceExhausted: there is no ring for the stream
  /// (limits.stream_octets). The error of the stream when it has ended.
  Result<size_t> send(std::span<const uint8_t> octets);
  /// Takes received octets. \return how many: 0 when nothing is there now, or at_end(). Octets that
  /// came before the stream ended can still be taken; after them the error of the stream is
  /// returned, unless it ended Closed.
  Result<size_t> receive(std::span<uint8_t> octets);

  [[nodiscard]] uint64_t readable() const;  ///< octets that receive() would give
  [[nodiscard]] uint64_t writable() const;  ///< octets that send() would take

  /// Makes an RDMA connection of the stream, as the responder (RFC 5044 section 7.1.3): sends
  /// `last_message`, the last octets of the streaming phase, and waits for the peer's MPA Request,
  /// which comes as a ConnectRequest event. After QueuePair::accept() the connection belongs to the
  /// queue pair; after Device::reject() the stream streams again. Until then send() and receive()
  /// are refused. WrongState, and nothing changes, when the stream is not open both ways or octets
  /// of the peer are unread. InvalidArgument: `last_message` is longer than limits.stream_buffer. A
  /// stream can be converted once. The call waits for the worker.
  Status await_rdma(std::span<const uint8_t> last_message = {});
  /// \return whether the stream carries RDMA or its MPA start-up
  [[nodiscard]] bool is_converted() const;

  /// Changes the options that are set in `options`. InvalidArgument: a value is out of its range.
  /// WrongState: the stream has ended. The call waits for the worker.
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

  /// The connection that has waited longest, if one waits. It may have ended in the meantime.
  std::optional<Stream> accept();

 private:
  friend class Device;
  using TcpListener::TcpListener;
};

}  // namespace rnic
