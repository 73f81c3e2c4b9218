/// \file
/// NewReno's window (RFC 5681, counted in octets after RFC 3465), which DCTCP shares.
#pragma once

#include "tcp/congestion_window.hpp"

namespace rnic::tcp {

class NewReno {
 public:
  /// Congestion avoidance: one SMSS for each cwnd of octets acknowledged.
  void on_ack(CongestionWindow& window, uint64_t acked);
  /// Replaces on_ack() as long as cwnd does not grow yet. False: on_ack() has to be called.
  bool gather(const CongestionWindow& window, uint64_t acked) {
    if (acked_octets_ + acked >= window.cwnd) return false;
    acked_octets_ += acked;
    return true;
  }
  /// Sets ssthresh (RFC 5681 (4)). The recovery, or the time-out, sets cwnd.
  void on_loss(CongestionWindow& window, uint64_t flight);
  /// Halves cwnd, down to one segment (RFC 3168 s.6.1.2).
  void on_ecn(CongestionWindow& window);
  void reset() { acked_octets_ = 0; }
  /// Checks that no more octets are counted than the largest window has: cwnd grows when a window
  /// of them is counted.
  void validate(const CongestionWindow& window) const {
    RNIC_CHECK(acked_octets_ <= std::max(window.max_cwnd, window.smss));
  }

 private:
  uint64_t acked_octets_ = 0;  // towards the next SMSS of growth
};

}  // namespace rnic::tcp
