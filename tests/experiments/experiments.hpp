/// \file
/// The experiments: what each measures, and the report that it makes of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report.hpp"
#include "rig.hpp"

namespace rnic::experiment {

/// How much of everything.
enum class Extent : uint8_t {
  Quick,   ///< seconds: a look whether all is well
  Normal,  ///< the documented figures
  Full,    ///< finer and longer
};

struct Options {
  Extent extent = Extent::Normal;
  uint64_t seed = 1;   ///< of the first run of what chance decides; the next ones count on
  uint32_t seeds = 3;  ///< such runs; their mean is reported
};

[[nodiscard]] Experiment packing(const Options& options);
[[nodiscard]] Experiment receive_buffer(const Options& options);
[[nodiscard]] Experiment key_mode(const Options& options);
[[nodiscard]] Experiment wire_efficiency(const Options& options);
[[nodiscard]] Experiment half_segments(const Options& options);
[[nodiscard]] Experiment alignment(const Options& options);
[[nodiscard]] Experiment enablement(const Options& options);

// --- What they measure, for their tests ---

/// One stream of messages of one size, sent as fast as TCP lets.
struct Transfer {
  uint64_t segments = 0;  ///< with data, retransmissions included
  uint64_t acks = 0;
  uint64_t fpdus = 0;
  uint64_t stream_octets = 0;  ///< payload of TCP, first transmissions
  uint64_t wire_octets = 0;    ///< initiator to responder
  uint64_t payload = 0;        ///< of the messages
  uint64_t retransmitted = 0;  ///< segments
  uint64_t early = 0;          ///< stream octets placed ahead of the order
  uint64_t out_of_order = 0;   ///< stream octets that came ahead of the order
  uint64_t held = 0;           ///< stream octets that went through hold space
  uint64_t held_peak = 0;      ///< octets held at one time
  double seconds = 0;
  bool complete = false;  ///< every octet arrived, right
  [[nodiscard]] double fpdus_per_segment() const {
    return static_cast<double>(fpdus) / static_cast<double>(segments);
  }
  [[nodiscard]] double efficiency() const {
    return static_cast<double>(payload) / static_cast<double>(wire_octets);
  }
};
[[nodiscard]] Transfer transfer(const RigConfig& config, uint64_t messages);

/// Payload delivered by the end of each round trip from the first data segment on.
[[nodiscard]] std::vector<uint64_t> payload_by_round(const RigConfig& config, uint64_t messages,
                                                     uint32_t rounds, uint64_t* lost = nullptr);

/// Octets that a receiver of many connections has to hold.
struct HoldRun {
  uint64_t peak = 0;             ///< octets held at one time, all connections
  double mean = 0;               ///< the same, over the time of the transfer
  uint64_t memory_peak = 0;      ///< in whole pages of 2 KB
  uint64_t connection_peak = 0;  ///< of one connection
  uint64_t refused = 0;          ///< segments dropped because nothing was left
  bool complete = false;
};
[[nodiscard]] HoldRun hold_run(const RigConfig& config, uint64_t messages);

/// A peer that is not what an MPA end takes it for.
struct EnablementCase {
  std::string peer;          ///< what the other end is
  std::string mpa_role;      ///< of our end
  std::string error;         ///< what our end says
  std::string event;         ///< what the application is told
  std::string counter;       ///< what was counted
  std::string peer_sees;     ///< the first octets that the other end gets, and its end
  double milliseconds = -1;  ///< from the TCP connection to its end; below 0: it stays
  uint64_t delivered = 0;    ///< FPDUs that were given to DDP: none is right
};
[[nodiscard]] std::vector<EnablementCase> enablement_cases();

}  // namespace rnic::experiment
