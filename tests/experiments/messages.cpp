#include "messages.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/endian.hpp"

namespace rnic::experiment {

namespace {

constexpr uint32_t kPeriod = 251;
constexpr uint8_t kTaggedControl = 0xc1;  // T, L, DV 1
constexpr uint8_t kWriteControl = 0x40;   // RV 1, RDMA Write

/// The payload's octet at tagged offset o is o mod 251.
base::ByteView pattern(uint64_t offset, uint32_t length) {
  static const std::vector<uint8_t> octets = [] {
    std::vector<uint8_t> all(65536 + kPeriod);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i % kPeriod);
    return all;
  }();
  return base::ByteView(octets).subspan(offset % kPeriod, length);
}

void write(uint64_t offset, uint32_t length, llp::UlpduWriter& out) {
  std::array<uint8_t, kTaggedHeader> header{kTaggedControl, kWriteControl};
  base::store_be32(header.data() + 2, 0x1234);
  base::store_be64(header.data() + 6, offset);
  const base::ByteView octets = pattern(offset, length);
  // A writer only reads its pieces.
  const base::ByteSpan piece(const_cast<uint8_t*>(octets.data()), octets.size());
  out.write(kTaggedHeader + length, header, {&piece, length != 0 ? size_t{1} : size_t{0}});
}

}  // namespace

llp::PulledUlpdu Source::pull_ulpdu(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                    base::Now) {
  if (limit_ != 0) max = std::min(max, limit_);
  if (given_ == wanted_ || max <= kTaggedHeader) return {};
  const auto left = static_cast<uint32_t>(size_ - given_ % size_);
  const uint32_t length = std::min(left, max - kTaggedHeader);
  if (whole_only && length < left) return {};
  write(given_, length, out);
  const llp::RecordTag tag{given_, length};
  given_ += length;
  return {kTaggedHeader + length, length == left, true, tag};
}

bool Source::rebuild_ulpdu(const llp::RecordTag& tag, llp::UlpduWriter& out) {
  write(tag.a, static_cast<uint32_t>(tag.b), out);
  return true;
}

llp::PlaceVerdict Sink::place_ulpdu(const llp::UlpduView& ulpdu, bool in_order, base::Now) {
  std::array<uint8_t, kTaggedHeader> header{};
  const bool whole = ulpdu.copy_prefix(header.data(), kTaggedHeader) == kTaggedHeader;
  const uint64_t offset = base::load_be64(header.data() + 6);
  bool right = whole && header[0] == kTaggedControl && header[1] == kWriteControl;
  uint32_t at = 0;  // of the ULPDU
  for (const base::ByteView piece : ulpdu.pieces) {
    const uint32_t skip =
        at < kTaggedHeader
            ? std::min<uint32_t>(kTaggedHeader - at, static_cast<uint32_t>(piece.size()))
            : 0;
    const auto length = static_cast<uint32_t>(piece.size()) - skip;
    if (length != 0) {
      const base::ByteView wanted = pattern(offset + at + skip - kTaggedHeader, length);
      right = right && std::memcmp(wanted.data(), piece.data() + skip, length) == 0;
    }
    at += static_cast<uint32_t>(piece.size());
  }
  if (!right) ++wrong_;
  placed_ += ulpdu.length - kTaggedHeader;
  if (!in_order) early_ += ulpdu.length - kTaggedHeader;
  return llp::PlaceVerdict::Placed;
}

}  // namespace rnic::experiment
