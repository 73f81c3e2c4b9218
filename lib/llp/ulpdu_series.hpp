/// \file
/// What is told of a ULPDU that goes down, and ULPDUs that differ in a count and in their payload.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/endian.hpp"
#include "llp/record.hpp"

namespace rnic::llp {

/// The ULPDU that pull_ulpdu() wrote.
struct PulledUlpdu {
  uint32_t length = 0;  ///< octets of the ULPDU; 0: nothing to send (a ULPDU is never empty)
  bool last = false;    ///< last ULPDU of a DDP message
  bool more = true;     ///< false: another call gives nothing before Framing::ready() is called
  RecordTag tag;        // last, so that there is no padding behind it, as in Pulled
};

/// Successive ULPDUs of one message that have one length and are not its last: their payloads lie
/// one behind the other in memory. The last octets of their headers are a count in network order
/// (TO or MO), which each payload advances.
class UlpduSeries {
 public:
  static constexpr uint32_t kHeaderMost = 18;

  /// \param header of the first one \param count_octets of it are the count: 8 or 4
  /// \param payload of the first one \param tag of the first one, which is another one's by `step`
  /// in RecordTag::b
  UlpduSeries(base::ByteView header, uint32_t count_octets, base::ByteSpan payload,
              const RecordTag& tag, uint64_t step)
      : header_size_(static_cast<uint32_t>(header.size())),
        wide_(count_octets == 8),
        payload_(payload),
        tag_(tag),
        step_(step) {
    RNIC_DCHECK(header.size() <= kHeaderMost && header.size() >= count_octets);
    std::memcpy(header_.data(), header.data(), header.size());
    count_ = wide_ ? base::load_be64(place()) : base::load_be32(place());
  }

  /// That of the next ULPDU; the memory is the same for each.
  [[nodiscard]] base::ByteView header() {
    if (wide_) {
      base::store_be64(place(), count_);
    } else {
      base::store_be32(place(), static_cast<uint32_t>(count_));
    }
    return {header_.data(), header_size_};
  }
  [[nodiscard]] uint32_t header_size() const { return header_size_; }
  /// The count of the next ULPDU, of which its header has the low octets.
  [[nodiscard]] uint64_t count() const { return count_; }
  /// 8 or 4.
  [[nodiscard]] uint32_t count_octets() const { return wide_ ? 8 : 4; }
  [[nodiscard]] base::ByteSpan payload() const { return payload_; }
  /// Sets what is told of the next ULPDU. Each member by itself: GCC 12 makes a whole one on the
  /// stack in parts, and waits for these when it copies it.
  void tell(PulledUlpdu& ulpdu) const {
    ulpdu.length = header_size_ + static_cast<uint32_t>(payload_.size());
    ulpdu.last = false;
    ulpdu.tag.a = tag_.a;
    ulpdu.tag.b = tag_.b;
    ulpdu.more = true;
  }
  /// The next one is that behind it.
  void advance() {
    count_ += payload_.size();
    payload_ = {payload_.data() + payload_.size(), payload_.size()};
    tag_.b += step_;
  }

 private:
  [[nodiscard]] uint8_t* place() { return header_.data() + header_size_ - count_octets(); }

  std::array<uint8_t, kHeaderMost> header_;
  uint32_t header_size_;
  bool wide_;  // the count has 8 octets
  uint64_t count_ = 0;
  base::ByteSpan payload_;
  RecordTag tag_;
  uint64_t step_;
};

}  // namespace rnic::llp
