/// \file
/// Consumer: one party to which a device gives resources, and its quotas.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "device/resource_ledger.hpp"
#include "framing/hold_share.hpp"
#include "rnic/error.hpp"
#include "rnic/quotas.hpp"

namespace rnic::device {

/// Belongs to the worker.
class Consumer {
 public:
  /// \param number names it within its device
  /// \param quotas kNoQuota: none
  Consumer(uint32_t number, std::string name, const ResourceCounts& quotas)
      : number_(number),
        name_(std::move(name)),
        ledger_(quotas),
        hold_share_(std::make_shared<framing::HoldShare>(quotas.held_octets)) {}
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  [[nodiscard]] uint32_t number() const { return number_; }
  /// What calls and requests have taken: held octets are none of it.
  [[nodiscard]] const ResourceCounts& used() const { return ledger_.used(); }
  /// What the sessions of its connections hold.
  [[nodiscard]] const framing::HoldSharePtr& hold_share() const { return hold_share_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Calls and requests that one of the quotas has refused.
  [[nodiscard]] uint64_t refused() const { return refused_; }
  [[nodiscard]] bool has_anything() const { return used() != ResourceCounts{}; }
  [[nodiscard]] ConsumerInfo info() const;

  /// Adds `more` to what the consumer has. ResourceExhausted, and nothing has changed: it would
  /// have more of something than its quota. \param call begins the text of the error
  Status take(const char* call, const ResourceCounts& more);
  /// As take(), for what has no caller to tell. \return false: refused
  [[nodiscard]] bool admit(const ResourceCounts& more) noexcept;
  /// \param amounts parts of what was taken
  void give_back(const ResourceCounts& amounts) { ledger_.give_back(amounts); }

  /// The application's handle is gone: the consumer goes with the last that it has.
  void release() { released_ = true; }
  [[nodiscard]] bool is_released() const { return released_; }

 private:
  const uint32_t number_;
  const std::string name_;
  ResourceLedger ledger_;
  const framing::HoldSharePtr hold_share_;
  uint64_t refused_ = 0;
  bool released_ = false;
};

}  // namespace rnic::device
