// The handles of the public API: streaming sockets.

#include "rnic/stream.hpp"

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/port_use.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using tcp::merged;
using verbs::error;
using verbs::guarded;
using verbs::on_worker;

namespace {

tl::unexpected<Error> converted() {
  return error(ErrorCode::WrongState,
               "the stream carries RDMA, and its octets are the queue pair's: use that");
}

}  // namespace

// --- Stream ---

Stream::Stream(std::shared_ptr<verbs::DeviceRuntime> device, device::StreamSocket* socket)
    : TcpHandle(std::move(device), socket) {}

device::StreamSocket& Stream::socket() const { return static_cast<device::StreamSocket&>(*app_); }

Result<size_t> Stream::send(std::span<const uint8_t> octets) {
  return guarded("Stream::send", [&]() -> Result<size_t> {
    if (!is_live()) return not_live();
    if (has_finished()) {
      return error(ErrorCode::WrongState,
                   "nothing can be sent after finish_sending(): use another stream");
    }
    if (const auto end = how_ended()) return failure(*end);
    if (socket().is_converted()) return converted();
    if (octets.empty()) return 0;
    if (!socket().has_send_ring()) {
      const Status status = on_worker(*device_, [&](base::Now) { return socket().reserve_ring(); });
      if (!status) return tl::unexpected(status.error());
    }
    const uint32_t taken = socket().put({octets.data(), octets.size()});
    if (taken != 0) tell();
    return taken;
  });
}

Result<size_t> Stream::receive(std::span<uint8_t> octets) {
  return guarded("Stream::receive", [&]() -> Result<size_t> {
    if (!is_live()) return not_live();
    // The end is read before the ring, so that the ring holds everything that came before the end.
    const auto end = how_ended();
    if (!end && socket().is_converted()) return converted();
    const uint32_t got = socket().take({octets.data(), octets.size()});
    if (got != 0 && !end && socket().room_is_news()) tell();
    if (got != 0 || octets.empty() || !end || *end == StreamEnd::Closed) return got;
    return failure(*end);
  });
}

uint64_t Stream::readable() const { return !is_live() || is_converted() ? 0 : socket().readable(); }

uint64_t Stream::writable() const {
  if (!is_live() || has_finished() || how_ended() || is_converted()) return 0;
  return socket().has_send_ring() ? socket().writable() : socket().ring_octets();
}

Status Stream::await_rdma(std::span<const uint8_t> last_message) {
  return guarded("Stream::await_rdma", [&]() -> Status {
    if (!is_live()) return not_live();
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->await_rdma(socket(), {last_message.data(), last_message.size()}, now);
    });
  });
}

bool Stream::is_converted() const { return is_live() && socket().is_converted(); }

Status Stream::set_options(const StreamOptions& options) {
  return guarded("Stream::set_options", [&]() -> Status {
    if (!is_live()) return not_live();
    return on_worker(*device_, [&](base::Now now) -> Status {
      device::StreamTable& streams = device_->device->streams();
      const auto before = streams.options(socket());
      if (!before) return tl::unexpected(before.error());
      const auto after = merged(*before, options);
      if (!after) return tl::unexpected(after.error());
      return streams.set_options(socket(), *after, now);
    });
  });
}

// --- StreamListener ---

std::optional<Stream> StreamListener::accept() {
  if (!is_live()) return std::nullopt;
  device::StreamSocket* socket = static_cast<device::StreamListener&>(*app_).next();
  if (socket == nullptr) return std::nullopt;
  return Stream(device_, socket);
}

// --- Device ---

Result<StreamListener> Device::listen_stream(uint16_t port, const StreamListenerOptions& options) {
  return listen_stream(Endpoint{{}, port}, options);
}

Result<StreamListener> Device::listen_stream(const Endpoint& local,
                                             const StreamListenerOptions& options) {
  return guarded("Device::listen_stream", [&] {
    verbs::PortUse port(local);
    return listen_for_streams(port, options);
  });
}

Result<StreamListener> Device::listen_stream(PortReservation& port,
                                             const StreamListenerOptions& options) {
  return guarded("Device::listen_stream", [&] {
    verbs::PortUse use("listen", port, *device_);
    return listen_for_streams(use, options);
  });
}

Result<StreamListener> Device::listen_for_streams(verbs::PortUse& port,
                                                  const StreamListenerOptions& options) {
  if (!port.status()) return tl::unexpected(port.status().error());
  using Made = Result<device::StreamListener*>;
  auto made = on_worker(*device_, [&](base::Now) -> Made {
    device::Device& device = *device_->device;
    const auto own = merged(device.default_options(), options.stream);
    if (!own) return tl::unexpected(own.error());
    return device.listen_stream(port.local(), options.backlog, *own, port.claim());
  });
  if (!made) return tl::unexpected(made.error());
  port.done();
  return StreamListener(device_, *made);
}

Result<Stream> Device::connect_stream(const Endpoint& remote, const StreamOptions& options) {
  return guarded("Device::connect_stream", [&]() -> Result<Stream> {
    auto socket = on_worker(*device_, [&](base::Now now) -> Result<device::StreamSocket*> {
      device::Device& device = *device_->device;
      const auto own = merged(device.default_options(), options);
      if (!own) return tl::unexpected(own.error());
      return device.connect_stream(remote, *own, now);
    });
    if (!socket) return tl::unexpected(socket.error());
    return Stream(device_, *socket);
  });
}

}  // namespace rnic
