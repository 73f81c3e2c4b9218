/// \file
/// CoreWait: whether other threads of the machine keep one from its core.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::wakeup {

/// What the kernel's scheduler has counted for a thread (schedstat of proc(5)).
struct CoreTally {
  base::Duration waited{};  ///< ready to run, without a core
  uint64_t runs = 0;        ///< how often it was given a core
};

/// The tally in a line of schedstat, "RAN WAITED RUNS" in nanoseconds; nothing if it is no such
/// line.
[[nodiscard]] std::optional<CoreTally> parse_schedstat(std::string_view line);

/// Judges from the scheduler's tally whether the threads that want a core are more than there are
/// cores. Such a thread waits for milliseconds until the slices of others are over; one that only
/// has to push another aside waits for microseconds.
///
/// Belongs to one thread. Times are that thread's clock.
class CoreWait {
 public:
  /// The kernel is asked no more often.
  static constexpr base::Duration kEach = std::chrono::milliseconds(1);
  /// From here on, in all and in the mean of the runs between two questions, it is a wait.
  static constexpr base::Duration kLong = std::chrono::microseconds(500);
  static constexpr base::Duration kMean = std::chrono::microseconds(100);

  /// For the calling thread. A system that does not tell has no such waits.
  static CoreWait of_this_thread();
  CoreWait() = default;

  /// \return whether the thread has waited for its core since the latest question
  [[nodiscard]] bool has_waited(base::Now now);

  /// The judgement itself. \param later a later tally than `earlier`
  [[nodiscard]] static bool is_wait(const CoreTally& earlier, const CoreTally& later);

 private:
  explicit CoreWait(Descriptor file) : file_(std::move(file)) {}
  [[nodiscard]] std::optional<CoreTally> tally() const;

  Descriptor file_;
  base::Now asked_at_{};
  CoreTally latest_;
};

}  // namespace rnic::wakeup
