/// \file
/// The public API: a software RNIC, driven like one with verbs.
///
/// Two ways over the same code (config key `worker.mode`):
///  * inline: the thread that calls Context::poll() is the NIC. Nothing moves while nobody polls;
///  use
///    Context::wait_until() for waiting, it polls every device of the context.
///  * threaded: one worker thread a device; the application only posts and polls rings.
///
/// Threads: one thread at a time for each queue of a QueuePair, for each CompletionQueue and for a
/// device's events. Everything else of an inline context belongs to one thread; of a threaded
/// context it may be called from any thread (it is carried out by the worker).
///
/// Ownership: objects are handles that give back what they stand for when they are destroyed, in
/// any order. What others still stand on (a completion queue with queue pairs, a domain with
/// regions, the context with any of them) loses its name at once and goes with the last of those; a
/// region is revoked at once, whatever stands on it. destroy() refuses instead, where there is
/// something left.
///
/// Forks: in a child each handle of its parent answers Abandoned, nothing or 0, and does nothing
/// when it is destroyed; descriptors that were given (fd(), event_fd()) are closed there. Parent
/// and peers notice nothing. A child may open contexts of its own, over ports that need no DPDK.
///
/// A handle that nothing was put into, or that was moved from or destroyed, is empty: its calls
/// answer WrongState, nothing or 0, and destroy() and deregister() have nothing to do. Who moves
/// into a handle that is not empty destroys what it stood for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rnic/address.hpp"
#include "rnic/completion_queue.hpp"
#include "rnic/configuration.hpp"
#include "rnic/error.hpp"
#include "rnic/framed_stream.hpp"
#include "rnic/resolve.hpp"
#include "rnic/shared_receive_queue.hpp"
#include "rnic/stream.hpp"
#include "rnic/types.hpp"

namespace rnic {

namespace verbs {
class QueueAlarm;
class Runtime;
struct DeviceRuntime;
}  // namespace verbs
namespace device {
class CompletionQueue;
class QueuePair;
}  // namespace device
namespace mem {
struct RegionSpec;
}  // namespace mem

class QueuePair;

/// How memory is registered (docs/memory.md).
struct RegionOptions {
  AccessSet access;
  /// Tagged offset of the first octet (in other words: its "iova"); octets count up from it. 0: a
  /// zero-based region. Nothing: the memory's own address, for several pieces 0.
  std::optional<uint64_t> offset{};
  /// The low octet of the STag. Nothing: one that nobody can guess.
  std::optional<uint8_t> key{};
  /// The region is for the stream of this queue pair alone (RFC 5042 s.6.1.1), which
  /// Access::RemoteInvalidate asks for: until it is destroyed, or moved to Idle again. Nothing: for
  /// all queue pairs of the domain.
  const QueuePair* queue_pair = nullptr;
};

/// What ProtectionDomain::reregister() changes beside the domain; the rest stays as it is.
struct RegionChanges {
  std::optional<AccessSet> access{};
  std::optional<std::span<std::byte>> memory{};
  /// Nothing: as it is; where the memory changes, as RegionOptions::offset.
  std::optional<uint64_t> offset{};
  std::optional<uint8_t> key{};  ///< not the one that it has
};

/// Registered memory of the application.
class MemoryRegion {
 public:
  MemoryRegion() = default;
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  /// Deregisters, whatever is bound to it: remote access to the region and to its windows ends at
  /// once.
  ~MemoryRegion();

  [[nodiscard]] uint32_t stag() const { return stag_; }
  [[nodiscard]] uint64_t address() const { return address_; }  ///< tagged offset of the first octet
  [[nodiscard]] uint64_t length() const { return length_; }    ///< octets
  /// A piece of it: `length` octets from `offset`.
  [[nodiscard]] Sge sge(uint64_t offset, uint32_t length) const {
    return {address_ + offset, length, stag_};
  }
  /// Revokes the STag. When it has returned the device neither reads nor writes this memory; a
  /// connection that has to retransmit octets of it is aborted. WrongState while windows are bound
  /// to it: then nothing has changed.
  Status deregister();

 private:
  friend class ProtectionDomain;
  void swap(MemoryRegion& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t stag_ = 0;
  uint64_t address_ = 0;
  uint64_t length_ = 0;
};

/// Access for peers to a part of a region, and to nothing else of it (RFC 5042 s.6.3.4). It stands
/// on regions with Access::Bind, and ends with the one that it is bound to.
///
/// One of WindowType::Domain is bound by bind(); one of WindowType::QueuePair by
/// QueuePair::post_bind_window(), whose stream alone may use it then, and is free again when it was
/// invalidated: by QueuePair::post_local_invalidate(), by unbind(), or by the peer where it has
/// Access::RemoteInvalidate.
class MemoryWindow {
 public:
  MemoryWindow() = default;
  /// ProtectionDomain::create_window() makes them.
  MemoryWindow(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t stag);
  MemoryWindow(MemoryWindow&& other) noexcept;
  MemoryWindow& operator=(MemoryWindow&& other) noexcept;
  /// Ends the access that it gives, at once.
  ~MemoryWindow();
  /// The same as a call, which leaves the handle empty.
  Status destroy();

  /// Type 1: what it is bound by. Type 2: what it was made with; each binding has a key of its own.
  [[nodiscard]] uint32_t stag() const { return stag_; }
  /// Type 1: binds it to `length` octets of `region` from the tagged offset `from`, wherever it was
  /// bound before. They have the same offsets in the window. stag() is another one then.
  /// \param access some of RemoteRead, RemoteWrite and RemoteAtomic
  /// PermissionDenied where the region may not give that; in each error it is bound as before.
  Status bind(const MemoryRegion& region, uint64_t from, uint32_t length, AccessSet access);
  /// Ends the access that it gives, at once, and its hold on the region.
  Status unbind();

 private:
  void swap(MemoryWindow& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t stag_ = 0;
};

/// What CompletionQueue::arm() is for.
enum class Notify : uint8_t {
  Next,       ///< the next completion
  Solicited,  ///< the next one that the peer has solicited, or that is no Success
};

/// Where completions arrive.
///
/// Waiting, with a descriptor for poll() and epoll:
///
///     while (cq.poll(out) == 0) {
///       cq.arm(Notify::Next);
///       if (cq.poll(out) != 0) break;   // what came before arm() makes nothing readable
///       epoll_wait(...cq.fd()...);
///       context.poll();                 // inline: the device moves
///     }
class CompletionQueue {
 public:
  CompletionQueue() = default;
  CompletionQueue(CompletionQueue&& other) noexcept;
  CompletionQueue& operator=(CompletionQueue&& other) noexcept;
  /// Completions that nobody has polled are lost with it; queue pairs may still complete there.
  ~CompletionQueue();
  /// The same as a call, which leaves the handle empty. WrongState while queue pairs complete
  /// there: then nothing has changed.
  Status destroy();

  /// Names it in events; 0: the handle is empty.
  [[nodiscard]] uint32_t number() const;
  /// Another depth; the completions in it stay. After an overrun it works again. WrongState, and
  /// nothing changes, where it has more completions, or is to fit all queues and would not. The
  /// thread that polls.
  Status resize(uint32_t depth);
  /// How many completions one wake-up stands for from now on; what was kept back is told at once.
  /// InvalidArgument names the limit; nothing has changed then. The thread that polls.
  Status moderate(const NotifyModeration& how);
  /// What it holds, and what may come at once.
  Result<CqInfo> info() const;

  /// Oldest first; \return how many were written. Never blocks, and does not drive an inline
  /// device.
  uint32_t poll(std::span<Completion> out);

  /// A descriptor for poll() and epoll (POLLIN), the same one each time; nobody reads or closes it.
  /// It is readable once an entry that arm() was for has been added (as many as moderate() says,
  /// or behind the time that it says), until the next arm(). Of an inline context also when polling
  /// the context could add an entry. ResourceExhausted when the system has no descriptor left.
  Result<int> fd();
  /// The next entry that is `what` makes fd() readable. Poll once more behind it, then sleep: no
  /// completion is missed. Who waits for any entry goes on doing so when solicited ones are asked
  /// for. Of an inline context: gives the devices a few turns first, so that what was posted is on
  /// its way. ResourceExhausted as fd(). The thread that polls.
  Status arm(Notify what = Notify::Next);

 private:
  friend class Device;
  friend class ProtectionDomain;
  void swap(CompletionQueue& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::CompletionQueue* cq_ = nullptr;
  verbs::QueueAlarm* alarm_ = nullptr;  // the device's; nullptr until fd() or arm()
};

struct QueuePairOptions {
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  uint32_t ird = 16;  ///< inbound Reads and atomics at once
  uint32_t ord = 16;  ///< outbound Reads and atomics at once; more wait in the send queue
  /// A peer's close is answered by a graceful close of this side once the receives before it are
  /// delivered. False: the application calls disconnect() when it has nothing more to send.
  bool answer_close = true;
  /// The sink of a Read has to have Access::RemoteWrite besides LocalWrite, as the verbs of RDMAC
  /// say; one that has not completes with LocalProtection. False: LocalWrite is enough.
  bool strict_read_sinks = false;
  /// The application's own: every event about the queue pair bears it. Nobody looks at what it
  /// points to.
  void* context = nullptr;
  /// Receives come from there, and are posted there; of the same domain. `receive_depth` is then
  /// how many of them are taken ahead of the order of the peer's messages, at most: a peer whose
  /// segments arrive out of order has no more in progress. nullptr: it has receives of its own.
  SharedReceiveQueue* srq = nullptr;
  /// How long a Send or Immediate Data may wait for a receive where none is posted when it is the
  /// next in order (RFC 5041 s.7.1), nanoseconds. Meanwhile nothing behind it is delivered, the
  /// answers to Reads and atomics of this side included, and the peer's window is not opened.
  /// post_receive() ends the wait. 0: no wait, a Terminate ends the connection at once, as it does
  /// at the limit. InvalidArgument: negative. See docs/receive-queues.md.
  std::chrono::nanoseconds receive_wait{0};
};

/// What became of a list of requests that was posted at once.
struct ListPosted {
  uint32_t taken = 0;  ///< requests that were: those at the front, which are carried out
  Status status{};     ///< why the next one was not; no error where all were
};

/// How a request is carried out, where it is not the usual way.
struct PostOptions {
  bool signaled = true;    ///< as SendRequest::signaled
  bool solicited = false;  ///< as SendRequest::solicited
  bool fence = false;      ///< as SendRequest::fence
};

/// A send queue, a receive queue and one connection.
class QueuePair {
 public:
  QueuePair();
  QueuePair(QueuePair&& other) noexcept;
  QueuePair& operator=(QueuePair&& other) noexcept;
  /// Aborts the connection if there is one. Completions not yet polled stay in their queues.
  ~QueuePair();
  /// The same as a call, which leaves the handle empty.
  Status destroy();

  /// Another one after each return to Idle: completions and events of what was before bear the old
  /// one. Never 0; 0 of an empty handle.
  [[nodiscard]] uint32_t number() const;
  /// Error of an empty handle, and of one of this process's parent.
  [[nodiscard]] QueuePairState state() const;
  /// What the queue pair is now, the agreed IRD and ORD included.
  [[nodiscard]] Result<QueuePairAttributes> query() const;
  /// What its connection is doing now: round trip, windows, what waits, what came the slow way, and
  /// what limits it. It walks what is unacknowledged: for tools and people.
  [[nodiscard]] Result<QueuePairInfo> info() const;
  /// Changes what `change` says (QueuePairChange), or nothing: WrongState names what has to be done
  /// first, InvalidArgument the value and its limit. When it has returned after a move to Error
  /// everything that was posted has completed with Flushed.
  Status modify(const QueuePairChange& change);

  /// ResourceExhausted when the queue is full, InvalidArgument for a request that can never work,
  /// Unsupported for one of RFC 7306 where the device does without. Any other trouble, such as
  /// memory that is not registered, shows in the completion. Receives of a queue pair with a shared
  /// receive queue are posted there: WrongState.
  Status post_send(const SendRequest& request);
  Status post_receive(const ReceiveRequest& request);
  /// Posts them in their order with one doorbell, up to the first that post_send() would refuse.
  ListPosted post_send(std::span<const SendRequest> requests);
  ListPosted post_receive(std::span<const ReceiveRequest> requests);

  // One call for each operation; what they answer is as of post_send() and post_receive().

  /// Gives a message to the peer's next receive (RFC 5040 s.5.3).
  Status post_send(uint64_t id, const SgeList& source, const PostOptions& options = {});
  /// The same, and revokes an STag of the peer before its receive completes.
  Status post_send_invalidate(uint64_t id, const SgeList& source, uint32_t stag,
                              const PostOptions& options = {});
  /// Writes to the peer's memory, which is not told (RFC 5040 s.5.1).
  Status post_write(uint64_t id, const SgeList& source, const RemoteAddress& target,
                    const PostOptions& options = {});
  /// The same, and gives 8 octets to the peer's next receive once the Write is placed.
  Status post_write_immediate(uint64_t id, const SgeList& source, const RemoteAddress& target,
                              const ImmediateData& octets, const PostOptions& options = {});
  /// Fetches from the peer's memory (RFC 5040 s.5.2).
  Status post_read(uint64_t id, const SgeList& sink, const RemoteAddress& source,
                   const PostOptions& options = {});
  /// The same, and revokes the sink's STag before the completion.
  Status post_read_invalidate(uint64_t id, const Sge& sink, const RemoteAddress& source,
                              const PostOptions& options = {});
  /// Revokes an STag of this side after everything before it has completed.
  Status post_local_invalidate(uint64_t id, uint32_t stag, const PostOptions& options = {});
  Status post_receive(uint64_t id, const SgeList& sink);

  /// Adds to the 8 octets at `remote` and returns what was there before, in Completion::original.
  /// Indivisible against all other atomics through the peer's device. The target must be aligned to
  /// 8 octets and allow Access::RemoteAtomic; it holds a number in the peer's own order of octets.
  /// \param boundaries the highest bit of each field that is added on its own; 0: all 64 bits.
  Status post_fetch_add(uint64_t id, const RemoteAddress& remote, uint64_t add,
                        uint64_t boundaries = 0);
  /// Puts the `swap_mask` bits of `swap` there if the `compare_mask` bits of what is there are
  /// those of `compare`. Completion::original is what was there before, in either case.
  Status post_compare_swap(uint64_t id, const RemoteAddress& remote, uint64_t compare,
                           uint64_t swap, uint64_t compare_mask = ~uint64_t{0},
                           uint64_t swap_mask = ~uint64_t{0});
  /// Gives 8 octets to the peer's next receive, behind everything posted before: after a Write the
  /// peer learns by it that the Write is placed.
  Status post_immediate(uint64_t id, const ImmediateData& octets, bool solicited = false);

  /// Binds a window of type 2 to `part` of a region (MemoryGrant). LocalProtection, which ends the
  /// connection: the window is bound, is none of the domain, or the region cannot give that.
  Status post_bind_window(uint64_t id, const MemoryGrant& grant, const Sge& part);
  /// Registers `parts` of regions as one range of offsets, by an STag of
  /// ProtectionDomain::allocate_region(). For all queue pairs of the domain, but with
  /// Access::RemoteInvalidate for this one alone. LocalProtection as above, and where the parts
  /// have more pieces than it was allocated for.
  Status post_fast_register(uint64_t id, const MemoryGrant& grant, const SgeList& parts);

  /// Starts a connection. The outcome is an event: Established, Rejected or ConnectFailed.
  /// \param remote whom to connect to; of a text: parse_endpoint("10.0.0.2:7471"), of a name:
  ///        resolve("host", 7471)
  /// \param private_data for the peer's application; at most 508 octets (kMaxPrivateData), with
  ///        revision 1 512, with revision 0 65535.
  Status connect(const Endpoint& remote, std::span<const uint8_t> private_data = {},
                 const ConnectOptions& options = {});
  /// The same on a streaming connection, which from here on belongs to the queue pair (RFC 5044
  /// section 7.1.3): the peer has to call Stream::await_rdma(). What the stream has sent goes out
  /// before the MPA Request. WrongState, and nothing changes, when the stream is not open both ways
  /// or octets of the peer are unread. After Rejected the stream streams again; a stream is
  /// converted once.
  Status connect(Stream& stream, std::span<const uint8_t> private_data = {},
                 const ConnectOptions& options = {});
  /// Answers a ConnectRequest. Established follows; in peer-to-peer mode when the RTR has come.
  Status accept(const RequestHandle& request, std::span<const uint8_t> private_data = {},
                const ConnectOptions& options = {});
  /// Ends a connect() that is under way, the fall-back included: ConnectFailed follows. WrongState
  /// where none is, also when the outcome was told. (StartPolicy::timeout does so in time.)
  Status cancel_connect();
  /// This side's end of the connection, as Established tells it; WrongState without a connection.
  [[nodiscard]] Result<Endpoint> local() const;
  /// The peer's end; likewise.
  [[nodiscard]] Result<Endpoint> remote() const;
  /// Graceful: what was posted is sent, then the connection is closed. Disconnected follows. What
  /// has been closed already stays as it is; WrongState where there was no connection since the
  /// queue pair became idle. Receives stay until the peer closes, too.
  Status disconnect();
  /// The same, and an end to everything that was posted, in every state: what was posted to the
  /// send queue is carried out, receives are flushed when the connection ends. A peer that has not
  /// closed its direction after `limit` (any span; 0 and less: at once) is reset, and all that is
  /// left is flushed. Without a connection, or while one is being made, everything is flushed when
  /// the call returns. Where there is a connection Disconnected follows; the queue pair is in Error
  /// then.
  template <typename Rep, typename Period>
  Status drain(std::chrono::duration<Rep, Period> limit) {
    return drain_within(to_nanoseconds(limit));
  }
  Status drain() { return drain(kDrainTime); }

  /// Records what happens to each segment of the connection, at most `max_events` events (about 32
  /// octets each, taken at once). Only while connected.
  Status start_trace(size_t max_events);
  /// Ends the recording. Call it before the queue pair is destroyed.
  Result<std::vector<TraceEvent>> take_trace();

 private:
  friend class ProtectionDomain;
  class Trace;
  void swap(QueuePair& other) noexcept;
  Status drain_within(std::chrono::nanoseconds limit);

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::QueuePair* qp_ = nullptr;
  std::unique_ptr<Trace> trace_;
};

/// Ties regions and queue pairs together: an STag works only on queue pairs of its domain.
class ProtectionDomain {
 public:
  ProtectionDomain() = default;
  ProtectionDomain(ProtectionDomain&& other) noexcept;
  ProtectionDomain& operator=(ProtectionDomain&& other) noexcept;
  /// What was made from it goes on as it was.
  ~ProtectionDomain();
  /// The same as a call, which leaves the handle empty. WrongState while it has regions, queue
  /// pairs or shared receive queues: then nothing has changed.
  Status destroy();

  /// Registers memory of the application: of the heap, the stack, a file or hugepages, at any
  /// address, of any length, also 0. No octet of it is touched, but all of it has to be mapped, and
  /// to be writable where the rights let somebody write: else InvalidArgument. It must stay so
  /// until it is deregistered; the device faults like any other code where the application unmaps
  /// it, protects it or truncates its file before. ResourceExhausted: limits.max_regions.
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, const RegionOptions& options);
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, AccessSet access) {
    return register_memory(memory, RegionOptions{.access = access});
  }
  /// The same with memory of several pieces, which are one range of offsets in the order given. An
  /// access may go across their borders, but for an atomic. ResourceExhausted also where the pieces
  /// of all regions are more than limits.max_pieces.
  Result<MemoryRegion> register_pieces(std::span<const std::span<std::byte>> pieces,
                                       const RegionOptions& options);
  /// Registers a region of this or another domain of the device anew, and in this domain. The index
  /// of its STag stays, the key is another one: who knows the former STag has no access from the
  /// moment at which this returns. WrongState while windows are bound to the region; then, and in
  /// each other error, it is as it was.
  Status reregister(MemoryRegion& region, const RegionChanges& changes);
  /// An STag for QueuePair::post_fast_register(), by which nobody has access until then. Its parts
  /// may have up to `max_pieces` pieces of memory together (those of a region of several pieces
  /// count one by one).
  Result<MemoryRegion> allocate_region(uint32_t max_pieces = kMaxSge);
  Result<MemoryWindow> create_window(WindowType type);
  Result<SharedReceiveQueue> create_srq(const SharedReceiveQueueOptions& options = {});
  Result<QueuePair> create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                              const QueuePairOptions& options = {});

 private:
  Result<MemoryRegion> register_spec(const char* call, mem::RegionSpec& spec,
                                     const RegionOptions& options);
  friend class Device;
  void swap(ProtectionDomain& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t pd_ = 0;
};

/// One software RNIC of a context. A view that may be copied, also where it is moved: never empty.
class Device {
 public:
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;
  ~Device() = default;
  [[nodiscard]] const std::string& name() const;
  /// The first of its addresses, which to_string() makes a text of. Unspecified: it has none that
  /// it knows (over sockets of the system, without the key `address`).
  [[nodiscard]] IpAddress address() const;
  /// What it stands on, as the configuration says: "wire:loop:0", "socket", "0000:01:00.0".
  [[nodiscard]] const std::string& port() const;
  [[nodiscard]] uint32_t mtu() const;  ///< octets of an IP packet
  [[nodiscard]] std::string checksum_mode()
      const;  ///< "offload", "trusted", "software" or "system"

  /// The application's own: every event from now on bears it (event::Common::device_context).
  /// Nobody looks at what it points to.
  Status set_context(void* context);

  Result<ProtectionDomain> alloc_pd();
  /// \param depth completions that it holds, at least
  Result<CompletionQueue> create_cq(uint32_t depth, const CompletionQueueOptions& options = {});
  /// Connection requests for `local` arrive as events.
  /// \param local an address of the device, or an unspecified one of either family: all of them, of
  ///        both
  Status listen(const Endpoint& local, const ListenOptions& options = {});
  /// The same on all of its addresses.
  Status listen(uint16_t port, const ListenOptions& options = {});
  /// With what listen() had.
  Status unlisten(const Endpoint& local);
  Status unlisten(uint16_t port);
  Status reject(const RequestHandle& request, std::span<const uint8_t> private_data = {});
  /// Accepts TCP connections to `local` as plain streams (stream.hpp).
  /// \param local as listen()'s
  Result<StreamListener> listen_stream(const Endpoint& local,
                                       const StreamListenerOptions& options = {});
  Result<StreamListener> listen_stream(uint16_t port, const StreamListenerOptions& options = {});
  /// Starts a plain TCP connection: state() and status() of the stream tell how it went.
  Result<Stream> connect_stream(const Endpoint& remote, const StreamOptions& options = {});
  /// Accepts TCP connections to `local` as framed streams (framed_stream.hpp).
  /// \param local as listen()'s
  Result<FramedStreamListener> listen_framed(const Endpoint& local,
                                             const FramedListenerOptions& options = {});
  Result<FramedStreamListener> listen_framed(uint16_t port,
                                             const FramedListenerOptions& options = {});
  /// Starts a framed stream: its state() and status() tell how the connection went.
  Result<FramedStream> connect_framed(const Endpoint& remote, const FramingOptions& framing,
                                      const StreamOptions& options = {});
  /// A key for alignment mode that nobody can guess: 48 bits, another one each time, not 0.
  uint64_t new_framing_key();
  /// The oldest one; nothing when there is none. Never blocks.
  std::optional<Event> poll_event();
  /// A descriptor for poll() and epoll (POLLIN), the same one each time; nobody reads or closes it.
  /// It is readable while poll_event() has events to give; of an inline context also when polling
  /// the context could bring one. ResourceExhausted when the system has no descriptor left. Where
  /// events are polled: one thread.
  Result<int> event_fd();
  /// Inline: one turn of this device alone (one thread may drive one device, another thread another
  /// one; each device's control calls then belong to its thread). Threaded: 0.
  uint32_t poll();
  /// Every counter of every layer.
  [[nodiscard]] std::vector<Counter> counters() const;
  /// One of them. NotFound where there is none of that name: counters() lists them.
  [[nodiscard]] Result<uint64_t> counter(const std::string& layer, const std::string& name) const;
  /// What there may be of each thing, and what is in use. The keys of the configuration set them.
  [[nodiscard]] Result<DeviceLimits> limits() const;
  /// Terminate messages by code, of all its queue pairs, those that are gone included (RFC 5040
  /// s.4.8). describe() says a code in words.
  [[nodiscard]] Result<std::vector<TerminateCount>> terminates() const;
  /// An administrator's view of every connection that has not ended, those of peers that nobody has
  /// answered included: who is idle, who makes the device work the slow way, who holds memory (RFC
  /// 5042 s.6.4.2, s.6.4.4). In no order.
  [[nodiscard]] Result<std::vector<ConnectionSummary>> connections() const;
  /// Resets a connection, whoever it belongs to. Its queue pair gets Disconnected, with the reason
  /// in its text, and may be used again as after any end. NotFound when it has ended.
  Status abort(const ConnectionId& id);
  /// Nothing connected, queued or held.
  [[nodiscard]] bool quiescent() const;

 private:
  friend class Context;
  explicit Device(std::shared_ptr<verbs::DeviceRuntime> device) : device_(std::move(device)) {}
  std::shared_ptr<verbs::DeviceRuntime> device_;  // never empty
};

/// The devices of one configuration and the workers that run them.
class Context {
 public:
  /// Unsupported over ports of DPDK in a process that was forked from one with an open context, or
  /// with DPDK started: exec a program, and open it there.
  static Result<Context> open(const Config& config);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  [[nodiscard]] std::vector<std::string> device_names() const;
  /// NotFound names the devices that exist.
  Result<Device> device(const std::string& name);

  [[nodiscard]] bool threaded() const;
  /// Inline: one turn of every device; \return frames and doorbells served. Threaded: 0.
  uint32_t poll();

  /// Inline: one descriptor for an application's own loop (POLLIN), the same one each time; nobody
  /// reads or closes it. Readable behind arm() as soon as poll() has something to do: something has
  /// come, a deadline is over (next_deadline()), work was posted; and while a device has events,
  /// which the loop has to poll. Ports that cannot tell of frames (net_memif, most NICs) make it
  /// readable every 50 us.
  ///
  ///     while (!context.arm()) context.poll();   // then the completion queues and the events
  ///     epoll_wait(...context.fd()...);
  ///
  /// Unsupported in a threaded context: its completion queues and devices have descriptors.
  /// ResourceExhausted when the system has no descriptor left.
  Result<int> fd();
  /// Inline, behind fd(). False: poll() has something to do. True: fd() tells when it has.
  bool arm();

  /// Drives the devices (inline) or leaves that to the workers until `done` returns true, which it
  /// asks whenever the devices have done something, and every 10 ms. In between the thread sleeps
  /// in the kernel, but for the first 50 us (and never with worker.idle = "spin" or "yield").
  /// \param timeout any span: 0 and less: at once; kForever: never
  /// \return false when it was over before
  template <typename Rep, typename Period>
  bool wait_until(const std::function<bool()>& done, std::chrono::duration<Rep, Period> timeout) {
    return wait_for(done, to_nanoseconds(timeout));
  }
  /// Until poll() has something to do although nothing arrives; nothing: nothing is planned.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> next_deadline() const;
  /// On the context's time line (the one of TraceEvent).
  [[nodiscard]] std::chrono::nanoseconds now() const;
  /// One line about the machine side: hugepages or not, ports, CRC kernel.
  [[nodiscard]] std::string environment() const;

 private:
  explicit Context(std::shared_ptr<verbs::Runtime> runtime);
  bool wait_for(const std::function<bool()>& done, std::chrono::nanoseconds timeout);

  std::shared_ptr<verbs::Runtime> runtime_;  // nullptr: moved from
};

}  // namespace rnic
