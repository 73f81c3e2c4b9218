/// \file
/// ResourceLedger: how much of each kind of resource was given out, and how much may be.
#pragma once

#include <cstdint>

#include "rnic/quotas.hpp"

namespace rnic::device {

/// One kind of what a device gives out.
struct ResourceKind {
  uint64_t ResourceCounts::*amount;
  const char* words;   ///< for errors
  const char* quota;   ///< the key of a consumer's quota
  const char* in_all;  ///< the key that limits all consumers together; nullptr: none does
};

/// Belongs to the worker.
class ResourceLedger {
 public:
  /// \param limits kNoQuota: none
  explicit ResourceLedger(const ResourceCounts& limits) : limits_(limits) {}

  [[nodiscard]] const ResourceCounts& limits() const { return limits_; }
  [[nodiscard]] const ResourceCounts& used() const { return used_; }

  /// The kind of which there is less left than `more`; nullptr: there is enough of each.
  [[nodiscard]] const ResourceKind* lacking(const ResourceCounts& more) const noexcept;
  /// Precondition: lacking(more) == nullptr.
  void take(const ResourceCounts& more) noexcept;
  /// \param amounts parts of what was taken
  void give_back(const ResourceCounts& amounts);

 private:
  const ResourceCounts limits_;
  ResourceCounts used_;  // Invariant: nothing is above its limit
};

}  // namespace rnic::device
