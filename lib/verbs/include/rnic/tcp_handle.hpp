/// \file
/// TcpHandle: what an application sees of a TCP connection, whatever it carries. The base of Stream
/// and of FramedStream; and the base of their listeners.
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

/// One thread at a time for each handle. No call takes a lock or waits for the worker.
class TcpHandle {
 public:
  /// Octets sent that the peer's TCP has not acknowledged; of a framed stream with 4 for each
  /// frame; 0 while it carries RDMA.
  [[nodiscard]] uint64_t unacknowledged() const;
  /// The peer has finished sending and everything was received.
  [[nodiscard]] bool at_end() const;

  /// Half close: the peer sees the end behind what was sent. Receiving goes on.
  void finish_sending();
  /// Lets the connection go. What was sent is still delivered in the background, then the
  /// connection is closed; what was received and nobody took makes it end by RST (RFC 9293
  /// s.3.6.1). To be sure that the peer's application got everything, finish_sending() and wait for
  /// at_end() first.
  void close();
  /// RST. What the peer has not acknowledged is lost.
  void abort();

  [[nodiscard]] StreamState state() const;
  /// Nothing until state() is Ended.
  [[nodiscard]] std::optional<StreamEnd> how_ended() const;
  /// Success while it lives and when it ended Closed; otherwise what happened, in one line.
  [[nodiscard]] Status status() const;

  // Which to_string() makes a text of: "10.0.0.1:49160"; of an empty handle nothing and port 0.
  [[nodiscard]] Endpoint local() const;
  [[nodiscard]] Endpoint remote() const;
  [[nodiscard]] bool is_valid() const { return app_ != nullptr; }

 protected:
  TcpHandle() = default;
  TcpHandle(std::shared_ptr<verbs::DeviceRuntime> device, device::AppSocket* socket)
      : device_(std::move(device)), app_(socket) {}
  TcpHandle(TcpHandle&& other) noexcept;
  TcpHandle& operator=(TcpHandle&& other) noexcept;
  /// close().
  ~TcpHandle();

  /// Rings the socket's doorbell.
  void tell() const;
  [[nodiscard]] bool has_finished() const { return finished_; }
  /// It has a socket, which is not the parent's of this process.
  [[nodiscard]] bool is_live() const;
  /// Why a call on one that is not fails.
  [[nodiscard]] tl::unexpected<Error> not_live() const;
  /// Why a call fails: the application's own doing, or how the connection ended.
  [[nodiscard]] tl::unexpected<Error> failure(StreamEnd end) const;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::AppSocket* app_ = nullptr;  // nullptr after close()

 private:
  bool finished_ = false;
};

/// Accepts connections to one port. Destroyed, it stops listening and aborts what was not accepted.
class TcpListener {
 public:
  /// What is listened on; an unspecified address: all of the device's.
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
