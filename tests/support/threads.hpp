/// \file
/// How many threads the process has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rnic::test {

/// Threads of the process that are not about to end: the workers of a context are among them. A
/// thread that was joined is listed for a moment longer, but by then the system has marked it
/// (PF_EXITING among the flags of proc_pid_stat(5)), and it does not count.
[[nodiscard]] inline size_t live_threads() {
  constexpr uint64_t kExiting = 0x4;
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;  // it has ended meanwhile
    // The name stands in brackets, and may have some of its own.
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string skipped;
    for (int field = 3; field < 9; ++field) fields >> skipped;
    uint64_t flags = 0;
    fields >> flags;
    if ((flags & kExiting) == 0) ++count;
  }
  return count;
}

}  // namespace rnic::test
