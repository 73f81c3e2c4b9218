/// \file
/// One end with a registered buffer: the first half goes out, the second comes in. And with a word
/// that atomics of the peer may work on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "workload/workload.hpp"

namespace rnic::ping {

/// The word of the atomics holds this when a connection begins; each draws its operands from it.
inline constexpr workload::Pattern kWordPattern{9, 0};

class Station {
 public:
  /// \param size octets of the longest message. No page of the buffer is touched before a message
  /// needs it.
  Status open(Device device, uint32_t size);

  Status post_receive();
  /// Sends `length` octets from `offset` of the buffer.
  Status post_send(uint64_t offset, uint32_t length);

  [[nodiscard]] std::span<uint8_t> out() const { return buffer_.octets().first(size_); }
  [[nodiscard]] std::span<uint8_t> in() const { return buffer_.octets().subspan(size_, size_); }
  [[nodiscard]] workload::Offer word() const {
    return {word_region_.stag(), word_region_.address(), word_region_.length()};
  }
  [[nodiscard]] workload::End& end() { return *end_; }

 private:
  uint32_t size_ = 0;
  std::unique_ptr<workload::End> end_;
  workload::Buffer buffer_;
  MemoryRegion region_;
  workload::Buffer word_;
  MemoryRegion word_region_;
};

}  // namespace rnic::ping
