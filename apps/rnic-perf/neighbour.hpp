/// \file
/// The other one of two processes that rnic-perf loopback --processes 2 measures between.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/time.hpp"
#include "dpdk/link_floor.hpp"
#include "rnic-perf/perf.hpp"
#include "rnic-perf/responder.hpp"

namespace rnic::perf {

/// Forks a process that lives as long as this object, on the second core. Memory that both share
/// (net_memif) takes the place of a wire: one such device for the connection, whose Writes the
/// other process takes and compares, and one for the floor, whose frames it checks and places.
///
/// The other process tells itself what it lacks or what was wrong, on stderr; this one then ends
/// with its exit status, wherever it is.
class Neighbour {
 public:
  /// Before DPDK is started: it does not outlive a fork. \return when the other one listens
  static Result<std::unique_ptr<Neighbour>> start(const Options& options);
  /// Ends the other process, and waits for its end.
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  /// The configuration of this process, whose device reaches the other one's.
  [[nodiscard]] Result<Config> configuration() const;
  /// Where the other one listens.
  [[nodiscard]] Endpoint endpoint() const;

  /// The other one drives its device, and takes a connection; until the next call of another kind.
  void take_messages();
  /// The other one makes its memory ready for messages of that content.
  void prepare(const workload::Pattern& pattern);
  /// Behind the run: the other one compares what has come. What is not right ends both.
  void verify();

  /// Both have met: their sockets are not needed any more.
  void remove_folder();

  /// Opens the floor's device. Needs DPDK.
  Status open_floor();
  /// \return Gb/s of the floor, checked
  Result<double> floor(base::Duration duration);
  [[nodiscard]] std::string floor_kernels() const { return floor_->kernels(); }
  /// \return nanoseconds of a round trip of a cache line between the processes' cores, the median
  double line_ns(uint32_t trips);

  /// Nanoseconds of processor time that the other one has spent.
  [[nodiscard]] int64_t processor_time_ns() const;

 private:
  Neighbour(const Options& options, std::string folder, Board* board)
      : options_(options), folder_(std::move(folder)), board_(board) {}

  void give(Order order);

  Options options_;
  std::string folder_;  // of the sockets, which are only needed to meet
  Board* board_;        // memory that both have
  pid_t other_ = -1;
  std::unique_ptr<dpdk::LinkFloor> floor_;
};

}  // namespace rnic::perf
