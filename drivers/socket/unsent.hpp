/// \file
/// Unsent: the octets between the user of a connection and the system.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "llp/stream.hpp"

namespace rnic::socket {

/// The octets that were pulled and that the system has not taken yet. They are taken from the user
/// at once, and no more are pulled until the system has them: a record is written once and never
/// again.
class Unsent {
 public:
  static constexpr uint32_t kMaxRecords = 256;
  static constexpr uint32_t kMaxWrites = 64;

  struct Record {
    llp::RecordTag tag;
    uint64_t end = 0;  ///< stream offset
    uint32_t length = 0;
  };
  /// Octets that one call gives to the system; they begin where a segment is to begin.
  struct Write {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  explicit Unsent(uint32_t octets) : octets_(new uint8_t[octets]), size_(octets) {
    records_.reserve(kMaxRecords);
  }

  [[nodiscard]] bool empty() const { return taken_ == end_; }
  [[nodiscard]] uint32_t room() const { return size_ - end_; }
  [[nodiscard]] uint8_t* tail() { return octets_.get() + end_; }
  [[nodiscard]] bool takes_records() const { return records_.size() < kMaxRecords; }
  [[nodiscard]] bool takes_writes() const { return write_count_ < kMaxWrites; }

  /// The next octets of the stream.
  void add_record(const llp::RecordTag& tag, uint32_t length) {
    pulled_ += length;
    records_.push_back({tag, pulled_, length});
  }
  /// Stream offset behind the last octet pulled.
  [[nodiscard]] uint64_t pulled() const { return pulled_; }
  /// Adds the `n` octets at tail(). \param joined they continue the segment of those before
  void add_octets(uint32_t n, bool joined);

  /// The writes that are left; the first one begins at its first octet not taken yet.
  [[nodiscard]] uint32_t writes(std::array<Write, kMaxWrites>& out) const;
  [[nodiscard]] const uint8_t* at(uint32_t position) const { return octets_.get() + position; }
  /// The system has taken `n` more octets.
  void taken(uint32_t n);
  /// The next record of which the system has every octet, or nullptr.
  const Record* release();

 private:
  std::unique_ptr<uint8_t[]> octets_;
  uint32_t size_;
  uint32_t taken_ = 0;
  uint32_t end_ = 0;
  std::vector<Record> records_;
  uint32_t released_ = 0;
  uint64_t pulled_ = 0;       // stream offset behind the last octet pulled
  uint64_t with_system_ = 0;  // stream offset behind the last octet that the system has
  std::array<Write, kMaxWrites> writes_{};
  uint32_t write_count_ = 0;
  uint32_t first_write_ = 0;
};

}  // namespace rnic::socket
