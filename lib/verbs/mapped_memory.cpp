#include "verbs/mapped_memory.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <string>

namespace rnic::verbs {

namespace {

/// The argument and answer of Linux's PROCMAP_QUERY (proc_pid_maps(5)).
struct MapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_address;
  uint64_t begin;
  uint64_t end;
  uint64_t flags;
  std::array<uint64_t, 3> unused_numbers;  // page size, offset, inode
  std::array<uint32_t, 4> unused_sizes;    // device, lengths of name and build id
  std::array<uint64_t, 2> unused_places;   // where the name and the build id would go
};
static_assert(sizeof(MapQuery) == 104);
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr uint64_t kReadable = 1;
constexpr uint64_t kWritable = 2;

MapQuery query_of(uint64_t address) {
  MapQuery query{};
  query.size = sizeof query;
  query.query_address = address;
  return query;
}

/// Finds out whether the kernel supports the query, by asking for a mapping that exists.
bool takes_questions(int fd) {
  MapQuery query = query_of(0);
  query.query_address = reinterpret_cast<uint64_t>(&query);
  return fd >= 0 && ioctl(fd, kMapQuery, &query) == 0;
}

Status unfit(const char* call, uint64_t address, const char* what) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%s: the octet at 0x%" PRIx64
                " %s: register memory that the process has, with the "
                "protection that the rights need",
                call, address, what);
  return base::fail(ErrorCode::InvalidArgument, text);
}

}  // namespace

std::optional<Mapping> mapping_in(const std::string& maps, uint64_t address) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    Mapping found;
    std::array<char, 5> rights{};
    // "7f0000000000-7f0000021000 rw-p 00000000 00:00 0   [heap]"
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &found.begin, &found.end,
                    rights.data()) != 3) {
      continue;
    }
    if (address < found.begin || address >= found.end) continue;
    found.readable = rights[0] == 'r';
    found.writable = rights[1] == 'w';
    return found;
  }
  return std::nullopt;
}

Status check_mapped(const char* call, std::span<const std::byte> memory, bool writable,
                    const FindMapping& find) {
  if (memory.empty()) return {};
  uint64_t at = reinterpret_cast<uint64_t>(memory.data());
  // The loop ends by the last octet, as a range may end with the address space.
  const uint64_t last = at + (memory.size() - 1);
  if (last < at) return unfit(call, at, "begins a range that passes the end of the address space");
  for (;;) {
    const auto mapping = find(at);
    if (!mapping) return unfit(call, at, "is not mapped");
    if (!mapping->readable) return unfit(call, at, "may not be read");
    if (writable && !mapping->writable) return unfit(call, at, "may not be written to");
    if (last < mapping->end) return {};
    at = mapping->end;
  }
}

ProcessMaps::ProcessMaps()
    : maps_(wakeup::Descriptor::open(
          [] { return ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC); })),
      takes_questions_(takes_questions(maps_.get())) {}

std::optional<Mapping> ProcessMaps::ask(uint64_t address) const {
  MapQuery query = query_of(address);
  if (ioctl(maps_.get(), kMapQuery, &query) != 0) return std::nullopt;
  return Mapping{.begin = query.begin,
                 .end = query.end,
                 .readable = (query.flags & kReadable) != 0,
                 .writable = (query.flags & kWritable) != 0};
}

std::string ProcessMaps::text() const {
  std::string all;
  std::array<char, 16384> part;
  // The reads give their position, as several threads may read at once.
  for (ssize_t n = 0;
       (n = pread(maps_.get(), part.data(), part.size(), static_cast<off_t>(all.size()))) > 0;) {
    all.append(part.data(), static_cast<size_t>(n));
  }
  return all;
}

Status ProcessMaps::check(const char* call, std::span<const std::byte> memory,
                          bool writable) const {
  if (memory.empty()) return {};
  if (!maps_.is_open()) {
    return base::fail(ErrorCode::Environment,
                      std::string(call) +
                          ": /proc/self/maps could not be opened when the context was, and tells "
                          "what memory the process has: mount /proc");
  }
  if (takes_questions_) {
    return check_mapped(call, memory, writable, [&](uint64_t at) { return ask(at); });
  }
  const std::string maps = text();
  return check_mapped(call, memory, writable, [&](uint64_t at) { return mapping_in(maps, at); });
}

}  // namespace rnic::verbs
