/// \file
/// Consumers, and what the device says about what was given out.
#pragma once

#include <cstdint>
#include <memory>

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Makes and ends the consumers of a device, and compares what they have with what they were given.
class Parties {
 public:
  explicit Parties(World& world) : world_(world) {}

  void make_consumer(Side& side);
  void ask_consumer(Side& side);
  void end_consumer(Side& side);
  /// Compares the device's limits with what the caller has.
  void ask_limits(Side& side);

 private:
  [[nodiscard]] ResourceCounts any_quotas();
  /// \return the requests of peers that wait for an answer of the consumer
  [[nodiscard]] uint64_t requests_of(const Owner& consumer);
  /// Ends every listener of a consumer. \param ender its handle, or the device once that is gone
  template <typename Ender>
  void stop_listening(Side& side, const std::shared_ptr<Owner>& consumer, Ender& ender);

  World& world_;
};

}  // namespace rnic::spin
