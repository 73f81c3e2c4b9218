#include "memory.hpp"

#include <algorithm>
#include <cstring>

namespace rnic::simulation {

namespace {

uint64_t pattern_word(uint64_t key, uint64_t index) {
  uint64_t z = key + index * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  return z ^ (z >> 29);
}

/// Index of the first octet in [begin, end) that is not poison; `end` when all are.
uint64_t poisoned_until(const uint8_t* octets, uint64_t begin, uint64_t end) {
  uint64_t i = begin;
  if (i == end || octets[i] != kPoison) return i;
  // Each octet is as the one before it: the quickest question that the C library answers.
  if (std::memcmp(octets + i, octets + i + 1, end - i - 1) == 0) return end;
  while (i < end && octets[i] == kPoison) ++i;
  return i;
}

}  // namespace

uint8_t pattern_octet(uint64_t key, uint64_t index) {
  return static_cast<uint8_t>(pattern_word(key, index / 8) >> (8 * (index % 8)));
}

void fill_pattern(base::ByteSpan out, uint64_t key, uint64_t first) {
  uint64_t i = 0;
  for (; i < out.size() && (first + i) % 8 != 0; ++i) out[i] = pattern_octet(key, first + i);
  for (; i + 8 <= out.size(); i += 8) {
    const uint64_t word = pattern_word(key, (first + i) / 8);
    std::memcpy(out.data() + i, &word, sizeof word);
  }
  for (; i < out.size(); ++i) out[i] = pattern_octet(key, first + i);
}

std::optional<uint64_t> pattern_difference(base::ByteView in, uint64_t key, uint64_t first) {
  uint64_t i = 0;
  const auto differs = [&] { return in[i] != pattern_octet(key, first + i); };
  for (; i < in.size() && (first + i) % 8 != 0; ++i) {
    if (differs()) return i;
  }
  for (; i + 8 <= in.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, in.data() + i, sizeof word);
    if (word != pattern_word(key, (first + i) / 8)) break;
  }
  for (; i < in.size(); ++i) {
    if (differs()) return i;
  }
  return std::nullopt;
}

GuardedMemory::GuardedMemory(uint64_t octets)
    : octets_(octets + 2 * kGuard), size_(octets) {
  std::memset(octets_.data(), kPoison, octets_.size());
}

bool GuardedMemory::fits(uint64_t offset, uint64_t length) const {
  if (offset + length > size_) return false;
  const auto next = used_.lower_bound(offset);
  if (next != used_.end() && next->first < offset + length + kGap) return false;
  return next == used_.begin() || std::prev(next)->second + kGap <= offset;
}

std::optional<Slice> GuardedMemory::take_first(uint32_t length) {
  std::optional<uint64_t> found;
  if (fits(0, length)) found = 0;
  for (auto it = used_.begin(); it != used_.end() && !found; ++it) {
    if (fits(it->second + kGap, length)) found = it->second + kGap;
  }
  if (!found) return std::nullopt;
  if (length != 0) used_[*found] = *found + length;
  return Slice{*found, length};
}

std::optional<Slice> GuardedMemory::take(uint32_t length, base::Prng& prng) {
  if (length > size_) return std::nullopt;
  // Odd offsets and exact ends of the region are as good as any other place.
  for (int attempt = 0; attempt < 4; ++attempt) {
    const uint64_t offset = prng.chance(0.1) ? size_ - length : prng.below(size_ - length + 1);
    if (!fits(offset, length)) continue;
    if (length != 0) used_[offset] = offset + length;
    return Slice{offset, length};
  }
  return take_first(length);
}

void GuardedMemory::release(Slice s) {
  if (s.length == 0) return;
  std::memset(data() + s.offset, kPoison, s.length);
  used_.erase(s.offset);
}

std::optional<std::string> GuardedMemory::check_idle() const {
  uint64_t begin = 0;
  const auto check = [&](uint64_t end) -> std::optional<std::string> {
    const uint64_t bad = poisoned_until(octets_.data(), begin, end);
    if (bad == end) return std::nullopt;
    const auto offset = static_cast<int64_t>(bad) - static_cast<int64_t>(kGuard);
    return "octet " + std::to_string(offset) + " of a region of " + std::to_string(size_) +
           " was written, but belongs to no message";
  };
  for (const auto& [offset, end] : used_) {
    if (auto bad = check(kGuard + offset)) return bad;
    begin = kGuard + end;
  }
  return check(octets_.size());
}

bool GuardedMemory::neighbours_clean(Slice s) const {
  const uint64_t begin = kGuard + s.offset;
  const uint64_t end = begin + s.length;
  return poisoned_until(octets_.data(), begin - kGap, begin) == begin &&
         poisoned_until(octets_.data(), end, end + kGap) == end + kGap;
}

}  // namespace rnic::simulation
