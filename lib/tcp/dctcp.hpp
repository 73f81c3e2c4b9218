/// \file
/// DCTCP (RFC 8257): the sender's estimate of the share of octets that met congestion.
#pragma once

#include "tcp/congestion_window.hpp"

namespace rnic::tcp {

/// RFC 8257 sections 3.3 and 4.2: DCTCP.Alpha in fixed point.
class Dctcp {
 public:
  static constexpr uint32_t kScale = 65536;  ///< SCF: Alpha = 1

  /// Called for every ACK of new data, in recovery or not. \param ece the ACK carried ECN-Echo.
  /// \param gain_shift g is 2 to the power of minus this
  void on_ack(const AckSample& sample, bool ece, uint32_t gain_shift);
  /// Reduces cwnd to cwnd * (1 - Alpha / 2) (RFC 8257 s.3.3 step 9). Called at most once per window
  /// of data.
  void reduce(CongestionWindow& window);

  [[nodiscard]] uint32_t alpha() const { return alpha_; }
  /// Checks that Alpha is a share, that no more octets are marked than acknowledged, and that the
  /// window of data which is measured was sent.
  void validate(uint64_t snd_nxt) const {
    RNIC_CHECK(alpha_ <= kScale && bytes_marked_ <= bytes_acked_);
    RNIC_CHECK(window_end_ <= snd_nxt && bytes_acked_ <= snd_nxt);
  }

 private:
  uint32_t alpha_ = kScale;
  uint64_t window_end_ = 0;
  uint64_t bytes_acked_ = 0;
  uint64_t bytes_marked_ = 0;
};

}  // namespace rnic::tcp
