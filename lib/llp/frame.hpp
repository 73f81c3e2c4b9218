/// \file
/// The part of an outgoing frame that a record is written into.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "llp/record.hpp"

namespace rnic::llp {

/// The records that a user may give in one call of pull(): one behind the other into the segment
/// that the call is for, or one into each of several segments, the latter for one message only.
class FrameRow {
 public:
  static constexpr uint32_t kMost = 32;  ///< records

  /// \param headers where each segment begins, the first one being that of the Frame
  /// \param header octets in front of the payload \param spare where a record leaves so many octets
  /// of its segment, the next one goes there \param places records that there is room for
  FrameRow(std::span<uint8_t* const> headers, uint32_t header, uint32_t spare, uint32_t places)
      : headers_(headers), header_(header), spare_(spare), places_(std::min(places, kMost)) {}
  FrameRow(const FrameRow&) = delete;
  FrameRow& operator=(const FrameRow&) = delete;

  /// The records that others followed.
  [[nodiscard]] std::span<const Pulled> passed() const { return {passed_.data(), count_}; }
  /// Each of them is the only one of its segment; else all are in the first segment.
  [[nodiscard]] bool fills_segments() const { return segment_ != 0; }

  /// The record is complete, and another one follows it, `packs`: in the same segment. \return it
  /// may
  [[nodiscard]] bool pass(bool packs, const Pulled& record) {
    if (count_ + 1 >= places_) return false;
    if (packs) {
      if (segment_ != 0) return false;
    } else {
      if (record.push || segment_ != count_ || segment_ + 1 >= headers_.size()) return false;
      ++segment_;
    }
    // Member by member, as a copy of the whole would wait for its parts to be written.
    Pulled& kept = passed_[count_++];
    kept.length = record.length;
    kept.push = record.push;
    kept.atomic = record.atomic;
    kept.tag = record.tag;
    kept.more = record.more;
    return true;
  }
  /// The place of the next payload, where each record has its segment.
  [[nodiscard]] uint8_t* payload() const { return headers_[segment_] + header_; }
  /// A record that leaves so many octets of its segment lets another one follow it there.
  [[nodiscard]] bool packs(uint32_t octets) const { return octets >= spare_; }

 private:
  std::span<uint8_t* const> headers_;
  uint32_t header_;
  uint32_t spare_;
  uint32_t places_;
  uint32_t count_ = 0;    // Invariant: <= places_
  uint32_t segment_ = 0;  // Invariant: 0 or count_; below headers_.size()
  union {                 // so that nobody pays for clearing all of them
    std::array<Pulled, kMost> passed_;
  };
};

/// Writable room inside the frame being built. The octets of a record are appended in stream order
/// and go on the wire as they are.
class Frame {
 public:
  Frame(uint8_t* begin, uint32_t room, FrameRow* row = nullptr)
      : begin_(begin), room_(room), row_(row) {}

  /// Extends the record by n octets and returns where to write them. n <= room_left().
  uint8_t* append(uint32_t n) {
    RNIC_DCHECK(n <= room_left());
    uint8_t* at = begin_ + length_;
    length_ += n;
    return at;
  }

  /// Another record may go into the segment behind the one that was appended.
  [[nodiscard]] bool packs() const { return row_ != nullptr && row_->packs(room_left()); }
  /// The record that was appended is complete, and another one follows it: behind it, or in the
  /// next segment. False: it cannot, and the record is the last one of the call.
  /// \param packs packs() \param record as it would be returned by pull()
  [[nodiscard]] bool next(bool packs, const Pulled& record) {
    RNIC_DCHECK(record.length == length_ && packs == this->packs());
    if (row_ == nullptr || !row_->pass(packs, record)) return false;
    if (packs) {
      begin_ += length_;
      room_ -= length_;
    } else {
      begin_ = row_->payload();
    }
    length_ = 0;
    return true;
  }
  /// Lets next() say no from now on, for a user that looks at each record.
  void keep_to_one() { row_ = nullptr; }

  [[nodiscard]] uint32_t length() const { return length_; }
  [[nodiscard]] uint32_t room() const { return room_; }
  [[nodiscard]] uint32_t room_left() const { return room_ - length_; }
  [[nodiscard]] base::ByteView written() const { return {begin_, length_}; }

 private:
  uint8_t* begin_;
  uint32_t room_;
  uint32_t length_ = 0;  // Invariant: <= room_
  FrameRow* row_;        // nullptr: the user gives one record
};

}  // namespace rnic::llp
