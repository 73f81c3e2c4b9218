#include "tuf/pdu_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"

namespace rnic::tuf {

void PduWriter::write(uint32_t ulpdu_length, base::ByteView header,
                      std::span<const base::ByteSpan> payload) {
  begin(ulpdu_length);
  put(header);
  for (const base::ByteSpan piece : payload) put(piece);
}

void PduWriter::begin(uint32_t ulpdu_length) {
  RNIC_CHECK(!begun_ && ulpdu_length <= max_);
  begun_ = true;
  left_ = ulpdu_length;
  const uint32_t content = header_ + ulpdu_length + (prefix_ ? kUlpduLengthSize : 0);
  end_ = grid_.end_of(offset_, content);
  RNIC_CHECK(end_ - offset_ <= out_.room_left());
  frame_ = out_.append(static_cast<uint32_t>(end_ - offset_));
  at_ = frame_ + header_;
  offset_ += header_;
  if (!prefix_) return;
  std::array<uint8_t, kUlpduLengthSize> length;
  base::store_be16(length.data(), static_cast<uint16_t>(ulpdu_length));
  copy(length.data(), kUlpduLengthSize);
}

void PduWriter::put(base::ByteView octets) {
  RNIC_CHECK(begun_ && octets.size() <= left_);
  left_ -= static_cast<uint32_t>(octets.size());
  copy(octets.data(), static_cast<uint32_t>(octets.size()));
}

void PduWriter::copy(const uint8_t* src, uint32_t n) {
  while (n != 0) {
    write_due_marker();
    const auto run = static_cast<uint32_t>(std::min<uint64_t>(grid_.next(offset_) - offset_, n));
    std::memcpy(at_, src, run);
    content_ = true;
    at_ += run;
    offset_ += run;
    src += run;
    n -= run;
  }
}

void PduWriter::write_due_marker() {
  if (!grid_.at(offset_)) return;
  wire::store_tuf_marker(at_, content_ ? next_pdu_offset(grid_, offset_, end_) : 0);
  at_ += wire::kTufMarkerSize;
  offset_ += wire::kTufMarkerSize;
  ++markers_;
}

}  // namespace rnic::tuf
