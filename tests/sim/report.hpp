/// \file
/// What the simulator prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner.hpp"
#include "totals.hpp"

namespace rnic::simulation {

/// Totals by profile, in the order of scenes().
class Report {
 public:
  Report();

  void add(const TaskResult& result);
  /// The table, the replay commands, and with `complete` a failure for each path that never fired.
  void print(bool complete);
  [[nodiscard]] uint64_t failures() const { return failures_; }

 private:
  struct Row {
    Totals totals;
    uint64_t failures = 0;
    double seconds = 0;
  };

  enum class Family : uint8_t { Devices, Streams, Sockets };

  template <typename F>
  Totals print_rows(Family family, F&& print) const;

  std::vector<Row> rows_;
  std::vector<std::string> commands_;
  uint64_t failures_ = 0;
};

[[nodiscard]] std::string replay_command(const Task& task);
void print_failure(const TaskResult& result, bool with_state);

}  // namespace rnic::simulation
