#include "tcp/dctcp.hpp"

namespace rnic::tcp {

void Dctcp::on_ack(const AckSample& sample, bool ece, uint32_t gain_shift) {
  bytes_acked_ += sample.acked;  // steps 1-3
  if (ece) bytes_marked_ += sample.acked;
  if (sample.snd_una <= window_end_ || bytes_acked_ == 0) return;  // step 4
  const auto m = static_cast<uint32_t>(kScale * bytes_marked_ / bytes_acked_);
  // s.4.2: by shifting alone Alpha would never reach 0.
  if (alpha_ >> gain_shift == 0) alpha_ = 0;
  alpha_ = std::min(alpha_ + (m >> gain_shift) - (alpha_ >> gain_shift), kScale);
  window_end_ = sample.snd_nxt;
  bytes_acked_ = bytes_marked_ = 0;
}

void Dctcp::reduce(CongestionWindow& window) {
  const uint64_t cut = uint64_t{window.cwnd} * alpha_ / (2 * kScale);
  window.set_cwnd(window.cwnd - cut);
  window.set_ssthresh(window.cwnd);
}

}  // namespace rnic::tcp
