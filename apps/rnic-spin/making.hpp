/// \file
/// Calls that make objects, change them, and end them.
#pragma once

#include <memory>

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Every object but a connection. Ends come in both ways: by destroy(), which has to refuse while
/// something stands on the object, and by the end of the handle, which may come in any order.
class Making {
 public:
  Making(World& world, Arrivals& arrivals) : world_(world), arrivals_(arrivals) {}

  void make_domain(Side& side);
  void end_domain(Side& side);
  void make_queue(Side& side);
  void change_queue(Side& side);
  void end_queue(Side& side);
  void make_shared(Side& side);
  void change_shared(Side& side);
  void end_shared(Side& side);
  void make_region(Side& side);
  void change_region(Side& side);
  void end_region(Side& side);
  void make_window(Side& side);
  void bind_window(Side& side);
  void end_window(Side& side);
  void make_pair(Side& side);
  void change_reads(Side& side);
  void end_pair(Side& side);
  /// Ends something.
  void end_any(Side& side);

 private:
  [[nodiscard]] RegionOptions any_options(Side& side, Region& region);
  /// A queue with room for `demand` more completions; rarely another owner's.
  [[nodiscard]] std::shared_ptr<Queue> any_queue(Side& side, const std::shared_ptr<Owner>& owner,
                                                 uint64_t demand);
  [[nodiscard]] bool create_pair(Pair& pair);
  /// \return whether the region may be deregistered, with what stands on it
  [[nodiscard]] static Expect may_end(const Side& side, const Region& region);
  /// Forgets the windows and the allocated STags that stand on the region.
  void forget_windows(Side& side, const Region& region);

  World& world_;
  Arrivals& arrivals_;
};

}  // namespace rnic::spin
