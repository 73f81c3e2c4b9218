#include "tcp/dctcp.hpp"

namespace rnic::tcp {

void Dctcp::on_ack(const AckSample& s, bool ece, uint32_t gain_shift) {
  bytes_acked_ += s.acked;  // steps 1-3
  if (ece) bytes_marked_ += s.acked;
  if (s.snd_una <= window_end_ || bytes_acked_ == 0) return;  // step 4
  const auto m = static_cast<uint32_t>(kScale * bytes_marked_ / bytes_acked_);
  // s.4.2: by shifting alone Alpha would never reach 0.
  if (alpha_ >> gain_shift == 0) alpha_ = 0;
  alpha_ = std::min(alpha_ + (m >> gain_shift) - (alpha_ >> gain_shift), kScale);
  window_end_ = s.snd_nxt;
  bytes_acked_ = bytes_marked_ = 0;
}

void Dctcp::reduce(CongestionWindow& w) {
  const uint64_t cut = uint64_t{w.cwnd} * alpha_ / (2 * kScale);
  w.set_cwnd(w.cwnd - cut);
  w.set_ssthresh(w.cwnd);
}

}  // namespace rnic::tcp
