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
  void on_ack(const AckSample& s, bool ece, uint32_t gain_shift);
  /// Section 3.3 step 9: cwnd * (1 - Alpha / 2), once a window of data.
  void reduce(CongestionWindow& w);

  [[nodiscard]] uint32_t alpha() const { return alpha_; }

 private:
  uint32_t alpha_ = kScale;
  uint64_t window_end_ = 0;
  uint64_t bytes_acked_ = 0;
  uint64_t bytes_marked_ = 0;
};

}  // namespace rnic::tcp
