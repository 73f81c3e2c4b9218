// A handle of the public API: a shared receive queue.

#include "rnic/shared_receive_queue.hpp"

#include <string>
#include <utility>

#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/posting.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::empty_handle;
using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

SharedReceiveQueue::SharedReceiveQueue() = default;
SharedReceiveQueue::SharedReceiveQueue(SharedReceiveQueue&& other) noexcept { swap(other); }

SharedReceiveQueue& SharedReceiveQueue::operator=(SharedReceiveQueue&& other) noexcept {
  SharedReceiveQueue before(std::move(other));
  swap(before);
  return *this;
}

void SharedReceiveQueue::swap(SharedReceiveQueue& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(srq_, other.srq_);
  std::swap(lock_, other.lock_);
}

SharedReceiveQueue::~SharedReceiveQueue() {
  if (device_ == nullptr) return;
  quietly([this] { on_worker(*device_, [&](base::Now) { device_->device->release_srq(srq_); }); });
}

Status SharedReceiveQueue::destroy() {
  if (device_ == nullptr) return {};
  return guarded("SharedReceiveQueue::destroy", [&]() -> Status {
    const Status status =
        on_worker(*device_, [&](base::Now) { return device_->device->destroy_srq(srq_); });
    if (status) {
      device_ = nullptr;
      srq_ = nullptr;
      lock_ = nullptr;
    }
    return status;
  });
}

uint32_t SharedReceiveQueue::number() const {
  return srq_ == nullptr || device_->is_abandoned() ? 0 : srq_->number();
}

Status SharedReceiveQueue::post_receive(const ReceiveRequest& request) {
  if (srq_ == nullptr) return empty_handle();
  if (device_->is_abandoned()) return verbs::abandoned();
  uint32_t depth = 0;  // of a full queue
  const auto post = [&] {
    const rdmap::PostResult result = srq_->post_receive(request);
    if (result == rdmap::PostResult::Full) depth = srq_->depth();
    return result;
  };
  switch (verbs::post_receives(*device_, nullptr, lock_.get(), post)) {
    case rdmap::PostResult::Ok: return {};
    case rdmap::PostResult::Full:
      return tl::unexpected(Error{ErrorCode::ResourceExhausted, base::worded([&] {
                                    return "the shared receive queue is full (" +
                                           std::to_string(depth) +
                                           " posted or in progress): poll completions, or resize "
                                           "it";
                                  })});
    default:
      return tl::unexpected(Error{
          ErrorCode::InvalidArgument, base::worded([&] {
            return "too many scatter/gather elements: the shared receive queue was made for " +
                   std::to_string(srq_->max_sges()) + ", so use fewer or raise its max_sges";
          })});
  }
}

Status SharedReceiveQueue::arm_limit(uint32_t posted) {
  return guarded("SharedReceiveQueue::arm_limit", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    on_worker(*device_, [&](base::Now) { srq_->arm_limit(posted); });
    return {};
  });
}

Status SharedReceiveQueue::arm_high_water(uint32_t in_progress) {
  return guarded("SharedReceiveQueue::arm_high_water", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    on_worker(*device_, [&](base::Now) { srq_->arm_high_water(in_progress); });
    return {};
  });
}

Status SharedReceiveQueue::resize(uint32_t depth) {
  return guarded("SharedReceiveQueue::resize", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    if (device_->is_abandoned()) return verbs::abandoned();
    const uint64_t octets = rdmap::SharedReceiveQueue::octets_for(
        std::min(depth, device_->device->config().limits.max_work_depth), srq_->max_sges());
    if (octets >= verbs::kWorthAsking) {
      auto enough = verbs::enough_memory(
          "resize: a shared receive queue of " + std::to_string(depth) + " receives", octets);
      if (!enough) return enough;
    }
    // Whoever posts meanwhile waits here, and not on the worker's thread.
    return verbs::alone(lock_.get(), [&] {
      return on_worker(*device_,
                       [&](base::Now) { return device_->device->resize_srq(*srq_, depth); });
    });
  });
}

Result<SrqInfo> SharedReceiveQueue::info() const {
  return guarded("SharedReceiveQueue::info", [&]() -> Result<SrqInfo> {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return device_->device->info(*srq_); });
  });
}

}  // namespace rnic
