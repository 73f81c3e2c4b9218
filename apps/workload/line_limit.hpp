/// \file
/// Lines about what strangers do: some of each second, and how many were left out.
#pragma once

#include <cstdint>
#include <optional>

namespace rnic::workload {

class LineLimit {
 public:
  static constexpr uint32_t kPerSecond = 20;

  /// \param now_ns on a time line that begins at 0 or later
  /// \return how many were left out since the last line, when this one may be written
  std::optional<uint64_t> next(int64_t now_ns) {
    if (now_ns - second_ >= 1'000'000'000) {
      second_ = now_ns;
      written_ = 0;
    }
    if (written_ == kPerSecond) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    const uint64_t before = left_out_;
    left_out_ = 0;
    return before;
  }

 private:
  int64_t second_ = 0;
  uint32_t written_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace rnic::workload
