#include "address_space.hpp"

#include <sys/mman.h>

#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) static_cast<void>(0)
#endif

namespace rnic::simulation {

namespace {

// Above where Linux puts programs, below its libraries, and in what the sanitizers leave to both.
constexpr uint64_t kBegin = 0x5660'0000'0000;
constexpr uint64_t kStep = 64u << 20;
constexpr uint64_t kAlignment = 64;  // not a page: regions begin anywhere in one

/// One for the process: its worlds come one after the other.
struct AddressSpace {
  uint64_t mapped = 0;  // octets from kBegin on
  uint64_t next = 0;
  uint64_t live = 0;
};
AddressSpace space;

void map_up_to(uint64_t octets) {
  while (space.mapped < octets) {
    auto* at = reinterpret_cast<void*>(kBegin + space.mapped);
    void* got = ::mmap(at, kStep, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != at) throw std::bad_alloc();
    ASAN_POISON_MEMORY_REGION(got, kStep);
    space.mapped += kStep;
  }
}

}  // namespace

PlacedOctets::PlacedOctets(uint64_t octets) : size_(octets) {
  const uint64_t room = (octets + kAlignment - 1) / kAlignment * kAlignment;
  map_up_to(space.next + room);
  begin_ = reinterpret_cast<uint8_t*>(kBegin + space.next);
  space.next += room + kAlignment;
  ++space.live;
  ASAN_UNPOISON_MEMORY_REGION(begin_, size_);
}

PlacedOctets::~PlacedOctets() {
  ASAN_POISON_MEMORY_REGION(begin_, size_);
  if (--space.live == 0) space.next = 0;
}

}  // namespace rnic::simulation
