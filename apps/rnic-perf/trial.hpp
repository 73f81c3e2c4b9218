/// \file
/// What rnic-perf loopback measures, in rounds: one class for each kind of traffic.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rnic-perf/neighbour.hpp"
#include "rnic-perf/perf.hpp"

namespace rnic::perf {

/// Both ends, in this process or in two. A round that does not verify ends the measurement.
class Trial {
 public:
  Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  virtual ~Trial() = default;

  /// Before the first round: caches, windows and round-trip times are what they will be.
  virtual Status warm_up() = 0;
  /// Measures for a round.
  virtual Status round() = 0;
  /// \return Gb/s of the last round's best window; 0: it had none
  [[nodiscard]] virtual double best_goodput() const = 0;
  /// \return Gb/s of the last round as a whole; 0: it says nothing about goodput
  [[nodiscard]] virtual double mean_goodput() const = 0;
  /// \return whether the rounds so far are enough for what report() tells
  [[nodiscard]] virtual bool has_enough() const { return true; }
  /// Adds its figures.
  virtual void report(nlohmann::ordered_json& result) = 0;
};

inline constexpr double kRoundSeconds = 0.1;  ///< measured, of ours and of the floor each

/// Writes, Reads and Sends of one or many queue pairs in the steady state: best windows, means,
/// processor time.
/// \param neighbour has the other end, and outlives the trial; nullptr: this process has both
Result<std::unique_ptr<Trial>> make_flood_trial(const Options& options, Context& context,
                                                Neighbour* neighbour = nullptr);
/// Other operations, in batches that begin and end with nothing on its way: means.
Result<std::unique_ptr<Trial>> make_batch_trial(const Options& options, Context& context);
/// One message to and fro; with two cores beside the floor of a round trip between them.
Result<std::unique_ptr<Trial>> make_ping_pong_trial(const Options& options, Context& context);

/// "verification failed: octet 7 is ..."
[[nodiscard]] Error not_verified(const workload::Mismatch& mismatch);

}  // namespace rnic::perf
