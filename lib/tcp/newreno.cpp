#include "tcp/newreno.hpp"

namespace rnic::tcp {

void NewReno::on_ack(CongestionWindow& w, uint64_t acked) {
  // RFC 3465 s.2.1
  acked_octets_ += acked;
  if (acked_octets_ >= w.cwnd) {
    acked_octets_ -= w.cwnd;
    w.set_cwnd(uint64_t{w.cwnd} + w.smss);
  }
  acked_octets_ = std::min<uint64_t>(acked_octets_, w.cwnd);
}

void NewReno::on_loss(CongestionWindow& w, uint64_t flight) {
  w.set_ssthresh(flight / 2);
  acked_octets_ = 0;
}

void NewReno::on_ecn(CongestionWindow& w) {
  const uint32_t half = w.cwnd / 2;
  w.set_ssthresh(half);
  w.set_cwnd(half);
  acked_octets_ = 0;
}

}  // namespace rnic::tcp
