/// \file
/// The window that every congestion control algorithm works on, and its view of one ACK.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"

namespace rnic::tcp {

/// RFC 5681 section 2, in octets.
struct CongestionWindow {
  uint32_t smss = 536;
  uint32_t cwnd = 536;
  uint32_t ssthresh = UINT32_MAX;  ///< "arbitrarily high" until the first reduction
  uint32_t max_cwnd = UINT32_MAX;

  /// Sets cwnd, but never below one segment and never above the limit of the configuration.
  void set_cwnd(uint64_t octets) {
    cwnd = static_cast<uint32_t>(std::clamp<uint64_t>(octets, smss, std::max(max_cwnd, smss)));
  }
  /// Sets ssthresh, but never below two segments (RFC 5681 (4)).
  void set_ssthresh(uint64_t octets) {
    ssthresh = static_cast<uint32_t>(
        std::clamp<uint64_t>(octets, uint64_t{2} * smss, uint64_t{UINT32_MAX} - 1));
  }
  /// Checks that the window holds at least one segment and that ssthresh is not zero (RFC 5681
  /// s.3.1).
  void validate() const {
    RNIC_CHECK(smss != 0 && cwnd >= smss && cwnd <= std::max(max_cwnd, smss));
    RNIC_CHECK(ssthresh != 0);
  }
};

/// An ACK of new data.
struct AckSample {
  uint64_t acked = 0;      ///< octets by which SND.UNA advanced
  uint64_t snd_una = 0;    ///< after the move
  uint64_t snd_nxt = 0;    ///< now
  base::Duration rtt{-1};  ///< of the newest octet acknowledged; negative: not measured
  base::Duration srtt{0};
  base::Now now{};
};

}  // namespace rnic::tcp
