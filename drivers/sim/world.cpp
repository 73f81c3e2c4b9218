#include "sim/world.hpp"

#include <algorithm>
#include <utility>

namespace rnic::sim {

void World::add(Deadline next_deadline, Action run) {
  things_.push_back({std::move(next_deadline), std::move(run)});
}

base::Now World::next_deadline() const {
  base::Now earliest = base::kNever;
  for (const Thing& thing : things_) earliest = base::earlier(earliest, thing.next_deadline());
  return earliest;
}

bool World::step() {
  const base::Now earliest = next_deadline();
  if (earliest == base::kNever) return false;
  now_ = std::max(now_, earliest);
  for (Thing& thing : things_) {
    if (thing.next_deadline() <= now_) thing.run(now_);
  }
  return true;
}

uint64_t World::run_until(base::Now limit) {
  uint64_t steps = 0;
  while (next_deadline() <= limit && step()) ++steps;
  now_ = std::max(now_, limit);
  return steps;
}

bool World::run_until(const std::function<bool()>& done, base::Now limit, uint64_t max_steps) {
  for (uint64_t steps = 0; !done(); ++steps) {
    if (steps == max_steps || next_deadline() > limit || !step()) return false;
  }
  return true;
}

}  // namespace rnic::sim
