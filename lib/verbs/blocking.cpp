// Handles of the public API: calls that wait.

#include "rnic/blocking.hpp"

#include <functional>
#include <utility>

#include "base/fail.hpp"
#include "base/starved.hpp"
#include "rnic/resolve.hpp"
#include "verbs/answered_requests.hpp"
#include "verbs/blocking_link.hpp"
#include "verbs/boundary.hpp"
#include "verbs/event_desk.hpp"

namespace rnic::blocking {

using verbs::abandoned;
using verbs::AnsweredRequests;
using verbs::BlockingLink;
using verbs::empty_handle;
using verbs::EventDesk;
using verbs::guarded;
using verbs::guarded_or;
using verbs::quietly;
using verbs::WaitEnd;

namespace {

/// Carries `body` out on the link of a Connection.
template <typename Body>
auto on_link(const char* call, const std::unique_ptr<BlockingLink>& link, TimeLimit limit,
             Body&& body) -> decltype(body(*link, WaitEnd(link->desk().context(), limit.span()))) {
  if (link == nullptr) return empty_handle();
  if (link->desk().is_abandoned()) return abandoned();
  return guarded(call, [&] { return body(*link, WaitEnd(link->desk().context(), limit.span())); });
}

Result<Connection> connect_to(const std::shared_ptr<EventDesk>& desk, const Endpoint& remote,
                              std::chrono::nanoseconds limit, const ConnectionOptions& options) {
  auto link = BlockingLink::make(desk, options);
  if (!link) return tl::unexpected(std::move(link.error()));
  const WaitEnd end(desk->context(), limit);
  if (auto started = (*link)->connect(remote, options); !started) {
    return tl::unexpected(std::move(started.error()));
  }
  if (auto done = (*link)->await_established(end, to_string(remote)); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  return Connection(std::move(*link));
}

/// Listens on `local` of the desk's device. \param admits as for AnsweredRequests
Result<Listener> listen_at(const std::shared_ptr<EventDesk>& desk, const Endpoint& local,
                           const ListenOptions& options, AnsweredRequests::Admission admits = {}) {
  // It is made first, since whoever listens already could not tell that there was no memory for it.
  auto answered = std::make_unique<AnsweredRequests>(desk, std::move(admits));
  auto listening = desk->handle().listen(local, options);
  if (!listening) return tl::unexpected(std::move(listening.error()));
  return Listener(std::move(answered), *listening);
}

}  // namespace

// --- Connection ---

Connection::Connection() = default;
Connection::Connection(std::unique_ptr<BlockingLink> link) : link_(std::move(link)) {}
Connection::Connection(Connection&& other) noexcept = default;
Connection& Connection::operator=(Connection&& other) noexcept = default;
Connection::~Connection() = default;

Result<Completion> Connection::send(std::span<const std::byte> message, TimeLimit limit) {
  return on_link("Connection::send", link_, limit,
                 [&](BlockingLink& link, const WaitEnd& end) { return link.send(message, end); });
}

Result<Completion> Connection::send(const SgeList& source, TimeLimit limit) {
  SendRequest request;
  request.sges = source;
  return carry_out(request, limit);
}

Result<Completion> Connection::receive(std::span<std::byte> into, TimeLimit limit) {
  return on_link("Connection::receive", link_, limit,
                 [&](BlockingLink& link, const WaitEnd& end) { return link.receive(into, end); });
}

Result<Completion> Connection::write(const SgeList& source, const RemoteAddress& target,
                                     TimeLimit limit) {
  SendRequest request;
  request.opcode = Opcode::Write;
  request.sges = source;
  request.remote = target;
  return carry_out(request, limit);
}

Result<Completion> Connection::read(const SgeList& sink, const RemoteAddress& source,
                                    TimeLimit limit) {
  SendRequest request;
  request.opcode = Opcode::Read;
  request.sges = sink;
  request.remote = source;
  return carry_out(request, limit);
}

Result<Completion> Connection::fetch_add(const RemoteAddress& remote, uint64_t add,
                                         TimeLimit limit) {
  SendRequest request;
  request.opcode = Opcode::FetchAdd;
  request.remote = remote;
  request.atomic.data = add;
  return carry_out(request, limit);
}

Result<Completion> Connection::compare_swap(const RemoteAddress& remote, uint64_t compare,
                                            uint64_t swap, TimeLimit limit) {
  SendRequest request;
  request.opcode = Opcode::CompareSwap;
  request.remote = remote;
  request.atomic = {
      .data = swap, .mask = ~uint64_t{0}, .compare = compare, .compare_mask = ~uint64_t{0}};
  return carry_out(request, limit);
}

Result<Completion> Connection::carry_out(const SendRequest& request, TimeLimit limit) {
  return on_link(
      "Connection::carry_out", link_, limit,
      [&](BlockingLink& link, const WaitEnd& end) { return link.carry_out(request, end); });
}

Status Connection::close(TimeLimit limit) {
  return on_link("Connection::close", link_, limit,
                 [](BlockingLink& link, const WaitEnd& end) { return link.close(end); });
}

bool Connection::peer_closed() const { return link_ != nullptr && link_->peer_closed(); }

std::span<const uint8_t> Connection::peer_data() const {
  if (link_ == nullptr) return {};
  return link_->peer_data();
}

Endpoint Connection::local() const { return link_ == nullptr ? Endpoint{} : link_->local(); }
Endpoint Connection::remote() const { return link_ == nullptr ? Endpoint{} : link_->remote(); }
uint32_t Connection::number() const { return link_ == nullptr ? 0 : link_->number(); }

// --- Listener ---

Listener::Listener() = default;
Listener::Listener(std::unique_ptr<AnsweredRequests> answered, const Endpoint& local)
    : answered_(std::move(answered)), local_(local) {}

Listener::Listener(Listener&& other) noexcept { swap(other); }

Listener& Listener::operator=(Listener&& other) noexcept {
  Listener before(std::move(other));
  swap(before);
  return *this;
}

void Listener::swap(Listener& other) noexcept {
  std::swap(answered_, other.answered_);
  std::swap(local_, other.local_);
}

Listener::~Listener() {
  if (answered_ == nullptr || answered_->desk().is_abandoned()) return;
  quietly([this] { answered_->stop(local_); });
}

Result<Connection> Listener::accept(TimeLimit limit, const ConnectionOptions& options) {
  if (answered_ == nullptr) return empty_handle();
  const EventDesk& desk = answered_->desk();
  if (desk.is_abandoned()) return abandoned();
  return guarded("Listener::accept", [&]() -> Result<Connection> {
    auto link = answered_->next(local_, WaitEnd(desk.context(), limit.span()), options);
    if (!link) return tl::unexpected(std::move(link.error()));
    return Connection(std::move(*link));
  });
}

// --- Adapter ---

Result<Adapter> Adapter::open(Context& context, const std::string& device) {
  return guarded("Adapter::open", [&]() -> Result<Adapter> {
    auto found = context.device(device);
    if (!found) return tl::unexpected(std::move(found.error()));
    auto desk = found->open_event_desk();
    if (!desk) return tl::unexpected(std::move(desk.error()));
    return Adapter(std::move(*desk));
  });
}

Result<Connection> Adapter::connect(const Endpoint& remote, TimeLimit limit,
                                    const ConnectionOptions& options) {
  if (desk_->is_abandoned()) return abandoned();
  return guarded("Adapter::connect",
                 [&] { return connect_to(desk_, remote, limit.span(), options); });
}

Result<Connection> Adapter::connect(const std::string& host, uint16_t port, TimeLimit limit,
                                    const ConnectionOptions& options) {
  if (desk_->is_abandoned()) return abandoned();
  return guarded("Adapter::connect", [&]() -> Result<Connection> {
    const auto remotes = resolve(host, port);
    if (!remotes) return tl::unexpected(remotes.error());
    const WaitEnd end(desk_->context(), limit.span());
    Error last;
    auto untried = static_cast<int64_t>(remotes->size());
    for (const Endpoint& remote : *remotes) {
      const std::chrono::nanoseconds left = end.left(desk_->context());
      auto made = connect_to(desk_, remote, left == kForever ? left : left / untried, options);
      if (made) return made;
      last = std::move(made.error());
      --untried;
    }
    return tl::unexpected(Error{last.code, host + ": " + last.message});
  });
}

Result<Listener> Adapter::listen(const Endpoint& local, const ListenOptions& options) {
  if (desk_->is_abandoned()) return abandoned();
  return guarded("Adapter::listen", [&] { return listen_at(desk_, local, options); });
}

Result<Listener> Adapter::listen(uint16_t port, const ListenOptions& options) {
  return listen(Endpoint{{}, port}, options);
}

Result<std::pair<Connection, Connection>> Adapter::connect_pair(Adapter& far, uint16_t port,
                                                                TimeLimit limit,
                                                                const ConnectionOptions& options) {
  if (desk_->is_abandoned()) return abandoned();
  using Pair = std::pair<Connection, Connection>;
  return guarded("Adapter::connect_pair", [&]() -> Result<Pair> {
    // Nothing here drives the other context, nor does its clock go by this one's.
    if (!desk_->shares_context(*far.desk_)) {
      return base::fail(ErrorCode::InvalidArgument, "connect_pair: device " + far.device().name() +
                                                        " belongs to another context than " +
                                                        device().name() + ": use one context");
    }
    const WaitEnd end(desk_->context(), limit.span());
    auto link = BlockingLink::make(desk_, options);
    if (!link) return tl::unexpected(std::move(link.error()));
    // The port is open to everybody while the call is under way.
    const auto is_near = [&link](const Endpoint& remote) { return (*link)->is_at(remote); };
    auto listener = listen_at(far.desk_, {far.desk_->device().address(), port}, {}, is_near);
    if (!listener) return tl::unexpected(std::move(listener.error()));
    const Endpoint there = listener->local();
    far.desk_->sort_events();  // requests of a device whose events nobody takes are rejected
    if (auto started = (*link)->connect(there, options); !started) {
      return tl::unexpected(std::move(started.error()));
    }
    auto accepted = listener->accept(end.left(desk_->context()), options);
    if (!accepted) return tl::unexpected(std::move(accepted.error()));
    if (auto done = (*link)->await_established(end, to_string(there)); !done) {
      return tl::unexpected(std::move(done.error()));
    }
    return Pair(Connection(std::move(*link)), std::move(*accepted));
  });
}

Result<MemoryRegion> Adapter::register_memory(std::span<std::byte> memory, AccessSet access) {
  return desk_->register_memory(memory, access);
}

std::optional<Event> Adapter::poll_event() {
  if (desk_->is_abandoned()) return std::nullopt;
  return guarded_or(std::optional<Event>{}, [this] { return desk_->take_other(); });
}

uint64_t Adapter::events_lost() const { return desk_->is_abandoned() ? 0 : desk_->lost(); }

const Device& Adapter::device() const { return desk_->device(); }

}  // namespace rnic::blocking
