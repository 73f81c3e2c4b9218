/// \file
/// Round-trip time and retransmission time-out (RFC 6298), and the minimum that RACK needs.
#pragma once

#include <algorithm>

#include "base/time.hpp"
#include "tcp/config.hpp"

namespace rnic::tcp {

class RtoEstimator {
 public:
  explicit RtoEstimator(const Config& config)
      : min_(config.rto_min), max_(config.rto_max), rto_(config.rto_initial) {}

  /// One measurement; never of a retransmitted record (Karn's rule).
  void sample(base::Duration rtt, base::Now now) {
    rtt = std::max(rtt, base::Duration(1));
    if (!measured_) {  // (2.2)
      measured_ = true;
      srtt_ = rtt;
      rttvar_ = rtt / 2;
    } else {  // (2.3): RTTVAR first, with the old SRTT
      const base::Duration error = srtt_ > rtt ? srtt_ - rtt : rtt - srtt_;
      rttvar_ += (error - rttvar_) / 4;
      srtt_ += (rtt - srtt_) / 8;
    }
    if (rtt <= min_rtt_ || now - min_rtt_at_ > kMinRttLife) {
      min_rtt_ = rtt;
      min_rtt_at_ = now;
    }
    rto_ = std::clamp(srtt_ + std::max(kGranularity, 4 * rttvar_), min_, max_);
    backoff_ = 0;
  }

  /// RFC 4015 s.3.1 step 0: before a time-out that may turn out to have been spurious.
  void save() {
    srtt_prev_ = srtt_ + 2 * kGranularity;
    rttvar_prev_ = rttvar_;
  }
  /// Step 11: the first measurement of new data after a spurious time-out.
  void adapt(base::Duration rtt, base::Now now) {
    sample(rtt, now);
    srtt_ = std::max(srtt_prev_, rtt);
    rttvar_ = std::max(rttvar_prev_, rtt / 2);
    rto_ = std::clamp(srtt_ + std::max(kGranularity, 4 * rttvar_), min_, max_);
  }

  /// With the back-off of s.5.5.
  [[nodiscard]] base::Duration rto() const {
    return std::min(max_, rto_ * (int64_t{1} << std::min(backoff_, 16u)));
  }
  void back_off() { ++backoff_; }
  void clear_backoff() { backoff_ = 0; }
  [[nodiscard]] uint32_t backoff() const { return backoff_; }
  /// s.5.7: the SYN timed out.
  void restart_at(base::Duration rto) {
    rto_ = std::clamp(rto, min_, max_);
    backoff_ = 0;
  }

  [[nodiscard]] bool measured() const { return measured_; }
  [[nodiscard]] base::Duration srtt() const { return srtt_; }
  [[nodiscard]] base::Duration rttvar() const { return rttvar_; }
  [[nodiscard]] base::Duration min_rtt() const { return measured_ ? min_rtt_ : base::Duration(0); }

 private:
  static constexpr base::Duration kGranularity = std::chrono::microseconds(33);  // one wheel tick
  static constexpr base::Duration kMinRttLife = std::chrono::seconds(10);

  base::Duration min_;
  base::Duration max_;
  base::Duration rto_;
  base::Duration srtt_{0};
  base::Duration rttvar_{0};
  base::Duration srtt_prev_{0};
  base::Duration rttvar_prev_{0};
  base::Duration min_rtt_ = base::Duration::max();
  base::Now min_rtt_at_{};
  uint32_t backoff_ = 0;
  bool measured_ = false;
};

}  // namespace rnic::tcp
