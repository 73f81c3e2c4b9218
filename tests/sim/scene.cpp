#include "scene.hpp"

#include <fnmatch.h>

#include "sockets/world.hpp"
#include "stream/world.hpp"
#include "world.hpp"

namespace rnic::simulation {

namespace {

std::vector<Scene> all_scenes() {
  std::vector<Scene> all;
  for (const Profile& profile : profiles()) all.push_back({.device = &profile});
  for (const StreamProfile& profile : stream_profiles()) all.push_back({.stream = &profile});
  for (const SocketProfile& profile : socket_profiles()) all.push_back({.sockets = &profile});
  return all;
}

Outcome run_world(const WorldPlan& plan, const Recording& recording) {
  World world(plan, recording);
  return world.run();
}

void compare(Outcome& outcome, const Outcome& twin) {
  if (twin.ok && outcome.fingerprint == twin.fingerprint) return;
  outcome.ok = false;
  outcome.checker = "twin";
  outcome.message = twin.ok ? "without fast paths the world looks different"
                            : "without fast paths: " + twin.message;
}

}  // namespace

std::span<const Scene> scenes() {
  static const std::vector<Scene> all = all_scenes();
  return all;
}

std::vector<const Scene*> find_scenes(const std::string& pattern) {
  std::vector<const Scene*> found;
  for (const Scene& scene : scenes()) {
    if (::fnmatch(pattern.c_str(), scene.name(), 0) == 0) found.push_back(&scene);
  }
  return found;
}

std::vector<Task> tasks_of_seed(uint64_t seed) {
  const size_t devices = profiles().size();
  const size_t streams = stream_profiles().size();
  const size_t sockets = socket_profiles().size();
  return {{seed, &scenes()[seed % devices]},
          {seed, &scenes()[devices + seed % streams]},
          {seed, &scenes()[devices + streams + seed % sockets]}};
}

Outcome run_task(const Task& task, const Recording& recording) {
  if (task.scene->device != nullptr) {
    WorldPlan plan = make_plan(*task.scene->device, task.seed);
    Outcome outcome = run_world(plan, recording);
    if (!task.twin || !outcome.ok) return outcome;
    for (device::DeviceConfig& device : plan.devices) {
      device.mpa.fast_path = false;
      device.shortcuts = false;
    }
    compare(outcome, run_world(plan, {}));
    return outcome;
  }
  if (task.scene->sockets != nullptr) {
    SocketWorld world(make_socket_plan(*task.scene->sockets, task.seed), recording);
    return world.run();
  }
  StreamWorld world(make_stream_plan(*task.scene->stream, task.seed), recording);
  return world.run();
}

}  // namespace rnic::simulation
