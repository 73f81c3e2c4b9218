/// \file
/// The clock of the simulator: it jumps to the earliest deadline of the things in it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.hpp"

namespace rnic::sim {

/// Things that act in virtual time. Deterministic: things that are due at the same moment run in
/// the order in which they were added.
class World {
 public:
  using Deadline = std::function<base::Now()>;
  using Action = std::function<void(base::Now)>;

  explicit World(base::Now start = base::from_nanos(0)) : now_(start) {}

  /// Adds a thing. `next_deadline` returns when `run` has to be called; kNever: not until something
  /// else happens.
  void add(Deadline next_deadline, Action run);

  [[nodiscard]] base::Now now() const { return now_; }
  [[nodiscard]] base::Now next_deadline() const;

  /// Jumps to the earliest deadline (never backwards) and runs everything that is due then.
  /// \return false when nothing will ever be due
  bool step();

  /// Steps while something is due at or before `limit`, then stands at `limit`. \return the steps
  /// made
  uint64_t run_until(base::Now limit);
  uint64_t run_for(base::Duration span) { return run_until(now_ + span); }

  /// Steps until `done()` is true, nothing is due by `limit`, or `max_steps` were made (the world
  /// makes no progress). \return done()
  bool run_until(const std::function<bool()>& done, base::Now limit, uint64_t max_steps);

 private:
  struct Thing {
    Deadline next_deadline;
    Action run;
  };

  std::vector<Thing> things_;
  base::Now now_;
};

}  // namespace rnic::sim
