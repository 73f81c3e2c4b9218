/// \file
/// OfferedEmss: EMSS as the transport reports it, and as the ULP may count on it (s.5.1).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.hpp"

namespace rnic::tuf {

/// A transport that wants to try a larger path MTU reports the larger EMSS for one pull and takes
/// it back (s.5.1). When nothing was large enough for a probe, the offer stands for the ULP until a
/// PDU of its size is sent, or EMSS changes otherwise.
class OfferedEmss {
 public:
  // --- Owner's side ---

  /// The first report, when the connection is established.
  void establish(uint32_t emss) {
    emss_ = emss;
    show();
  }
  /// The transport has another EMSS.
  void report(uint32_t emss);
  /// A record went out.
  void record_sent(uint32_t length) { largest_since_ = std::max(largest_since_, length); }
  /// What fits a segment of the transport now.
  [[nodiscard]] uint32_t current() const { return emss_; }
  /// A larger EMSS than current() stands.
  [[nodiscard]] bool is_offered() const { return offered_ != 0; }
  /// Checks that an offer is larger than what is current, and that the application sees both.
  void validate() const {
    RNIC_CHECK(offered_ == 0 || offered_ > emss_);
    RNIC_CHECK(before_growth_ == 0 || before_growth_ < emss_);
    RNIC_CHECK(visible() == std::max(emss_, offered_));
  }

  // --- Application side ---

  /// EMSS with the offer that stands.
  [[nodiscard]] uint32_t visible() const { return visible_.load(std::memory_order_acquire); }
  /// Whether visible() has grown since the last call.
  bool take_growth() { return growth_untold_.exchange(false); }

 private:
  void show();

  uint32_t emss_ = 0;
  uint32_t offered_ = 0;        // 0, or more than emss_
  uint32_t before_growth_ = 0;  // the report before the last one, when that was a growth; else 0
  uint32_t largest_since_ = 0;  // record sent since the last growth
  // Written by the owner, read by the application.
  std::atomic<uint32_t> visible_{0};        // the greater of emss_ and offered_
  std::atomic<bool> growth_untold_{false};  // the application takes it back
};

}  // namespace rnic::tuf
