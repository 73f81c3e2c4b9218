// The handles of the public API: framed streams.

#include "rnic/framed_stream.hpp"

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/port_use.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using verbs::error;
using verbs::guarded;
using verbs::guarded_or;
using verbs::on_worker;

namespace {

tl::unexpected<Error> too_long(size_t octets, const device::FramedSocket& socket) {
  const uint32_t limit = socket.pdu_limit();
  if (octets <= limit) {
    return error(ErrorCode::MessageSize, "EMSS has grown, a frame may have " +
                                             std::to_string(limit) +
                                             " octets now: make larger ones, or send again");
  }
  return error(ErrorCode::MessageSize,
               "a frame of " + std::to_string(octets) + " octets: in mode " +
                   to_string(socket.send_mode()) + " it may have " + std::to_string(limit) +
                   " now; cut it smaller (frame_limit()), or use marker mode");
}

tl::unexpected<Error> broken(framing::PduError cause) {
  return error(ErrorCode::Protocol,
               std::string("what the peer sends is not framed as agreed (") +
                   framing::to_string(cause) +
                   "): compare modes, keys and intervals of both ends; abort()");
}

}  // namespace

// --- FramedStream ---

FramedStream::FramedStream(std::shared_ptr<verbs::DeviceRuntime> device,
                           device::FramedSocket* socket)
    : TcpHandle(std::move(device), socket) {}

device::FramedSocket& FramedStream::socket() const {
  return static_cast<device::FramedSocket&>(*app_);
}

Result<size_t> FramedStream::send(std::span<const uint8_t> frame) {
  return guarded("FramedStream::send", [&]() -> Result<size_t> {
    if (!is_live()) return not_live();
    if (has_finished()) {
      return error(ErrorCode::WrongState,
                   "nothing can be sent after finish_sending(): use another stream");
    }
    if (const auto end = how_ended()) return failure(*end);
    if (frame.empty()) {
      return error(ErrorCode::InvalidArgument, "a frame has one octet at least");
    }
    if (!socket().is_established()) return 0;
    switch (socket().send({frame.data(), frame.size()})) {
      case tuf::SendResult::Ok: tell(); return frame.size();
      case tuf::SendResult::Full: return 0;
      case tuf::SendResult::MessageSize: return too_long(frame.size(), socket());
      case tuf::SendResult::Malformed:
        return error(ErrorCode::InvalidArgument,
                     "the frame's length field does not tell its length of " +
                         std::to_string(frame.size()) + " octets: write it as FrameFormat says");
      case tuf::SendResult::Closed: break;
    }
    return failure(how_ended().value_or(StreamEnd::Closed));
  });
}

/// The result of receive() and read(). `over` and `end` were read before the ring, so that the ring
/// holds everything that came before the end.
Result<size_t> FramedStream::taken(size_t octets, bool over, std::optional<StreamEnd> end) {
  if (octets != 0) {
    if (!end && socket().room_is_news()) tell();
    return octets;
  }
  if (socket().error() != framing::PduError::None) return broken(socket().error());
  if (end && *end != StreamEnd::Closed) return failure(*end);
  if (over && socket().unread() != 0) {
    return error(ErrorCode::Protocol, "the peer has finished inside a frame: connect again");
  }
  return 0;
}

Result<size_t> FramedStream::receive(std::span<uint8_t> buffer) {
  return guarded("FramedStream::receive", [&]() -> Result<size_t> {
    if (!is_live()) return not_live();
    const auto end = how_ended();
    const bool over = end || socket().peer_has_finished();
    const tuf::Received got = socket().receive({buffer.data(), buffer.size()});
    if (got.kind == tuf::ReceiveKind::NoRoom) {
      return error(ErrorCode::MessageSize, "the next frame has " + std::to_string(got.length) +
                                               " octets: give a buffer that holds it");
    }
    const bool plain = socket().receive_mode() == FramedReceiveMode::Plain;
    if (plain && buffer.empty()) return 0;
    return taken(got.kind == tuf::ReceiveKind::Pdu ? got.length : 0, over, end);
  });
}

Result<size_t> FramedStream::read(std::span<uint8_t> octets) {
  return guarded("FramedStream::read", [&]() -> Result<size_t> {
    if (!is_live()) return not_live();
    const auto end = how_ended();
    const bool over = end || socket().peer_has_finished();
    if (octets.empty()) return 0;
    return taken(socket().read({octets.data(), octets.size()}), over, end);
  });
}

size_t FramedStream::readable() const {
  if (!is_live()) return 0;
  if (socket().receive_mode() == FramedReceiveMode::Plain) return socket().unread();
  const tuf::Received next = socket().receive({});
  return next.kind == tuf::ReceiveKind::NoRoom ? next.length : 0;
}

bool FramedStream::writable(size_t octets) const {
  if (!is_live() || has_finished() || how_ended() || !socket().is_established()) return false;
  return octets != 0 && octets <= socket().pdu_limit() && socket().has_room(octets);
}

uint32_t FramedStream::frame_limit() const {
  return !is_live() || !socket().is_established() ? 0 : socket().pdu_limit();
}

uint32_t FramedStream::usable_emss() const { return !is_live() ? 0 : socket().usable_emss(); }

uint32_t FramedStream::emss_changes() const {
  return !is_live() ? 0 : socket().notices().emss_changes();
}

bool FramedStream::is_middlebox_suspected() const {
  return is_live() && socket().notices().is_middlebox_suspected();
}

bool FramedStream::supports(FramedSendMode mode) const {
  if (!is_live() || mode > FramedSendMode::Markers) return false;
  if (mode == FramedSendMode::Plain) return true;
  if (mode == FramedSendMode::Markers) return socket().began_with().format.tells_length();
  return socket().keeps_records();
}

bool FramedStream::supports(FramedReceiveMode mode) const {
  if (!is_live() || mode > FramedReceiveMode::Markers) return false;
  return mode != FramedReceiveMode::Markers || socket().began_with().format.tells_length();
}

FramedSendMode FramedStream::send_mode() const {
  return !is_live() ? FramedSendMode::Plain : socket().send_mode();
}

FramedReceiveMode FramedStream::receive_mode() const {
  return !is_live() ? FramedReceiveMode::Plain : socket().receive_mode();
}

uint16_t FramedStream::send_interval() const { return !is_live() ? 0 : socket().send_interval(); }

uint16_t FramedStream::receive_interval() const {
  return !is_live() ? 0 : socket().receive_interval();
}

bool FramedStream::packing() const { return is_live() && socket().packing(); }

// The worker changes the mode while this thread waits, so that the application side does not move.
template <typename Change>
Status FramedStream::change(Change&& make) {
  if (!is_live()) return not_live();
  return on_worker(*device_, [&](base::Now) -> Status {
    if (socket().stream() == nullptr) {
      return base::fail(ErrorCode::WrongState, "the stream has ended: use another one");
    }
    return make(socket());
  });
}

Status FramedStream::set_send_mode(FramedSendMode mode, uint64_t key) {
  return guarded("FramedStream::set_send_mode", [&]() -> Status {
    if (mode > FramedSendMode::Markers) {
      return error(ErrorCode::InvalidArgument,
                   "a mode without a name: use Plain, Atomic, Align or Markers of FramedSendMode");
    }
    if (is_live() && !supports(mode)) {
      return error(ErrorCode::Unsupported, "this stream cannot send in that mode: see supports()");
    }
    return change([&](device::FramedSocket& socket) {
      const Status known = mode == FramedSendMode::Align ? device::check_key(key) : Status{};
      return known ? socket.set_send_mode(mode, key) : known;
    });
  });
}

Status FramedStream::set_receive_mode(FramedReceiveMode mode, uint64_t key) {
  return guarded("FramedStream::set_receive_mode", [&]() -> Status {
    if (mode > FramedReceiveMode::Markers) {
      return error(ErrorCode::InvalidArgument,
                   "a mode without a name: use Plain, Align or Markers of FramedReceiveMode");
    }
    if (is_live() && !supports(mode)) {
      return error(ErrorCode::Unsupported,
                   "this stream cannot receive in that mode: see supports()");
    }
    return change([&](device::FramedSocket& socket) {
      const Status known = mode == FramedReceiveMode::Align ? device::check_key(key) : Status{};
      return known ? socket.set_receive_mode(mode, key) : known;
    });
  });
}

Status FramedStream::set_send_interval(uint16_t octets) {
  return guarded("FramedStream::set_send_interval", [&]() -> Status {
    return change([&](device::FramedSocket& socket) { return socket.set_send_interval(octets); });
  });
}

Status FramedStream::set_receive_interval(uint16_t octets) {
  return guarded("FramedStream::set_receive_interval", [&]() -> Status {
    return change(
        [&](device::FramedSocket& socket) { return socket.set_receive_interval(octets); });
  });
}

Status FramedStream::set_packing(bool on) {
  return guarded("FramedStream::set_packing", [&]() -> Status {
    return change([&](device::FramedSocket& socket) {
      socket.set_packing(on);
      return Status{};
    });
  });
}

Status FramedStream::set_emergency(bool on) {
  return guarded("FramedStream::set_emergency", [&]() -> Status {
    return change([&](device::FramedSocket& socket) {
      socket.set_emergency(on);
      return Status{};
    });
  });
}

Status FramedStream::set_max_frame(uint32_t octets) {
  return guarded("FramedStream::set_max_frame", [&]() -> Status {
    return change([&](device::FramedSocket& socket) {
      Status possible = device::check_pdu_max(octets, socket.began_with().format);
      if (possible) socket.set_max_pdu(octets);
      return possible;
    });
  });
}

// --- FramedStreamListener ---

std::optional<FramedStream> FramedStreamListener::accept() {
  if (!is_live()) return std::nullopt;
  device::FramedSocket* socket = static_cast<device::FramedListener&>(*app_).next();
  if (socket == nullptr) return std::nullopt;
  return FramedStream(device_, socket);
}

// --- Device ---

uint64_t Device::new_framing_key() {
  return guarded_or(uint64_t{0}, [&] {
    return on_worker(*device_, [&](base::Now) {
      uint64_t key = 0;
      while (key == 0) key = device_->device->next_framing_key();
      return key;
    });
  });
}

Result<FramedStreamListener> Device::listen_framed(uint16_t port,
                                                   const FramedListenerOptions& options) {
  return listen_framed(Endpoint{{}, port}, options);
}

Result<FramedStreamListener> Device::listen_framed(const Endpoint& local,
                                                   const FramedListenerOptions& options) {
  return guarded("Device::listen_framed", [&] {
    verbs::PortUse port(local);
    return listen_for_framed(port, options);
  });
}

Result<FramedStreamListener> Device::listen_framed(PortReservation& port,
                                                   const FramedListenerOptions& options) {
  return guarded("Device::listen_framed", [&] {
    verbs::PortUse use("listen", port, *device_);
    return listen_for_framed(use, options);
  });
}

Result<FramedStreamListener> Device::listen_for_framed(verbs::PortUse& port,
                                                       const FramedListenerOptions& options) {
  if (!port.status()) return tl::unexpected(port.status().error());
  using Made = Result<device::FramedListener*>;
  auto made = on_worker(*device_, [&](base::Now) -> Made {
    device::Device& device = *device_->device;
    const auto own = tcp::merged(device.default_options(), options.stream);
    if (!own) return tl::unexpected(own.error());
    return device.listen_framed(port.local(), options.backlog, *own, options.framing, port.claim());
  });
  if (!made) return tl::unexpected(made.error());
  port.done();
  return FramedStreamListener(device_, *made);
}

Result<FramedStream> Device::connect_framed(const Endpoint& remote, const FramingOptions& framing,
                                            const StreamOptions& options) {
  return guarded("Device::connect_framed", [&]() -> Result<FramedStream> {
    auto socket = on_worker(*device_, [&](base::Now now) -> Result<device::FramedSocket*> {
      device::Device& device = *device_->device;
      const auto own = tcp::merged(device.default_options(), options);
      if (!own) return tl::unexpected(own.error());
      return device.connect_framed(remote, *own, framing, now);
    });
    if (!socket) return tl::unexpected(socket.error());
    return FramedStream(device_, *socket);
  });
}

}  // namespace rnic
