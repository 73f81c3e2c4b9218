#include "workload/buffer.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace rnic::workload {

namespace {
constexpr size_t kHuge = 2u << 20;
constexpr size_t kPage = 4096;
}  // namespace

Result<Buffer> Buffer::allocate(size_t octets, Paging paging) {
  const bool small = paging == Paging::Small;
  const size_t page = small ? kPage : kHuge;
  const size_t body = (octets + page - 1) / page * page;
  const size_t total = body + 3 * page;
  void* mapping = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return tl::unexpected(
        Error{ErrorCode::ResourceExhausted, "no memory for a buffer of " + std::to_string(octets) +
                                                " octets: " +
                                                std::generic_category().message(errno)});
  }
  Buffer buffer;
  buffer.mapping_ = mapping;
  buffer.mapped_ = total;
  const auto at = reinterpret_cast<uintptr_t>(mapping);
  buffer.data_ = static_cast<uint8_t*>(mapping) + ((at + 2 * page - 1) / page * page - at);
  buffer.size_ = octets;
  madvise(buffer.data_, body, small ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  mprotect(buffer.data_ - kPage, kPage, PROT_NONE);
  mprotect(buffer.data_ + body, kPage, PROT_NONE);
  if (paging == Paging::Huge) std::memset(buffer.data_, 0, octets);
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

}  // namespace rnic::workload
