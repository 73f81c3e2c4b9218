/// \file
/// The Terminate header on the wire (RFC 5040 section 4.8).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"

namespace rnic::wire {

// Figure 8: Layer 4 bits, EType 4 bits, Error Code 8 bits, M, D, R, 13 reserved bits.
inline constexpr uint32_t kTerminateLayerTypeAt = 0;
inline constexpr uint32_t kTerminateCodeAt = 1;
inline constexpr uint32_t kTerminateFlagsAt = 2;
inline constexpr uint32_t kTerminateControlSize = 4;
inline constexpr uint32_t kTerminateSegmentLengthSize = 2;
inline constexpr uint8_t kTerminateM = 0x80;
inline constexpr uint8_t kTerminateD = 0x40;
inline constexpr uint8_t kTerminateR = 0x20;

/// The longest Terminate header: untagged DDP header and Read Request header attached.
inline constexpr uint32_t kTerminateSizeMax =
    kTerminateControlSize + kTerminateSegmentLengthSize + kDdpUntaggedSize + kRdmapReadRequestSize;

struct Terminate {
  uint8_t layer = 0;
  uint8_t type = 0;
  uint8_t code = 0;
  bool length_valid = false;  ///< M
  uint16_t segment_length = 0;
  uint8_t ddp_header_size = 0;  ///< 0: D clear; else 14 or 18
  std::array<uint8_t, kDdpHeaderMax> ddp_header{};
  bool has_rdma_header = false;  ///< R
  std::array<uint8_t, kRdmapReadRequestSize> rdma_header{};
  bool exact = false;  ///< set by parse_terminate(): no octets follow those that the flags announce
};

/// The order of the bits in the first and third octets of the control word.
enum class TerminateBitOrder : uint8_t {
  Rfc,  ///< RFC 5040 figure 8
  Siw,  ///< Linux siw: layer in the low nibble, type in the high one, M, D, R in bits 0, 1, 2
};

/// Empty when `in` is shorter than its flags say. Reserved bits are ignored.
[[nodiscard]] inline std::optional<Terminate> parse_terminate(base::ByteView in,
                                                              TerminateBitOrder order) {
  if (in.size() < kTerminateControlSize) return std::nullopt;
  const bool rfc = order == TerminateBitOrder::Rfc;
  const uint8_t first = in[kTerminateLayerTypeAt];
  const uint8_t flags = in[kTerminateFlagsAt];
  Terminate t;
  t.layer = rfc ? first >> 4 : first & 0x0f;
  t.type = rfc ? first & 0x0f : first >> 4;
  t.code = in[kTerminateCodeAt];
  t.length_valid = (flags & (rfc ? kTerminateM : 0x01)) != 0;
  const bool d = (flags & (rfc ? kTerminateD : 0x02)) != 0;
  t.has_rdma_header = (flags & (rfc ? kTerminateR : 0x04)) != 0;
  base::ByteView rest = in.subspan(kTerminateControlSize);
  if (d) {
    if (rest.size() < kTerminateSegmentLengthSize + 1) return std::nullopt;
    t.segment_length = base::load_be16(rest.data());
    rest = rest.subspan(kTerminateSegmentLengthSize);
    t.ddp_header_size = static_cast<uint8_t>(ddp_header_size(rest[0]));
    if (rest.size() < t.ddp_header_size) return std::nullopt;
    std::copy_n(rest.begin(), t.ddp_header_size, t.ddp_header.begin());
    rest = rest.subspan(t.ddp_header_size);
  }
  if (t.has_rdma_header) {
    if (rest.size() < t.rdma_header.size()) return std::nullopt;
    std::copy_n(rest.begin(), t.rdma_header.size(), t.rdma_header.begin());
    rest = rest.subspan(t.rdma_header.size());
  }
  t.exact = rest.empty();
  return t;
}

/// Writes at most kTerminateSizeMax octets, always in the bit order of RFC 5040. \return how many
inline uint32_t write_terminate(uint8_t* p, const Terminate& t) {
  const bool d = t.ddp_header_size != 0;
  p[kTerminateLayerTypeAt] = static_cast<uint8_t>(t.layer << 4 | (t.type & 0x0f));
  p[kTerminateCodeAt] = t.code;
  p[kTerminateFlagsAt] =
      static_cast<uint8_t>((t.length_valid ? kTerminateM : 0) | (d ? kTerminateD : 0) |
                           (t.has_rdma_header ? kTerminateR : 0));
  p[kTerminateFlagsAt + 1] = 0;
  uint8_t* at = p + kTerminateControlSize;
  if (d) {
    base::store_be16(at, t.segment_length);
    at = std::copy_n(t.ddp_header.begin(), t.ddp_header_size, at + kTerminateSegmentLengthSize);
  }
  if (t.has_rdma_header) at = std::copy(t.rdma_header.begin(), t.rdma_header.end(), at);
  return static_cast<uint32_t>(at - p);
}

}  // namespace rnic::wire
