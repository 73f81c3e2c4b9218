/// \file
/// HyStart++ (RFC 9406): the first slow start ends when the round-trip time rises, before loss.
#pragma once

#include "tcp/config.hpp"
#include "tcp/congestion_window.hpp"

namespace rnic::tcp {

/// The effect of an ACK on the first slow start.
enum class SlowStartEvent : uint8_t {
  None,
  Conservative,  ///< the RTT rose: conservative slow start (CSS) begins
  Resumed,       ///< the RTT fell again: slow start resumes
  Left,          ///< CSS_ROUNDS are over: congestion avoidance
};

/// The variables of RFC 9406 section 4.2. Rounds are measured by stream offsets.
class HyStart {
 public:
  /// One ACK in slow start or CSS, after cwnd has grown.
  SlowStartEvent on_ack(const AckSample& sample, const Config& config);
  [[nodiscard]] bool conservative() const { return css_baseline_min_rtt_ != kInfinite; }
  void validate(const Config& config, uint64_t snd_nxt) const;

 private:
  static constexpr base::Duration kInfinite = base::Duration::max();

  SlowStartEvent judge(const Config& config);

  base::Duration last_round_min_rtt_ = kInfinite;
  base::Duration current_round_min_rtt_ = kInfinite;
  base::Duration css_baseline_min_rtt_ = kInfinite;  // infinite: standard slow start
  uint64_t window_end_ = 0;
  uint32_t rtt_sample_count_ = 0;
  uint32_t css_rounds_ = 0;
};

}  // namespace rnic::tcp
