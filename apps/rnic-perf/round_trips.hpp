/// \file
/// Ping-pong: one message there and its answer back, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rnic-perf/crowd.hpp"
#include "workload/workload.hpp"

namespace rnic::perf {

/// With Write each side looks at its memory for what the other writes there; with Send it waits for
/// a receive. Every message has a content of its own, of which each octet is compared.
class RoundTrips {
 public:
  /// \param crowd of which the first queue pair is used, with a depth of kDepth at least
  /// \param size octets of a message, a multiple of 8
  static Result<std::unique_ptr<RoundTrips>> create(Context& context, Crowd& crowd,
                                                    workload::Operation operation, uint64_t size);
  static constexpr uint32_t kDepth = 64;

  /// Adds the nanoseconds of each of `count` round trips to `times`.
  /// \param apart another thread calls responder_turn()
  Status run(uint32_t count, bool apart, std::vector<int64_t>& times);
  /// Drives the responder's device, and answers what has come.
  void responder_turn();

 private:
  static constexpr uint32_t kSignalEvery = 16;  // messages
  static constexpr uint32_t kSettlingTurns = 8;
  static constexpr int64_t kTimeoutNs = 10'000'000'000;

  /// One side; what it sends stands in the first half of its memory, what comes in the second.
  struct alignas(128) Player {
    Side* side = nullptr;
    workload::Buffer memory;
    MemoryRegion region;
    RemoteAddress target;   // the second half of the other's memory
    uint64_t sequence = 0;  // of what was sent last
    std::string error;      // nothing more is sent then
  };

  RoundTrips(Context& context, workload::Operation operation, uint64_t size)
      : context_(context), operation_(operation), size_(size) {}

  Status set_up(Player& player, Side& side);
  [[nodiscard]] Status post_receive(Player& player) const;
  void send(Player& player, uint64_t sequence) const;
  /// \return whether message `sequence` is here, every octet of it
  bool arrived(Player& player, uint64_t sequence) const;
  void reap(Player& player) const;
  /// Takes the turns that an ACK waits for. A device that is left with one finds at the next call
  /// that its turns come late, and lets none wait for a long time (docs/decisions/0069).
  void settle();

  Context& context_;
  workload::Operation operation_;
  uint64_t size_;
  Player initiator_;
  Player responder_;  // of whoever calls responder_turn()
};

}  // namespace rnic::perf
