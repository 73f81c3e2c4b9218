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

namespace rnic::wire::terminate {

// Figure 8: Layer 4 bits, EType 4 bits, Error Code 8 bits, M, D, R, 13 reserved bits.
inline constexpr uint32_t kLayerTypeOffset = 0;
inline constexpr uint32_t kCodeOffset = 1;
inline constexpr uint32_t kFlagsOffset = 2;
inline constexpr uint32_t kControlSize = 4;
inline constexpr uint32_t kSegmentLengthSize = 2;
inline constexpr uint8_t kM = 0x80;
inline constexpr uint8_t kD = 0x40;
inline constexpr uint8_t kR = 0x20;

/// The longest Terminate header: untagged DDP header and Read Request header attached.
inline constexpr uint32_t kSizeMax =
    kControlSize + kSegmentLengthSize + ddp::kUntaggedSize + rdmap::kReadRequestSize;

struct Terminate {
  uint8_t layer = 0;
  uint8_t type = 0;
  uint8_t code = 0;
  bool length_valid = false;  ///< M
  uint16_t segment_length = 0;
  uint8_t ddp_header_size = 0;  ///< 0: D clear; else 14 or 18
  std::array<uint8_t, ddp::kHeaderMax> ddp_header{};
  bool has_rdma_header = false;  ///< R
  std::array<uint8_t, rdmap::kReadRequestSize> rdma_header{};
  bool exact = false;  ///< parse: nothing followed what the flags announce
};

/// How the control word's first and third octets are read.
enum class BitOrder : uint8_t {
  Rfc,  ///< RFC 5040 figure 8
  Siw,  ///< Linux siw: layer in the low nibble, type in the high one, M, D, R in bits 0, 1, 2
};

/// Nothing when `in` is shorter than its flags say. Reserved bits are ignored.
[[nodiscard]] inline std::optional<Terminate> parse(base::ByteView in, BitOrder order) {
  if (in.size() < kControlSize) return std::nullopt;
  const bool rfc = order == BitOrder::Rfc;
  const uint8_t first = in[kLayerTypeOffset];
  const uint8_t flags = in[kFlagsOffset];
  Terminate t;
  t.layer = rfc ? first >> 4 : first & 0x0f;
  t.type = rfc ? first & 0x0f : first >> 4;
  t.code = in[kCodeOffset];
  t.length_valid = (flags & (rfc ? kM : 0x01)) != 0;
  const bool d = (flags & (rfc ? kD : 0x02)) != 0;
  t.has_rdma_header = (flags & (rfc ? kR : 0x04)) != 0;
  base::ByteView rest = in.subspan(kControlSize);
  if (d) {
    if (rest.size() < kSegmentLengthSize + 1) return std::nullopt;
    t.segment_length = base::load_be16(rest.data());
    rest = rest.subspan(kSegmentLengthSize);
    t.ddp_header_size = static_cast<uint8_t>(ddp::header_size(rest[0]));
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

/// Writes at most kSizeMax octets; \return how many. Always RFC 5040's order of bits.
inline uint32_t emit(const Terminate& t, uint8_t* out) {
  const bool d = t.ddp_header_size != 0;
  out[kLayerTypeOffset] = static_cast<uint8_t>(t.layer << 4 | (t.type & 0x0f));
  out[kCodeOffset] = t.code;
  out[kFlagsOffset] =
      static_cast<uint8_t>((t.length_valid ? kM : 0) | (d ? kD : 0) | (t.has_rdma_header ? kR : 0));
  out[kFlagsOffset + 1] = 0;
  uint8_t* at = out + kControlSize;
  if (d) {
    base::store_be16(at, t.segment_length);
    at = std::copy_n(t.ddp_header.begin(), t.ddp_header_size, at + kSegmentLengthSize);
  }
  if (t.has_rdma_header) at = std::copy(t.rdma_header.begin(), t.rdma_header.end(), at);
  return static_cast<uint32_t>(at - out);
}

}  // namespace rnic::wire::terminate
