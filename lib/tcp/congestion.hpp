/// \file
/// Congestion control: one value per connection, NewReno (RFC 5681) or CUBIC (RFC 9438).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"
#include "tcp/config.hpp"

namespace rnic::tcp {

class Congestion {
 public:
  explicit Congestion(const Config& config)
      : kind_(config.congestion_control),
        initial_segments_(std::clamp(config.initial_window_segments, 1u, 64u)),
        growth_limit_(std::max(config.growth_limit_segments, 1u)),
        max_cwnd_(config.max_cwnd) {}

  /// At ESTABLISHED, and when SMSS changes.
  void set_smss(uint32_t smss) {
    smss_ = smss;
    cwnd_ = std::max(cwnd_, smss);
  }
  void start() { cwnd_ = initial_window(); }

  /// `acked` octets were newly acknowledged outside recovery while cwnd was the limit.
  void on_ack(uint32_t acked, base::Duration srtt, base::Now now);
  /// Loss found by SACK, RACK or duplicate ACKs: sets ssthresh, leaves cwnd to the recovery.
  void on_loss(uint64_t flight);
  /// Retransmission time-out: cwnd is one segment. \param first no reduction since the last
  /// progress
  void on_timeout(uint64_t flight, bool first);
  /// RFC 5681 s.4.1: idle for longer than the RTO.
  void on_idle() {
    set_cwnd(std::min(cwnd_, initial_window()));
    epoch_running_ = false;
  }

  [[nodiscard]] uint32_t cwnd() const { return cwnd_; }
  [[nodiscard]] uint32_t ssthresh() const { return ssthresh_; }
  [[nodiscard]] uint32_t smss() const { return smss_; }
  [[nodiscard]] bool in_slow_start() const { return cwnd_ < ssthresh_; }
  void set_cwnd(uint64_t cwnd) {
    cwnd_ = static_cast<uint32_t>(std::clamp<uint64_t>(cwnd, smss_, std::max(max_cwnd_, smss_)));
  }
  /// The reduction was for nothing (all retransmissions were duplicates).
  void undo(uint32_t cwnd, uint32_t ssthresh) {
    ssthresh_ = ssthresh;
    set_cwnd(std::max(cwnd_, cwnd));
  }

 private:
  [[nodiscard]] uint32_t initial_window() const { return initial_segments_ * smss_; }
  void slow_start(uint32_t acked);
  void newreno_avoidance(uint32_t acked);
  void cubic_avoidance(uint32_t acked, base::Duration srtt, base::Now now);
  void cubic_reduce();

  CongestionControl kind_;
  uint32_t initial_segments_;
  uint32_t growth_limit_;
  uint32_t max_cwnd_;
  uint32_t smss_ = 536;
  uint32_t cwnd_ = 536;
  uint32_t ssthresh_ = UINT32_MAX;
  uint64_t acked_fraction_ = 0;  // octets acknowledged towards the next SMSS of growth

  // CUBIC, in segments and seconds (RFC 9438 s.4.1).
  double w_max_ = 0;
  double w_est_ = 0;
  double k_ = 0;
  double cubic_credit_ = 0;  // octets of growth below one
  base::Now epoch_{};
  base::Now last_ack_{};
  bool epoch_running_ = false;
};

}  // namespace rnic::tcp
