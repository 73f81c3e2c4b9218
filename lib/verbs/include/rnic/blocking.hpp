/// \file
/// Calls that wait, for programs that do one thing after the other: connections by host and port,
/// messages whose receives the library posts, and Writes, Reads and atomics that have completed
/// when the call returns (CompletionStatus::Success says how far that is).
///
///     auto context = Context::open(config);
///     auto adapter = blocking::Adapter::open(*context, "rnic0");
///     auto server = adapter->connect("storage.example", 7471);       // Result<Connection>
///     server->send(std::as_bytes(std::span(question)));
///     auto answer = server->receive(buffer);                         // Result<Completion>
///     auto page = server->read({region->sge(0, 4096)}, remote);
///
/// Every call has a time limit, and sleeps in the kernel while it waits (Context::wait_until()).
/// The calls are built on those of verbs.hpp alone; a program that wants more than one request
/// under way uses verbs.hpp directly.
///
/// Besides its own errors every call may return WrongState for an empty handle, TimedOut after its
/// limit, ResourceExhausted, and Abandoned. When a call that was given memory has returned, with or
/// without success, the memory belongs to the application again.
///
/// Threads: in an inline context everything belongs to the thread that polls it. In a threaded
/// context each Listener and each Connection belongs to one thread at a time, but a second thread
/// may call receive() of a Connection, and any number of threads accept() of a Listener.
///
/// Ownership: a Listener and a Connection keep alive what they need of their Adapter, and all of
/// them what they need of their Context: the handles may end in any order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rnic/verbs.hpp"

namespace rnic::verbs {
class AnsweredRequests;
class BlockingLink;
}  // namespace rnic::verbs

namespace rnic::blocking {

/// How long a call may wait: any span of std::chrono. With 0 or less the call only looks; with
/// kForever it waits without end.
class TimeLimit {
 public:
  template <typename Rep, typename Period>
  // NOLINTNEXTLINE(google-explicit-constructor): a span is a limit
  constexpr TimeLimit(std::chrono::duration<Rep, Period> span) : span_(to_nanoseconds(span)) {}
  [[nodiscard]] constexpr std::chrono::nanoseconds span() const { return span_; }

 private:
  std::chrono::nanoseconds span_;
};

/// The default limit.
inline constexpr TimeLimit kTimeLimit{std::chrono::seconds(10)};
/// The most octets that the buffers of one Connection may have together.
inline constexpr uint64_t kMaxBufferOctets = uint64_t{64} << 20;

/// How a Connection is made.
struct ConnectionOptions {
  /// The longest message of send() and receive(), octets. A longer message from the peer ends the
  /// connection (RFC 5040 s.7.1).
  uint32_t message_size = 4096;
  /// Messages of the peer that may wait for receive(), at least 1. A peer that sends more messages
  /// ahead ends the connection, so the two sides have to agree on who speaks when.
  /// (receives + 1) * message_size must be at most kMaxBufferOctets.
  uint32_t receives = 16;
  uint32_t reads = 16;  ///< Reads and atomics of the peer at once (IRD), and of this side (ORD)
  ConnectOptions connect{};
  /// For the peer, which reads it by peer_data(): at most kMaxPrivateData octets.
  std::span<const uint8_t> private_data{};
};

/// One connection. Its destructor aborts it; close() ends it in order.
class Connection {
 public:
  Connection();
  /// Adapter and Listener make them.
  explicit Connection(std::unique_ptr<verbs::BlockingLink> link);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();

  // An operation that fails has ended the connection, except after InvalidArgument, MessageSize,
  // Unsupported, and TimedOut of receive(). After TimedOut of any other operation it is not known
  // how much of the request has reached the peer. Error codes: PermissionDenied: memory on this
  // side or the peer's does not allow the access; Reset, Unreachable, Protocol: how the connection
  // was lost; WrongState: it was closed in order, see peer_closed(). describe() writes the text.

  // A success says what CompletionStatus::Success says: a message of send() or write() has been
  // acknowledged by the peer's TCP or, over sockets of the system, taken by the system's TCP, while
  // a Read or an atomic is done.

  /// Sends a message for the peer's receive(). InvalidArgument: the message is longer than
  /// ConnectionOptions::message_size.
  Result<Completion> send(std::span<const std::byte> message, TimeLimit limit = kTimeLimit);
  /// Sends a message from registered memory, of any length that the peer takes.
  Result<Completion> send(const SgeList& source, TimeLimit limit = kTimeLimit);
  /// Takes the oldest message of the peer. Completion::length is its length in octets. MessageSize:
  /// `into` is smaller, and the message stays. TimedOut: none has come, and nothing has changed.
  /// Messages that came before the connection ended can still be taken.
  Result<Completion> receive(std::span<std::byte> into, TimeLimit limit = kTimeLimit);
  /// Writes to the peer's memory; the peer's application is not told. When the call has returned,
  /// the octets need not be placed yet, but each later operation of this connection finds them
  /// placed.
  Result<Completion> write(const SgeList& source, const RemoteAddress& target,
                           TimeLimit limit = kTimeLimit);
  /// Fetches from the peer's memory. `sink` may have several elements.
  Result<Completion> read(const SgeList& sink, const RemoteAddress& source,
                          TimeLimit limit = kTimeLimit);
  /// As QueuePair::post_fetch_add(). Completion::original is the value before.
  Result<Completion> fetch_add(const RemoteAddress& remote, uint64_t add,
                               TimeLimit limit = kTimeLimit);
  /// As QueuePair::post_compare_swap() of all 64 bits. Completion::original is the value before.
  Result<Completion> compare_swap(const RemoteAddress& remote, uint64_t compare, uint64_t swap,
                                  TimeLimit limit = kTimeLimit);
  /// Carries out any other request of the send queue. Its `id` and `signaled` are ignored.
  Result<Completion> carry_out(const SendRequest& request, TimeLimit limit = kTimeLimit);

  /// Closes in order and waits until the peer has closed, too. It is also a success if the
  /// connection has ended by itself. TimedOut: the peer did not close, and was reset.
  Status close(TimeLimit limit = kTimeLimit);
  /// The peer has closed its direction in order, and every message before that was taken.
  [[nodiscard]] bool peer_closed() const;

  /// The private data that the peer has given.
  [[nodiscard]] std::span<const uint8_t> peer_data() const;
  [[nodiscard]] Endpoint local() const;
  [[nodiscard]] Endpoint remote() const;
  /// QueuePair::number(); 0: the handle is empty.
  [[nodiscard]] uint32_t number() const;

 private:
  std::unique_ptr<verbs::BlockingLink> link_;
};

/// Accepts the connections to one port. Its destructor stops listening, rejects the requests that
/// wait, and aborts the connections that accept() has answered and not returned.
class Listener {
 public:
  Listener();
  /// Adapter::listen() makes them.
  Listener(std::unique_ptr<verbs::AnsweredRequests> answered, const Endpoint& local);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  /// Accepts the next connection and returns it in full operation. The call answers all requests
  /// that wait, with `options`, so that no peer that is slow holds up another: 64 of them may be on
  /// their way into full operation at a time, with buffers of kMaxBufferOctets together. Those that
  /// are not there when the call returns stay for the next one, which returns them with the options
  /// that they were answered with. Passed over are peers that went away, that broke a rule, that
  /// did not get into full operation within the listener's StartPolicy::rtr_timeout (RFC 6581
  /// s.9.2: the RTR), and that `options` do not fit. An error leaves the listener as it was.
  /// TimedOut: `limit` is over. InvalidArgument, before anybody has asked: a value of `options`
  /// that fits no peer.
  Result<Connection> accept(TimeLimit limit = kTimeLimit, const ConnectionOptions& options = {});
  /// The endpoint that it listens on.
  [[nodiscard]] const Endpoint& local() const { return local_; }

 private:
  void swap(Listener& other) noexcept;

  std::unique_ptr<verbs::AnsweredRequests> answered_;  // nullptr: the handle is empty
  Endpoint local_;
};

/// One device of a context, with a protection domain for all that is made here. An adapter polls
/// the device's events, and nobody else may. It is a view that may be copied, and is never empty.
class Adapter {
 public:
  Adapter(const Adapter&) = default;
  Adapter& operator=(const Adapter&) = default;
  ~Adapter() = default;
  /// Opens a device by its name. NotFound names the devices that exist. AlreadyExists: the device
  /// has an adapter, or a Listener or Connection of one; two would take each other's events.
  static Result<Adapter> open(Context& context, const std::string& device);

  /// Connects to the first address of `host` that answers. \param host a name, or an address as a
  /// text; each of several addresses gets its share of the limit. resolve() looks the name up
  /// without a limit, and its errors are returned. NotFound: there is no such host. Unreachable:
  /// nobody listens there. Rejected: the peer's application said no.
  Result<Connection> connect(const std::string& host, uint16_t port, TimeLimit limit = kTimeLimit,
                             const ConnectionOptions& options = {});
  Result<Connection> connect(const Endpoint& remote, TimeLimit limit = kTimeLimit,
                             const ConnectionOptions& options = {});
  /// Makes both ends of one connection in one thread, as socketpair() does. While the call is under
  /// way it listens on the address of `far`; with port 0 on a port that is chosen. Whoever else
  /// asks for a connection there is rejected. InvalidArgument: `far` belongs to another context.
  /// \return the end of this device, and the end of `far`
  Result<std::pair<Connection, Connection>> connect_pair(Adapter& far, uint16_t port,
                                                         TimeLimit limit = kTimeLimit,
                                                         const ConnectionOptions& options = {});
  /// As Device::listen().
  Result<Listener> listen(const Endpoint& local, const ListenOptions& options = {});
  /// Listens on all addresses of the device.
  Result<Listener> listen(uint16_t port, const ListenOptions& options = {});

  /// As ProtectionDomain::register_memory(), for all connections of the adapter: an STag that one
  /// peer was told works for every peer that learns it.
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, AccessSet access);
  /// The oldest event that is not about a Listener or a Connection of the adapter. At most 256 such
  /// events are kept; events_lost() counts the others.
  std::optional<Event> poll_event();
  [[nodiscard]] uint64_t events_lost() const;
  [[nodiscard]] const Device& device() const;

 private:
  explicit Adapter(std::shared_ptr<verbs::EventDesk> desk) : desk_(std::move(desk)) {}

  std::shared_ptr<verbs::EventDesk> desk_;
};

}  // namespace rnic::blocking
