/// \file
/// TCP options: MSS (RFC 9293 s.3.2), window scale and timestamps (RFC 7323), SACK (RFC 2018).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "base/seq32.hpp"

namespace rnic::wire {

namespace tcp_option {
inline constexpr uint8_t kEnd = 0;
inline constexpr uint8_t kNop = 1;
inline constexpr uint8_t kMss = 2;
inline constexpr uint8_t kWindowScale = 3;
inline constexpr uint8_t kSackPermitted = 4;
inline constexpr uint8_t kSack = 5;
inline constexpr uint8_t kTimestamps = 8;
inline constexpr uint8_t kMssLength = 4;
inline constexpr uint8_t kWindowScaleLength = 3;
inline constexpr uint8_t kSackPermittedLength = 2;
inline constexpr uint8_t kTimestampsLength = 10;
}  // namespace tcp_option

/// Octets of the timestamps option as each segment carries it: NOP NOP TSopt.
inline constexpr uint32_t kTcpTimestampsPadded = 12;

struct SackBlock {
  base::Seq32 left;
  base::Seq32 right;
};

struct TcpTimestamps {
  uint32_t value = 0;
  uint32_t echo = 0;
};

/// The values of a segment's options. Unknown options are skipped.
struct TcpOptions {
  std::optional<uint16_t> mss;
  std::optional<uint8_t> window_scale;
  std::optional<TcpTimestamps> timestamps;
  bool sack_permitted = false;
  std::array<SackBlock, 4> sack{};
  uint32_t sack_count = 0;

  /// Parses the options of a header. False: the length of an option is 0 or 1, or reaches beyond
  /// the header. A known option of a wrong length is skipped.
  [[nodiscard]] bool parse(base::ByteView in) {
    if (in.size() == kTcpTimestampsPadded && base::load_be32(in.data()) == 0x0101080a) [[likely]] {
      timestamps = TcpTimestamps{base::load_be32(&in[4]), base::load_be32(&in[8])};
      return true;
    }
    size_t at = 0;
    while (at < in.size()) {
      const uint8_t kind = in[at];
      if (kind == tcp_option::kEnd) return true;
      if (kind == tcp_option::kNop) {
        ++at;
        continue;
      }
      if (at + 2 > in.size()) return false;
      const uint8_t length = in[at + 1];
      if (length < 2 || at + length > in.size()) return false;
      take(kind, in.subspan(at + 2, length - 2u));
      at += length;
    }
    return true;
  }

 private:
  void take(uint8_t kind, base::ByteView body) {
    switch (kind) {
      case tcp_option::kMss:
        if (body.size() == 2) mss = base::load_be16(body.data());
        break;
      case tcp_option::kWindowScale:
        if (body.size() == 1) window_scale = body[0];
        break;
      case tcp_option::kSackPermitted:
        if (body.empty()) sack_permitted = true;
        break;
      case tcp_option::kTimestamps:
        if (body.size() == 8) {
          timestamps = TcpTimestamps{base::load_be32(&body[0]), base::load_be32(&body[4])};
        }
        break;
      case tcp_option::kSack:
        if (body.empty() || body.size() % 8 != 0 || body.size() > 32) break;
        sack_count = static_cast<uint32_t>(body.size() / 8);
        for (uint32_t i = 0; i < sack_count; ++i) {
          sack[i].left = base::Seq32(base::load_be32(&body[i * 8]));
          sack[i].right = base::Seq32(base::load_be32(&body[i * 8 + 4]));
        }
        break;
      default: break;
    }
  }
};

/// Appends options behind a header's fixed part. `out` has room for 40 octets.
class TcpOptionWriter {
 public:
  explicit TcpOptionWriter(uint8_t* out) : out_(out) {}

  void mss(uint16_t value) {
    head(tcp_option::kMss, tcp_option::kMssLength);
    base::store_be16(out_ + length_, value);
    length_ += 2;
  }
  void window_scale(uint8_t shift) {
    nop();
    head(tcp_option::kWindowScale, tcp_option::kWindowScaleLength);
    out_[length_++] = shift;
  }
  /// Appends two octets. The caller puts two NOPs before them unless timestamps follow.
  void sack_permitted() { head(tcp_option::kSackPermitted, tcp_option::kSackPermittedLength); }
  void timestamps(TcpTimestamps stamps) {
    head(tcp_option::kTimestamps, tcp_option::kTimestampsLength);
    base::store_be32(out_ + length_, stamps.value);
    base::store_be32(out_ + length_ + 4, stamps.echo);
    length_ += 8;
  }
  void sack(const SackBlock* blocks, uint32_t count) {
    nop();
    nop();
    head(tcp_option::kSack, static_cast<uint8_t>(2 + 8 * count));
    for (uint32_t i = 0; i < count; ++i) {
      base::store_be32(out_ + length_, blocks[i].left.value);
      base::store_be32(out_ + length_ + 4, blocks[i].right.value);
      length_ += 8;
    }
  }
  void nop() { out_[length_++] = tcp_option::kNop; }
  /// Pads with end-of-list (zeros) to a multiple of 4 and \return the options' length.
  uint32_t finish() {
    while (length_ % 4 != 0) out_[length_++] = tcp_option::kEnd;
    return length_;
  }

 private:
  void head(uint8_t kind, uint8_t length) {
    out_[length_++] = kind;
    out_[length_++] = length;
  }

  uint8_t* out_;
  uint32_t length_ = 0;
};

}  // namespace rnic::wire
