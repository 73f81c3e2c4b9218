/// \file
/// How much memory the machine has for this process, as the kernel tells it.
#pragma once

#include <cstdint>
#include <string>

#include "base/fail.hpp"

namespace rnic::verbs {

/// No more than so many octets are there, and who says so.
struct MemoryBound {
  uint64_t octets = UINT64_MAX;
  const char* by = "nobody";
};

/// MemAvailable, and what the control groups of this process (version 1 and 2, those above
/// included) have left; file cache that the kernel would give up counts as left. What cannot be
/// read bounds nothing. \param root of the file system: "" but in tests
[[nodiscard]] MemoryBound kernel_bound(const std::string& root);
/// What setrlimit() leaves of address space (ulimit -v) and of data (ulimit -d).
[[nodiscard]] MemoryBound process_bound();
/// The least of all these, now.
[[nodiscard]] MemoryBound machine_memory();

/// A file with one number in it. False where there is none, or a word such as "max".
[[nodiscard]] bool read_number(const std::string& path, uint64_t& number);

/// "22.9 GB"
[[nodiscard]] std::string memory_text(uint64_t octets);

/// ResourceExhausted, with what is there and what is asked for, when a call asks for more than the
/// machine has. What is less than kWorthAsking is not looked at: the allocation itself tells.
/// \param what asks, for the message: "create_qp: queues of 65536 and 128 requests"
[[nodiscard]] Status enough_memory(const std::string& what, uint64_t octets);
inline constexpr uint64_t kWorthAsking = 16u << 20;

}  // namespace rnic::verbs
