// A handle of the public API: registered memory.

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept { swap(other); }

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  MemoryRegion before(std::move(other));
  swap(before);
  return *this;
}

void MemoryRegion::swap(MemoryRegion& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(stag_, other.stag_);
  std::swap(address_, other.address_);
  std::swap(length_, other.length_);
}

MemoryRegion::~MemoryRegion() {
  if (device_ == nullptr) return;
  quietly([this] {
    on_worker(*device_, [&](base::Now) { device_->device->release_memory(mem::Stag{stag_}); });
  });
}

Status MemoryRegion::deregister() {
  if (device_ == nullptr) return {};
  return guarded("MemoryRegion::deregister", [&] {
    const Status status = on_worker(
        *device_, [&](base::Now) { return device_->device->deregister_memory(mem::Stag{stag_}); });
    if (!status) return status;
    device_ = nullptr;
    stag_ = 0;
    address_ = length_ = 0;
    return status;
  });
}

}  // namespace rnic
