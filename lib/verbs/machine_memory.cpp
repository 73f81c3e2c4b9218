#include "verbs/machine_memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

namespace rnic::verbs {

bool read_number(const std::string& path, uint64_t& number) {
  std::ifstream file(path);
  return static_cast<bool>(file >> number);
}

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The number behind `name` in a text of lines "name: number" or "name number"; 0: there is none.
uint64_t number_behind(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string first;
    uint64_t number = 0;
    if (fields >> first >> number && first == name) return number;
  }
  return 0;
}

MemoryBound lesser(const MemoryBound& a, const MemoryBound& b) {
  return b.octets < a.octets ? b : a;
}

uint64_t left_of(uint64_t limit, uint64_t used) { return limit - std::min(limit, used); }

/// The names of the files of one version.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* used;
  const char* cache;  // in memory.stat
};
constexpr GroupFiles kVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

/// The least memory that a group and all groups above it have left. In a container the path may be
/// one of the host: groups that do not exist are passed over, and the root of the mount is the
/// container's own group.
MemoryBound group_bound(const std::string& root, const GroupFiles& files, std::string path) {
  MemoryBound least;
  for (bool top = false; !top;) {
    top = path.empty() || path == "/";
    const std::string folder = root + files.mount + (top ? "" : path) + "/";
    uint64_t limit = 0;
    uint64_t used = 0;
    if (read_number(folder + files.limit, limit) && read_number(folder + files.used, used)) {
      const uint64_t cache = number_behind(contents(folder + "memory.stat"), files.cache);
      least = lesser(least, {left_of(limit, left_of(used, cache)), "the control group's limit"});
    }
    path.erase(top ? 0 : path.rfind('/'));
  }
  return least;
}

}  // namespace

MemoryBound kernel_bound(const std::string& root) {
  MemoryBound least;
  constexpr uint64_t kUnit = 1024;  // the file says kB
  const uint64_t available = number_behind(contents(root + "/proc/meminfo"), "MemAvailable:");
  if (available != 0) least = {available * kUnit, "MemAvailable of /proc/meminfo"};
  std::istringstream groups(contents(root + "/proc/self/cgroup"));
  std::string line;
  while (std::getline(groups, line)) {  // "4:memory:/path" or "0::/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") least = lesser(least, group_bound(root, kVersion2, path));
    if (controllers.find(",memory,") != std::string::npos) {
      least = lesser(least, group_bound(root, kVersion1, path));
    }
  }
  return least;
}

MemoryBound process_bound() {
  MemoryBound least;
  // The file has numbers of pages: all, resident, shared, text, 0, data and stack.
  std::istringstream statm(contents("/proc/self/statm"));
  uint64_t all = 0;
  uint64_t skipped = 0;
  uint64_t data = 0;
  if (!(statm >> all >> skipped >> skipped >> skipped >> skipped >> data)) return least;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    least = {left_of(limit.rlim_cur, all * page), "the limit of address space, ulimit -v"};
  }
  if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    least = lesser(least, {left_of(limit.rlim_cur, data * page), "the limit of data, ulimit -d"});
  }
  return least;
}

MemoryBound machine_memory() { return lesser(kernel_bound(""), process_bound()); }

std::string memory_text(uint64_t octets) {
  constexpr const char* kUnits[] = {"octets", "KB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(octets);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", unit == 0 || value >= 100 ? 0 : 1, value,
                kUnits[unit]);
  return text;
}

Status enough_memory(const std::string& what, uint64_t octets) {
  if (octets < kWorthAsking) return {};
  const MemoryBound there = machine_memory();
  if (octets <= there.octets) return {};
  return base::fail(ErrorCode::ResourceExhausted,
                    what + ": " + memory_text(octets) + " of memory are asked for, and " +
                        memory_text(there.octets) + " are there (" + there.by + "): ask for less");
}

}  // namespace rnic::verbs
