/// \file
/// SegmentRun: the segments of a burst, from the room for the first to the way out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/check.hpp"
#include "llp/record.hpp"
#include "tcp/segment_template.hpp"
#include "tcp/tcp.hpp"

namespace rnic::tcp {

/// Room is taken for several segments at once, and those that are complete leave together, since a
/// way through all layers below costs more than what has to be done for one more segment on it. It
/// lives in the memory of the call that sends the burst.
class SegmentRun {
 public:
  /// \param most segments that the burst may have, at least 1
  explicit SegmentRun(uint32_t most) : left_(most) {}

  /// There is room for a segment.
  [[nodiscard]] bool has_room() const { return complete_ != room_.count; }
  /// Segments that were completed.
  [[nodiscard]] uint32_t segments() const { return segments_; }
  /// The burst may have another segment.
  [[nodiscard]] bool goes_on() const { return complete_ != left_; }
  /// The room for the next segment.
  [[nodiscard]] TxSlot& slot() { return room_.common; }
  /// The headers of the next segment, and of those behind it that there is room for, `most` at
  /// most.
  [[nodiscard]] std::span<uint8_t* const> headers(uint32_t most) const {
    return std::span(room_.tcp).subspan(complete_, std::min(most, room_.count - complete_));
  }
  /// The end of the segment that was completed last. One was, since fill().
  [[nodiscard]] uint8_t last_octet() const {
    RNIC_DCHECK(complete_ != 0);
    return room_.tcp[complete_ - 1][room_.lengths[complete_ - 1] - 1];
  }
  /// The header of the burst's first segment is known, from which the others are made.
  [[nodiscard]] bool knows_header() const { return !header_.empty(); }
  /// The next segment is the burst's last one.
  [[nodiscard]] bool is_at_last() const { return complete_ + 1 == left_; }
  /// The header of the next segment was written, `length` octets.
  void learn_header(uint32_t length) { header_.learn(room_.common.tcp, length); }
  /// Writes the header of the next segment. knows_header().
  void write_header(base::Seq32 sequence, uint8_t flags) {
    header_.write(room_.common.tcp, sequence, flags);
  }

  /// Takes room for further segments. !has_room(), and take() has been called.
  template <typename Begin>
  [[nodiscard]] bool fill(Begin&& begin) {
    RNIC_DCHECK(room_.count == 0 && left_ != 0);
    if (!begin(left_, room_)) return false;
    RNIC_DCHECK(room_.count != 0 && room_.count <= left_);
    return true;
  }
  /// The next segment is complete: `length` octets of header and payload.
  void complete(uint32_t length) {
    room_.lengths[complete_++] = length;
    ++segments_;
    if (has_room()) room_.common.tcp = room_.tcp[complete_];
  }
  /// Completes a segment for each of the records, which stand behind the places of the headers.
  /// knows_header(). \return octets of the records
  uint32_t repeat(std::span<const llp::Pulled> records, base::Seq32 sequence, uint8_t flags) {
    RNIC_DCHECK(knows_header() && complete_ + records.size() <= room_.count);
    // A copy, which no octet that is written can change, so that it stays in registers.
    const SegmentTemplate header = header_;
    uint32_t octets = 0;
    uint8_t* const* place = room_.tcp.data() + complete_;
    uint32_t* length = room_.lengths.data() + complete_;
    for (const llp::Pulled& record : records) {
      header.write(*place++, sequence + octets, flags);
      *length++ = header.length() + record.length;
      octets += record.length;
    }
    complete_ += static_cast<uint32_t>(records.size());
    segments_ += static_cast<uint32_t>(records.size());
    if (has_room()) room_.common.tcp = room_.tcp[complete_];
    return octets;
  }
  /// Hands over all room: the complete segments, and what was not used.
  template <typename Send>
  void take(Send&& send) {
    left_ -= complete_;
    send(room_, complete_);
    complete_ = 0;
    RNIC_DCHECK(room_.count == 0);
  }

 private:
  uint32_t left_;          // segments of the burst that no room was used for
  uint32_t complete_ = 0;  // Invariant: <= room_.count
  uint32_t segments_ = 0;
  SegmentTemplate header_;
  TxRun room_;
};

}  // namespace rnic::tcp
