/// \file
/// Every kind of world there is, by name: whole devices, streams of TCP alone, and devices over
/// sockets of a simulated system.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "profile.hpp"
#include "sockets/plan.hpp"
#include "stream/plan.hpp"

namespace rnic::simulation {

/// A profile of any family: exactly one of the three is set.
struct Scene {
  const Profile* device = nullptr;
  const StreamProfile* stream = nullptr;
  const SocketProfile* sockets = nullptr;

  [[nodiscard]] const char* name() const {
    return device ? device->name : stream ? stream->name : sockets->name;
  }
  [[nodiscard]] const char* what() const {
    return device ? device->what : stream ? stream->what : sockets->what;
  }
};

/// One world to run.
struct Task {
  uint64_t seed = 0;
  const Scene* scene = nullptr;
  /// Run a world of devices once more without the fast path of framing::Receiver and without
  /// device::DeviceConfig::shortcuts: the two must look the same.
  bool twin = false;
};

/// Devices first, then streams.
[[nodiscard]] std::span<const Scene> scenes();
/// Those whose name matches a shell pattern ("tcp-*").
[[nodiscard]] std::vector<const Scene*> find_scenes(const std::string& pattern);
/// The worlds of a seed when no profile is named: one of each family, round-robin.
[[nodiscard]] std::vector<Task> tasks_of_seed(uint64_t seed);
/// Runs `task` in this process.
[[nodiscard]] Outcome run_task(const Task& task, const Recording& recording);

}  // namespace rnic::simulation
