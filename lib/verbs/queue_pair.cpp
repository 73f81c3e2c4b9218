// A handle of the public API: a queue pair and its connection.

#include <algorithm>
#include <string>
#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/belonging.hpp"
#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/port_use.hpp"
#include "verbs/posting.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using verbs::abandoned;
using verbs::check_device;
using verbs::empty_handle;
using verbs::guarded;
using verbs::guarded_or;
using verbs::on_worker;
using verbs::post_receives;
using verbs::post_sends;
using verbs::quietly;

namespace {

constexpr const char* kNoEnds =
    "the queue pair has no connection, which alone has two ends: wait for Established";

/// An error that keeps its code even if there is no memory for its text.
Status refused(ErrorCode code, const char* why) {
  return tl::unexpected(Error{code, base::worded([why] { return why; })});
}

Status full_queue(const char* queue, uint32_t depth) {
  if (depth == 0) {
    return tl::unexpected(Error{ErrorCode::ResourceExhausted, base::worded([&] {
                                  return std::string("the queue pair was made without a ") + queue +
                                         " queue: create it with a depth above 0";
                                })});
  }
  return tl::unexpected(
      Error{ErrorCode::ResourceExhausted, base::worded([&] {
              return std::string("the ") + queue + " queue is full (" + std::to_string(depth) +
                     " outstanding): poll completions, or create the queue pair deeper";
            })});
}

Status to_status(device::PostResult result, const char* queue, uint32_t depth) {
  switch (result) {
    case device::PostResult::Ok: return {};
    case device::PostResult::Full: return full_queue(queue, depth);
    case device::PostResult::TooManySge:
      return refused(ErrorCode::InvalidArgument,
                     "too many scatter/gather elements: at most 16, but 1 for ReadInvalidate, an "
                     "atomic and BindWindow, and none for Immediate and LocalInvalidate");
    case device::PostResult::InlineTooLong:
      return refused(ErrorCode::InvalidArgument,
                     "more than 256 octets of inline data: register the memory and name it by "
                     "elements");
    case device::PostResult::BadInline:
      return refused(ErrorCode::InvalidArgument,
                     "inline data takes the place of the elements of a Send or a Write: leave out "
                     "one of them, and for other opcodes the inline data");
    case device::PostResult::BadLength:
      return refused(ErrorCode::InvalidArgument,
                     "an atomic returns 8 octets into its element, and ReadInvalidate and "
                     "BindWindow have one: "
                     "give each its element");
    case device::PostResult::Disabled:
      return refused(ErrorCode::Unsupported,
                     "atomics and Immediate Data are switched off for this device: set "
                     "rdma_extensions = true");
    case device::PostResult::TooLong:
      return refused(ErrorCode::InvalidArgument,
                     "the message is longer than 2^32 - 1 octets: split it");
    case device::PostResult::BadOpcode:
      return refused(ErrorCode::InvalidArgument,
                     "no opcode of the send queue: post Receive by post_receive(), and for the "
                     "rest use an enumerator");
  }
  return {};
}

Status receive_status(device::PostResult result, const device::QueuePairSpec& spec) {
  if (result != device::PostResult::Ok && spec.srq != nullptr) {
    return refused(
        ErrorCode::WrongState,
        "the queue pair takes its receives from a shared receive queue: post them there");
  }
  return to_status(result, "receive", spec.receive_depth);
}

}  // namespace

/// Fixed memory for trace events; the worker fills it.
class QueuePair::Trace final : public base::TraceSink {
 public:
  explicit Trace(size_t max_events) : max_events_(max_events) { events_.reserve(max_events); }
  void record(TraceKind kind, base::Range range, base::Now now) override {
    if (events_.size() == max_events_) return;
    events_.push_back({kind, range.begin, range.end, std::chrono::nanoseconds(base::nanos(now))});
  }
  std::vector<TraceEvent> take() { return std::move(events_); }

 private:
  size_t max_events_;
  std::vector<TraceEvent> events_;
};

QueuePair::QueuePair() = default;
QueuePair::QueuePair(QueuePair&& other) noexcept { swap(other); }

QueuePair& QueuePair::operator=(QueuePair&& other) noexcept {
  QueuePair before(std::move(other));
  swap(before);
  return *this;
}

void QueuePair::swap(QueuePair& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(qp_, other.qp_);
  std::swap(send_lock_, other.send_lock_);
  std::swap(receive_lock_, other.receive_lock_);
  std::swap(trace_, other.trace_);
}

QueuePair::~QueuePair() {
  quietly([this] { static_cast<void>(destroy()); });
}

Status QueuePair::destroy() {
  if (device_ == nullptr) return {};
  return guarded("QueuePair::destroy", [&] {
    const auto device = std::exchange(device_, nullptr);
    device::QueuePair* const qp = std::exchange(qp_, nullptr);
    send_lock_ = nullptr;
    receive_lock_ = nullptr;
    const auto trace = std::move(trace_);  // keeps the sink until the recording has ended
    return on_worker(*device, [&](base::Now) {
      if (trace != nullptr) static_cast<void>(device->device->set_trace(*qp, nullptr));
      return device->device->destroy_qp(qp);
    });
  });
}

uint32_t QueuePair::number() const {
  return qp_ == nullptr || device_->is_abandoned() ? 0 : qp_->number();
}

QueuePairState QueuePair::state() const {
  if (device_ == nullptr) return QueuePairState::Error;
  return guarded_or(QueuePairState::Error,
                    [&] { return on_worker(*device_, [&](base::Now) { return qp_->state(); }); });
}

Result<QueuePairAttributes> QueuePair::query() const {
  return guarded("QueuePair::query", [&]() -> Result<QueuePairAttributes> {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return qp_->attributes(); });
  });
}

Result<QueuePairInfo> QueuePair::info() const {
  return guarded("QueuePair::info", [&]() -> Result<QueuePairInfo> {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now now) { return device_->device->info(*qp_, now); });
  });
}

Status QueuePair::modify(const QueuePairChange& change) {
  return guarded("QueuePair::modify", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_,
                     [&](base::Now now) { return device_->device->modify_qp(*qp_, change, now); });
  });
}

Status QueuePair::post_send(const SendRequest& request) {
  if (qp_ == nullptr) return empty_handle();
  if (device_->is_abandoned()) return abandoned();
  const device::PostResult result =
      post_sends(*device_, *qp_, send_lock_.get(), [&] { return qp_->post_send(request); });
  if (result != device::PostResult::Ok) return to_status(result, "send", qp_->spec().send_depth);
  return {};
}

Status QueuePair::post_receive(const ReceiveRequest& request) {
  if (qp_ == nullptr) return empty_handle();
  if (device_->is_abandoned()) return abandoned();
  const device::PostResult result =
      post_receives(*device_, qp_, receive_lock_.get(), [&] { return qp_->post_receive(request); });
  if (result != device::PostResult::Ok) return receive_status(result, qp_->spec());
  return {};
}

ListPosted QueuePair::post_send(std::span<const SendRequest> requests) {
  if (qp_ == nullptr) return {0, empty_handle()};
  if (device_->is_abandoned()) return {0, abandoned()};
  const auto [taken, result] =
      post_sends(*device_, *qp_, send_lock_.get(), [&] { return qp_->post_sends(requests); });
  return {taken, to_status(result, "send", qp_->spec().send_depth)};
}

ListPosted QueuePair::post_receive(std::span<const ReceiveRequest> requests) {
  if (qp_ == nullptr) return {0, empty_handle()};
  if (device_->is_abandoned()) return {0, abandoned()};
  const auto [taken, result] =
      post_receives(*device_, qp_, receive_lock_.get(),
                    [&] { return qp_->post_receives(requests); });
  return {taken, receive_status(result, qp_->spec())};
}

namespace {

SendRequest request_for(Opcode opcode, uint64_t id, const PostOptions& options) {
  SendRequest request;
  request.id = id;
  request.opcode = opcode;
  request.signaled = options.signaled;
  request.solicited = options.solicited;
  request.fence = options.fence;
  return request;
}

}  // namespace

Status QueuePair::post_send(uint64_t id, const SgeList& source, const PostOptions& options) {
  SendRequest request = request_for(Opcode::Send, id, options);
  request.sges = source;
  return post_send(request);
}

Status QueuePair::post_send_invalidate(uint64_t id, const SgeList& source, uint32_t stag,
                                       const PostOptions& options) {
  SendRequest request = request_for(Opcode::SendInvalidate, id, options);
  request.sges = source;
  request.invalidate_stag = stag;
  return post_send(request);
}

Status QueuePair::post_write(uint64_t id, const SgeList& source, const RemoteAddress& target,
                             const PostOptions& options) {
  SendRequest request = request_for(Opcode::Write, id, options);
  request.sges = source;
  request.remote = target;
  return post_send(request);
}

Status QueuePair::post_write_immediate(uint64_t id, const SgeList& source,
                                       const RemoteAddress& target, const ImmediateData& octets,
                                       const PostOptions& options) {
  SendRequest request = request_for(Opcode::WriteImmediate, id, options);
  request.sges = source;
  request.remote = target;
  request.immediate = octets;
  return post_send(request);
}

Status QueuePair::post_read(uint64_t id, const SgeList& sink, const RemoteAddress& source,
                            const PostOptions& options) {
  SendRequest request = request_for(Opcode::Read, id, options);
  request.sges = sink;
  request.remote = source;
  return post_send(request);
}

Status QueuePair::post_read_invalidate(uint64_t id, const Sge& sink, const RemoteAddress& source,
                                       const PostOptions& options) {
  SendRequest request = request_for(Opcode::ReadInvalidate, id, options);
  request.sges = {sink};
  request.remote = source;
  return post_send(request);
}

Status QueuePair::post_local_invalidate(uint64_t id, uint32_t stag, const PostOptions& options) {
  SendRequest request = request_for(Opcode::LocalInvalidate, id, options);
  request.invalidate_stag = stag;
  return post_send(request);
}

Status QueuePair::post_receive(uint64_t id, const SgeList& sink) {
  return post_receive(ReceiveRequest{id, sink});
}

Status QueuePair::post_fetch_add(uint64_t id, const RemoteAddress& remote, uint64_t add,
                                 uint64_t boundaries) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::FetchAdd;
  request.remote = remote;
  request.atomic.data = add;
  request.atomic.mask = boundaries;
  return post_send(request);
}

Status QueuePair::post_compare_swap(uint64_t id, const RemoteAddress& remote, uint64_t compare,
                                    uint64_t swap, uint64_t compare_mask, uint64_t swap_mask) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::CompareSwap;
  request.remote = remote;
  request.atomic = {swap, swap_mask, compare, compare_mask};
  return post_send(request);
}

Status QueuePair::post_immediate(uint64_t id, const ImmediateData& octets, bool solicited) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::Immediate;
  request.immediate = octets;
  request.solicited = solicited;
  return post_send(request);
}

Status QueuePair::post_bind_window(uint64_t id, const MemoryGrant& grant, const Sge& part) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::BindWindow;
  request.sges = {part};
  request.grant = grant;
  return post_send(request);
}

Status QueuePair::post_fast_register(uint64_t id, const MemoryGrant& grant, const SgeList& parts) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::FastRegister;
  request.sges = parts;
  request.grant = grant;
  return post_send(request);
}

Status QueuePair::connect(const Endpoint& remote, std::span<const uint8_t> private_data,
                          const ConnectOptions& options) {
  return guarded("QueuePair::connect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->connect(*qp_, remote, base::ByteView(private_data), now, options);
    });
  });
}

Status QueuePair::connect(PortReservation& from, const Endpoint& remote,
                          std::span<const uint8_t> private_data, const ConnectOptions& options) {
  return guarded("QueuePair::connect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    verbs::PortUse port("connect", from, *device_);
    if (!port.status()) return port.status();
    if (options.source != Endpoint{}) {
      return tl::unexpected(
          Error{ErrorCode::InvalidArgument,
                "connect: the reservation is the source: leave ConnectOptions::source out"});
    }
    ConnectOptions from_there = options;
    from_there.source = port.local();
    const Status status = on_worker(*device_, [&](base::Now now) {
      return device_->device->connect(*qp_, remote, base::ByteView(private_data), now, from_there,
                                      port.claim());
    });
    if (status) port.done();
    return status;
  });
}
Status QueuePair::connect(Stream& stream, std::span<const uint8_t> private_data,
                          const ConnectOptions& options) {
  return guarded("QueuePair::connect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    if (!stream.is_valid()) return verbs::gone();
    if (auto ours = check_device("connect: the stream", *device_, *stream.device_); !ours) {
      return ours;
    }
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->connect(*qp_, stream.socket(), base::ByteView(private_data), now,
                                      options);
    });
  });
}

Status QueuePair::accept(const RequestHandle& request, std::span<const uint8_t> private_data,
                         const ConnectOptions& options) {
  return guarded("QueuePair::accept", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    Status ours = check_device("accept: the request", *device_, request.device);
    // Whoever has no request yet learns whether the options will do: as if it were nobody's.
    Status accepted = on_worker(*device_, [&](base::Now now) {
      return device_->device->accept(ours ? request : RequestHandle{}, *qp_,
                                     base::ByteView(private_data), now, options);
    });
    if (ours || accepted) return accepted;
    const ErrorCode why = accepted.error().code;
    // Moved, since a copy of the text would need memory.
    if (why == ErrorCode::NotFound || why == ErrorCode::WrongState) return ours;
    return accepted;
  });
}

Status QueuePair::commit(std::string_view fault) {
  return guarded("QueuePair::commit", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    const auto planned = parse_planned_fault(fault);
    if (!planned) return tl::unexpected(planned.error());
    return on_worker(*device_, [&](base::Now now) { return qp_->commit(*planned, now); });
  });
}

Status QueuePair::cancel_connect() {
  return guarded("QueuePair::cancel_connect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return device_->device->cancel_connect(*qp_); });
  });
}

Result<Endpoint> QueuePair::local() const {
  return guarded("QueuePair::local", [&]() -> Result<Endpoint> {
    if (device_ == nullptr) return empty_handle();
    const auto ends = info();
    if (!ends) return tl::unexpected(ends.error());
    if (!ends->connected) return tl::unexpected(Error{ErrorCode::WrongState, kNoEnds});
    return ends->local;
  });
}

Result<Endpoint> QueuePair::remote() const {
  return guarded("QueuePair::remote", [&]() -> Result<Endpoint> {
    if (device_ == nullptr) return empty_handle();
    const auto ends = info();
    if (!ends) return tl::unexpected(ends.error());
    if (!ends->connected) return tl::unexpected(Error{ErrorCode::WrongState, kNoEnds});
    return ends->remote;
  });
}

Status QueuePair::disconnect() {
  return guarded("QueuePair::disconnect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return device_->device->disconnect(*qp_); });
  });
}

Status QueuePair::drain_within(std::chrono::nanoseconds limit) {
  return guarded("QueuePair::drain", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_,
                     [&](base::Now now) { return device_->device->drain(*qp_, limit, now); });
  });
}

Status QueuePair::start_trace(size_t max_events) {
  return guarded("QueuePair::start_trace", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    const uint64_t octets =
        std::min<uint64_t>(max_events, UINT64_MAX / sizeof(TraceEvent)) * sizeof(TraceEvent);
    if (auto enough =
            verbs::enough_memory("start_trace: " + std::to_string(max_events) + " events", octets);
        !enough) {
      return tl::unexpected(enough.error());
    }
    auto trace = std::make_unique<Trace>(max_events);
    Status status = on_worker(
        *device_, [&](base::Now) { return device_->device->set_trace(*qp_, trace.get()); });
    if (status) trace_ = std::move(trace);
    return status;
  });
}

Result<std::vector<TraceEvent>> QueuePair::take_trace() {
  return guarded("QueuePair::take_trace", [&]() -> Result<std::vector<TraceEvent>> {
    if (device_ == nullptr) return empty_handle();
    if (device_->is_abandoned()) return abandoned();
    if (trace_ == nullptr) {
      return tl::unexpected(
          Error{ErrorCode::WrongState, "no trace was started: call start_trace() first"});
    }
    const Status ended =
        on_worker(*device_, [&](base::Now) { return device_->device->set_trace(*qp_, nullptr); });
    if (!ended) return tl::unexpected(ended.error());
    auto events = trace_->take();
    trace_.reset();
    return events;
  });
}

}  // namespace rnic
