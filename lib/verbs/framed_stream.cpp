// The handles of the public API: framed streams.

#include "rnic/framed_stream.hpp"

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using verbs::guarded;
using verbs::guarded_or;
using verbs::on_worker;
using verbs::quietly;
using verbs::stream_failure;

namespace {

tl::unexpected<Error> refusal(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message)});
}

tl::unexpected<Error> let_go() {
  return refusal(ErrorCode::WrongState, "the stream was closed by this side");
}

device::FramedSetup setup(const FramingOptions& options) {
  device::FramedSetup out;
  const FrameFormat& format = options.format;
  out.stream.format = {format.length_at, format.length_octets, format.adds};
  out.stream.packing = options.packing;
  out.stream.emergency = options.emergency;
  out.stream.emsgsize_on_growth = options.refuse_on_growth;
  out.stream.max_pdu = options.max_frame;
  out.stream.send_interval = options.send_interval;
  out.stream.receive_interval = options.receive_interval;
  out.stream.middlebox_limit = options.middlebox_limit;
  out.send = options.send_mode;
  out.receive = options.receive_mode;
  out.send_key = options.send_key;
  out.receive_key = options.receive_key;
  return out;
}

tl::unexpected<Error> too_long(size_t octets, const device::FramedSocket& socket) {
  const uint32_t limit = socket.pdu_limit();
  if (octets <= limit) {
    return refusal(ErrorCode::MessageSize, "EMSS has grown, a frame may have " +
                                               std::to_string(limit) +
                                               " octets now: make larger ones, or send again");
  }
  return refusal(ErrorCode::MessageSize,
                 "a frame of " + std::to_string(octets) + " octets: in mode " +
                     to_string(socket.send_mode()) + " it may have " + std::to_string(limit) +
                     " now; cut it smaller (frame_limit()), or use marker mode");
}

tl::unexpected<Error> broken(tuf::Error error) {
  return refusal(ErrorCode::Protocol,
                 std::string("what the peer sends is not framed as agreed (") +
                     tuf::to_string(error) +
                     "): compare modes, keys and intervals of both ends; abort()");
}

}  // namespace

// --- FramedStream ---

FramedStream::FramedStream(FramedStream&& other) noexcept { *this = std::move(other); }

FramedStream& FramedStream::operator=(FramedStream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(socket_, other.socket_);
  std::swap(finished_, other.finished_);
  return *this;
}

FramedStream::~FramedStream() { close(); }

void FramedStream::tell() const {
  device_->device->ring_framed_doorbell(socket_->number());
  if (device_->worker != nullptr) device_->worker->wake();
}

Result<size_t> FramedStream::send(std::span<const uint8_t> frame) {
  return guarded("FramedStream::send", [&]() -> Result<size_t> {
    if (socket_ == nullptr) return let_go();
    if (finished_) {
      return refusal(ErrorCode::WrongState, "nothing can be sent after finish_sending()");
    }
    if (const auto end = how_ended()) return stream_failure(*end, remote());
    if (frame.empty()) {
      return refusal(ErrorCode::InvalidArgument, "a frame has one octet at least");
    }
    if (!socket_->is_established()) return 0;
    switch (socket_->send({frame.data(), frame.size()})) {
      case tuf::SendResult::Ok: tell(); return frame.size();
      case tuf::SendResult::Full: return 0;
      case tuf::SendResult::MessageSize: return too_long(frame.size(), *socket_);
      case tuf::SendResult::Malformed:
        return refusal(ErrorCode::InvalidArgument,
                       "the frame's length field does not tell its length of " +
                           std::to_string(frame.size()) + " octets (FrameFormat)");
      case tuf::SendResult::Closed: break;
    }
    return stream_failure(how_ended().value_or(StreamEnd::Closed), remote());
  });
}

/// What receive() and read() answer. `over` and `end` were seen before the look into the ring: what
/// is there behind them is all there is.
Result<size_t> FramedStream::taken(size_t octets, bool over, std::optional<StreamEnd> end) {
  if (octets != 0) {
    if (!end && socket_->room_is_news()) tell();
    return octets;
  }
  if (socket_->error() != tuf::Error::None) return broken(socket_->error());
  if (end && *end != StreamEnd::Closed) return stream_failure(*end, remote());
  if (over && socket_->unread() != 0) {
    return refusal(ErrorCode::Protocol, "the peer has finished inside a frame");
  }
  return 0;
}

Result<size_t> FramedStream::receive(std::span<uint8_t> buffer) {
  return guarded("FramedStream::receive", [&]() -> Result<size_t> {
    if (socket_ == nullptr) return let_go();
    const auto end = how_ended();
    const bool over = end || socket_->peer_has_finished();
    const tuf::Received got = socket_->receive({buffer.data(), buffer.size()});
    if (got.kind == tuf::ReceiveKind::NoRoom) {
      return refusal(ErrorCode::MessageSize, "the next frame has " + std::to_string(got.length) +
                                                 " octets: give a buffer that holds it");
    }
    const bool plain = socket_->receive_mode() == FramedReceiveMode::Plain;
    if (plain && buffer.empty()) return 0;
    return taken(got.kind == tuf::ReceiveKind::Pdu ? got.length : 0, over, end);
  });
}

Result<size_t> FramedStream::read(std::span<uint8_t> octets) {
  return guarded("FramedStream::read", [&]() -> Result<size_t> {
    if (socket_ == nullptr) return let_go();
    const auto end = how_ended();
    const bool over = end || socket_->peer_has_finished();
    if (octets.empty()) return 0;
    return taken(socket_->read({octets.data(), octets.size()}), over, end);
  });
}

size_t FramedStream::readable() const {
  if (socket_ == nullptr) return 0;
  if (socket_->receive_mode() == FramedReceiveMode::Plain) return socket_->unread();
  const tuf::Received next = socket_->receive({});
  return next.kind == tuf::ReceiveKind::NoRoom ? next.length : 0;
}

bool FramedStream::writable(size_t octets) const {
  if (socket_ == nullptr || finished_ || how_ended() || !socket_->is_established()) return false;
  return octets != 0 && octets <= socket_->pdu_limit() && socket_->has_room(octets);
}

uint64_t FramedStream::unacknowledged() const {
  return socket_ == nullptr ? 0 : socket_->unacknowledged();
}

bool FramedStream::at_end() const {
  if (socket_ == nullptr) return true;
  const bool over = socket_->peer_has_finished() || how_ended() == StreamEnd::Closed;
  return over && socket_->unread() == 0;
}

uint32_t FramedStream::frame_limit() const {
  return socket_ == nullptr || !socket_->is_established() ? 0 : socket_->pdu_limit();
}

uint32_t FramedStream::usable_emss() const {
  return socket_ == nullptr ? 0 : socket_->usable_emss();
}

uint32_t FramedStream::emss_changes() const {
  return socket_ == nullptr ? 0 : socket_->told().emss_changes();
}

bool FramedStream::is_middlebox_suspected() const {
  return socket_ != nullptr && socket_->told().is_middlebox_suspected();
}

bool FramedStream::supports(FramedSendMode mode) const {
  if (socket_ == nullptr || mode > FramedSendMode::Markers) return false;
  if (mode == FramedSendMode::Plain) return true;
  if (mode == FramedSendMode::Markers) return socket_->began_with().format.tells_length();
  return socket_->keeps_records();
}

bool FramedStream::supports(FramedReceiveMode mode) const {
  if (socket_ == nullptr || mode > FramedReceiveMode::Markers) return false;
  return mode != FramedReceiveMode::Markers || socket_->began_with().format.tells_length();
}

FramedSendMode FramedStream::send_mode() const {
  return socket_ == nullptr ? FramedSendMode::Plain : socket_->send_mode();
}

FramedReceiveMode FramedStream::receive_mode() const {
  return socket_ == nullptr ? FramedReceiveMode::Plain : socket_->receive_mode();
}

uint16_t FramedStream::send_interval() const {
  return socket_ == nullptr ? 0 : socket_->send_interval();
}

uint16_t FramedStream::receive_interval() const {
  return socket_ == nullptr ? 0 : socket_->receive_interval();
}

bool FramedStream::packing() const { return socket_ != nullptr && socket_->packing(); }

// The worker changes, and this thread waits: the application side keeps still.
template <typename Change>
Status FramedStream::change(Change&& make) {
  if (socket_ == nullptr) return let_go();
  return on_worker(*device_, [&](base::Now) -> Status {
    if (socket_->stream() == nullptr) {
      return base::fail(ErrorCode::WrongState, "the stream has ended");
    }
    return make(*socket_);
  });
}

Status FramedStream::set_send_mode(FramedSendMode mode, uint64_t key) {
  return guarded("FramedStream::set_send_mode", [&]() -> Status {
    if (socket_ != nullptr && !supports(mode)) {
      return refusal(ErrorCode::Unsupported,
                     "this stream cannot send in that mode: see supports()");
    }
    return change([&](device::FramedSocket& socket) {
      const Status known = mode == FramedSendMode::Align ? device::check_key(key) : Status{};
      return known ? socket.set_send_mode(mode, key) : known;
    });
  });
}

Status FramedStream::set_receive_mode(FramedReceiveMode mode, uint64_t key) {
  return guarded("FramedStream::set_receive_mode", [&]() -> Status {
    if (socket_ != nullptr && !supports(mode)) {
      return refusal(ErrorCode::Unsupported,
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

void FramedStream::finish_sending() {
  if (socket_ == nullptr || std::exchange(finished_, true)) return;
  socket_->wish(device::FramedSocket::kFinish);
  tell();
}

void FramedStream::close() {
  if (socket_ == nullptr) return;
  const uint32_t number = socket_->number();
  // From here on the socket may be gone at any time.
  std::exchange(socket_, nullptr)->wish(device::FramedSocket::kRelease);
  device_->device->ring_framed_doorbell(number);
  if (device_->worker != nullptr) device_->worker->wake();
}

void FramedStream::abort() {
  if (socket_ == nullptr) return;
  socket_->wish(device::FramedSocket::kAbort);
  tell();
}

StreamState FramedStream::state() const {
  if (socket_ == nullptr || how_ended()) return StreamState::Ended;
  return socket_->is_established() ? StreamState::Open : StreamState::Connecting;
}

std::optional<StreamEnd> FramedStream::how_ended() const {
  if (socket_ == nullptr) return StreamEnd::Closed;
  const auto end = socket_->how_ended();
  if (!end) return std::nullopt;
  return *end;
}

Status FramedStream::status() const {
  return guarded("FramedStream::status", [&]() -> Status {
    const auto end = how_ended();
    if (!end || *end == StreamEnd::Closed) return {};
    return stream_failure(*end, remote());
  });
}

std::string FramedStream::local() const {
  return guarded_or(std::string{}, [&]() -> std::string {
    return socket_ == nullptr ? "" : to_string(socket_->local());
  });
}

std::string FramedStream::remote() const {
  return guarded_or(std::string{}, [&]() -> std::string {
    return socket_ == nullptr ? "" : to_string(socket_->remote());
  });
}

// --- FramedStreamListener ---

FramedStreamListener::FramedStreamListener(FramedStreamListener&& other) noexcept {
  *this = std::move(other);
}

FramedStreamListener& FramedStreamListener::operator=(FramedStreamListener&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(listener_, other.listener_);
  return *this;
}

FramedStreamListener::~FramedStreamListener() {
  if (device_ == nullptr) return;
  quietly([this] {
    on_worker(*device_,
              [&](base::Now now) { device_->device->framed().unlisten(*listener_, now); });
  });
}

std::optional<FramedStream> FramedStreamListener::accept() {
  device::FramedSocket* socket = listener_ == nullptr ? nullptr : listener_->next();
  if (socket == nullptr) return std::nullopt;
  return FramedStream(device_, socket);
}

uint16_t FramedStreamListener::port() const {
  return listener_ == nullptr ? 0 : listener_->local().port;
}

// --- Device ---

uint64_t Device::new_framing_key() {
  return on_worker(*device_, [&](base::Now) {
    uint64_t key = 0;
    while (key == 0) key = device_->device->tuf_keys().next();
    return key;
  });
}

Result<FramedStreamListener> Device::listen_framed(uint16_t port,
                                                   const FramedListenerOptions& options) {
  return guarded("Device::listen_framed", [&]() -> Result<FramedStreamListener> {
    if (port == 0) return refusal(ErrorCode::InvalidArgument, "port 0 cannot be listened on");
    const auto local = parse_endpoint(options.address, port);
    if (!local) return tl::unexpected(local.error());
    using Made = decltype(device_->device->listen_framed(*local, 0, {}, {}));
    auto made = on_worker(*device_, [&](base::Now) -> Made {
      device::Device& device = *device_->device;
      const auto own = verbs::merged(device.default_options(), options.stream);
      if (!own) return tl::unexpected(own.error());
      return device.listen_framed(*local, options.backlog, *own, setup(options.framing));
    });
    if (!made) return tl::unexpected(made.error());
    FramedStreamListener listener;
    listener.device_ = device_;
    listener.listener_ = *made;
    return listener;
  });
}

Result<FramedStream> Device::connect_framed(const std::string& address, uint16_t port,
                                            const FramingOptions& framing,
                                            const StreamOptions& options) {
  return guarded("Device::connect_framed", [&]() -> Result<FramedStream> {
    auto ip = parse_ip(address);
    if (!ip) return tl::unexpected(ip.error());
    if (port == 0) return refusal(ErrorCode::InvalidArgument, "port 0 cannot be connected to");
    auto socket = on_worker(*device_, [&](base::Now now) -> Result<device::FramedSocket*> {
      device::Device& device = *device_->device;
      const auto own = verbs::merged(device.default_options(), options);
      if (!own) return tl::unexpected(own.error());
      return device.connect_framed({*ip, port}, *own, setup(framing), now);
    });
    if (!socket) return tl::unexpected(socket.error());
    return FramedStream(device_, *socket);
  });
}

}  // namespace rnic
