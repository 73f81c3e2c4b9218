// A handle of the public API: a memory window.

#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/belonging.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::check_device;
using verbs::empty_handle;
using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

MemoryWindow::MemoryWindow(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t stag)
    : device_(std::move(device)), stag_(stag) {}

MemoryWindow::MemoryWindow(MemoryWindow&& other) noexcept { swap(other); }

MemoryWindow& MemoryWindow::operator=(MemoryWindow&& other) noexcept {
  MemoryWindow before(std::move(other));
  swap(before);
  return *this;
}

void MemoryWindow::swap(MemoryWindow& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(stag_, other.stag_);
}

MemoryWindow::~MemoryWindow() {
  quietly([this] { static_cast<void>(destroy()); });
}

Status MemoryWindow::destroy() {
  if (device_ == nullptr) return {};
  return guarded("MemoryWindow::destroy", [&]() -> Status {
    const auto device = std::exchange(device_, nullptr);
    const mem::Stag stag{std::exchange(stag_, 0)};
    on_worker(*device, [&](base::Now) { device->device->free_window(stag); });
    return {};
  });
}

Status MemoryWindow::bind(const MemoryRegion& region, uint64_t from, uint32_t length,
                          AccessSet access) {
  return guarded("MemoryWindow::bind", [&]() -> Status {
    if (device_ == nullptr || region.device_ == nullptr) return empty_handle();
    if (auto ours = check_device("bind: the region", *device_, *region.device_); !ours) return ours;
    const Sge part{from, length, region.stag()};
    const mem::Binding binding{.stag = mem::Stag{stag_},
                               .parts = {&part, 1},
                               .offset = from,
                               .rights = access,
                               .stream = {}};
    const auto stag =
        on_worker(*device_, [&](base::Now) { return device_->device->bind_window(binding); });
    if (!stag) return tl::unexpected(stag.error());
    stag_ = stag->value;
    return {};
  });
}

Status MemoryWindow::unbind() {
  return guarded("MemoryWindow::unbind", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_,
                     [&](base::Now) { return device_->device->unbind_window(mem::Stag{stag_}); });
  });
}

}  // namespace rnic
