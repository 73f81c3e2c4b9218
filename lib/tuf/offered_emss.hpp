/// \file
/// OfferedEmss: EMSS as the transport reports it, and as it is shown to the ULP (s.5.1).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.hpp"

namespace rnic::tuf {

/// A transport that wants to probe a larger path MTU reports a larger EMSS for one pull and takes
/// it back (s.5.1). If no PDU was large enough for the probe, the offer stays visible to the ULP
/// until a PDU of its size is sent, or EMSS changes otherwise.
class OfferedEmss {
 public:
  // --- Owner's side ---

  /// The first report, when the connection is established.
  void establish(uint32_t emss) {
    emss_ = emss;
    show();
  }
  /// The transport reports another EMSS.
  void report(uint32_t emss);
  /// A record went out.
  void record_sent(uint32_t length) { largest_since_ = std::max(largest_since_, length); }
  /// Octets that fit a segment of the transport now.
  [[nodiscard]] uint32_t current() const { return emss_; }
  /// A larger EMSS than current() is offered.
  [[nodiscard]] bool is_offered() const { return offered_ != 0; }
  /// Checks that an offer is larger than current(), and that visible() is the larger of the two.
  void validate() const {
    RNIC_CHECK(offered_ == 0 || offered_ > emss_);
    RNIC_CHECK(before_growth_ == 0 || before_growth_ < emss_);
    RNIC_CHECK(visible() == std::max(emss_, offered_));
  }

  // --- Application side ---

  /// The larger of current() and the offer.
  [[nodiscard]] uint32_t visible() const { return visible_.load(std::memory_order_acquire); }
  /// \return visible() has grown since the last call
  bool take_growth() { return growth_untold_.exchange(false); }

 private:
  void show();

  uint32_t emss_ = 0;
  uint32_t offered_ = 0;        // 0, or more than emss_
  uint32_t before_growth_ = 0;  // EMSS before the last report, if that one raised it; else 0
  uint32_t largest_since_ = 0;  // the largest record sent since the last growth
  // Written by the owner, read by the application.
  std::atomic<uint32_t> visible_{0};        // the greater of emss_ and offered_
  std::atomic<bool> growth_untold_{false};  // the application resets it
};

}  // namespace rnic::tuf
