// The handles of the public API: streaming sockets.

#include "rnic/stream.hpp"

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using verbs::guarded;
using verbs::guarded_or;
using verbs::merged;
using verbs::on_worker;
using verbs::quietly;
using verbs::stream_failure;

const char* to_string(StreamState state) {
  switch (state) {
    case StreamState::Connecting: return "connecting";
    case StreamState::Open: return "open";
    case StreamState::Ended: return "ended";
  }
  return "unknown";
}

namespace {

tl::unexpected<Error> error(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message)});
}

tl::unexpected<Error> gone() {
  return error(ErrorCode::WrongState, "the stream was closed by this side");
}

tl::unexpected<Error> converted() {
  return error(ErrorCode::WrongState, "the stream carries RDMA: its octets are the queue pair's");
}

}  // namespace

namespace verbs {

tl::unexpected<Error> stream_failure(StreamEnd end, const std::string& peer) {
  switch (end) {
    case StreamEnd::Closed:
      return error(ErrorCode::WrongState, "the connection to " + peer + " is closed");
    case StreamEnd::PeerReset: return error(ErrorCode::Reset, peer + " has reset the connection");
    case StreamEnd::TimedOut:
      return error(ErrorCode::TimedOut,
                   peer + " does not answer: is it there, and is there a way to it?");
    case StreamEnd::Refused:
      return error(ErrorCode::Unreachable, peer + " refuses connections: does a program listen?");
    case StreamEnd::Unreachable:
      return error(ErrorCode::Unreachable, "the network says that there is no way to " + peer);
    case StreamEnd::Aborted:
      return error(ErrorCode::Reset, "the connection to " + peer + " was aborted by this side");
  }
  return gone();
}

namespace {

Status take(const char* name, const std::optional<std::chrono::milliseconds>& given,
            base::Duration& out) {
  if (!given) return {};
  if (given->count() < 0 || given->count() > UINT32_MAX) {
    return error(
        ErrorCode::InvalidArgument,
        std::string(name) + " is " + std::to_string(given->count()) + " ms: 0 to 4294967295 ms");
  }
  out = *given;
  return {};
}

}  // namespace

Result<tcp::ConnectionOptions> merged(tcp::ConnectionOptions out, const StreamOptions& given) {
  if (given.congestion_control) {
    out.congestion_control = *given.congestion_control;
  }
  if (given.ecn) out.ecn = *given.ecn;
  out.pacing = given.pacing.value_or(out.pacing);
  out.nagle = given.nagle.value_or(out.nagle);
  out.keep_alive = given.keep_alive.value_or(out.keep_alive);
  out.keep_alive_count = given.keep_alive_count.value_or(out.keep_alive_count);
  Status times = take("keep_alive_idle", given.keep_alive_idle, out.keep_alive_idle);
  if (times)
    times = take("keep_alive_interval", given.keep_alive_interval, out.keep_alive_interval);
  if (times) times = take("user_timeout", given.user_timeout, out.user_timeout);
  if (!times) return tl::unexpected(times.error());
  out.dscp = given.dscp.value_or(out.dscp);
  out.hop_limit = given.hop_limit.value_or(out.hop_limit);
  out.max_segment = given.max_segment.value_or(out.max_segment);
  return out;
}

}  // namespace verbs

// --- Stream ---

Stream::Stream(Stream&& other) noexcept { *this = std::move(other); }

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(socket_, other.socket_);
  std::swap(finished_, other.finished_);
  return *this;
}

Stream::~Stream() { close(); }

void Stream::tell() const {
  device_->device->ring_stream_doorbell(socket_->number());
  if (device_->worker != nullptr) device_->worker->wake();
}

Result<size_t> Stream::send(std::span<const uint8_t> octets) {
  return guarded("Stream::send", [&]() -> Result<size_t> {
    if (socket_ == nullptr) return gone();
    if (finished_) {
      return error(ErrorCode::WrongState, "nothing can be sent after finish_sending()");
    }
    if (const auto end = how_ended()) return stream_failure(*end, remote());
    if (socket_->is_lent()) return converted();
    if (octets.empty()) return 0;
    if (!socket_->has_send_ring()) {
      const Status status = on_worker(
          *device_, [&](base::Now) { return device_->device->streams().reserve_send(*socket_); });
      if (!status) return tl::unexpected(status.error());
    }
    const uint32_t taken = socket_->put({octets.data(), octets.size()});
    if (taken != 0) tell();
    return taken;
  });
}

Result<size_t> Stream::receive(std::span<uint8_t> octets) {
  return guarded("Stream::receive", [&]() -> Result<size_t> {
    if (socket_ == nullptr) return gone();
    // Before the look into the ring: what is there after the end was seen is all there is.
    const auto end = how_ended();
    if (!end && socket_->is_lent()) return converted();
    const uint32_t got = socket_->take({octets.data(), octets.size()});
    if (got != 0 && !end && socket_->room_is_news()) tell();
    if (got != 0 || octets.empty() || !end || *end == StreamEnd::Closed) return got;
    return stream_failure(*end, remote());
  });
}

uint64_t Stream::readable() const {
  return socket_ == nullptr || is_converted() ? 0 : socket_->readable();
}

uint64_t Stream::writable() const {
  if (socket_ == nullptr || finished_ || how_ended() || is_converted()) return 0;
  return socket_->has_send_ring() ? socket_->writable() : socket_->ring_octets();
}

uint64_t Stream::unacknowledged() const {
  return socket_ == nullptr || is_converted() ? 0 : socket_->unacknowledged();
}

bool Stream::at_end() const {
  if (socket_ == nullptr) return true;
  const bool over = socket_->peer_has_finished() || how_ended() == StreamEnd::Closed;
  return over && socket_->readable() == 0;
}

void Stream::finish_sending() {
  if (socket_ == nullptr || std::exchange(finished_, true)) return;
  socket_->wish(device::StreamSocket::kFinish);
  tell();
}

void Stream::close() {
  if (socket_ == nullptr) return;
  const uint32_t number = socket_->number();
  // From here on the socket may be gone at any time.
  std::exchange(socket_, nullptr)->wish(device::StreamSocket::kRelease);
  device_->device->ring_stream_doorbell(number);
  if (device_->worker != nullptr) device_->worker->wake();
}

void Stream::abort() {
  if (socket_ == nullptr) return;
  socket_->wish(device::StreamSocket::kAbort);
  tell();
}

Status Stream::await_rdma(std::span<const uint8_t> last_message) {
  return guarded("Stream::await_rdma", [&]() -> Status {
    if (socket_ == nullptr) return gone();
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->await_rdma(*socket_, {last_message.data(), last_message.size()}, now);
    });
  });
}

bool Stream::is_converted() const { return socket_ != nullptr && socket_->is_lent(); }

Status Stream::set_options(const StreamOptions& options) {
  return guarded("Stream::set_options", [&]() -> Status {
    if (socket_ == nullptr) return gone();
    return on_worker(*device_, [&](base::Now now) -> Status {
      device::StreamTable& streams = device_->device->streams();
      const auto before = streams.options(*socket_);
      if (!before) return tl::unexpected(before.error());
      const auto after = merged(*before, options);
      if (!after) return tl::unexpected(after.error());
      return streams.set_options(*socket_, *after, now);
    });
  });
}

StreamState Stream::state() const {
  if (socket_ == nullptr || how_ended()) return StreamState::Ended;
  return socket_->is_established() ? StreamState::Open : StreamState::Connecting;
}

std::optional<StreamEnd> Stream::how_ended() const {
  if (socket_ == nullptr) return StreamEnd::Closed;
  const auto end = socket_->how_ended();
  if (!end) return std::nullopt;
  return *end;
}

Status Stream::status() const {
  return guarded("Stream::status", [&]() -> Status {
    const auto end = how_ended();
    if (!end || *end == StreamEnd::Closed) return {};
    return stream_failure(*end, remote());
  });
}

std::string Stream::local() const {
  return guarded_or(std::string{}, [&]() -> std::string {
    return socket_ == nullptr ? "" : to_string(socket_->local());
  });
}

std::string Stream::remote() const {
  return guarded_or(std::string{}, [&]() -> std::string {
    return socket_ == nullptr ? "" : to_string(socket_->remote());
  });
}

// --- StreamListener ---

StreamListener::StreamListener(StreamListener&& other) noexcept { *this = std::move(other); }

StreamListener& StreamListener::operator=(StreamListener&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(listener_, other.listener_);
  return *this;
}

StreamListener::~StreamListener() {
  if (device_ == nullptr) return;
  quietly([this] {
    on_worker(*device_,
              [&](base::Now now) { device_->device->streams().unlisten(*listener_, now); });
  });
}

std::optional<Stream> StreamListener::accept() {
  device::StreamSocket* socket = listener_ == nullptr ? nullptr : listener_->next();
  if (socket == nullptr) return std::nullopt;
  return Stream(device_, socket);
}

uint16_t StreamListener::port() const { return listener_ == nullptr ? 0 : listener_->local().port; }

// --- Device ---

Result<StreamListener> Device::listen_stream(uint16_t port, const StreamListenerOptions& options) {
  return guarded("Device::listen_stream", [&]() -> Result<StreamListener> {
    if (port == 0) return error(ErrorCode::InvalidArgument, "port 0 cannot be listened on");
    const auto local = parse_endpoint(options.address, port);
    if (!local) return tl::unexpected(local.error());
    using Made = decltype(device_->device->listen_stream(*local, 0, {}));
    auto made = on_worker(*device_, [&](base::Now) -> Made {
      device::Device& device = *device_->device;
      const auto own = merged(device.default_options(), options.stream);
      if (!own) return tl::unexpected(own.error());
      return device.listen_stream(*local, options.backlog, *own);
    });
    if (!made) return tl::unexpected(made.error());
    StreamListener listener;
    listener.device_ = device_;
    listener.listener_ = *made;
    return listener;
  });
}

Result<Stream> Device::connect_stream(const std::string& address, uint16_t port,
                                      const StreamOptions& options) {
  return guarded("Device::connect_stream", [&]() -> Result<Stream> {
    auto ip = parse_ip(address);
    if (!ip) return tl::unexpected(ip.error());
    if (port == 0) return error(ErrorCode::InvalidArgument, "port 0 cannot be connected to");
    auto socket = on_worker(*device_, [&](base::Now now) -> Result<device::StreamSocket*> {
      device::Device& device = *device_->device;
      const auto own = merged(device.default_options(), options);
      if (!own) return tl::unexpected(own.error());
      return device.connect_stream({*ip, port}, *own, now);
    });
    if (!socket) return tl::unexpected(socket.error());
    return Stream(device_, *socket);
  });
}

}  // namespace rnic
