/// \file
/// A received segment: its parsing and the checks of its form.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/seq32.hpp"
#include "rnic/address.hpp"
#include "tcp/tcp.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

/// A parsed segment. Its payload refers to the packet and is valid during the call that brought the
/// packet.
struct Segment {
  Endpoint local;
  Endpoint remote;
  base::Seq32 seq;
  base::Seq32 ack;
  uint8_t flags = 0;
  uint8_t ecn = 0;  ///< the two bits of the IP header
  uint16_t window = 0;
  uint16_t urgent = 0;  ///< urgent pointer, when the flag is set
  base::ByteView payload;
  wire::TcpOptions options;

  [[nodiscard]] bool has(uint8_t flag) const { return (flags & flag) != 0; }
  /// SEG.LEN: octets of the payload, plus 1 each for SYN and FIN.
  [[nodiscard]] uint32_t length() const {
    return static_cast<uint32_t>(payload.size()) + (has(wire::tcp_flag::kSyn) ? 1 : 0) +
           (has(wire::tcp_flag::kFin) ? 1 : 0);
  }
};

/// An error in the form of a received segment.
enum class FormError : uint8_t { None, Malformed, Checksum };

/// Parses a segment. \param segment is complete only if the result is None
[[nodiscard]] FormError parse(const SegmentIn& in, Segment& segment);
/// \param tcp header and payload, from `source` to `destination`
[[nodiscard]] bool checksum_good(const IpAddress& source, const IpAddress& destination,
                                 base::ByteView tcp);

/// A part of the segment is in the receive window (RFC 9293 s.3.10.7.4, first step). \param begin
/// SEG.SEQ - RCV.NXT. \param length SEG.LEN. \param window RCV.WND
[[nodiscard]] bool in_window(int64_t begin, int64_t length, int64_t window);

}  // namespace rnic::tcp
