// Needed for rte_intr_fd_get() and rte_memseg_get_fd_thread_unsafe(), which alone tell descriptors.
#define ALLOW_EXPERIMENTAL_API

#include "dpdk/adoption.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_memory.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/log.hpp"
#include "process/descriptor_table.hpp"

namespace rnic::dpdk {
namespace {

void adopt_one(int descriptor) {
  if (process::descriptors().adopt(descriptor)) return;
  base::log(base::LogLevel::Warning, "dpdk", [] {
    return "more than " + std::to_string(process::DescriptorTable::kMostAdopted) +
           " descriptors of DPDK's: a child that is forked keeps the latest of them open until it "
           "ends or execs; open fewer ports, or lower eal.memory_mb";
  });
}

/// Adopts a descriptor that DPDK's interrupt thread listens to. Eventfds and timerfds are passed
/// over: the kernel gives all of them one name, so that a child could not tell them from its own,
/// and nobody outside the process sees them.
void show(int descriptor) {
  struct stat file {};
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  if (fstat(descriptor, &file) == 0 && S_ISSOCK(file.st_mode)) adopt_one(descriptor);
}

void keep_from_children(const void* begin, size_t octets) {
  // The call passes over parts that are not mapped.
  madvise(const_cast<void*>(begin), octets, MADV_DONTFORK);
}

int keep_list(const rte_memseg_list* list, void*) {
  keep_from_children(list->base_va, list->len);
  return 0;
}

/// Adopts the file of a segment. \param latest the file of the segment before; segments of ordinary
/// memory all have the same file
int adopt_file(const rte_memseg_list*, const rte_memseg* segment, void* latest) {
  const int file = rte_memseg_get_fd_thread_unsafe(segment);
  if (file >= 0 && file != *static_cast<int*>(latest)) adopt_one(file);
  *static_cast<int*>(latest) = file;
  return 0;
}

/// DPDK has taken more hugepages, or given some back.
void memory_changed(rte_mem_event event, const void* begin, size_t octets, void*) {
  if (event != RTE_MEM_EVENT_ALLOC) return;
  keep_from_children(begin, octets);
  int latest = -1;
  const auto* at = static_cast<const uint8_t*>(begin);
  for (const uint8_t* const end = at + octets; at < end;) {
    const rte_memseg* segment = rte_mem_virt2memseg(at, nullptr);
    if (segment == nullptr || segment->len == 0) return;
    adopt_file(nullptr, segment, &latest);
    at += segment->len;
  }
}

bool is_packet_socket(int descriptor) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
         domain == AF_PACKET;
}

bool is_tun(int descriptor) {
  constexpr unsigned kMisc = 10;  // Linux, admin-guide/devices.txt: /dev/net/tun
  constexpr unsigned kTun = 200;
  struct stat file {};
  return fstat(descriptor, &file) == 0 && S_ISCHR(file.st_mode) &&
         file.st_rdev == makedev(kMisc, kTun);
}

/// A mapping holds its socket as a descriptor does.
void keep_mappings_of(int socket) {
  struct stat file {};
  if (fstat(socket, &file) != 0) return;
  const std::string name = "socket:[" + std::to_string(file.st_ino) + "]";
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    uint64_t begin = 0;
    uint64_t end = 0;
    if (!line.ends_with(name)) continue;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2) continue;
    keep_from_children(reinterpret_cast<const void*>(begin), end - begin);
  }
}

}  // namespace

void keep_memory_from_children() {
  rte_memseg_list_walk(keep_list, nullptr);
  int latest = -1;
  rte_memseg_walk(adopt_file, &latest);
  // The call fails if DPDK never takes more memory, as without hugepages.
  rte_mem_event_callback_register("rnic", memory_changed, nullptr);
}

std::vector<int> PortDescriptors::list(Kind kind) {
  std::vector<int> found;
  if (kind == Kind::None) return found;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    const bool fits =
        kind == Kind::PacketSocket ? is_packet_socket(descriptor) : is_tun(descriptor);
    if (fits) found.push_back(descriptor);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void PortDescriptors::adopt(Kind kind, const std::vector<int>& before) {
  const std::vector<int> all = list(kind);
  std::set_difference(all.begin(), all.end(), before.begin(), before.end(),
                      std::back_inserter(adopted_));
  for (const int descriptor : adopted_) {
    adopt_one(descriptor);
    if (kind == Kind::PacketSocket) keep_mappings_of(descriptor);
  }
}

PortDescriptors::~PortDescriptors() {
  for (const int descriptor : adopted_) process::descriptors().disown(descriptor);
}

}  // namespace rnic::dpdk

// Like rte_intr_callback_unregister() of burst_gate.cpp, this function takes precedence over
// DPDK's: it sees the descriptors that come and go without a call of ours, such as net_memif's
// connections. Their closing need not be reported: a number that has become another file is
// recognized by that.
extern "C" int rte_intr_callback_register(const rte_intr_handle* intr_handle,
                                          rte_intr_callback_fn cb, void* cb_arg) {
  static const auto of_dpdk = reinterpret_cast<decltype(&rte_intr_callback_register)>(
      dlsym(RTLD_NEXT, "rte_intr_callback_register"));
  const int registered = of_dpdk(intr_handle, cb, cb_arg);
  const int descriptor = registered == 0 ? rte_intr_fd_get(intr_handle) : -1;
  if (descriptor >= 0) rnic::dpdk::show(descriptor);
  return registered;
}
