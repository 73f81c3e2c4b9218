/// \file
/// Fast registration and invalidation.
#pragma once

#include <memory>
#include <optional>

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/posting.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Allocates STags, registers parts of regions under them by requests, and has them invalidated:
/// here, by a Read, and by the peer's messages. What has completed so gives nobody access any more,
/// which it tries out now and then.
class Granting {
 public:
  Granting(World& world, Posting& posting) : world_(world), posting_(posting) {}

  void allocate(Side& side);
  void register_part(Side& side);
  void invalidate(Side& side);
  void read_and_invalidate(Side& side);
  void send_and_invalidate(Side& side);
  /// Uses what is not valid any more, or registers what cannot be.
  void fail(Side& side);
  /// Deregisters.
  void end(Side& side);

 private:
  using State = Grant::State;

  [[nodiscard]] std::shared_ptr<Grant> any(const Side& side, State state, const Pair& pair);
  /// A region whose parts may be registered for requests of the queue pair.
  [[nodiscard]] std::shared_ptr<Region> any_base(const Side& side, const Pair& pair, bool binds);
  [[nodiscard]] AccessSet any_access(const Region& region);
  /// Names a part of the region in the grant.
  void choose_part(Grant& grant, const std::shared_ptr<Region>& region, const Pair& pair);
  [[nodiscard]] SendRequest registration(const Grant& grant);
  void read_by_peer(Side& side, const Pair& pair, const Grant& grant);
  /// \return an STag of the peer that a message of the queue pair may invalidate; 0: there is none
  [[nodiscard]] uint32_t take_from_peer(Side& side, const Pair& pair);

  World& world_;
  Posting& posting_;
};

}  // namespace rnic::spin
