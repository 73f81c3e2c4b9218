/// \file
/// Calls that wait: for programs that do one thing after the other. A connection by host and port,
/// messages without a thought for receives, Writes, Reads and atomics that have completed when the
/// call returns.
///
///     auto context = Context::open(config);
///     auto adapter = blocking::Adapter::open(*context, "rnic0");
///     auto server = adapter->connect("storage.example", 7471);       // Result<Connection>
///     server->send(std::as_bytes(std::span(question)));
///     auto answer = server->receive(buffer);                         // Result<Completion>
///     auto page = server->read({region->sge(0, 4096)}, remote);
///
/// Every call has a limit of time, and sleeps in the kernel while it waits
/// (Context::wait_until()). Nothing but the calls of verbs.hpp stands below; a program that wants
/// more than one request under way uses those.
///
/// What every call may answer beside its own errors: WrongState for an empty handle, TimedOut when
/// its limit is over, ResourceExhausted, Abandoned. When a call that was given memory has returned,
/// with or without success, the memory is the application's.
///
/// Threads: in an inline context everything belongs to the thread that polls it. In a threaded one
/// each Listener and each Connection belongs to one thread at a time, and receive() of a Connection
/// may be another thread's.
///
/// Ownership: a Listener and a Connection keep what they need of their Adapter. The Context stays
/// where it is, and outlives all of them.
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
class BlockingLink;
class EventDesk;
}  // namespace rnic::verbs

namespace rnic::blocking {

/// How long a call may wait: any span of std::chrono; 0 and less: it only looks; kForever: no end.
class TimeLimit {
 public:
  template <typename Rep, typename Period>
  // NOLINTNEXTLINE(google-explicit-constructor): a span is a limit
  constexpr TimeLimit(std::chrono::duration<Rep, Period> span) : span_(to_nanoseconds(span)) {}
  [[nodiscard]] constexpr std::chrono::nanoseconds span() const { return span_; }

 private:
  std::chrono::nanoseconds span_;
};

/// The limit of a call that is given none.
inline constexpr TimeLimit kTimeLimit{std::chrono::seconds(10)};
/// What the buffers of one Connection may have together, octets.
inline constexpr uint64_t kMaxBufferOctets = uint64_t{64} << 20;

/// How a Connection is made.
struct ConnectionOptions {
  /// Octets of a message of send() and receive(), at most. A longer one of the peer ends the
  /// connection (RFC 5040 s.7.1).
  uint32_t message_size = 4096;
  /// Messages of the peer that may wait for receive(), at least 1. A peer that sends more of them
  /// ahead ends the connection: the two sides have to agree who speaks when. Together with
  /// `message_size`: (receives + 1) * message_size <= kMaxBufferOctets.
  uint32_t receives = 16;
  uint32_t reads = 16;  ///< Reads and atomics of the peer at once (IRD), and of this side (ORD)
  ConnectOptions connect{};
  std::span<const uint8_t> private_data{};  ///< for the peer: peer_data() there
};

/// One connection. Its destruction aborts it; close() ends it in order.
class Connection {
 public:
  Connection();
  /// Adapter and Listener make them.
  explicit Connection(std::unique_ptr<verbs::BlockingLink> link);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();

  // An operation that fails has ended the connection, but for InvalidArgument, MessageSize and
  // Unsupported, and for TimedOut of receive(). After TimedOut of the others it is not known what
  // the peer has of the request. Codes: PermissionDenied: memory that does not allow it, here or
  // there; Reset, Unreachable, Protocol: how the connection was lost; WrongState: it was closed in
  // order, see peer_closed(). The text is describe()'s.

  /// Gives a message to the peer's receive(). InvalidArgument: longer than
  /// ConnectionOptions::message_size.
  Result<Completion> send(std::span<const std::byte> message, TimeLimit limit = kTimeLimit);
  /// The same from registered memory, of any length that the peer takes.
  Result<Completion> send(const SgeList& source, TimeLimit limit = kTimeLimit);
  /// Takes the oldest message of the peer. Completion::length is its octets. MessageSize: `into` is
  /// smaller, and the message stays. TimedOut: none has come, and nothing has changed. What came
  /// before the connection ended is still given.
  Result<Completion> receive(std::span<std::byte> into, TimeLimit limit = kTimeLimit);
  /// Writes to the peer's memory, which is not told. When it has returned the peer's TCP has the
  /// octets, and each later operation of this connection finds them placed.
  Result<Completion> write(const SgeList& source, const RemoteAddress& target,
                           TimeLimit limit = kTimeLimit);
  /// Fetches from the peer's memory. `sink` may have several elements.
  Result<Completion> read(const SgeList& sink, const RemoteAddress& source,
                          TimeLimit limit = kTimeLimit);
  /// QueuePair::post_fetch_add(): Completion::original is what was there before.
  Result<Completion> fetch_add(const RemoteAddress& remote, uint64_t add,
                               TimeLimit limit = kTimeLimit);
  /// QueuePair::post_compare_swap() of all 64 bits: Completion::original is what was there before.
  Result<Completion> compare_swap(const RemoteAddress& remote, uint64_t compare, uint64_t swap,
                                  TimeLimit limit = kTimeLimit);
  /// Any other request of the send queue. Its `id` and `signaled` do not count.
  Result<Completion> carry_out(const SendRequest& request, TimeLimit limit = kTimeLimit);

  /// Closes in order and waits until the peer has, too. A success also where the connection has
  /// ended by itself. TimedOut: the peer did not close, and was reset.
  Status close(TimeLimit limit = kTimeLimit);
  /// The peer has closed its direction in order, and every message before that was taken.
  [[nodiscard]] bool peer_closed() const;

  /// What the peer gave as private data.
  [[nodiscard]] std::span<const uint8_t> peer_data() const;
  [[nodiscard]] Endpoint local() const;
  [[nodiscard]] Endpoint remote() const;
  /// QueuePair::number(); 0: the handle is empty.
  [[nodiscard]] uint32_t number() const;

 private:
  std::unique_ptr<verbs::BlockingLink> link_;
};

/// Takes the connections to one port. Its destruction stops that, and rejects who waits.
class Listener {
 public:
  Listener() = default;
  /// Adapter::listen() makes them.
  Listener(std::shared_ptr<verbs::EventDesk> desk, const Endpoint& local);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  /// The next connection, in full operation. Peers that went away before they were accepted are
  /// passed over. What each error leaves: the listener as it was.
  Result<Connection> accept(TimeLimit limit = kTimeLimit, const ConnectionOptions& options = {});
  /// Where it listens.
  [[nodiscard]] const Endpoint& local() const { return local_; }

 private:
  std::shared_ptr<verbs::EventDesk> desk_;
  Endpoint local_;
};

/// One device of a context, with a protection domain for all that is made here. It takes the
/// events of the device: nobody else polls them. A view that may be copied: never empty.
class Adapter {
 public:
  Adapter(const Adapter&) = default;
  Adapter& operator=(const Adapter&) = default;
  ~Adapter() = default;
  /// \param device its name; NotFound names those that exist. Once for each device.
  static Result<Adapter> open(Context& context, const std::string& device);

  /// Connects to the first address of `host` that answers: a name, or an address as a text. Each of
  /// several has its share of the limit; looking the name up, by resolve(), is not limited and has
  /// its errors. NotFound: there is no such host. Unreachable: nobody listens there; Rejected: the
  /// peer's application said no.
  Result<Connection> connect(const std::string& host, uint16_t port, TimeLimit limit = kTimeLimit,
                             const ConnectionOptions& options = {});
  Result<Connection> connect(const Endpoint& remote, TimeLimit limit = kTimeLimit,
                             const ConnectionOptions& options = {});
  /// Two ends of one connection in one thread, as socketpair() of sockets. `far`, of the same
  /// context, is listened on at its own address while the call is under way.
  /// \return the end here, and that at `far`
  Result<std::pair<Connection, Connection>> connect_pair(Adapter& far, uint16_t port,
                                                         TimeLimit limit = kTimeLimit,
                                                         const ConnectionOptions& options = {});
  /// As Device::listen().
  Result<Listener> listen(const Endpoint& local, const ListenOptions& options = {});
  /// The same on all addresses of the device.
  Result<Listener> listen(uint16_t port, const ListenOptions& options = {});

  /// As ProtectionDomain::register_memory(), for all connections of the adapter: an STag that one
  /// peer was told works for every peer that learns it.
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, AccessSet access);
  /// The oldest event that is about nothing that was made here. At most 256 are kept; what comes
  /// then is counted by events_lost().
  std::optional<Event> poll_event();
  [[nodiscard]] uint64_t events_lost() const;
  [[nodiscard]] const Device& device() const;

 private:
  explicit Adapter(std::shared_ptr<verbs::EventDesk> desk) : desk_(std::move(desk)) {}

  std::shared_ptr<verbs::EventDesk> desk_;
};

}  // namespace rnic::blocking
