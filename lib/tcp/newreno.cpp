#include "tcp/newreno.hpp"

namespace rnic::tcp {

void NewReno::on_ack(CongestionWindow& window, uint64_t acked) {
  // RFC 3465 s.2.1
  acked_octets_ += acked;
  if (acked_octets_ >= window.cwnd) {
    acked_octets_ -= window.cwnd;
    window.set_cwnd(uint64_t{window.cwnd} + window.smss);
  }
  acked_octets_ = std::min<uint64_t>(acked_octets_, window.cwnd);
}

void NewReno::on_loss(CongestionWindow& window, uint64_t flight) {
  window.set_ssthresh(flight / 2);
  acked_octets_ = 0;
}

void NewReno::on_ecn(CongestionWindow& window) {
  const uint32_t half = window.cwnd / 2;
  window.set_ssthresh(half);
  window.set_cwnd(half);
  acked_octets_ = 0;
}

}  // namespace rnic::tcp
