/// \file
/// Moments in which no memory changes.
#pragma once

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/posting.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Waits until everything that peers write and that Reads fetch is placed. In a threaded context
/// the workers place it at any time, and nobody may look meanwhile; in an inline one nothing
/// happens between two calls.
class Stillness {
 public:
  Stillness(World& world, Arrivals& arrivals, Posting& posting)
      : world_(world), arrivals_(arrivals), posting_(posting) {}

  /// Has a Read tell of the Writes before it, and ends the connections that do not answer it.
  /// \return whether no target changes until the next request is posted
  [[nodiscard]] bool reach();

 private:
  [[nodiscard]] bool is_there() const;
  /// Takes what has come. \return is_there()
  [[nodiscard]] bool has_come();
  /// Something that the queue pair has posted, or that its peer has, is under way.
  [[nodiscard]] bool is_busy(const Side& side, const Pair& pair) const;

  World& world_;
  Arrivals& arrivals_;
  Posting& posting_;
};

}  // namespace rnic::spin
