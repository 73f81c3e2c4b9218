/// \file
/// What one end of a connection has learned from the ACK fields that reached it, and which further
/// ones it has to refuse: RFC 9293 s.3.10.7.4, fifth, with RFC 5961 s.5.2.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rnic::simulation {

class HeardAcks {
 public:
  /// A segment with an ACK that the end did not refuse. \param window its field, scaled
  void take(uint32_t sequence, uint32_t ack, uint32_t window) {
    const bool old = sequence_ != sequence ? after(sequence_, sequence) : after(ack_, ack);
    if (heard_ && (after(una_, ack) || (old && ack == una_))) return;
    heard_ = true;
    largest_window_ = std::max(largest_window_, window);
    una_ = ack_ = ack;
    sequence_ = sequence;
  }
  /// \return whether a segment with this ACK field may be used; false: it is answered and dropped
  /// \param next behind all that the end has sent
  [[nodiscard]] bool acceptable(uint32_t ack, uint32_t next) const {
    return !heard_ || (!after(ack, next) && !after(una_ - largest_window_, ack));
  }

 private:
  [[nodiscard]] static bool after(uint32_t a, uint32_t b) {
    return static_cast<int32_t>(a - b) > 0;
  }

  bool heard_ = false;
  uint32_t una_ = 0;             // SND.UNA
  uint32_t largest_window_ = 0;  // MAX.SND.WND
  uint32_t sequence_ = 0;        // SND.WL1
  uint32_t ack_ = 0;             // SND.WL2
};

}  // namespace rnic::simulation
