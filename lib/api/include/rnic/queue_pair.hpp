/// \file
/// States and attributes of a queue pair, and the changes that QueuePair::modify() makes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rnic/tcp_options.hpp"
#include "rnic/work.hpp"

namespace rnic {

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
