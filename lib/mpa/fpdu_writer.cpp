#include "mpa/fpdu_writer.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/endian.hpp"
#include "crc/crc.hpp"

namespace rnic::mpa {
namespace {

// A piece of so many octets is copied and summed in one pass. For a shorter one a second call of
// the CRC's kernel would cost more than the second look at its octets.
constexpr uint32_t kFused = 256;

}  // namespace

void FpduWriter::write(uint32_t ulpdu_length, base::ByteView header,
                       std::span<const base::ByteSpan> payload) {
  RNIC_CHECK(at_ == nullptr && ulpdu_length <= max_);
  uint32_t size = wire::mpa_fpdu_size(ulpdu_length);
  if (grid_.on()) [[unlikely]] {
    span_ = fpdu_span(grid_, offset_, ulpdu_length);
    size = span_.size();
  }
  RNIC_CHECK(size <= out_.room_left());
  at_ = summed_ = out_.append(size);
  to_marker_ = grid_.on() ? grid_.distance(offset_) : UINT32_MAX;
  write_due_marker();
  base::store_be16(at_, static_cast<uint16_t>(ulpdu_length));
  at_ += wire::kMpaLengthSize;
  to_marker_ -= wire::kMpaLengthSize;
  if (grid_.on()) [[unlikely]] {
    put_between_markers(header, payload, ulpdu_length);
  } else {
    put(header, payload, ulpdu_length);
  }
  finish(wire::mpa_pad(ulpdu_length));
}

/// \param left octets of all of these
[[gnu::always_inline]] inline void FpduWriter::put(base::ByteView header,
                                                   std::span<const base::ByteSpan> payload,
                                                   size_t left) {
  RNIC_CHECK(header.size() <= left);
  left -= header.size();
  uint8_t* at = at_;  // a copy, since octets that are written might be those of the member
  std::memcpy(at, header.data(), header.size());
  at += header.size();
  for (const base::ByteSpan piece : payload) {
    const size_t n = piece.size();
    RNIC_CHECK(n <= left);
    left -= n;
    if (n >= kFused && crc_on_) {
      crc_ = crc::update(crc_, summed_, static_cast<size_t>(at - summed_));
      crc_ = crc::copy(crc_, at, piece.data(), n);
      summed_ = at + n;
    } else {
      std::memcpy(at, piece.data(), n);
    }
    at += n;
  }
  RNIC_CHECK(left == 0);
  at_ = at;
}

void FpduWriter::put_between_markers(base::ByteView header,
                                     std::span<const base::ByteSpan> payload, size_t left) {
  RNIC_CHECK(header.size() <= left);
  left -= header.size();
  put_between_markers(header.data(), static_cast<uint32_t>(header.size()));
  for (const base::ByteSpan piece : payload) {
    RNIC_CHECK(piece.size() <= left);
    left -= piece.size();
    put_between_markers(piece.data(), static_cast<uint32_t>(piece.size()));
  }
  RNIC_CHECK(left == 0);
}

/// Only copies: the runs between markers are short, and finish() sums all of them at once.
void FpduWriter::put_between_markers(const uint8_t* src, uint32_t n) {
  while (n != 0) {
    write_due_marker();
    const uint32_t run = std::min(n, to_marker_);
    std::memcpy(at_, src, run);
    at_ += run;
    src += run;
    n -= run;
    to_marker_ -= run;
  }
}

[[gnu::always_inline]] inline void FpduWriter::finish(uint32_t pad) {
  if (pad != 0) {
    write_due_marker();
    std::memset(at_, 0, pad);
    at_ += pad;
    to_marker_ -= pad;
  }
  write_due_marker();  // between pad and CRC: covered by this CRC (RFC 5044 s.4.4, rule 1)
  uint32_t value = 0;
  if (crc_on_) {
    if (at_ != summed_) crc_ = crc::update(crc_, summed_, static_cast<size_t>(at_ - summed_));
    value = crc::finish(crc_);
  }
  base::store_le32(at_, value);
}

void FpduWriter::write_due_marker() {
  if (to_marker_ != 0) return;
  // RFC 5044 s.4.2: FPDUPTR counts the octets from ULPDU_Length to the marker; it is 0 for a marker
  // between FPDUs.
  const uint64_t here = span_.end - (out_.written().data() + out_.length() - at_);
  const uint32_t fpduptr = here < span_.header ? 0 : static_cast<uint32_t>(here - span_.header);
  wire::store_mpa_marker(at_, fpduptr);
  at_ += wire::kMpaMarkerSize;
  to_marker_ = wire::kMpaMarkerInterval - wire::kMpaMarkerSize;
  ++markers_;
}

}  // namespace rnic::mpa
