/// \file
/// Records: the units that a user gives to its stream, and that the stream acknowledges.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::llp {

/// The upper layer's name for a record, kept by the transport until the record is acknowledged and
/// handed back for rebuilding. Its meaning is the upper layer's own.
struct RecordTag {
  uint64_t a = 0;
  uint64_t b = 0;
  friend constexpr bool operator==(const RecordTag&, const RecordTag&) = default;
};

/// A record on its way, as a transport keeps it.
struct SentRecord {
  uint64_t offset = 0;
  RecordTag tag;
  uint32_t length = 0;  ///< > 0

  [[nodiscard]] uint64_t end() const { return offset + length; }
};

/// Successive records in the memory of the transport; valid during the call only.
class RecordRun {
 public:
  /// \param count > 0. \param stride octets from one record to the next
  RecordRun(const SentRecord& first, uint32_t count, uint32_t stride)
      : first_(reinterpret_cast<const char*>(&first)), count_(count), stride_(stride) {}

  [[nodiscard]] uint32_t size() const { return count_; }
  [[nodiscard]] const SentRecord& operator[](uint32_t i) const {
    return *reinterpret_cast<const SentRecord*>(first_ + size_t{i} * stride_);
  }

 private:
  const char* first_;
  uint32_t count_;
  uint32_t stride_;
};

/// The record that pull() wrote.
struct Pulled {
  uint32_t length = 0;  ///< octets appended to the frame; 0: nothing to send now
  bool push = false;    ///< last record of a message: the segment carries PSH
  bool atomic = false;  ///< an FPDU: keep it whole; false for streaming octets
  bool more = true;     ///< false: another call gives nothing before Stream::ready() is called
  RecordTag tag;        // last: GCC 12 copies padding behind it by a read that waits for two
                        // writes
};

}  // namespace rnic::llp
