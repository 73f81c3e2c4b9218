#include "mpa/fpdu_writer.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/endian.hpp"
#include "crc/crc.hpp"

namespace rnic::mpa {
namespace {

constexpr uint32_t kFused = 64;  // pieces from here on are copied and summed in one pass

}  // namespace

void FpduWriter::begin(uint32_t ulpdu_length) {
  RNIC_CHECK(!begun_ && ulpdu_length <= max_);
  span_ = fpdu_span(grid_, offset_, ulpdu_length);
  RNIC_CHECK(span_.size() <= out_.room_left());
  begun_ = true;
  left_ = ulpdu_length;
  at_ = summed_ = out_.append(span_.size());
  crc_ = crc::kInit;
  to_marker_ = grid_.on() ? grid_.distance(offset_) : UINT32_MAX;
  write_due_marker();
  base::store_be16(at_, static_cast<uint16_t>(ulpdu_length));
  at_ += wire::kMpaLengthSize;
  to_marker_ -= wire::kMpaLengthSize;
}

void FpduWriter::put(base::ByteView octets) {
  RNIC_CHECK(begun_ && octets.size() <= left_);
  left_ -= static_cast<uint32_t>(octets.size());
  const uint8_t* src = octets.data();
  auto n = static_cast<uint32_t>(octets.size());
  while (n != 0) {
    write_due_marker();
    const uint32_t run = std::min(n, to_marker_);
    if (crc_on_ && run >= kFused) {
      sum();
      crc_ = crc::copy(crc_, at_, src, run);
      summed_ = at_ + run;
    } else {
      std::memcpy(at_, src, run);
    }
    at_ += run;
    src += run;
    n -= run;
    to_marker_ -= run;
  }
}

bool FpduWriter::finish() {
  if (!begun_) return false;
  RNIC_CHECK(left_ == 0);
  const uint32_t pad = wire::mpa_pad(span_.ulpdu_length);
  if (pad != 0) {
    write_due_marker();
    std::memset(at_, 0, pad);
    at_ += pad;
    to_marker_ -= pad;
  }
  write_due_marker();  // between pad and CRC: covered by this CRC (RFC 5044 s.4.4, rule 1)
  uint32_t value = 0;
  if (crc_on_) {
    sum();
    value = crc::finish(crc_);
  }
  base::store_le32(at_, value);
  return true;
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

void FpduWriter::sum() {
  if (at_ == summed_) return;
  crc_ = crc::update(crc_, summed_, static_cast<size_t>(at_ - summed_));
  summed_ = at_;
}

}  // namespace rnic::mpa
