/// \file
/// A completion as it waits in its queue: what each has, and apart from it what few have.
#pragma once

#include <array>
#include <bit>
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
  uint32_t written;
};

/// What each completion has, which are the members up to those: two of them, with their stamps,
/// share a cache line.
class CompletionEntry {
 public:
  CompletionEntry() = default;
  explicit CompletionEntry(const Completion& completion) {
    std::memcpy(octets_.data(), &completion, octets_.size());
  }
  /// The entry of a request of which there is nothing to tell but that it was carried out.
  CompletionEntry(uint64_t id, Opcode opcode, uint32_t length, uint32_t qp) {
    put(offsetof(Completion, id), id);
    // What is behind the opcode is zero then, up to the length, which the word before ends at.
    put(offsetof(Completion, opcode), uint64_t{static_cast<uint8_t>(opcode)});
    put(offsetof(Completion, length), length);
    put(offsetof(Completion, qp), qp);
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
    out.written = seldom.written;
    out.original = seldom.original;
    out.immediate = seldom.immediate;
    out.time = seldom.time;
  }

 private:
  static constexpr size_t kMark = offsetof(Completion, has_immediate);

  template <typename T>
  void put(size_t at, T value) {
    std::memcpy(octets_.data() + at, &value, sizeof value);
  }

  alignas(uint64_t) std::array<std::byte, offsetof(Completion, invalidated_stag)> octets_;
};
static_assert(sizeof(CompletionEntry) == 24);
static_assert(offsetof(Completion, opcode) + sizeof(uint64_t) == offsetof(Completion, length) &&
                  std::endian::native == std::endian::little,
              "one word has the opcode and what is zero behind it");
static_assert(CompletionStatus{} == CompletionStatus::Success &&
              CompletionCause{} == CompletionCause::None);
static_assert(sizeof(Completion::has_immediate) == 1);

}  // namespace rnic::device
