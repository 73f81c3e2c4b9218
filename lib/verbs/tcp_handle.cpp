// The handles of the public API: the parts that plain and framed streams have in common.

#include "rnic/tcp_handle.hpp"

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using device::AppSocket;
using verbs::error;
using verbs::guarded;
using verbs::guarded_or;
using verbs::on_worker;
using verbs::quietly;

namespace verbs {

tl::unexpected<Error> gone() {
  return error(ErrorCode::WrongState, "the stream was closed by this side: use another one");
}

tl::unexpected<Error> stream_failure(StreamEnd end, const std::string& peer) {
  switch (end) {
    case StreamEnd::Closed:
      return error(ErrorCode::WrongState,
                   "the connection to " + peer + " is closed: connect again");
    case StreamEnd::PeerReset:
      return error(ErrorCode::Reset, peer + " has reset the connection: connect again");
    case StreamEnd::TimedOut:
      return error(ErrorCode::TimedOut,
                   peer + " does not answer: is it there, and is there a way to it?");
    case StreamEnd::Refused:
      return error(ErrorCode::Unreachable, peer + " refuses connections: does a program listen?");
    case StreamEnd::Unreachable:
      return error(ErrorCode::Unreachable,
                   "the network says that there is no way to " + peer + ": use another address");
    case StreamEnd::Aborted:
      return error(ErrorCode::Reset,
                   "the connection to " + peer + " was aborted by this side: connect again");
  }
  return gone();
}

}  // namespace verbs

// --- TcpHandle ---

TcpHandle::TcpHandle(TcpHandle&& other) noexcept { *this = std::move(other); }

TcpHandle& TcpHandle::operator=(TcpHandle&& other) noexcept {
  if (this == &other) return *this;
  close();
  device_ = std::move(other.device_);
  app_ = std::exchange(other.app_, nullptr);
  finished_ = std::exchange(other.finished_, false);
  return *this;
}

TcpHandle::~TcpHandle() { close(); }

bool TcpHandle::is_live() const { return app_ != nullptr && !device_->is_abandoned(); }

tl::unexpected<Error> TcpHandle::not_live() const {
  return app_ == nullptr ? verbs::gone() : verbs::abandoned();
}

void TcpHandle::tell() const { verbs::ring(*device_, app_->doorbell()); }

tl::unexpected<Error> TcpHandle::failure(StreamEnd end) const {
  return verbs::stream_failure(end, to_string(remote()));
}

uint64_t TcpHandle::unacknowledged() const { return is_live() ? app_->unacknowledged_octets() : 0; }

bool TcpHandle::at_end() const { return !is_live() || app_->is_drained(); }

void TcpHandle::finish_sending() {
  if (!is_live() || std::exchange(finished_, true)) return;
  app_->request(AppSocket::kFinish);
  tell();
}

void TcpHandle::close() {
  // An empty handle keeps no device: the last one of a context takes the devices with it.
  const auto device = std::exchange(device_, nullptr);
  device::AppSocket* const app = std::exchange(app_, nullptr);
  if (app == nullptr || device->is_abandoned()) return;
  const uint32_t doorbell = app->doorbell();
  // From here on the socket may be gone at any time.
  app->request(AppSocket::kRelease);
  verbs::ring(*device, doorbell);
}

void TcpHandle::abort() {
  if (!is_live()) return;
  app_->request(AppSocket::kAbort);
  tell();
}

StreamState TcpHandle::state() const {
  if (!is_live() || app_->end()) return StreamState::Ended;
  return app_->is_open() ? StreamState::Open : StreamState::Connecting;
}

std::optional<StreamEnd> TcpHandle::how_ended() const {
  if (app_ == nullptr) return StreamEnd::Closed;
  return is_live() ? app_->end() : StreamEnd::Aborted;
}

Status TcpHandle::status() const {
  return guarded("TcpHandle::status", [&]() -> Status {
    if (app_ != nullptr && !is_live()) return not_live();
    const auto end = how_ended();
    if (!end || *end == StreamEnd::Closed) return {};
    return failure(*end);
  });
}

Endpoint TcpHandle::local() const { return is_live() ? app_->local() : Endpoint{}; }

Endpoint TcpHandle::remote() const { return is_live() ? app_->remote() : Endpoint{}; }

// --- TcpListener ---

TcpListener::TcpListener(TcpListener&& other) noexcept { *this = std::move(other); }

TcpListener& TcpListener::operator=(TcpListener&& other) noexcept {
  if (this == &other) return *this;
  stop();
  device_ = std::move(other.device_);
  app_ = std::exchange(other.app_, nullptr);
  return *this;
}

TcpListener::~TcpListener() { stop(); }

void TcpListener::stop() noexcept {
  if (app_ == nullptr) return;
  device::AppListener& listener = *std::exchange(app_, nullptr);
  quietly([&] { on_worker(*device_, [&](base::Now now) { listener.stop(now); }); });
}

Endpoint TcpListener::local() const { return is_live() ? app_->local() : Endpoint{}; }

bool TcpListener::is_live() const { return app_ != nullptr && !device_->is_abandoned(); }

}  // namespace rnic
