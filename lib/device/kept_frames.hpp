/// \file
/// KeptFrames: the received frames of a small burst, until their turn and the next one are over.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "port/port.hpp"

namespace rnic::device {

/// To give a frame back takes as long as a tenth of a message's way through the device. The
/// application answers a message between the turn that has brought it and the next one, so frames
/// which came by themselves go back when that answer has left. Larger bursts are no conversation,
/// and are not kept.
class KeptFrames {
 public:
  static constexpr uint32_t kMost = 4;  ///< frames of a burst that is kept

  /// \param port outlives it
  explicit KeptFrames(port::Port& port) : port_(port) {}
  ~KeptFrames() { give_back(); }
  KeptFrames(const KeptFrames&) = delete;
  KeptFrames& operator=(const KeptFrames&) = delete;

  /// Takes the frames of a burst over, if it can.
  [[nodiscard]] bool keep(std::span<const port::Packet> burst) {
    if (count_ != 0 || burst.size() > kMost) return false;
    std::copy(burst.begin(), burst.end(), frames_.begin());
    count_ = static_cast<uint32_t>(burst.size());
    waited_ = false;
    return true;
  }
  /// A turn is over, and what it had to send has left.
  void turn_over() {
    if (count_ == 0) return;
    if (waited_) give_back();
    waited_ = true;
  }
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  void give_back() {
    if (count_ != 0) port_.free(std::span(frames_).first(count_));
    count_ = 0;
  }

  port::Port& port_;
  uint32_t count_ = 0;
  bool waited_ = false;  // the turn that has received them is over
  std::array<port::Packet, kMost> frames_;
};

}  // namespace rnic::device
