/// \file
/// What a consumer has, as the caller counts it, and what it may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rnic/quotas.hpp"

namespace rnic::spin {

/// The share of a device that one consumer has, or for none the application.
class Share {
 public:
  /// \param quotas kNoQuota: none
  Share(std::string name, const ResourceCounts& quotas);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ResourceCounts& used() const { return used_; }
  [[nodiscard]] bool has_anything() const { return used_ != ResourceCounts{}; }

  /// The key of the first quota that `more` goes beyond; nothing: there is enough of each.
  [[nodiscard]] std::optional<std::string> lacking(const ResourceCounts& more) const;
  void take(const ResourceCounts& more);
  void give_back(const ResourceCounts& amounts);
  /// A quota has refused a call.
  void count_refusal() { ++refused_; }

  /// \param listened its listeners have refused requests of peers, too, which nobody has counted
  /// \return what is wrong with what the device says about the consumer
  [[nodiscard]] std::optional<std::string> check(const ConsumerInfo& told, bool listened) const;

 private:
  std::string name_;
  ResourceCounts quotas_;
  ResourceCounts used_;  // but for requests, which come and go by themselves
  uint64_t refused_ = 0;
};

/// The sum of two shares.
[[nodiscard]] ResourceCounts sum(const ResourceCounts& one, const ResourceCounts& other);

}  // namespace rnic::spin
