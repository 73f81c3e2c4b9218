#include "fingerprint_list.hpp"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace rnic::simulation {

namespace {

constexpr const char* kHead =
    "# Profile, seed and fingerprint of worlds. Where one differs, behaviour has changed.\n"
    "# Where that is meant, `./scripts/sim --accept-fingerprints` writes this file anew, and the\n"
    "# commit says what changed.\n";

}  // namespace

Result<FingerprintList> FingerprintList::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return base::fail(ErrorCode::NotFound, "cannot read '" + path + "'");
  FingerprintList list;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    World world;
    uint64_t fingerprint = 0;
    fields >> world.first >> world.second >> std::hex >> fingerprint;
    if (!fields || find_scenes(world.first).size() != 1) {
      return base::fail(ErrorCode::InvalidArgument,
                        path + ": '" + line + "' is no profile, seed and fingerprint");
    }
    list.worlds_[world] = fingerprint;
  }
  if (list.worlds_.empty()) {
    return base::fail(ErrorCode::InvalidArgument, path + " names no world: nothing is compared");
  }
  return list;
}

Status FingerprintList::write(const std::string& path) const {
  FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return base::fail(ErrorCode::Environment, "cannot write '" + path + "'");
  std::fputs(kHead, file);
  for (const auto& [world, fingerprint] : worlds_) {
    std::fprintf(file, "%s %" PRIu64 " %016" PRIx64 "\n", world.first.c_str(), world.second,
                 fingerprint);
  }
  const bool torn = std::ferror(file) != 0;
  if (std::fclose(file) != 0 || torn) {
    return base::fail(ErrorCode::Environment, "cannot write all of '" + path + "'");
  }
  return {};
}

void FingerprintList::note(const TaskResult& result) {
  worlds_[{result.task.scene->name(), result.task.seed}] = result.outcome.fingerprint;
}

void FingerprintList::keep(uint64_t first_seed, uint64_t seeds) {
  std::erase_if(worlds_, [&](const auto& entry) {
    const uint64_t seed = entry.first.second;
    return seed < first_seed || seed - first_seed >= seeds;
  });
}

std::vector<Task> FingerprintList::tasks() const {
  std::vector<Task> tasks;
  for (const auto& [world, fingerprint] : worlds_) {
    tasks.push_back({world.second, find_scenes(world.first)[0]});
  }
  return tasks;
}

uint64_t FingerprintList::print_differences(const FingerprintList& now) const {
  uint64_t differences = 0;
  for (const auto& [world, fingerprint] : worlds_) {
    const auto found = now.worlds_.find(world);
    if (found != now.worlds_.end() && found->second == fingerprint) continue;
    ++differences;
    std::printf("DIFFERS seed %" PRIu64 " (%s): it was %016" PRIx64 "\n", world.second,
                world.first.c_str(), fingerprint);
  }
  return differences;
}

}  // namespace rnic::simulation
