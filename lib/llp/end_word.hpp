/// \file
/// How a stream ended, for the application side of a user with two threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/check.hpp"
#include "llp/stream.hpp"

namespace rnic::llp {

/// The owner's thread writes the end, once, and any thread reads it. A thread that sees the end
/// also sees everything that the owner wrote before setting it.
class EndWord {
 public:
  void set(StreamEnd how) {
    RNIC_CHECK(!get());
    word_.store(static_cast<uint8_t>(how), std::memory_order_release);
  }
  /// nullopt: the stream has not ended.
  [[nodiscard]] std::optional<StreamEnd> get() const {
    const uint8_t word = word_.load(std::memory_order_acquire);
    if (word == kNone) return std::nullopt;
    return static_cast<StreamEnd>(word);
  }

 private:
  static constexpr uint8_t kNone = 0xff;

  std::atomic<uint8_t> word_{kNone};
};

}  // namespace rnic::llp
