/// \file
/// Runs worlds in child processes: a world that aborts is a failure of that seed and of nothing
/// else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "scene.hpp"

namespace rnic::simulation {

struct TaskResult {
  Task task;
  Outcome outcome;
  double seconds = 0;
};

/// Runs all tasks on `workers` processes. `report` gets each result as it comes; it may return
/// false to stop early (results underway are dropped). A child that dies or hangs gives a result
/// with checker "crash".
void run_tasks(const std::vector<Task>& tasks, uint32_t workers,
               const std::function<bool(const TaskResult&)>& report);

}  // namespace rnic::simulation
