/// \file
/// Every kind of world there is, by name: whole devices, and streams of TCP alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "profile.hpp"
#include "stream/plan.hpp"

namespace rnic::simulation {

/// A profile of either family: exactly one of the two is set.
struct Scene {
  const Profile* device = nullptr;
  const StreamProfile* stream = nullptr;

  [[nodiscard]] const char* name() const { return device ? device->name : stream->name; }
  [[nodiscard]] const char* what() const { return device ? device->what : stream->what; }
};

/// One world to run.
struct Task {
  uint64_t seed = 0;
  const Scene* scene = nullptr;
};

/// Devices first.
[[nodiscard]] std::span<const Scene> scenes();
/// Those whose name matches a shell pattern ("tcp-*").
[[nodiscard]] std::vector<const Scene*> find_scenes(const std::string& pattern);
/// The worlds of a seed when no profile is named: one of devices, one of streams, round-robin.
[[nodiscard]] std::vector<Task> tasks_of_seed(uint64_t seed);
/// Runs `task` in this process.
[[nodiscard]] Outcome run_task(const Task& task, const Recording& recording);

}  // namespace rnic::simulation
