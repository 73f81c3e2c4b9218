/// \file
/// Messages of many queue pairs that never run dry: for goodput and rate in the steady state.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpdk/best_window.hpp"
#include "rnic-perf/crowd.hpp"
#include "workload/workload.hpp"

namespace rnic::perf {

struct FloodOptions {
  workload::Operation operation = workload::Operation::Write;  ///< Write, Read or Send
  uint64_t size = 1u << 20;    ///< octets of a message
  uint32_t depth = 16;         ///< messages outstanding of each queue pair
  uint64_t region = 1u << 20;  ///< octets of source and target that the messages cycle through
  bool lists = true;           ///< what may be posted together is posted with one doorbell
  /// The target is another process's, which drives its device and compares what has come: Writes.
  std::optional<workload::Offer> afar;
  int64_t timeout_ms = 60000;  ///< of a run
};

/// The timed part of the runs.
struct FloodResult {
  uint64_t messages = 0;
  uint64_t octets = 0;
  int64_t elapsed_ns = 0;           ///< first post to last completion
  int64_t cpu_ns = 0;               ///< processor time of the process meanwhile, all threads
  std::vector<int64_t> latency_ns;  ///< post to completion, messages of the first queue pair
};

/// Keeps `depth` messages of each queue pair on their way, from the initiator to the responder, or
/// with Read the other way. A message has a place of its own in the region as long as they last, in
/// the order in which Writes and Reads are posted: so the region is gone through in the same way by
/// one queue pair and by many. Content depends on the place, so that the comparison behind a run
/// sees each octet.
class Flood {
 public:
  static Result<std::unique_ptr<Flood>> create(Context& context, Crowd& crowd,
                                               const FloodOptions& options);

  /// Outside the timed part: gives the source a new content, poisons the target if it is ours.
  void prepare();
  /// The content of the latest prepare().
  [[nodiscard]] const workload::Pattern& content() const { return pattern_; }
  /// Carries out `messages` messages, rounded up to as many of each queue pair, and waits for all.
  /// Windows count messages, while every queue pair has more to post.
  /// \param apart another thread calls responder_turn()
  Status run(uint64_t messages, bool apart, FloodResult& result, dpdk::BestWindow& window);
  /// Outside the timed part: compares every octet of the places that the last run() wrote.
  [[nodiscard]] std::optional<workload::Mismatch> verify() const;

  /// Drives the responder's device, and posts the receives that messages have taken.
  void responder_turn();

  [[nodiscard]] uint64_t slots() const { return slots_; }

 private:
  static constexpr uint32_t kList = 32;  // requests posted together

  struct Lane {
    uint64_t posted = 0;     // of all runs
    uint64_t completed = 0;  // of all runs
  };
  /// Its other end, of whoever calls responder_turn().
  struct Sink {
    uint64_t posted = 0;    // receives, of all runs
    uint64_t received = 0;  // of all runs
  };

  Flood(Context& context, Crowd& crowd, const FloodOptions& options)
      : context_(context),
        crowd_(crowd),
        options_(options),
        lanes_(crowd.initiator->qps.size()),
        sinks_(lanes_.size()) {}

  Status register_memory();
  Status register_target(Side& to);
  void make_requests();
  /// \param number of a message among those of all lanes
  [[nodiscard]] uint64_t place(uint64_t number) const { return number % slots_ * slot_octets_; }
  /// The number of a message whose place both ends have to know before it is posted.
  [[nodiscard]] uint64_t number_of(uint32_t lane, uint64_t index) const {
    return index * lanes_.size() + lane;
  }
  [[nodiscard]] bool receives() const { return options_.operation == workload::Operation::Send; }
  Status fill_lane(uint32_t lane, int64_t now);
  Status post(uint32_t lane, uint32_t count);
  Status post_receive(uint32_t lane);
  Status reap(int64_t& now, FloodResult& result);
  Status refill(int64_t now);
  Status take(const Completion& done);
  void reap_receives();
  void break_off(Error error);
  [[nodiscard]] Status broken() const;
  [[nodiscard]] Status stalled(uint64_t missing) const;
  [[nodiscard]] uint64_t done() const;

  Context& context_;
  Crowd& crowd_;
  FloodOptions options_;
  workload::Buffer source_;
  workload::Buffer target_;
  MemoryRegion source_region_;
  MemoryRegion target_region_;
  RemoteAddress remote_;      // of the requests: the responder's memory
  uint64_t slot_octets_ = 0;  // distance of two places
  uint64_t slots_ = 1;
  workload::Pattern pattern_;
  std::vector<Lane> lanes_;
  std::vector<Sink> sinks_;  // one for each lane
  std::array<SendRequest, kList> requests_{};
  std::vector<uint32_t> touched_;  // lanes whose messages have completed in this turn
  uint64_t quota_ = 0;             // messages of each lane until the end of this run, of all runs
  uint64_t begin_ = 0;             // quota_ of the run before
  uint32_t satisfied_ = 0;         // lanes that have posted their quota
  uint64_t posted_ = 0;            // of all runs and lanes
  uint64_t completed_ = 0;
  std::vector<int64_t> post_time_;  // of the first lane, by index mod depth
  alignas(64) std::atomic<uint64_t> received_{0};
  std::atomic<bool> is_broken_{false};
  std::string responder_error_;  // written before is_broken_
};

}  // namespace rnic::perf
