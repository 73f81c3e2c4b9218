/// \file
/// Sends the octets of a start frame of this side.
#pragma once

#include <cstdint>
#include <vector>

#include "llp/frame.hpp"
#include "llp/stream.hpp"

namespace rnic::framing {

/// The tag of start-up octets; no tag of DDP has this value of `a`.
inline constexpr llp::RecordTag kStartTag{~0ull, 0};

/// One frame at a time: a start frame, or the last streaming message before it. Its octets stay
/// until they are acknowledged or the next frame is set, for retransmission. It has no stream and
/// calls nobody: the session asks it and acts.
class StartFrameSender {
 public:
  /// Sets the frame to be sent. This call allocates no memory, so it cannot fail.
  void set(std::vector<uint8_t> octets);
  /// Writes as many octets as fit. The first call fixes the frame's place in the stream. \return
  /// the number of octets written
  uint32_t emit(uint32_t n, uint64_t offset, llp::Frame& out);
  /// Writes octets of the frame again. False: they are not of this frame, or are gone.
  bool rebuild(uint64_t offset, uint32_t length, llp::Frame& out) const;
  void acknowledged(uint64_t end_offset);

  [[nodiscard]] bool pending() const { return sent_ < size_; }
  [[nodiscard]] uint32_t unsent() const { return size_ - sent_; }
  /// \return whether no octet of the frame is still to be sent, or to be sent again
  [[nodiscard]] bool is_acknowledged() const { return !pending() && frame_.empty(); }
  /// Stream offset behind the frame's last octet.
  [[nodiscard]] uint64_t end_offset() const { return base_ + size_; }
  void validate() const;

 private:
  std::vector<uint8_t> frame_;  // empty once it is acknowledged
  uint64_t base_ = 0;           // stream offset of the frame's first octet
  uint32_t size_ = 0;           // size of the frame, also when its octets are gone
  uint32_t sent_ = 0;           // Invariant: <= size_
};

}  // namespace rnic::framing
