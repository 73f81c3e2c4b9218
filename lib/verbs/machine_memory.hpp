/// \file
/// How much memory the machine has for this process, as the kernel tells it.
#pragma once

#include <cstdint>
#include <string>

#include "base/fail.hpp"

namespace rnic::verbs {

/// An upper bound of the memory there is, and its origin.
struct MemoryBound {
  uint64_t octets = UINT64_MAX;
  const char* by = "nobody";
};

/// The smaller of MemAvailable and the memory left in the control groups of this process (version 1
/// and 2, including the groups above); file cache that the kernel would give up counts as left.
/// Files that cannot be read set no bound. \param root the root of the file system: "" except in
/// tests
[[nodiscard]] MemoryBound kernel_bound(const std::string& root);
/// The memory that the limits of setrlimit() leave: address space (ulimit -v) and data (ulimit -d).
[[nodiscard]] MemoryBound process_bound();
/// The least of all these bounds, now.
[[nodiscard]] MemoryBound machine_memory();

/// Reads a file with one number in it. False: there is no such file, or it has a word such as
/// "max".
[[nodiscard]] bool read_number(const std::string& path, uint64_t& number);

/// Octets as a text: "22.9 GB".
[[nodiscard]] std::string memory_text(uint64_t octets);

/// ResourceExhausted, with both numbers, if a call needs more memory than the machine has. Less
/// than kWorthAsking is not checked: the allocation itself fails then. \param what the user of the
/// memory: "create_qp: queues of 65536 and 128 requests"
[[nodiscard]] Status enough_memory(const std::string& what, uint64_t octets);
inline constexpr uint64_t kWorthAsking = 16u << 20;

}  // namespace rnic::verbs
