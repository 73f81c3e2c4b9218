#include "tcp/congestion.hpp"

namespace rnic::tcp {

void Congestion::on_ack(uint32_t acked, base::Duration srtt, base::Now now) {
  if (in_slow_start()) {
    slow_start(acked);
  } else if (kind_ == CongestionControl::Cubic) {
    cubic_avoidance(acked, srtt, now);
  } else {
    newreno_avoidance(acked);
  }
}

void Congestion::slow_start(uint32_t acked) {
  // RFC 5681 (2) with the limit L of RFC 3465 s.2.2: an ACK that covers a burst counts for more
  // than one.
  const uint64_t grown =
      uint64_t{cwnd_} + std::min<uint64_t>(acked, uint64_t{growth_limit_} * smss_);
  set_cwnd(std::min<uint64_t>(grown, std::max(ssthresh_, smss_)));
}

void Congestion::newreno_avoidance(uint32_t acked) {
  // RFC 3465 s.2.1: one SMSS for each cwnd of octets acknowledged.
  acked_fraction_ += acked;
  if (acked_fraction_ >= cwnd_) {
    acked_fraction_ -= cwnd_;
    set_cwnd(uint64_t{cwnd_} + smss_);
  }
  acked_fraction_ = std::min<uint64_t>(acked_fraction_, cwnd_);
}

void Congestion::on_loss(uint64_t flight) {
  if (kind_ == CongestionControl::Cubic) {
    cubic_reduce();
  } else {
    ssthresh_ = static_cast<uint32_t>(std::max<uint64_t>(flight / 2, 2 * uint64_t{smss_}));
  }
  acked_fraction_ = 0;
}

void Congestion::on_timeout(uint64_t flight, bool first) {
  if (first) on_loss(flight);  // RFC 5681 (4): once for each loss event
  set_cwnd(smss_);
  acked_fraction_ = 0;
  epoch_running_ = false;
}

}  // namespace rnic::tcp
