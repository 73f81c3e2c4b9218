/// \file
/// How the two directions of a framed stream are framed (draft-ietf-tsvwg-tcp-ulp-frame-00), and
/// how its frames tell their length.
#pragma once

#include <cstdint>
#include <span>

#include "rnic/transport.hpp"

namespace rnic {

/// The place of the length in a frame. The draft requires frames that describe themselves (s.1):
/// framing adds nothing that would separate packed frames, or the frames of a marked stream. By
/// default a frame begins with 16 bits, big-endian, that count the octets behind them.
struct FrameFormat {
  uint8_t length_at = 0;      ///< octets in front of the length field
  uint8_t length_octets = 2;  ///< 0..4, big-endian; 0: opaque frames
  uint16_t adds = 2;          ///< octets of the frame that the field does not count

  /// The format of frames with any content. Only Align without packing, Atomic and Plain take them.
  [[nodiscard]] static constexpr FrameFormat opaque() { return {0, 0, 0}; }

  [[nodiscard]] constexpr bool tells_length() const { return length_octets != 0; }
  /// Octets of a frame that have to be there before its length is known.
  [[nodiscard]] constexpr uint32_t head() const { return uint32_t{length_at} + length_octets; }
  /// Length of the frame that begins with these octets, of which there have to be head() at least.
  /// 0: there are fewer, or no frame begins so.
  [[nodiscard]] constexpr uint64_t length_of(std::span<const uint8_t> frame) const {
    if (frame.size() < head()) return 0;
    uint64_t value = 0;
    for (uint32_t i = length_at; i < head(); ++i) value = value << 8 | frame[i];
    return value + adds >= head() ? value + adds : 0;
  }
};

struct FramingOptions {
  /// Neither direction is framed yet.
  [[nodiscard]] static constexpr FramingOptions plain() {
    FramingOptions options;
    options.send_mode = FramedSendMode::Plain;
    options.receive_mode = FramedReceiveMode::Plain;
    return options;
  }

  FramedSendMode send_mode = FramedSendMode::Align;
  FramedReceiveMode receive_mode = FramedReceiveMode::Align;
  FrameFormat format;
  uint64_t send_key = 0;             ///< Align: 48 bits, not 0; the peer's receive_key
  uint64_t receive_key = 0;          ///< Align: 48 bits, not 0; the peer's send_key
  uint16_t send_interval = 2048;     ///< Markers: octets, from 16 on
  uint16_t receive_interval = 2048;  ///< Markers: octets, from 16 on
  uint32_t max_frame = 65528;        ///< Markers: longest frame sent and taken, octets
  bool packing = true;               ///< Align: several frames in a segment (appendix A.4)
  bool emergency = false;            ///< Align: 512 octets whatever EMSS is (appendix A.5)
  /// Have the next send() fail once with MessageSize when EMSS has grown (appendix A.2).
  bool refuse_on_growth = false;
  /// Align: this many successive pieces of segments without a whole framing header make
  /// is_middlebox_suspected() true; a segment with octets of two segments counts 64; 0: never
  uint32_t middlebox_limit = 4096;
};

}  // namespace rnic
