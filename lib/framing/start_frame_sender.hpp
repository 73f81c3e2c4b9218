/// \file
/// A start frame that this side sends, as octets of the stream.
#pragma once

#include <cstdint>
#include <vector>

#include "llp/frame.hpp"
#include "llp/stream.hpp"

namespace rnic::framing {

/// Tag of start-up octets; no tag of DDP has this `a`.
inline constexpr llp::RecordTag kStartTag{~0ull, 0};

/// One frame at a time: a start frame, or the last streaming message before it. Its octets stay
/// until they are acknowledged or the next frame is set, for retransmission. It knows no events and
/// no stream: the session asks and acts.
class StartFrameSender {
 public:
  /// Whoever makes the octets needs memory for them; this call needs none.
  void set(std::vector<uint8_t> octets);
  /// Writes what fits; the first call fixes the frame's place in the stream. \return octets
  uint32_t emit(uint32_t n, uint64_t offset, llp::Frame& out);
  /// False: the octets are not those of this frame, or gone.
  bool rebuild(uint64_t offset, uint32_t length, llp::Frame& out) const;
  void acknowledged(uint64_t end_offset);

  [[nodiscard]] bool pending() const { return sent_ < size_; }
  [[nodiscard]] uint32_t unsent() const { return size_ - sent_; }
  /// Behind the frame's last octet.
  [[nodiscard]] uint64_t end_offset() const { return base_ + size_; }
  void validate() const;

 private:
  std::vector<uint8_t> frame_;  // empty once it is acknowledged
  uint64_t base_ = 0;           // stream offset of its first octet
  uint32_t size_ = 0;           // of the frame, also when its octets are gone
  uint32_t sent_ = 0;           // Invariant: <= size_
};

}  // namespace rnic::framing
