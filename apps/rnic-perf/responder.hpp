/// \file
/// What runs in the other one of two processes, and what the two tell each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/link_floor.hpp"
#include "rnic-perf/core_floor.hpp"
#include "rnic-perf/perf.hpp"

namespace rnic::perf {

inline constexpr const char* kInitiatorAddress = "10.0.0.1";
inline constexpr const char* kResponderAddress = "10.0.0.2";

/// One of two processes, and what is its own in what both have alike.
enum class Role : uint8_t { Initiator, Responder };

/// The configuration of a device of net_memif whose socket is in the folder.
Result<Config> memif_configuration(const Options& options, const std::string& folder, Role role);
/// The floor's device, beside it.
dpdk::LinkFloor::Options memif_floor(const Options& options, const std::string& folder, Role role);

/// What the responder is to do.
enum class Order : uint32_t {
  Lines,         ///< answer cache lines
  TakeFloor,     ///< receive frames of the floor
  JudgeFloor,    ///< were they right?
  TakeMessages,  ///< drive the device; take the connection
  Prepare,       ///< make the memory ready for other messages
  Verify,        ///< compare what has come
  End,
};

/// Memory that both processes have.
struct Board {
  static constexpr uint32_t kOrderBits = 3;

  /// The initiator's: an Order in the lowest bits, the others count; 0: there was none yet.
  alignas(128) std::atomic<uint32_t> order{0};
  /// The responder's: the latest of these that it has begun, or, if it takes no turns, carried out;
  /// kListening before.
  alignas(128) std::atomic<uint32_t> obeyed{0};
  static constexpr uint32_t kListening = 1;

  workload::Pattern pattern;  // of the messages, from Prepare to Verify
  CoreFloor lines;
  dpdk::LinkFloor::Progress progress;
};

/// The responder: obeys until it is told to end. \return the exit status of its process; what is
/// missing or wrong has been said on stderr
int run_responder(const Options& options, const std::string& folder, Board& board);

}  // namespace rnic::perf
