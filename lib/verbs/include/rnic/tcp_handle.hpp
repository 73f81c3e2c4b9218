/// \file
/// TcpHandle: the application's view of a TCP connection, whatever it carries; the base of Stream
/// and of FramedStream. TcpListener: the base of their listeners.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rnic/address.hpp"
#include "rnic/error.hpp"
#include "rnic/transport.hpp"

namespace rnic {

namespace verbs {
struct DeviceRuntime;
}  // namespace verbs
namespace device {
class AppListener;
class AppSocket;
}  // namespace device

/// One thread at a time for each handle. No call takes a lock or waits for the worker. An empty
/// handle, closed or never filled, is at the end of a connection that ended Closed.
class TcpHandle {
 public:
  /// Octets sent that the peer's TCP has not acknowledged. A framed stream counts 4 more for each
  /// frame. 0 while the connection carries RDMA.
  [[nodiscard]] uint64_t unacknowledged() const;
  /// The peer has finished sending and everything was received.
  [[nodiscard]] bool at_end() const;

  /// Half close: the peer sees the end behind what was sent. Receiving goes on.
  void finish_sending();
  /// Gives the connection up and empties the handle. Octets sent are still delivered in the
  /// background, then the connection is closed; if received octets were not taken it ends by RST
  /// (RFC 9293 s.3.6.1). To be sure that the peer's application got everything, call
  /// finish_sending() and wait for at_end() first.
  void close();
  /// Resets the connection (RST). Octets that the peer has not acknowledged are lost.
  void abort();

  [[nodiscard]] StreamState state() const;
  /// How the connection ended; nothing until state() is Ended.
  [[nodiscard]] std::optional<StreamEnd> how_ended() const;
  /// Success while the connection lives and if it ended Closed; otherwise an error with one line
  /// about what happened.
  [[nodiscard]] Status status() const;

  // The two ends; to_string() gives "10.0.0.1:49160". An empty handle, and one of this process's
  // parent, has an unspecified address and port 0.
  [[nodiscard]] Endpoint local() const;
  [[nodiscard]] Endpoint remote() const;
  [[nodiscard]] bool is_valid() const { return app_ != nullptr; }

 protected:
  TcpHandle() = default;
  TcpHandle(std::shared_ptr<verbs::DeviceRuntime> device, device::AppSocket* socket)
      : device_(std::move(device)), app_(socket) {}
  TcpHandle(TcpHandle&& other) noexcept;
  TcpHandle& operator=(TcpHandle&& other) noexcept;
  /// Calls close().
  ~TcpHandle();

  /// Rings the socket's doorbell.
  void tell() const;
  [[nodiscard]] bool has_finished() const { return finished_; }
  /// \return whether the handle has a socket that belongs to this process and not to its parent
  [[nodiscard]] bool is_live() const;
  /// The error of a call when is_live() is false.
  [[nodiscard]] tl::unexpected<Error> not_live() const;
  /// The error of a call on a connection that has ended so, perhaps by the application's own doing.
  [[nodiscard]] tl::unexpected<Error> failure(StreamEnd end) const;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::AppSocket* app_ = nullptr;  // nullptr after close()

 private:
  bool finished_ = false;
};

/// Accepts connections to one port. The destructor stops listening and aborts connections that were
/// not accepted.
class TcpListener {
 public:
  /// The endpoint listened on; an unspecified address stands for all addresses of the device.
  [[nodiscard]] Endpoint local() const;

 protected:
  TcpListener() = default;
  TcpListener(std::shared_ptr<verbs::DeviceRuntime> device, device::AppListener* listener)
      : device_(std::move(device)), app_(listener) {}
  TcpListener(TcpListener&& other) noexcept;
  TcpListener& operator=(TcpListener&& other) noexcept;
  ~TcpListener();
  /// As TcpHandle::is_live().
  [[nodiscard]] bool is_live() const;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::AppListener* app_ = nullptr;

 private:
  void stop() noexcept;
};

}  // namespace rnic
