#include "live_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> live{0};
std::atomic<int64_t> until_refusal{-1};  // below 0: it does not come, or has come

void free_counted(void* block) noexcept {
  live -= static_cast<int64_t>(::malloc_usable_size(block));
  std::free(block);
}

}  // namespace

namespace rnic::test {

int64_t live_octets() { return live; }
void refuse_memory_after(int64_t n) { until_refusal = n; }
bool refuse_no_more() { return until_refusal.exchange(-1) < 0; }

}  // namespace rnic::test

void* operator new(std::size_t size) {
  if (until_refusal >= 0 && until_refusal-- == 0) throw std::bad_alloc();
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  live += static_cast<int64_t>(::malloc_usable_size(block));
  return block;
}
// The library's own forms come to the one above; a sanitizer's would not.
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept {
  return operator new(size, nothrow);
}
void operator delete(void* block) noexcept { free_counted(block); }
void operator delete(void* block, std::size_t) noexcept { free_counted(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { free_counted(block); }
void operator delete[](void* block) noexcept { free_counted(block); }
void operator delete[](void* block, std::size_t) noexcept { free_counted(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { free_counted(block); }
