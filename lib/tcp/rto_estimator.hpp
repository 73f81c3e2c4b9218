/// \file
/// Round-trip time and retransmission time-out (RFC 6298; its samples are RTTM, RFC 7323 s.4), and
/// RACK.min_RTT (RFC 8985 s.5.3).
#pragma once

#include <algorithm>

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/config.hpp"

namespace rnic::tcp {

inline constexpr uint32_t kNoticeTimeouts = 3;  // R1 (RFC 9293 s.3.8.3, SHLD-10)

class RtoEstimator {
 public:
  explicit RtoEstimator(const Config& config) : config_(config), rto_(config.rto_initial) {}

  /// Offers the round-trip time that an ACK has measured, never by a retransmitted record (Karn's
  /// rule). Two samples are taken in a round trip: with a sample for every ACK the gains would
  /// average over less than a round trip (RFC 6298 s.3, RFC 7323 appendix G). \return a sample was
  /// taken: rto() and probe_timeout() may have changed
  bool offer(base::Duration rtt, base::Now now) {
    if (now < next_sample_at_ && rtt >= min_rtt_) [[likely]]
      return false;
    sample(rtt, now);
    return true;
  }

  /// Takes one sample: steps 2.2 and 2.3 of RFC 6298 s.2.
  [[gnu::noinline]] void sample(base::Duration rtt, base::Now now) {
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
    settle(now);
    backoff_ = 0;
  }

  /// Saves SRTT and RTTVAR (RFC 4015 s.3.1 step 0) before a time-out that may turn out to be
  /// spurious.
  void save() {
    srtt_prev_ = srtt_ + 2 * kGranularity;
    rttvar_prev_ = rttvar_;
  }
  /// Takes the first measurement of new data after a spurious time-out (RFC 4015 s.3.1 step 11).
  void adapt(base::Duration rtt, base::Now now) {
    sample(rtt, now);
    srtt_ = std::max(srtt_prev_, rtt);
    rttvar_ = std::max(rttvar_prev_, rtt / 2);
    settle(now);
  }

  /// RTO with the back-off of RFC 6298 s.5.5.
  [[nodiscard]] base::Duration rto() const {
    return std::min(config_.rto_max, rto_ * (int64_t{1} << std::min(backoff_, 16u)));
  }
  /// RTO without back-off: the value of rto() after a measurement.
  [[nodiscard]] base::Duration base() const { return rto_; }
  void back_off() {
    ++backoff_;
    next_sample_at_ = {};  // the next measurement ends the back-off
  }
  void clear_backoff() { backoff_ = 0; }
  [[nodiscard]] uint32_t backoff() const { return backoff_; }
  /// Starts data with this RTO, since the SYN has timed out (RFC 6298 s.5.7).
  void restart_at(base::Duration rto) {
    rto_ = std::clamp(rto, config_.rto_min, config_.rto_max);
    backoff_ = 0;
  }

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] bool measured() const { return measured_; }
  [[nodiscard]] base::Duration srtt() const { return srtt_; }
  [[nodiscard]] base::Duration rttvar() const { return rttvar_; }
  /// PTO without the allowance for a delayed ACK (RFC 8985 s.7.2).
  [[nodiscard]] base::Duration probe_timeout() const { return probe_timeout_; }
  /// Checks that the measured times are positive and the RTO is within its bounds (RFC 6298 (2.2)
  /// to (2.4)).
  void validate() const {
    RNIC_CHECK(!measured_ || (srtt_ > base::Duration(0) && rttvar_ >= base::Duration(0)));
    RNIC_CHECK(!measured_ || (rto_ >= config_.rto_min && rto_ <= config_.rto_max));
  }
  [[nodiscard]] base::Duration min_rtt() const { return measured_ ? min_rtt_ : base::Duration(0); }

 private:
  static constexpr base::Duration kGranularity = std::chrono::microseconds(33);  // one wheel tick
  static constexpr base::Duration kMinRttLife = std::chrono::seconds(10);
  // The shortest PTO: an earlier probe would only react to the scheduling of the two hosts.
  static constexpr base::Duration kProbeMin = std::chrono::microseconds(200);

  /// Computes the values that follow from SRTT and RTTVAR.
  void settle(base::Now now) {
    rto_ =
        std::clamp(srtt_ + std::max(kGranularity, 4 * rttvar_), config_.rto_min, config_.rto_max);
    probe_timeout_ = std::max(2 * srtt_, kProbeMin);
    next_sample_at_ = now + srtt_ / 2;
  }

  const Config& config_;
  base::Duration rto_;
  base::Duration srtt_{0};
  base::Duration rttvar_{0};
  base::Duration srtt_prev_{0};
  base::Duration rttvar_prev_{0};
  base::Duration min_rtt_ = base::Duration::max();
  base::Now min_rtt_at_{};
  base::Now next_sample_at_{};  // time 0 while backed off
  base::Duration probe_timeout_ = std::chrono::seconds(1);
  uint32_t backoff_ = 0;
  bool measured_ = false;
};

}  // namespace rnic::tcp
