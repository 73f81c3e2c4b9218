/// \file
/// Unread: what a program has not polled yet of a queue pair.
#pragma once

#include <cstdint>
#include <optional>

namespace rnic::run {

/// The completion queues of a queue pair that have completions which the program has not polled:
/// how often each of them had been found empty before. Nothing: that one has none.
struct Unread {
  std::optional<uint32_t> of_sends;
  std::optional<uint32_t> of_receives;

  [[nodiscard]] bool any() const { return of_sends || of_receives; }
};

}  // namespace rnic::run
