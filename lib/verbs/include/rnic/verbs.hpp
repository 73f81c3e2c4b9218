/// \file
/// The public API: a software RNIC, driven by verbs like one in hardware.
///
/// It runs in one of two ways (config key `worker.mode`):
///  * inline: the thread that calls Context::poll() is the NIC. Nothing moves while nobody polls.
///    To wait, use Context::wait_until(): it polls every device of the context.
///  * threaded: each device has a worker thread; the application only posts and polls rings.
///
/// Threads, in a threaded context: one thread at a time posts to each queue of a QueuePair, polls
/// each CompletionQueue and polls a device's events. Any thread may make all other calls (the
/// worker carries them out), but of those that change a handle (MemoryWindow::bind() and unbind(),
/// ProtectionDomain::reregister(), QueuePair::start_trace() and take_trace()) one at a time may be
/// under way with the same handle, and no other call with it meanwhile. Any number of threads may
/// use a queue at once if it was made with `several_threads` (QueuePairOptions,
/// CompletionQueueOptions, SharedReceiveQueueOptions), or on a device with the key
/// device.several_threads: then a call on the queue waits while another one is under way.
///
/// Threads, in an inline context: the thread that drives a device makes all calls on its objects.
/// Other threads may post to queues with `several_threads` and poll completion queues with it,
/// which wakes the driving thread where it sleeps. Another thread may take over driving when the
/// former one has stopped.
///
/// No other thread may be in a call on a handle that is destroyed or moved, or whose destroy() is
/// called; the application sees to that in both modes.
///
/// Ownership: objects are handles. A handle releases its object when it is destroyed, and handles
/// may be destroyed in any order. An object that others still use (a completion queue with queue
/// pairs, a domain with regions, the context with any of them) cannot be named any more, and goes
/// with its last user; a region is revoked at once, whatever uses it. destroy() refuses instead
/// while there are users.
///
/// Forks: in a child process each handle of the parent answers Abandoned, nothing or 0, and does
/// nothing when it is destroyed; its descriptors (fd(), event_fd()) are closed there. Regions and
/// windows still tell their numbers, which are of no use there. Parent and peers notice nothing. A
/// child may open contexts of its own, over ports that need no DPDK.
///
/// A handle is empty if nothing was ever put into it, or if it was moved from or destroyed: its
/// calls answer WrongState, nothing or 0, and destroy() and deregister() do nothing. Moving into a
/// handle that is not empty destroys its object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rnic/address.hpp"
#include "rnic/completion_queue.hpp"
#include "rnic/configuration.hpp"
#include "rnic/error.hpp"
#include "rnic/framed_stream.hpp"
#include "rnic/port_reservation.hpp"
#include "rnic/resolve.hpp"
#include "rnic/shared_receive_queue.hpp"
#include "rnic/stream.hpp"
#include "rnic/types.hpp"

namespace rnic {

namespace verbs {
class EventDesk;
class QueueAlarm;
class QueueLock;
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

class Consumer;
class QueuePair;
struct ConsumerOptions;

/// How memory is registered (docs/memory.md).
struct RegionOptions {
  AccessSet access;
  /// Tagged offset of the first octet (its "iova" in other APIs); offsets count up from it. 0: a
  /// zero-based region. Nothing: the memory's own address, or 0 for several pieces.
  std::optional<uint64_t> offset{};
  /// The low octet of the STag. Nothing: an octet that nobody can guess.
  std::optional<uint8_t> key{};
  /// Binds the region to the stream of this queue pair alone (RFC 5042 s.6.1.1), until the queue
  /// pair is destroyed or moved to Idle again; Access::RemoteInvalidate requires it. nullptr: the
  /// region is for all queue pairs of the domain. InvalidArgument: the queue pair is of another
  /// domain.
  const QueuePair* queue_pair = nullptr;
};

/// Changes by ProtectionDomain::reregister() besides that of the domain; what is not set stays.
struct RegionChanges {
  std::optional<AccessSet> access{};
  std::optional<std::span<std::byte>> memory{};
  /// Nothing: it stays, or follows RegionOptions::offset if the memory changes.
  std::optional<uint64_t> offset{};
  std::optional<uint8_t> key{};  ///< must differ from the present key
};

/// Registered memory of the application.
class MemoryRegion {
 public:
  MemoryRegion() = default;
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  /// Deregisters the region even if windows are bound to it: remote access to the region and to its
  /// windows ends at once.
  ~MemoryRegion();

  // 0 when the handle is empty.
  [[nodiscard]] uint32_t stag() const { return stag_; }
  [[nodiscard]] uint64_t address() const { return address_; }  ///< tagged offset of the first octet
  [[nodiscard]] uint64_t length() const { return length_; }    ///< octets
  /// A piece of the region: `length` octets from `offset`.
  [[nodiscard]] Sge sge(uint64_t offset, uint32_t length) const {
    return {address_ + offset, length, stag_};
  }
  /// Revokes the STag. After the call the device neither reads nor writes this memory; a connection
  /// that has to retransmit octets of it is aborted. The handle is empty then. WrongState while
  /// windows are bound to the region: then nothing has changed.
  Status deregister();

 private:
  friend class MemoryWindow;
  friend class ProtectionDomain;
  void swap(MemoryRegion& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t stag_ = 0;
  uint64_t address_ = 0;
  uint64_t length_ = 0;
};

/// A memory window: it gives peers access to a part of a region, and to nothing else of that region
/// (RFC 5042 s.6.3.4). It can be bound to regions with Access::Bind, and its access ends with the
/// region that it is bound to.
///
/// bind() binds a window of WindowType::Domain. QueuePair::post_bind_window() binds a window of
/// WindowType::QueuePair, which only the stream of that queue pair may use then; it is free again
/// when it is invalidated: by QueuePair::post_local_invalidate(), by unbind(), or, with
/// Access::RemoteInvalidate, by the peer.
class MemoryWindow {
 public:
  MemoryWindow() = default;
  /// For ProtectionDomain::create_window(), which makes the windows.
  MemoryWindow(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t stag);
  MemoryWindow(MemoryWindow&& other) noexcept;
  MemoryWindow& operator=(MemoryWindow&& other) noexcept;
  /// Ends the access that the window gives, at once.
  ~MemoryWindow();
  /// Destroys the window and leaves the handle empty.
  Status destroy();

  /// Type 1: the STag of the present binding. Type 2: the STag that the window was made with; each
  /// binding has a key of its own. 0: the handle is empty.
  [[nodiscard]] uint32_t stag() const { return stag_; }
  /// Type 1: binds the window to `length` octets of `region` from the tagged offset `from`, and
  /// replaces an earlier binding. The octets have the same offsets in the window. stag() changes.
  /// InvalidArgument: the region is of another device or domain, or does not have these octets.
  /// NotFound: the window is of type 2.
  /// PermissionDenied: the region may not give that access. After an error the window is bound as
  /// before.
  /// \param access some of RemoteRead, RemoteWrite and RemoteAtomic, also where the region gives
  /// peers nothing: RemoteRead of any region with Access::Bind, the other two of one that has
  /// LocalWrite, too
  Status bind(const MemoryRegion& region, uint64_t from, uint32_t length, AccessSet access);
  /// Unbinds the window from its region: the access that it gives ends at once.
  Status unbind();

 private:
  void swap(MemoryWindow& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t stag_ = 0;
};

/// The completions that CompletionQueue::arm() waits for.
enum class Notify : uint8_t {
  Next,       ///< the next completion
  Solicited,  ///< the next one that is solicited by the peer or is not Success
};

/// The queue in which completions arrive.
///
/// Waiting, with a descriptor for poll() and epoll:
///
///     while (cq.poll(out) == 0) {
///       cq.arm(Notify::Next);
///       if (cq.poll(out) != 0) break;   // what came before arm() makes nothing readable
///       epoll_wait(...cq.fd()...);
///       context.poll();                 // inline: the device moves
///     }
///
/// With CompletionQueueOptions::several_threads, threads may wait so on one queue at once, all for
/// the same kind of completion. A completion wakes those that sleep, and one of them gets it.
class CompletionQueue {
 public:
  CompletionQueue();
  /// For Device::create_cq(), which makes the queues.
  CompletionQueue(std::shared_ptr<verbs::DeviceRuntime> device, device::CompletionQueue* cq,
                  std::unique_ptr<verbs::QueueLock> lock);
  CompletionQueue(CompletionQueue&& other) noexcept;
  CompletionQueue& operator=(CompletionQueue&& other) noexcept;
  /// Completions that nobody has polled are lost. Queue pairs may still use the queue: their work
  /// goes on, and nobody learns of its completions.
  ~CompletionQueue();
  /// Destroys the queue and leaves the handle empty. WrongState while queue pairs complete there:
  /// then nothing has changed.
  Status destroy();

  /// The number that names the queue in events; none before it had the same one. 0: the handle is
  /// empty.
  [[nodiscard]] uint32_t number() const;
  /// Gives the queue another depth; the completions in it stay. After an overrun the queue works
  /// again. WrongState, and nothing changes, if it has more completions than `depth`, or must fit
  /// all its users (CompletionQueueOptions::fits_all) and would not. For the thread that polls;
  /// with `several_threads` any thread, and those that poll meanwhile wait.
  Status resize(uint32_t depth);
  /// Sets how many completions one wake-up stands for. A wake-up that was held back comes at once.
  /// InvalidArgument names the limit; nothing has changed then. For the thread that polls; with
  /// `several_threads` any thread.
  Status moderate(const NotifyModeration& how);
  /// The state of the queue, and how many completions may come at once.
  Result<CqInfo> info() const;

  /// Takes the oldest completions. \return how many were written to `out`. Never waits for a
  /// completion, and does not drive an inline device. With `several_threads` any thread, inline,
  /// too.
  uint32_t poll(std::span<Completion> out);

  /// A descriptor for poll() and epoll (POLLIN), the same one each time; nobody reads or closes it.
  /// It becomes readable when a completion that arm() waits for has been added (after as many, or
  /// after as much time, as moderate() has set), and stays readable until the next arm(). In an
  /// inline context it is also readable when polling the context could add a completion.
  /// An application's epoll may contain it, and one further epoll that one: Linux takes no more
  /// than five within each other (ELOOP), and the descriptor of an inline context over sockets is
  /// an epoll with two within. ResourceExhausted when the system has no descriptor left. For the
  /// thread that polls; with `several_threads` any thread of a threaded context.
  Result<int> fd();
  /// Has the next completion of the kind `what` make fd() readable. Poll once more after the call,
  /// then sleep: no completion is missed. Notify::Solicited after Notify::Next still waits for any
  /// completion. In an inline context the call first gives the devices a few turns, so that posted
  /// work is on its way. InvalidArgument: `what` has no name. ResourceExhausted as for fd(). For
  /// the thread that polls; with `several_threads` any thread of a threaded context, and fd() stays
  /// readable if there are completions now, which another thread may have left. In an inline
  /// context it is the thread that drives the device.
  Status arm(Notify what = Notify::Next);

 private:
  friend class ProtectionDomain;
  void swap(CompletionQueue& other) noexcept;
  Result<int> open_alarm();
  Status arm_alarm(Notify what);

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::CompletionQueue* cq_ = nullptr;
  std::unique_ptr<verbs::QueueLock> lock_;  // of several threads; nullptr: one at a time
  verbs::QueueAlarm* alarm_ = nullptr;      // the device's; nullptr until fd() or arm()
};

/// The outcome of posting a list of requests.
struct ListPosted {
  uint32_t taken = 0;  ///< requests queued, from the front; they are carried out
  Status status{};     ///< why the next one was not queued; Success if all were
};

/// Options of a request that is not carried out in the usual way.
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
  /// Aborts the connection if there is one. Completions not yet polled stay in their queues, but
  /// requests that have not completed never will: their memory is the application's again, and
  /// nobody is told. Whoever waits for their completions moves the queue pair to
  /// QueuePairState::Error first (modify()), which completes them with Flushed.
  ~QueuePair();
  /// Destroys the queue pair, as its destructor does, and leaves the handle empty.
  Status destroy();

  /// The number of the queue pair. It changes with each return to Idle; earlier completions and
  /// events carry the old one. 0: the handle is empty.
  [[nodiscard]] uint32_t number() const;
  /// The state; Error for an empty handle and for a handle of this process's parent.
  [[nodiscard]] QueuePairState state() const;
  /// The present attributes of the queue pair, with the agreed IRD and ORD.
  [[nodiscard]] Result<QueuePairAttributes> query() const;
  /// What the connection is doing now: round trip, windows, waiting work, octets received the slow
  /// way, and what limits sending. The call walks all unacknowledged segments, so it is for tools
  /// and people and not for each message.
  [[nodiscard]] Result<QueuePairInfo> info() const;
  /// Makes all the changes set in `change` (QueuePairChange), or none: WrongState names what has to
  /// be done first, InvalidArgument names the value and its limit. When a move to Error has
  /// returned, everything that was posted has completed, with Flushed where nothing else is known.
  Status modify(const QueuePairChange& change);

  /// Posts a request to the send queue, as post_receive() does to the receive queue.
  /// ResourceExhausted: the queue is full. InvalidArgument: the request can never work.
  /// Unsupported: the request is one of RFC 7306, and the device has these disabled. WrongState: a
  /// receive of a queue pair that takes its receives from a shared receive queue. Any other
  /// trouble, such as memory that is not registered, shows in the completion. What its Success says
  /// stands with CompletionStatus::Success.
  Status post_send(const SendRequest& request);
  Status post_receive(const ReceiveRequest& request);
  /// Posts a list of requests in order with one doorbell, up to the first that post_send() or
  /// post_receive() would refuse.
  ListPosted post_send(std::span<const SendRequest> requests);
  ListPosted post_receive(std::span<const ReceiveRequest> requests);

  // One call for each operation, with the errors of post_send() and post_receive(). What the
  // completion's Success says stands beside each; "sent" is short for: the peer's TCP has
  // acknowledged all of it, or, over sockets of the system, the system's TCP has taken all of it
  // (CompletionStatus::Success). The memory is the application's again then.

  /// Sends a message to the peer's next receive (RFC 5040 s.5.3). Success: it is sent.
  Status post_send(uint64_t id, const SgeList& source, const PostOptions& options = {});
  /// Sends a message and revokes an STag of the peer before its receive completes. Success: it is
  /// sent, and whether the STag is revoked yet is not known.
  Status post_send_invalidate(uint64_t id, const SgeList& source, uint32_t stag,
                              const PostOptions& options = {});
  /// Writes to the peer's memory; the peer's application is not told (RFC 5040 s.5.1). Success: it
  /// is sent, and whether it is placed yet is not known.
  Status post_write(uint64_t id, const SgeList& source, const RemoteAddress& target,
                    const PostOptions& options = {});
  /// Writes to the peer's memory, and gives 8 octets to the peer's next receive once the Write is
  /// placed. Success: both are sent.
  Status post_write_immediate(uint64_t id, const SgeList& source, const RemoteAddress& target,
                              const ImmediateData& octets, const PostOptions& options = {});
  /// Fetches from the peer's memory (RFC 5040 s.5.2). Success, on every port: the octets are in the
  /// sink.
  Status post_read(uint64_t id, const SgeList& sink, const RemoteAddress& source,
                   const PostOptions& options = {});
  /// Fetches from the peer's memory, and revokes the sink's STag before the completion. Success, on
  /// every port: the octets are in the sink.
  Status post_read_invalidate(uint64_t id, const Sge& sink, const RemoteAddress& source,
                              const PostOptions& options = {});
  /// Revokes an STag of this side after everything before it has completed. Success: it is revoked.
  Status post_local_invalidate(uint64_t id, uint32_t stag, const PostOptions& options = {});
  /// Takes the peer's next message. Success: it is whole in the sink, and everything that the peer
  /// has sent before it is delivered, Writes too.
  Status post_receive(uint64_t id, const SgeList& sink);

  /// Adds to the 8 octets at `remote` and returns the value before in Completion::original. The
  /// operation is atomic with respect to all other atomics through the peer's device. The target
  /// must be aligned to 8 octets and allow Access::RemoteAtomic; it holds a number in the peer's
  /// own byte order. Success, on every port: the peer has done it.
  /// \param boundaries the highest bit of each field that is added on its own; 0: all 64 bits.
  Status post_fetch_add(uint64_t id, const RemoteAddress& remote, uint64_t add,
                        uint64_t boundaries = 0);
  /// Stores the `swap_mask` bits of `swap` in the 8 octets at `remote` if their `compare_mask` bits
  /// are those of `compare`. Completion::original is the value before, in either case. Success, on
  /// every port: the peer has compared, and swapped or not.
  Status post_compare_swap(uint64_t id, const RemoteAddress& remote, uint64_t compare,
                           uint64_t swap, uint64_t compare_mask = ~uint64_t{0},
                           uint64_t swap_mask = ~uint64_t{0});
  /// Gives 8 octets to the peer's next receive, after everything posted before: so the peer learns
  /// that an earlier Write is placed. Success: they are sent.
  Status post_immediate(uint64_t id, const ImmediateData& octets, bool solicited = false);

  /// Binds a window of type 2 to `part` of a region (MemoryGrant). It completes with
  /// LocalProtection, which ends the connection, if the window is bound already or not of the
  /// domain, or if the region cannot give that access. Success: the window is bound.
  Status post_bind_window(uint64_t id, const MemoryGrant& grant, const Sge& part);
  /// Registers `parts` of regions as one range of offsets under an STag of
  /// ProtectionDomain::allocate_region(). All queue pairs of the domain may use it, but with
  /// Access::RemoteInvalidate only this one. LocalProtection as above, and if the parts have more
  /// pieces than the STag was allocated for. Success: the STag gives the access.
  Status post_fast_register(uint64_t id, const MemoryGrant& grant, const SgeList& parts);

  /// Starts a connection. The outcome is an event: Established, Rejected or ConnectFailed.
  /// \param remote the peer; parse_endpoint("10.0.0.2:7471") makes it from a text,
  ///        resolve("host", 7471) from a name
  /// \param private_data for the peer's application; at most 508 octets (kMaxPrivateData), with
  ///        revision 1 512, with revision 0 65535.
  Status connect(const Endpoint& remote, std::span<const uint8_t> private_data = {},
                 const ConnectOptions& options = {});
  /// Connects from a port of the same device that was reserved, and takes the reservation over if
  /// it succeeds. ConnectOptions::source has to be left out. A fall-back (StartPolicy::fall_back)
  /// keeps the address and takes any free port. InvalidArgument: the port is another device's, or
  /// is at no address that can speak to the peer. PermissionDenied: it is reserved for another
  /// consumer than that of the queue pair. WrongState: the handle is empty.
  Status connect(PortReservation& from, const Endpoint& remote,
                 std::span<const uint8_t> private_data = {}, const ConnectOptions& options = {});
  /// Connects over a streaming connection, which from here on belongs to the queue pair (RFC 5044
  /// section 7.1.3): the peer has to call Stream::await_rdma(). Octets put into the stream before
  /// go out before the MPA Request. WrongState, and nothing changes, when the stream is not open
  /// both ways or octets of the peer are unread. After Rejected the stream streams again; a stream
  /// can be converted once.
  Status connect(Stream& stream, std::span<const uint8_t> private_data = {},
                 const ConnectOptions& options = {});
  /// Accepts a ConnectRequest. Established follows, in peer-to-peer mode only when the RTR has
  /// come. NotFound: the request is gone, or was answered already. InvalidArgument: it came to
  /// another device than the queue pair's, or `options` have a value that no accept takes, which is
  /// looked at first.
  Status accept(const RequestHandle& request, std::span<const uint8_t> private_data = {},
                const ConnectOptions& options = {});
  /// Commits a fault on the connection that there is (rnic/planned_fault.hpp): "terminate now" ends
  /// it by a Terminate, or a responder that has not heard of the peer does so as soon as it has;
  /// "terminate at message 7" counts the messages of the whole connection; "stall the responder
  /// 50ms" has requests that come from now on answered so much later, and "stall the responder 0s"
  /// none any more. InvalidArgument: the text says no fault. Unsupported: a fault of frames, which
  /// `device.fault` of the configuration has to name. WrongState: there is no connection, or the
  /// message or the request has gone by.
  Status commit(std::string_view fault);
  /// Ends a connect() that is under way, its fall-back included: ConnectFailed follows. WrongState:
  /// none is under way, or its outcome was reported already. (StartPolicy::timeout limits a
  /// connect() in time.)
  Status cancel_connect();
  /// This side's end of the connection, as Established tells it; WrongState without a connection.
  [[nodiscard]] Result<Endpoint> local() const;
  /// The peer's end of the connection; WrongState without a connection.
  [[nodiscard]] Result<Endpoint> remote() const;
  /// Closes gracefully: posted work is sent, then the connection is closed. Disconnected follows. A
  /// connection that is closed already stays as it is; WrongState if the queue pair has had no
  /// connection since it became idle. Receives stay posted until the peer closes, too.
  Status disconnect();
  /// Disconnects and ends everything that was posted, in every state: work posted to the send queue
  /// is carried out, receives are flushed when the connection ends. A peer that has not closed its
  /// direction after `limit` (any span; 0 or less: at once) is reset, and all that is left is
  /// flushed. Without a connection, or while one is being made, everything is flushed when the call
  /// returns. With a connection Disconnected follows. In the end the queue pair is in Error.
  template <typename Rep, typename Period>
  Status drain(std::chrono::duration<Rep, Period> limit) {
    return drain_within(to_nanoseconds(limit));
  }
  Status drain() { return drain(kDrainTime); }

  /// Starts to record what happens to each segment of the connection, at most `max_events` events
  /// (about 32 octets of memory each, allocated at once). Only while connected.
  Status start_trace(size_t max_events);
  /// Ends the recording and returns it. Call it before the queue pair is destroyed.
  Result<std::vector<TraceEvent>> take_trace();

 private:
  friend class ProtectionDomain;
  class Trace;
  void swap(QueuePair& other) noexcept;
  Status drain_within(std::chrono::nanoseconds limit);

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::QueuePair* qp_ = nullptr;
  // Of several threads that post; nullptr: one at a time.
  std::unique_ptr<verbs::QueueLock> send_lock_;
  std::unique_ptr<verbs::QueueLock> receive_lock_;
  std::unique_ptr<Trace> trace_;
};

/// Ties regions and queue pairs together: an STag works only on queue pairs of its domain.
class ProtectionDomain {
 public:
  ProtectionDomain() = default;
  /// For Device::alloc_pd(), which makes the domains.
  ProtectionDomain(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t pd);
  ProtectionDomain(ProtectionDomain&& other) noexcept;
  ProtectionDomain& operator=(ProtectionDomain&& other) noexcept;
  /// Objects that were made from the domain go on as before.
  ~ProtectionDomain();
  /// Destroys the domain and leaves the handle empty. WrongState while it has regions, queue pairs
  /// or shared receive queues: then nothing has changed.
  Status destroy();

  /// Registers memory of the application: of the heap, the stack, a file or hugepages, at any
  /// address, of any length, also 0. The call touches no octet of it. InvalidArgument: not all of
  /// the memory is mapped, or the rights let somebody write and not all of it is writable. It must
  /// stay mapped so until it is deregistered: if the application unmaps it, protects it or
  /// truncates its file before, the device faults like any other code. ResourceExhausted:
  /// limits.max_regions.
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, const RegionOptions& options);
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, AccessSet access) {
    return register_memory(memory, RegionOptions{.access = access});
  }
  /// Registers several pieces of memory as one range of offsets, in the order given. Any access but
  /// an atomic may cross the border between two pieces. ResourceExhausted also if all regions
  /// together would have more than limits.max_pieces pieces.
  Result<MemoryRegion> register_pieces(std::span<const std::span<std::byte>> pieces,
                                       const RegionOptions& options);
  /// Registers a region of this or another domain of the device anew, in this domain. The index of
  /// its STag stays and the key changes: from the moment at which this returns the former STag
  /// gives no access. WrongState while windows are bound to the region. InvalidArgument also if the
  /// region is another device's, or would leave the domain of the queue pair that it is bound to.
  /// After any error the region is as it was.
  Status reregister(MemoryRegion& region, const RegionChanges& changes);
  /// Allocates an STag for QueuePair::post_fast_register(); until then it gives nobody access. The
  /// parts registered under it may have up to `max_pieces` pieces of memory together (those of a
  /// region of several pieces count one by one).
  Result<MemoryRegion> allocate_region(uint32_t max_pieces = kMaxSge);
  Result<MemoryWindow> create_window(WindowType type);
  Result<SharedReceiveQueue> create_srq(const SharedReceiveQueueOptions& options = {});
  Result<QueuePair> create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                              const QueuePairOptions& options = {});

 private:
  Result<MemoryRegion> register_spec(const char* call, mem::RegionSpec& spec,
                                     const RegionOptions& options);
  void swap(ProtectionDomain& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t pd_ = 0;
};

class Context;

/// One software RNIC of a context. It is a view that may be copied, and is never empty, not even
/// after a move.
class Device {
 public:
  /// For Context::device(), which finds the devices.
  explicit Device(std::shared_ptr<verbs::DeviceRuntime> device) : device_(std::move(device)) {}
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;
  ~Device() = default;
  [[nodiscard]] const std::string& name() const;
  /// The first address of the device; to_string() makes a text of it. Unspecified: the device knows
  /// none (over sockets of the system, without the key `address`).
  [[nodiscard]] IpAddress address() const;
  /// All addresses that the configuration gives, address() first. Empty without memory.
  [[nodiscard]] std::vector<IpAddress> addresses() const;
  /// The port that the device runs on, as the configuration names it: "wire:loop:0", "socket",
  /// "local:/tmp/wire", "0000:01:00.0".
  [[nodiscard]] const std::string& port() const;
  [[nodiscard]] uint32_t mtu() const;  ///< octets of an IP packet
  /// A further handle of the device's context, which is as good as any other one: the context lives
  /// until the last of its handles, and of all that was made in it, is gone.
  [[nodiscard]] Context context() const;
  [[nodiscard]] std::string checksum_mode()
      const;  ///< "offload", "trusted", "software" or "system"

  /// Sets the application's own pointer: every event from now on carries it
  /// (event::Common::device_context). The library never dereferences it.
  Status set_context(void* context);

  /// Makes a consumer, which has quotas of its own (consumer.hpp); what is made without one belongs
  /// to the application. InvalidArgument: no name. ResourceExhausted: limits.max_consumers.
  Result<Consumer> create_consumer(const ConsumerOptions& options);
  Result<ProtectionDomain> alloc_pd();
  /// \param depth completions that the queue holds, at least
  Result<CompletionQueue> create_cq(uint32_t depth, const CompletionQueueOptions& options = {});
  /// Reserves a port, to listen on it or to connect from it later (port_reservation.hpp). A
  /// reservation counts as a listener. AlreadyExists: somebody listens on the port, or has reserved
  /// it, at one of these addresses; over sockets of the system also: any other socket has it.
  /// InvalidArgument: `local` is not an address of this device. ResourceExhausted:
  /// tcp.max_listeners, quotas.listeners, or no port is free.
  /// \param local as for listen()
  Result<PortReservation> reserve(const Endpoint& local = {});
  /// Listens for RDMA connections: requests for `local` arrive as events.
  /// \param local an address of the device; an unspecified address of either family stands for all
  ///        addresses of both families. Port 0: one on which nobody listens is chosen.
  /// \return what is listened on, with the port. AlreadyExists: somebody listens there
  Result<Endpoint> listen(const Endpoint& local, const ListenOptions& options = {});
  /// Listens on all addresses of the device.
  Result<Endpoint> listen(uint16_t port, const ListenOptions& options = {});
  /// Listens on a port of this device that was reserved, and takes the reservation over if it
  /// succeeds. InvalidArgument: the port is another device's. PermissionDenied: it is a consumer's.
  /// WrongState: the handle is empty.
  Result<Endpoint> listen(PortReservation& port, const ListenOptions& options = {});
  /// Ends a listen(), also that of a consumer whose handle is gone. PermissionDenied: a consumer
  /// listens there that has its handle. \param local what listen() returned
  Status unlisten(const Endpoint& local);
  Status unlisten(uint16_t port);
  /// Answers a ConnectRequest of this device with no. Errors as of QueuePair::accept().
  Status reject(const RequestHandle& request, std::span<const uint8_t> private_data = {});
  /// Accepts TCP connections to `local` as plain streams (stream.hpp).
  /// \param local as for listen()
  Result<StreamListener> listen_stream(const Endpoint& local,
                                       const StreamListenerOptions& options = {});
  Result<StreamListener> listen_stream(uint16_t port, const StreamListenerOptions& options = {});
  /// As listen() on a port that was reserved.
  Result<StreamListener> listen_stream(PortReservation& port,
                                       const StreamListenerOptions& options = {});
  /// Starts a plain TCP connection: state() and status() of the stream tell how it went.
  Result<Stream> connect_stream(const Endpoint& remote, const StreamOptions& options = {});
  /// Accepts TCP connections to `local` as framed streams (framed_stream.hpp).
  /// \param local as for listen()
  Result<FramedStreamListener> listen_framed(const Endpoint& local,
                                             const FramedListenerOptions& options = {});
  Result<FramedStreamListener> listen_framed(uint16_t port,
                                             const FramedListenerOptions& options = {});
  /// As listen() on a port that was reserved.
  Result<FramedStreamListener> listen_framed(PortReservation& port,
                                             const FramedListenerOptions& options = {});
  /// Starts a framed stream: its state() and status() tell how the connection went.
  Result<FramedStream> connect_framed(const Endpoint& remote, const FramingOptions& framing,
                                      const StreamOptions& options = {});
  /// Makes a key for alignment mode that nobody can guess: 48 bits, not 0, different at each call.
  uint64_t new_framing_key();
  /// The oldest event; nothing when there is none. Never blocks.
  std::optional<Event> poll_event();
  /// A descriptor for poll() and epoll (POLLIN), the same one each time; nobody reads or closes it.
  /// It is readable while poll_event() has events to give, and in an inline context also when
  /// polling the context could bring one. At most two epolls may be around it (as of
  /// CompletionQueue::fd()). ResourceExhausted when the system has no descriptor left. For the
  /// thread that polls events.
  Result<int> event_fd();
  /// Inline: does one turn of this device alone. Different threads may drive different devices; the
  /// control calls of each device then belong to its thread. They have to poll: what waits asleep
  /// (CompletionQueue::arm(), descriptors, wait_until()) drives all devices of the context, from
  /// one thread. Threaded: does nothing and returns 0.
  uint32_t poll();
  /// Every counter of every layer.
  [[nodiscard]] std::vector<Counter> counters() const;
  /// The value of one counter. NotFound: there is none of that name; counters() lists them.
  [[nodiscard]] Result<uint64_t> counter(const std::string& layer, const std::string& name) const;
  /// The limits of the device, which keys of the configuration set, and how much of each is in use.
  [[nodiscard]] Result<DeviceLimits> limits() const;
  /// Terminate messages by code, over all queue pairs of the device including those that are gone
  /// (RFC 5040 s.4.8). describe() says a code in words.
  [[nodiscard]] Result<std::vector<TerminateCount>> terminates() const;
  /// An administrator's view of every connection that has not ended, including requests that nobody
  /// has answered: it shows which are idle, which make the device work the slow way, and which hold
  /// memory (RFC 5042 s.6.4.2, s.6.4.4). In no particular order.
  [[nodiscard]] Result<std::vector<ConnectionSummary>> connections() const;
  /// Resets a connection, whatever it belongs to. Its queue pair gets Disconnected with the reason
  /// in the text, and may be used again as after any end. NotFound when the connection has ended.
  /// InvalidArgument: it is another device's.
  Status abort(const ConnectionId& id);
  /// \return whether nothing is connected, queued or held
  [[nodiscard]] bool quiescent() const;

  /// The library's own: blocking::Adapter::open() takes the events of the device. AlreadyExists: an
  /// adapter has them.
  Result<std::shared_ptr<verbs::EventDesk>> open_event_desk();

 private:
  Result<StreamListener> listen_for_streams(verbs::PortUse& port,
                                            const StreamListenerOptions& options);
  Result<FramedStreamListener> listen_for_framed(verbs::PortUse& port,
                                                 const FramedListenerOptions& options);
  std::shared_ptr<verbs::DeviceRuntime> device_;  // never empty
};

/// The devices of one configuration and the workers that run them.
class Context {
 public:
  /// Opens the devices of a configuration. Unsupported: a port needs DPDK, and this process was
  /// forked from one that had an open context or had started DPDK; exec a program and open there.
  static Result<Context> open(const Config& config);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  [[nodiscard]] std::vector<std::string> device_names() const;
  /// The device of that name. NotFound names the devices that exist.
  Result<Device> device(const std::string& name);

  [[nodiscard]] bool threaded() const;
  /// Inline: does one turn of every device. Threaded: does nothing. \return frames and doorbells
  /// served; threaded: 0
  uint32_t poll();

  /// Inline: one descriptor for an application's own loop (POLLIN), the same one each time; nobody
  /// reads or closes it. After arm() it becomes readable as soon as poll() has something to do:
  /// something has come, a deadline is over (next_deadline()), or work was posted. It is also
  /// readable while a device has events, which the loop has to poll. With ports that cannot tell of
  /// frames (net_memif, most NICs) it becomes readable every 50 us.
  ///
  ///     while (!context.arm()) context.poll();   // then the completion queues and the events
  ///     epoll_wait(...context.fd()...);
  ///     context.poll();
  ///
  /// At most two epolls may be around it (as of CompletionQueue::fd()). Unsupported in a threaded
  /// context, whose completion queues and devices have descriptors. ResourceExhausted when the
  /// system has no descriptor left.
  Result<int> fd();
  /// Looks whether there is something to do. \return false: poll() has something to do now; true:
  /// it has nothing to do, and fd() will tell when it has. In a threaded context, and of an empty
  /// handle, always true: there is nothing to drive. Without a descriptor (fd() answers
  /// ResourceExhausted) true says no more than that there is nothing to do at the moment.
  bool arm();

  /// Drives the devices (inline), or leaves that to the workers, until `done` returns true. The
  /// call asks `done` whenever the devices have done something, and every 10 ms. In between the
  /// thread looks for work for up to 200 us, as long as that finds some and nobody else needs the
  /// core (threaded: 50 us), and then sleeps in the kernel (with worker.idle = "spin" or "yield" it
  /// never sleeps). \param timeout any span; 0 or less: over at once; kForever: never over \return
  /// false: the timeout was over before `done` returned true, or `done` is empty, which is told at
  /// once. `done` may destroy handles, the last one of the context, too: the devices live until the
  /// call has returned
  template <typename Rep, typename Period>
  bool wait_until(const std::function<bool()>& done, std::chrono::duration<Rep, Period> timeout) {
    return wait_for(done, to_nanoseconds(timeout));
  }
  /// The time until poll() has something to do even if nothing arrives; nothing: no deadline is
  /// set.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> next_deadline() const;
  /// The present time on the context's clock, which also stamps TraceEvent.
  [[nodiscard]] std::chrono::nanoseconds now() const;
  /// One line about the machine: whether there are hugepages, the ports, the CRC kernel.
  [[nodiscard]] std::string environment() const;

  /// The library's own: open() and Device::context() make handles.
  explicit Context(std::shared_ptr<verbs::Runtime> runtime);

 private:
  bool wait_for(const std::function<bool()>& done, std::chrono::nanoseconds timeout);

  std::shared_ptr<verbs::Runtime> runtime_;  // nullptr: moved from
};

}  // namespace rnic
