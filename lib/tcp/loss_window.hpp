/// \file
/// How many segments go again behind a time-out, where they are far smaller than SMSS.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rnic::tcp {

/// cwnd counts octets (RFC 5681, and the TUF draft s.5.3 asks for it): the loss window of one SMSS
/// lets hundreds of records of a few octets go, each in the segment that it had, into a path that
/// has just lost them, and they are lost again. So small segments are counted as well, the way
/// RFC 5681 s.3.1 lets full ones go: slow start up to half of what the last loss found, then one
/// more each round trip. It holds back what is sent again, never what is new.
class LossWindow {
 public:
  /// The earliest segment goes alone.
  void on_timeout() {
    threshold_ = std::max(segments_ / 2, kLeast);
    segments_ = 1;
    acked_ = 0;
  }
  /// What was sent again behind the time-out was lost.
  void on_loss() {
    segments_ = threshold_ = std::max(segments_ / 2, kLeast);
    acked_ = 0;
  }
  /// `acked` segments that had gone again were acknowledged.
  void on_ack(uint32_t acked) {
    for (; acked != 0 && segments_ != UINT32_MAX; --acked) {
      if (segments_ >= threshold_ && ++acked_ < segments_) continue;
      acked_ = 0;
      ++segments_;
    }
  }
  /// `in_flight` segments have gone again and are not acknowledged.
  [[nodiscard]] bool admits(uint32_t in_flight) const { return in_flight < segments_; }

 private:
  static constexpr uint32_t kLeast = 2;  // RFC 5681 s.3.1, equation (4)

  uint32_t segments_ = UINT32_MAX;   // none was lost yet
  uint32_t threshold_ = UINT32_MAX;  // >= kLeast
  uint32_t acked_ = 0;               // beyond the threshold, since the window grew
};

}  // namespace rnic::tcp
