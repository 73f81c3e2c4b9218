#include "rnic-spin/field.hpp"

#include <algorithm>
#include <atomic>

namespace rnic::spin {

namespace {

constexpr std::byte kGuardOctet{0xa5};
constexpr std::byte kNeverWritten{0xdb};
/// Odd: each word of the store tells its own place.
constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;

std::byte stored(size_t at) {
  const uint64_t word = (at / Field::kUnit + 1) * kFactor;
  return static_cast<std::byte>(word >> (8 * (at % Field::kUnit)));
}

std::string wrong_at(const char* where, size_t at) {
  return std::string("a wrong octet in ") + where + ", at " + std::to_string(at);
}

}  // namespace

Field::Field()
    : size_(begin_of(kParts)), octets_(std::make_unique_for_overwrite<std::byte[]>(size_)) {
  std::fill_n(octets_.get(), size_, kGuardOctet);
  for (size_t i = 0; i < kOctets; ++i) store()[i] = stored(i);
  std::ranges::fill(target(), kNeverWritten);
  std::ranges::fill(inbox(), kNeverWritten);
  std::ranges::fill(words(), std::byte{0});
}

size_t Field::begin_of(size_t part) {
  size_t at = kGuard;
  for (size_t i = 0; i < part; ++i) at += kSizes[i] + kGuard;
  return at;
}

uint64_t Field::word(size_t number) const {
  // A peer's atomic may change the word at the same time, from a device's thread.
  auto* const at = reinterpret_cast<uint64_t*>(words().data() + number * kUnit);
  return std::atomic_ref(*at).load(std::memory_order_relaxed);
}

std::optional<std::string> Field::check() const {
  for (size_t i = 0; i <= kParts; ++i) {
    const std::span guard(octets_.get() + begin_of(i) - kGuard, kGuard);
    const auto wrong = std::ranges::find_if(guard, [](std::byte o) { return o != kGuardOctet; });
    if (wrong != guard.end()) {
      return wrong_at("a guard", static_cast<size_t>(wrong - guard.begin()));
    }
  }
  for (size_t i = 0; i < kOctets; ++i) {
    if (store()[i] != stored(i)) return wrong_at("the store", i);
    const std::byte there = target()[i];
    if (there != stored(i) && there != kNeverWritten) return wrong_at("the target", i);
  }
  return std::nullopt;
}

std::optional<std::string> Field::check_fetched(size_t from, size_t length) const {
  for (size_t i = from; i < from + length; ++i) {
    if (target()[i] != stored(i)) return wrong_at("what a Read has fetched", i);
  }
  return std::nullopt;
}

std::optional<std::string> Field::check_message(size_t number, size_t from, size_t length) const {
  const auto octets = slot(number);
  if (length > kSlot) return "a receive of " + std::to_string(length) + " octets";
  for (size_t i = 0; i < kSlot; ++i) {
    const bool message = i < length;
    const std::byte right = message ? stored(from + i) : kNeverWritten;
    if (octets[i] != right) return wrong_at(message ? "a message" : "the slot behind one", i);
  }
  return std::nullopt;
}

void Field::clear_slot(size_t number) const { std::ranges::fill(slot(number), kNeverWritten); }

}  // namespace rnic::spin
