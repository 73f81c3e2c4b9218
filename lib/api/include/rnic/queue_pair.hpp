/// \file
/// What a queue pair can be asked for, and what can be changed of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rnic/work.hpp"

namespace rnic {

/// The states of a queue pair (RFC 5040 s.6.2 in verbs' words). docs/queue-pairs.md has the table
/// to those of libibverbs.
enum class QueuePairState : uint8_t {
  Idle,     ///< no connection yet, or one that is being made. Receives wait for it, what is posted
            ///< to the send queue is flushed
  Rts,      ///< ready to send: full operation
  Closing,  ///< closed by this side: what was posted before is carried out, what is posted from
            ///< now on to the send queue is flushed in its turn
  Terminate,  ///< a Terminate of this side waits to leave; everything was flushed
  Error,  ///< the connection's use has ended, in order or not: what is posted is flushed at once
};
/// "idle", "rts"
[[nodiscard]] const char* to_string(QueuePairState state);

/// What a queue pair is now (QueuePair::query()).
struct QueuePairAttributes {
  uint32_t number = 0;  ///< another one after each return to Idle
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

/// What QueuePair::modify() changes; what is not said stays.
struct QueuePairChange {
  /// Error: everything that was posted is flushed, and the connection, if there is one, is reset.
  /// Closing: as disconnect(). Idle, in Error and once the connection has ended: it may be
  /// connected again, under a new number. The other states are entered by what happens to the
  /// connection.
  std::optional<QueuePairState> state{};
  std::optional<uint32_t> ird{};  ///< in Idle and without a connection; at most limits.max_reads
  std::optional<uint32_t> ord{};  ///< likewise
  std::optional<bool> answer_close{};
  std::optional<void*> context{};
};

/// The time that QueuePair::drain() gives to a peer that does not close its direction.
inline constexpr std::chrono::seconds kDrainTime{10};

}  // namespace rnic
