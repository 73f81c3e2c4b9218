/// \file
/// FpduWalk: from FPDU to FPDU through the octets that one side of a connection sends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/ddp.hpp"
#include "wire/mpa.hpp"
#include "wire/rdmap.hpp"

namespace rnic::faults {

/// The octets of one FPDU among those that a call brings.
struct FpduPart {
  uint32_t begin = 0;  ///< offset of the first one, that of a marker in front of the FPDU included
  uint32_t end = 0;
  uint32_t message = 0;  ///< from 1 on
  uint32_t fpdu = 0;     ///< of the message, from 1 on
  /// The number among the Read Responses, from 1 on; 0: the message is none, or its first octets
  /// are still to come.
  uint32_t read_response = 0;
  bool begins = false;  ///< the FPDU's first octet is among them
  bool ends = false;    ///< its last octet, which is the last one of the CRC, is among them
};

/// Takes the octets in order, cut as they come.
class FpduWalk {
 public:
  /// Called before the first octet. \param markers the peer has asked for them (RFC 5044 s.4.3)
  void set_markers(bool markers) { markers_ = markers; }

  /// Calls `visit(part)` for each FPDU that has octets here.
  template <typename F>
  void take(base::ByteView octets, F&& visit) {
    FpduPart part = next_part(0);
    for (uint32_t at = 0; at != octets.size();) {
      const base::ByteView rest = octets.subspan(at);
      part.end = at += step(rest);
      if (!is_whole()) continue;
      finish(part);
      visit(part);
      part = next_part(at);
    }
    if (part.begin == part.end) return;
    part.read_response = response_of_message();
    visit(part);
  }

 private:
  static constexpr uint32_t kHead = wire::kMpaLengthSize + wire::kDdpRsvdUlpAt + 1;

  /// Takes octets of one kind: of a marker, of the head, or of what follows. \return how many
  uint32_t step(base::ByteView octets) {
    started_ = true;
    const auto size = static_cast<uint32_t>(octets.size());
    uint32_t run = size;
    if (markers_ && position_ < wire::kMpaMarkerSize) {
      run = std::min(run, wire::kMpaMarkerSize - position_);
      return pass(run);
    }
    if (markers_) run = std::min(run, wire::kMpaMarkerInterval - position_);
    if (have_ != kHead) {
      head_[have_++] = octets[0];
      if (have_ == kHead) read_head();
      return pass(1);
    }
    run = std::min(run, left_);
    left_ -= run;
    return pass(run);
  }
  uint32_t pass(uint32_t octets) {
    position_ = (position_ + octets) % wire::kMpaMarkerInterval;
    return octets;
  }
  void read_head() {
    left_ = wire::mpa_fpdu_size(base::load_be16(head_.data())) - kHead;
    if (fpdu_ == 1 && opcode() == static_cast<uint8_t>(wire::RdmapOpcode::ReadResponse)) {
      ++read_responses_;
      is_response_ = true;
    }
  }
  [[nodiscard]] uint8_t opcode() const { return wire::rdmap_opcode(head_[kHead - 1]); }
  [[nodiscard]] bool is_whole() const { return have_ == kHead && left_ == 0; }
  [[nodiscard]] uint32_t response_of_message() const { return is_response_ ? read_responses_ : 0; }
  [[nodiscard]] FpduPart next_part(uint32_t at) const {
    return {.begin = at, .end = at, .message = message_, .fpdu = fpdu_, .begins = !started_};
  }
  void finish(FpduPart& part) {
    part.read_response = response_of_message();
    part.ends = true;
    ++fpdu_;
    if ((head_[wire::kMpaLengthSize] & wire::kDdpLastBit) != 0) {
      ++message_;
      fpdu_ = 1;
      is_response_ = false;
    }
    have_ = 0;
    started_ = false;
  }

  bool markers_ = false;
  uint32_t position_ = 0;  // of the next octet, modulo the distance of markers
  uint32_t message_ = 1;   // the next FPDU, or the one begun
  uint32_t fpdu_ = 1;
  uint32_t read_responses_ = 0;  // begun so far
  bool is_response_ = false;     // the message is one
  bool started_ = false;         // an octet of the FPDU, or of a marker in front of it, has come
  std::array<uint8_t, kHead> head_{};  // ULPDU_Length, DDP control, RDMAP control
  uint32_t have_ = 0;                  // octets of the head that have come
  uint32_t left_ = 0;                  // octets of the FPDU behind its head, markers left out
};

}  // namespace rnic::faults
