/// \file
/// States and attributes of a queue pair, and the changes that QueuePair::modify() makes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rnic/tcp_options.hpp"
#include "rnic/work.hpp"

namespace rnic {

class SharedReceiveQueue;  // shared_receive_queue.hpp

/// What is chosen when a queue pair is made (ProtectionDomain::create_qp()).
struct QueuePairOptions {
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  uint32_t ird = 16;  ///< inbound Reads and atomics at once
  uint32_t ord = 16;  ///< outbound Reads and atomics at once; more wait in the send queue
  /// Answer a peer's close by a graceful close of this side, once the messages before it are
  /// delivered. False: the application calls disconnect() when it has nothing more to send.
  bool answer_close = true;
  /// Require Access::RemoteWrite besides LocalWrite for the sink of a Read, as the RDMAC verbs do;
  /// a Read without it completes with LocalProtection. False: LocalWrite is enough.
  bool strict_read_sinks = false;
  /// The application's own pointer: every event about the queue pair carries it. The library never
  /// dereferences it.
  void* context = nullptr;
  /// A shared receive queue of the same domain, from which receives are taken and to which they are
  /// posted. `receive_depth` then limits how many receives are taken ahead of the order of the
  /// peer's messages, that is, how many a peer whose segments arrive out of order has in progress.
  /// nullptr: the queue pair has receives of its own.
  SharedReceiveQueue* srq = nullptr;
  /// How long a Send or Immediate Data may wait for a receive if none is posted when it is the next
  /// in order (RFC 5041 s.7.1). Meanwhile nothing behind it is delivered, not even the responses to
  /// Reads and atomics of this side, and the peer's window is not opened. post_receive() ends the
  /// wait; at the limit a Terminate ends the connection. 0: no wait, the Terminate is sent at once.
  /// InvalidArgument: negative. See docs/receive-queues.md.
  std::chrono::nanoseconds receive_wait{0};
  /// Any number of threads may post to the send queue and to the receive queue at once, in an
  /// inline context, too. What one thread posts keeps its order, and a list stays together. A call
  /// waits while another one posts to the same queue. False: one thread at a time for each of the
  /// two queues, unless the key device.several_threads says otherwise.
  bool several_threads = false;
};

/// The states of a queue pair (RFC 5040 s.6.2, in the words of verbs). docs/queue-pairs.md compares
/// them with those of libibverbs.
enum class QueuePairState : uint8_t {
  Idle,     ///< no connection yet, or one that is being made. Receives wait for it; requests posted
            ///< to the send queue are flushed
  Rts,      ///< ready to send: full operation
  Closing,  ///< closed by this side: requests posted before are carried out, requests posted to the
            ///< send queue from now on are flushed in their turn
  Terminate,  ///< a Terminate of this side waits to leave; everything was flushed
  Error,  ///< the connection's use has ended, in order or not: posted requests are flushed at once
};
/// The state as a text: "idle", "rts".
[[nodiscard]] const char* to_string(QueuePairState state);

/// The present attributes of a queue pair (QueuePair::query()).
struct QueuePairAttributes {
  uint32_t number = 0;  ///< changes with each return to Idle
  QueuePairState state = QueuePairState::Idle;
  uint32_t send_depth = 0;     ///< work requests that fit the send queue
  uint32_t receive_depth = 0;  ///< work requests that fit the receive queue
  uint32_t ird = 0;            ///< inbound Reads and atomics at once: agreed, or what was asked for
  uint32_t ord = 0;  ///< outbound Reads and atomics at once: agreed, or what was asked for
  uint32_t max_send_sge = kMaxSge;
  uint32_t max_receive_sge = kMaxSge;
  bool answers_close = true;  ///< QueuePairOptions::answer_close
  void* context = nullptr;    ///< the application's own (QueuePairOptions::context)
};

/// The changes that QueuePair::modify() makes; what is not set stays.
struct QueuePairChange {
  /// Error: everything that was posted is flushed, and the connection, if there is one, is reset.
  /// Closing: as disconnect(). Idle: allowed in Error once the connection has ended; the queue pair
  /// may be connected again, under a new number. The other states follow from what happens to the
  /// connection.
  std::optional<QueuePairState> state{};
  std::optional<uint32_t> ird{};  ///< in Idle and without a connection; at most limits.max_reads
  std::optional<uint32_t> ord{};  ///< as `ird`
  std::optional<bool> answer_close{};
  std::optional<void*> context{};
  /// Options of TCP for the connection that there is; what is not set stays. Not together with
  /// `state`. Ecn has no effect any more, and over sockets max_segment has none.
  std::optional<TcpOptions> tcp{};
};

/// The time that QueuePair::drain() gives to a peer that does not close its direction.
inline constexpr std::chrono::seconds kDrainTime{10};

}  // namespace rnic
