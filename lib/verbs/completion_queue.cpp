// A handle of the public API: a completion queue, and waiting for it.

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/queue_lock.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::abandoned;
using verbs::alone;
using verbs::empty_handle;
using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

CompletionQueue::CompletionQueue() = default;

CompletionQueue::CompletionQueue(std::shared_ptr<verbs::DeviceRuntime> device,
                                 device::CompletionQueue* cq,
                                 std::unique_ptr<verbs::QueueLock> lock)
    : device_(std::move(device)), cq_(cq), lock_(std::move(lock)) {}

CompletionQueue::CompletionQueue(CompletionQueue&& other) noexcept { swap(other); }

CompletionQueue& CompletionQueue::operator=(CompletionQueue&& other) noexcept {
  CompletionQueue before(std::move(other));
  swap(before);
  return *this;
}

void CompletionQueue::swap(CompletionQueue& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(cq_, other.cq_);
  std::swap(lock_, other.lock_);
  std::swap(alarm_, other.alarm_);
}

CompletionQueue::~CompletionQueue() {
  if (device_ == nullptr) return;
  quietly([this] { on_worker(*device_, [&](base::Now) { device_->device->release_cq(cq_); }); });
}

Status CompletionQueue::destroy() {
  if (device_ == nullptr) return {};
  return guarded("CompletionQueue::destroy", [&]() -> Status {
    const Status status =
        on_worker(*device_, [&](base::Now) { return device_->device->destroy_cq(cq_); });
    if (status) {
      device_ = nullptr;
      cq_ = nullptr;
      lock_ = nullptr;
      alarm_ = nullptr;
    }
    return status;
  });
}

uint32_t CompletionQueue::number() const {
  return cq_ == nullptr || device_->is_abandoned() ? 0 : cq_->number();
}

Status CompletionQueue::resize(uint32_t depth) {
  return guarded("CompletionQueue::resize", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    if (device_->is_abandoned()) return abandoned();
    const uint32_t most = device::deepest_cq(device_->device->config().limits);
    const uint64_t octets = device::CompletionQueue::octets_for(std::min(depth, most));
    if (octets >= verbs::kWorthAsking) {
      auto enough = verbs::enough_memory(
          "resize: a completion queue of " + std::to_string(depth) + " completions", octets);
      if (!enough) return enough;
    }
    // Whoever polls meanwhile waits here, and not on the worker's thread.
    return alone(lock_.get(), [&] {
      return on_worker(*device_,
                       [&](base::Now) { return device_->device->resize_cq(*cq_, depth); });
    });
  });
}

Status CompletionQueue::moderate(const NotifyModeration& how) {
  return guarded("CompletionQueue::moderate", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return cq_->moderate(how); });
  });
}

Result<CqInfo> CompletionQueue::info() const {
  return guarded("CompletionQueue::info", [&]() -> Result<CqInfo> {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return device_->device->info(*cq_); });
  });
}

uint32_t CompletionQueue::poll(std::span<Completion> out) {
  if (cq_ == nullptr || device_->is_abandoned()) return 0;
  const auto take = [&] { return alone(lock_.get(), [&] { return cq_->poll(out); }); };
  const uint32_t count = take();
  if (count != 0 || !device_->drive()) return count;
  return take();
}

Result<int> CompletionQueue::fd() {
  return guarded("CompletionQueue::fd", [&]() -> Result<int> {
    if (device_ == nullptr) return empty_handle();
    if (device_->is_abandoned()) return abandoned();
    return alone(lock_.get(), [this] { return open_alarm(); });
  });
}

/// Makes the alarm at the first call. \return its descriptor
Result<int> CompletionQueue::open_alarm() {
  if (alarm_ != nullptr) return alarm_->fd();
  std::optional<int> driver;
  if (device_->worker == nullptr) {
    auto fd = device_->runtime->driver_fd();
    if (!fd) return fd;
    driver = *fd;
  }
  auto alarm = verbs::QueueAlarm::open(driver);
  if (!alarm) return tl::unexpected(alarm.error());
  verbs::QueueAlarm* const made = alarm->get();
  on_worker(*device_, [&](base::Now) { cq_->set_listener(std::move(*alarm)); });
  alarm_ = made;
  return alarm_->fd();
}

Status CompletionQueue::arm(Notify what) {
  return guarded("CompletionQueue::arm", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    if (device_->is_abandoned()) return abandoned();
    if (what > Notify::Solicited) {
      return base::fail(ErrorCode::InvalidArgument,
                        "arm: a number without a name for Notify: use Next or Solicited");
    }
    if (auto armed = alone(lock_.get(), [&] { return arm_alarm(what); }); !armed) return armed;
    device_->worker == nullptr ? device_->runtime->settle() : device_->take_over();
    return {};
  });
}

Status CompletionQueue::arm_alarm(Notify what) {
  if (alarm_ == nullptr) {
    if (auto opened = open_alarm(); !opened) return tl::unexpected(opened.error());
  }
  const auto bell = what == Notify::Solicited ? base::BellFor::Urgent : base::BellFor::Anything;
  if (lock_ == nullptr) {
    alarm_->arm(bell);
  } else {
    alarm_->arm_among_several(bell, [this] { return cq_->waiting() != 0; });
  }
  return {};
}

}  // namespace rnic
