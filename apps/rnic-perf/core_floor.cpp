#include "rnic-perf/core_floor.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace rnic::perf {

namespace {

using Clock = std::chrono::steady_clock;

int64_t nanoseconds_since(Clock::time_point begun) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
}

}  // namespace

void CoreFloor::put(Place& place, uint64_t sequence, const std::array<uint8_t, kMessage>& message) {
  place.crc = crc::finish(
      kernel_.copy(crc::kInit, place.octets.data(), message.data(), message.size()));
  place.sequence.store(sequence, std::memory_order_release);
}

bool CoreFloor::take(const Place& place, std::array<uint8_t, kMessage>& message) const {
  const uint32_t crc = crc::finish(
      kernel_.copy(crc::kInit, message.data(), place.octets.data(), message.size()));
  return crc == place.crc;
}

std::vector<int64_t> CoreFloor::line_trips(uint32_t count) {
  std::vector<int64_t> times;
  times.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    there_.value.store(++lines_, std::memory_order_release);
    while (back_.value.load(std::memory_order_acquire) != lines_) {
    }
    times.push_back(nanoseconds_since(begun));
  }
  return times;
}

std::vector<int64_t> CoreFloor::message_trips(uint32_t count) {
  std::vector<int64_t> times;
  times.reserve(count);
  std::array<uint8_t, kMessage> message{1};
  for (uint32_t i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    ++messages_;
    put(out_[messages_ % kPlaces], messages_, message);
    const Place& home = home_[messages_ % kPlaces];
    while (home.sequence.load(std::memory_order_acquire) != messages_) {
    }
    if (!take(home, message) || bad_.load(std::memory_order_relaxed)) return {};
    times.push_back(nanoseconds_since(begun));
  }
  return times;
}

int64_t CoreFloor::work_ns() {
  constexpr uint32_t kTimes = 50;
  constexpr uint32_t kSteps = 2'000;
  int64_t best = std::numeric_limits<int64_t>::max();
  for (uint32_t time = 0; time < kTimes; ++time) {
    uint64_t a = 1;
    uint64_t b = 2;
    uint64_t c = 3;
    uint64_t d = 4;
    const auto begun = Clock::now();
    for (uint32_t i = 0; i < kSteps; ++i) {
      a += i;
      b ^= i;
      c -= i;
      d += 3;
      asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));  // none of it is left out
    }
    best = std::min(best, nanoseconds_since(begun));
  }
  return best;
}

void CoreFloor::answer_turn() {
  const uint64_t line = there_.value.load(std::memory_order_acquire);
  if (line != answered_lines_) {
    answered_lines_ = line;
    back_.value.store(line, std::memory_order_release);
  }
  const uint64_t next = answered_messages_ + 1;
  Place& out = out_[next % kPlaces];
  if (out.sequence.load(std::memory_order_acquire) != next) return;
  answered_messages_ = next;
  std::array<uint8_t, kMessage> message;
  if (!take(out, message)) bad_.store(true, std::memory_order_relaxed);
  put(home_[next % kPlaces], next, message);
}

}  // namespace rnic::perf
