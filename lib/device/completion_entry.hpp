/// \file
/// A completion as it waits in its queue: what each has, and apart from it what few have.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rnic/work.hpp"

namespace rnic::device {

/// What few completions have: the results of an atomic, of Immediate Data and of a Send with
/// Invalidate, and the time.
struct SeldomOfCompletion {
  uint64_t original;
  ImmediateData immediate;
  std::chrono::nanoseconds time;
  uint32_t invalidated_stag;
};

/// What each completion has, which are the members up to those: two of them, with their stamps,
/// share a cache line.
class CompletionEntry {
 public:
  CompletionEntry() = default;
  explicit CompletionEntry(const Completion& completion) {
    std::memcpy(octets_.data(), &completion, octets_.size());
  }
  /// Says that its SeldomOfCompletion is there, too.
  void mark() { octets_[kMark] |= std::byte{2}; }

  /// Writes the completion. \param seldom read if the entry is marked
  void to(Completion& out, const SeldomOfCompletion& seldom) const {
    out = Completion{};
    std::memcpy(static_cast<void*>(&out), octets_.data(), octets_.size());
    if (octets_[kMark] < std::byte{2}) [[likely]] return;
    out.has_immediate = octets_[kMark] == std::byte{3};
    out.invalidated_stag = seldom.invalidated_stag;
    out.original = seldom.original;
    out.immediate = seldom.immediate;
    out.time = seldom.time;
  }

 private:
  static constexpr size_t kMark = offsetof(Completion, has_immediate);

  alignas(uint64_t) std::array<std::byte, offsetof(Completion, invalidated_stag)> octets_;
};
static_assert(sizeof(CompletionEntry) == 24);
static_assert(sizeof(Completion::has_immediate) == 1);

}  // namespace rnic::device
