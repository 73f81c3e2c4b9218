/// \file
/// The floor of a round trip between two cores: what a cache line takes, and what a message takes
/// that is copied and checked and has no protocol.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "crc/crc.hpp"

namespace rnic::perf {

/// One thread calls the round trips, another one answer_turn() meanwhile.
class CoreFloor {
 public:
  static constexpr uint32_t kMessage = 64;  ///< octets

  /// Nanoseconds of each of `count` round trips of a cache line.
  std::vector<int64_t> line_trips(uint32_t count);
  /// Nanoseconds of as many round trips of a message through a pair of rings: it is copied there
  /// and back, and its CRC32C is made and checked at both ends. Empty: a CRC was wrong.
  std::vector<int64_t> message_trips(uint32_t count);
  /// Nanoseconds of a piece of work that keeps all units of this core busy, at best. Where another
  /// thread that is at work makes it slower, both are threads of one core.
  [[nodiscard]] static int64_t work_ns();
  /// Answers what has come.
  void answer_turn();

 private:
  static constexpr uint32_t kPlaces = 64;

  struct alignas(128) Line {
    std::atomic<uint64_t> value{0};
  };
  struct alignas(128) Place {
    std::atomic<uint64_t> sequence{0};
    uint32_t crc = 0;
    std::array<uint8_t, kMessage> octets{};
  };

  void put(Place& place, uint64_t sequence, const std::array<uint8_t, kMessage>& message);
  [[nodiscard]] bool take(const Place& place, std::array<uint8_t, kMessage>& message) const;

  crc::Kernel kernel_ = crc::active();
  Line there_;
  Line back_;
  std::array<Place, kPlaces> out_{};
  std::array<Place, kPlaces> home_{};
  uint64_t lines_ = 0;              // round trips of the one thread
  uint64_t messages_ = 0;           // the same
  alignas(128) uint64_t answered_lines_ = 0;  // of the other
  uint64_t answered_messages_ = 0;            // the same
  std::atomic<bool> bad_{false};              // the other has found a wrong CRC
};

}  // namespace rnic::perf
