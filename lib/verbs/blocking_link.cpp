#include "verbs/blocking_link.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "base/starved.hpp"
#include "verbs/boundary.hpp"

namespace rnic::verbs {

namespace {

/// One request is under way at a time, with room for one more, because a place is free only when
/// its completion was polled.
constexpr uint32_t kSendDepth = 2;

ErrorCode code_of(CompletionCause cause) {
  switch (cause) {
    case CompletionCause::None:
    case CompletionCause::LocalError:
    case CompletionCause::PeerFault:
    case CompletionCause::PeerTerminate: return ErrorCode::Protocol;
    case CompletionCause::NotConnected:
    case CompletionCause::Disconnected:
    case CompletionCause::PeerClosed:
    case CompletionCause::Closed: return ErrorCode::WrongState;
    case CompletionCause::NotAgreed: return ErrorCode::Unsupported;
    case CompletionCause::PeerReset:
    case CompletionCause::Aborted: return ErrorCode::Reset;
    case CompletionCause::TimedOut: return ErrorCode::TimedOut;
    case CompletionCause::Unreachable: return ErrorCode::Unreachable;
  }
  return ErrorCode::Protocol;
}

Error error_of(const Completion& done) {
  const auto error = [&done](ErrorCode code) {
    return Error{code, base::worded([&done] { return describe(done); })};
  };
  switch (done.status) {
    case CompletionStatus::LocalProtection:
    case CompletionStatus::RemoteAccess: return error(ErrorCode::PermissionDenied);
    case CompletionStatus::LocalLength: return error(ErrorCode::MessageSize);
    case CompletionStatus::RemoteInvalidRequest:
    case CompletionStatus::RemoteOperation: return error(ErrorCode::Protocol);
    case CompletionStatus::Success:
    case CompletionStatus::Flushed:
    case CompletionStatus::Lost: return error(code_of(done.cause));
  }
  return error(ErrorCode::Protocol);
}

Status check(const blocking::ConnectionOptions& options) {
  if (options.private_data.size() > kMaxPrivateData) {
    return base::fail(ErrorCode::InvalidArgument,
                      "private data of " + std::to_string(options.private_data.size()) +
                          " octets: at most " + std::to_string(kMaxPrivateData));
  }
  const uint64_t octets = buffer_octets(options);
  if (options.receives != 0 && options.message_size != 0 && octets <= blocking::kMaxBufferOctets) {
    return {};
  }
  return base::fail(ErrorCode::InvalidArgument,
                    "receives " + std::to_string(options.receives) + ", message_size " +
                        std::to_string(options.message_size) +
                        ": at least 1 of each, and with one buffer for sending at most " +
                        std::to_string(blocking::kMaxBufferOctets) + " octets together");
}

}  // namespace

Result<std::unique_ptr<BlockingLink>> BlockingLink::make(
    std::shared_ptr<EventDesk> desk, const blocking::ConnectionOptions& options) {
  if (auto good = check(options); !good) return tl::unexpected(std::move(good.error()));
  auto link = std::make_unique<BlockingLink>(std::move(desk));
  if (auto made = link->set_up(options); !made) return tl::unexpected(std::move(made.error()));
  return link;
}

BlockingLink::BlockingLink(std::shared_ptr<EventDesk> desk) : desk_(std::move(desk)) {}

BlockingLink::~BlockingLink() {
  if (enrolled_ == 0 || desk_->is_abandoned()) return;
  // The queue pair ends first, so that later events about it concern nobody.
  static_cast<void>(qp_.destroy());
  quietly([this] {
    // An inline device gives the connection's place back in its next turn, and a caller that only
    // calls connect() again would give it no turn.
    desk_->poll();
    desk_->strike(enrolled_);
  });
}

Status BlockingLink::set_up(const blocking::ConnectionOptions& options) {
  message_size_ = options.message_size;
  receives_ = options.receives;
  Device device = desk_->handle();
  auto send_cq = device.create_cq(kSendDepth);
  if (!send_cq) return tl::unexpected(std::move(send_cq.error()));
  send_cq_ = std::move(*send_cq);
  auto receive_cq = device.create_cq(receives_);
  if (!receive_cq) return tl::unexpected(std::move(receive_cq.error()));
  receive_cq_ = std::move(*receive_cq);
  QueuePairOptions depths;
  depths.send_depth = kSendDepth;
  depths.receive_depth = receives_;
  depths.ird = depths.ord = options.reads;
  auto qp = desk_->create_qp(send_cq_, receive_cq_, depths);
  if (!qp) return tl::unexpected(std::move(qp.error()));
  qp_ = std::move(*qp);
  buffers_.resize(buffer_octets(options));
  auto region = desk_->register_memory(buffers_, Access::LocalWrite);
  if (!region) return tl::unexpected(std::move(region.error()));
  region_ = std::move(*region);
  for (uint64_t slot = 0; slot < receives_; ++slot) {
    if (auto posted = post_receive(slot); !posted) return posted;
  }
  desk_->enroll(qp_.number());
  enrolled_ = qp_.number();
  return {};
}

Status BlockingLink::post_receive(uint64_t slot) {
  return qp_.post_receive(
      slot, {region_.sge(slot * message_size_, static_cast<uint32_t>(message_size_))});
}

Status BlockingLink::connect(const Endpoint& remote, const blocking::ConnectionOptions& options) {
  return qp_.connect(remote, options.private_data, options.connect);
}

Status BlockingLink::check_answer(const blocking::ConnectionOptions& options) {
  Status found = accept({}, options);
  if (!found && found.error().code == ErrorCode::NotFound) return {};
  return found;
}

Status BlockingLink::accept(const RequestHandle& request,
                            const blocking::ConnectionOptions& options) {
  return qp_.accept(request, options.private_data, options.connect);
}

Status BlockingLink::await_established(const WaitEnd& end, const std::string& who) {
  const auto told = [this] { return is_decided(); };
  if (!desk_->wait(std::ref(told), end)) {
    return base::fail(ErrorCode::TimedOut,
                      who + " did not answer in time: try again, or give it longer");
  }
  return outcome();
}

bool BlockingLink::is_decided() const {
  return desk_->ask(enrolled_, [](Fate& fate) { return fate.established || fate.failure; });
}

Status BlockingLink::outcome() {
  return desk_->ask(enrolled_, [this](Fate& fate) -> Status {
    if (!fate.established) return tl::unexpected(*fate.failure);
    local_ = fate.established->local;
    remote_ = fate.established->remote;
    if (peer_data_.empty()) peer_data_ = std::move(fate.established->private_data);
    return {};
  });
}

bool BlockingLink::is_at(const Endpoint& end) const {
  const auto told = qp_.info();
  return told && told->connected && told->local == end;
}

void BlockingLink::flush() {
  QueuePairChange change;
  change.state = QueuePairState::Error;
  static_cast<void>(qp_.modify(change));
}

Result<Completion> BlockingLink::carry_out(SendRequest request, const WaitEnd& end) {
  request.id = ++last_id_;
  request.signaled = true;
  if (auto posted = qp_.post_send(request); !posted) {
    return tl::unexpected(std::move(posted.error()));
  }
  Completion done;
  const auto completed = [&] { return send_cq_.poll({&done, 1}) == 1; };
  const bool in_time = desk_->wait(std::ref(completed), end);
  if (!in_time) {
    // The device must not use the caller's memory any longer.
    flush();
    if (send_cq_.poll({&done, 1}) != 1 || done.status != CompletionStatus::Success) {
      return base::fail(ErrorCode::TimedOut,
                        "the request did not complete in time: the connection was ended, so that "
                        "its memory is free; connect again");
    }
  }
  if (done.status != CompletionStatus::Success) return tl::unexpected(error_of(done));
  return done;
}

Result<Completion> BlockingLink::send(std::span<const std::byte> message, const WaitEnd& end) {
  if (message.size() > message_size_) {
    return base::fail(ErrorCode::InvalidArgument,
                      "a message of " + std::to_string(message.size()) +
                          " octets: ConnectionOptions::message_size is " +
                          std::to_string(message_size_) + "; send it from registered memory");
  }
  SendRequest request;
  if (message.size() <= kMaxInline) {
    request.inline_data = message;
  } else {
    // The buffer is free: an earlier call has not returned before its request had completed.
    std::ranges::copy(message, buffer(receives_));
    request.sges = {region_.sge(receives_ * message_size_, static_cast<uint32_t>(message.size()))};
  }
  return carry_out(request, end);
}

Result<Completion> BlockingLink::receive(std::span<std::byte> into, const WaitEnd& end) {
  if (no_more_) return tl::unexpected(*no_more_);
  if (!waiting_) {
    Completion done;
    const auto completed = [&] { return receive_cq_.poll({&done, 1}) == 1; };
    if (!desk_->wait(std::ref(completed), end)) {
      return base::fail(ErrorCode::TimedOut, "no message came in time: call receive() again");
    }
    if (done.status != CompletionStatus::Success) {
      peer_closed_ =
          done.cause == CompletionCause::PeerClosed || done.cause == CompletionCause::Closed;
      no_more_ = error_of(done);
      return tl::unexpected(*no_more_);
    }
    waiting_ = done;
  }
  const uint32_t octets = waiting_->has_immediate ? 0 : waiting_->length;
  if (octets > into.size()) {
    return base::fail(ErrorCode::MessageSize,
                      "the message has " + std::to_string(octets) + " octets, the buffer " +
                          std::to_string(into.size()) + ": give one that holds it");
  }
  std::copy_n(buffer(waiting_->id), octets, into.data());
  if (auto posted = post_receive(waiting_->id); !posted) {
    return tl::unexpected(std::move(posted.error()));
  }
  return *std::exchange(waiting_, std::nullopt);
}

Status BlockingLink::close(const WaitEnd& end) {
  const auto ended = [this] {
    return desk_->ask(enrolled_, [](Fate& fate) { return fate.ended; });
  };
  // A queue pair that has ended already refuses, which is fine here.
  if (auto closed = qp_.disconnect();
      !closed && !ended() && closed.error().code != ErrorCode::WrongState) {
    return closed;
  }
  if (desk_->wait(std::ref(ended), end)) return {};
  flush();
  return base::fail(ErrorCode::TimedOut,
                    "the peer did not close in time: the connection was reset; give it longer");
}

}  // namespace rnic::verbs
