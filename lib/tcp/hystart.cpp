#include "tcp/hystart.hpp"

namespace rnic::tcp {

namespace {

constexpr uint32_t kRttSamples = 8;    // N_RTT_SAMPLE (RFC 9406 s.4.3)
constexpr int64_t kMinRttDivisor = 8;  // MIN_RTT_DIVISOR

}  // namespace

SlowStartEvent HyStart::judge(const Config& config) {
  if (rtt_sample_count_ < kRttSamples) return SlowStartEvent::None;
  if (conservative()) {
    if (current_round_min_rtt_ >= css_baseline_min_rtt_) return SlowStartEvent::None;
    css_baseline_min_rtt_ = kInfinite;
    return SlowStartEvent::Resumed;
  }
  if (last_round_min_rtt_ == kInfinite) return SlowStartEvent::None;
  const base::Duration rtt_thresh =
      std::max(config.hystart_rtt_threshold_min,
               std::min(last_round_min_rtt_ / kMinRttDivisor, config.hystart_rtt_threshold_max));
  if (current_round_min_rtt_ < last_round_min_rtt_ + rtt_thresh) return SlowStartEvent::None;
  css_baseline_min_rtt_ = current_round_min_rtt_;
  css_rounds_ = 0;
  return SlowStartEvent::Conservative;
}

SlowStartEvent HyStart::on_ack(const AckSample& sample, const Config& config) {
  SlowStartEvent event = SlowStartEvent::None;
  if (sample.rtt >= base::Duration(0)) {
    current_round_min_rtt_ = std::min(current_round_min_rtt_, sample.rtt);
    ++rtt_sample_count_;
    event = judge(config);
  }
  if (sample.snd_una < window_end_) return event;
  // The round is over. The round in which CSS began counts towards CSS_ROUNDS, too.
  window_end_ = sample.snd_nxt;
  last_round_min_rtt_ = current_round_min_rtt_;
  current_round_min_rtt_ = kInfinite;
  rtt_sample_count_ = 0;
  if (conservative() && ++css_rounds_ >= config.hystart_css_rounds) {
    css_baseline_min_rtt_ = kInfinite;
    return SlowStartEvent::Left;
  }
  return event;
}

void HyStart::validate(const Config& config, uint64_t snd_nxt) const {
  RNIC_CHECK((rtt_sample_count_ == 0) == (current_round_min_rtt_ == kInfinite));
  RNIC_CHECK(window_end_ <= snd_nxt);
  // CSS ends with its last round.
  RNIC_CHECK(!conservative() || css_rounds_ == 0 || css_rounds_ < config.hystart_css_rounds);
}

}  // namespace rnic::tcp
