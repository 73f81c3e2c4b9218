/// \file
/// Consumers: the parties to which a device gives resources (RFC 5042 s.3, RFC 5041 s.8.3.2).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/consumer.hpp"
#include "rnic/device_info.hpp"
#include "rnic/error.hpp"
#include "rnic/quotas.hpp"

namespace rnic::device {

/// Belongs to the worker. Consumer 0 is that of an application that names none, and always there.
class Consumers {
 public:
  /// \param most how many may be created
  /// \param quotas of every consumer that sets none itself; 0: none
  /// \param in_all what all of them may have together; 0: as much as they want
  Consumers(uint32_t most, const ResourceCounts& quotas, const ResourceCounts& in_all);

  /// \return the consumer's number, from 1 on
  Result<uint32_t> create(const ConsumerOptions& options);
  /// WrongState while the consumer has anything.
  Status destroy(uint32_t number);
  /// The application's handle is gone: the consumer goes with the last that it has.
  void release(uint32_t number);
  [[nodiscard]] Result<ConsumerInfo> info(uint32_t number) const;
  /// Says how many there may be and how many there are, the application itself left out.
  void describe(DeviceLimits& limits) const;

  [[nodiscard]] bool exist(uint32_t number) const {
    return number < all_.size() && all_[number] != nullptr;
  }
  /// NotFound: there is no such consumer. \param call begins the text of the error
  [[nodiscard]] Status check(const char* call, uint32_t number) const;
  // Precondition: exist(number). A consumer stays while it has anything or is not released.

  /// \return whether consumer `number` may end what consumer `owner` listens on: each its own, and
  /// the application also what is nobody's to end, because the handle of its consumer is gone
  [[nodiscard]] bool may_end_listeners(uint32_t number, uint32_t owner) const {
    return number == owner || (number == 0 && all_[owner]->is_released());
  }
  /// The part of the hold space that its connections have.
  [[nodiscard]] const framing::HoldSharePtr& hold_share(uint32_t number) const {
    return all_[number]->hold_share();
  }
  /// \return whose share it is; nothing: its consumer is gone
  [[nodiscard]] std::optional<uint32_t> owner_of(const framing::HoldSharePtr& share) const;
  /// Adds `more` to what the consumer has. ResourceExhausted, and nothing has changed: it would
  /// have more of something than its quota, or all together more than they may have. \param call
  /// begins the text of the error
  Status take(uint32_t number, const char* call, const ResourceCounts& more);
  /// As take(), for what has no caller to tell. \return false: refused
  [[nodiscard]] bool admit(uint32_t number, const ResourceCounts& more) noexcept;
  /// \param amounts parts of what the consumer has
  void give_back(uint32_t number, const ResourceCounts& amounts);
  /// Calls and requests that were refused, of all consumers that there were: for a quota, or for
  /// what all may have together.
  [[nodiscard]] uint64_t refused() const;

  /// One place for each number, as counted anew.
  using Found = std::vector<ResourceCounts>;
  [[nodiscard]] Found nothing_found() const { return Found(all_.size()); }
  /// Compares what consumers have with what was found of each, but for regions with their octets
  /// and pieces: there are `regions` with `pieces` in all.
  void validate(const Found& found, uint64_t regions, uint64_t pieces) const;

 private:
  void end(uint32_t number);

  const ResourceCounts quotas_;
  std::vector<std::unique_ptr<Consumer>> all_;  // by number
  ResourceLedger in_all_;                       // Invariant: the sum of what each has
  uint64_t refused_in_all_ = 0;                 // by in_all_
  uint64_t refused_before_ = 0;                 // those of consumers that are gone
};

/// Amounts that a consumer has taken for an object that is being made: they are given back unless
/// keep() is called.
class TakenShare {
 public:
  TakenShare(Consumers& consumers, uint32_t number, const char* call, const ResourceCounts& amounts)
      : consumers_(consumers),
        number_(number),
        amounts_(amounts),
        status_(consumers.take(number, call, amounts)) {}
  ~TakenShare() {
    if (status_ && !kept_) consumers_.give_back(number_, amounts_);
  }
  TakenShare(const TakenShare&) = delete;
  TakenShare& operator=(const TakenShare&) = delete;

  [[nodiscard]] const Status& status() const { return status_; }
  void keep() { kept_ = true; }

 private:
  Consumers& consumers_;
  const uint32_t number_;
  const ResourceCounts amounts_;
  const Status status_;
  bool kept_ = false;
};

}  // namespace rnic::device
