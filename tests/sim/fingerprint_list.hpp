/// \file
/// What worlds looked like: their fingerprints in a file, a world a line. A world that looks
/// different shows that behaviour has changed, by intention or not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "runner.hpp"

namespace rnic::simulation {

class FingerprintList {
 public:
  /// Lines of profile, seed, fingerprint; those that begin with '#' are not looked at.
  static Result<FingerprintList> read(const std::string& path);
  Status write(const std::string& path) const;

  void note(const TaskResult& result);
  /// Forgets the worlds of all seeds but these.
  void keep(uint64_t first_seed, uint64_t seeds);
  [[nodiscard]] std::vector<Task> tasks() const;
  /// Prints each world of which `now` has another fingerprint. \return how many there are
  [[nodiscard]] uint64_t print_differences(const FingerprintList& now) const;

 private:
  using World = std::pair<std::string, uint64_t>;  // profile, seed
  std::map<World, uint64_t> worlds_;
};

}  // namespace rnic::simulation
