// A handle of the public API: a protection domain, which makes regions and queue pairs.

#include <algorithm>
#include <utility>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::empty_handle;
using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

namespace {

/// Queues that are deeper than the limits allow are left to the device, which refuses them.
Status enough_for(device::QueuePairSpec spec, const device::Limits& limits) {
  spec.send_depth = std::min(spec.send_depth, limits.max_work_depth);
  spec.receive_depth = std::min(spec.receive_depth, limits.max_work_depth);
  const uint64_t octets = device::QueuePair::octets_for(spec);
  if (octets < verbs::kWorthAsking) return {};
  return verbs::enough_memory("create_qp: queues of " + std::to_string(spec.send_depth) + " and " +
                                  std::to_string(spec.receive_depth) + " requests",
                              octets);
}

}  // namespace

ProtectionDomain::ProtectionDomain(ProtectionDomain&& other) noexcept { swap(other); }

ProtectionDomain& ProtectionDomain::operator=(ProtectionDomain&& other) noexcept {
  ProtectionDomain before(std::move(other));
  swap(before);
  return *this;
}

void ProtectionDomain::swap(ProtectionDomain& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pd_, other.pd_);
}

ProtectionDomain::~ProtectionDomain() {
  if (device_ == nullptr) return;
  quietly([this] { on_worker(*device_, [&](base::Now) { device_->device->release_pd(pd_); }); });
}

Status ProtectionDomain::destroy() {
  if (device_ == nullptr) return {};
  return guarded("ProtectionDomain::destroy", [&]() -> Status {
    const Status status =
        on_worker(*device_, [&](base::Now) { return device_->device->free_pd(pd_); });
    if (status) device_ = nullptr;
    return status;
  });
}

Result<MemoryRegion> ProtectionDomain::register_memory(std::span<std::byte> memory,
                                                       AccessSet access) {
  mem::RegionSpec spec;
  spec.address = reinterpret_cast<uint8_t*>(memory.data());
  spec.length = memory.size();
  spec.pd = pd_;
  spec.rights = access;
  return guarded("ProtectionDomain::register_memory", [&]() -> Result<MemoryRegion> {
    if (device_ == nullptr) return empty_handle();
    auto stag =
        on_worker(*device_, [&](base::Now) { return device_->device->register_memory(spec); });
    if (!stag) return tl::unexpected(stag.error());
    MemoryRegion region;
    region.device_ = device_;
    region.stag_ = stag->value;
    region.address_ = reinterpret_cast<uint64_t>(memory.data());
    region.length_ = memory.size();
    return region;
  });
}

Result<SharedReceiveQueue> ProtectionDomain::create_srq(const SharedReceiveQueueOptions& options) {
  return guarded("ProtectionDomain::create_srq", [&]() -> Result<SharedReceiveQueue> {
    if (device_ == nullptr) return empty_handle();
    const device::SharedReceiveSpec spec{
        .pd = pd_, .depth = options.depth, .max_sges = options.max_sges};
    // What the limits do not allow is left to the device, which refuses it.
    const uint64_t octets = rdmap::SharedReceiveQueue::octets_for(
        std::min(spec.depth, device_->device->config().limits.max_work_depth),
        std::min(spec.max_sges, kMaxSge));
    if (octets >= verbs::kWorthAsking) {
      auto enough =
          verbs::enough_memory("create_srq: " + std::to_string(spec.depth) + " receives", octets);
      if (!enough) return tl::unexpected(enough.error());
    }
    auto srq = on_worker(*device_, [&](base::Now) { return device_->device->create_srq(spec); });
    if (!srq) return tl::unexpected(srq.error());
    SharedReceiveQueue handle;
    handle.device_ = device_;
    handle.srq_ = *srq;
    return handle;
  });
}

Result<QueuePair> ProtectionDomain::create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                                              const QueuePairOptions& options) {
  if (device_ == nullptr || send_cq.device_ == nullptr || receive_cq.device_ == nullptr) {
    return empty_handle();
  }
  if (send_cq.device_ != device_ || receive_cq.device_ != device_) {
    return tl::unexpected(Error{ErrorCode::InvalidArgument, base::worded([] {
                                  return "a completion queue belongs to another device";
                                })});
  }
  if (options.srq != nullptr && options.srq->srq_ == nullptr) return empty_handle();
  if (options.srq != nullptr && options.srq->device_ != device_) {
    return tl::unexpected(Error{ErrorCode::InvalidArgument, base::worded([] {
                                  return "the shared receive queue belongs to another device";
                                })});
  }
  device::QueuePairSpec spec;
  spec.pd = pd_;
  spec.send_cq = send_cq.cq_;
  spec.receive_cq = receive_cq.cq_;
  spec.send_depth = options.send_depth;
  spec.receive_depth = options.receive_depth;
  spec.ird = options.ird;
  spec.ord = options.ord;
  spec.answer_close = options.answer_close;
  spec.context = options.context;
  spec.srq = options.srq == nullptr ? nullptr : options.srq->srq_;
  return guarded("ProtectionDomain::create_qp", [&]() -> Result<QueuePair> {
    if (auto enough = enough_for(spec, device_->device->config().limits); !enough) {
      return tl::unexpected(enough.error());
    }
    auto qp = on_worker(*device_, [&](base::Now) { return device_->device->create_qp(spec); });
    if (!qp) return tl::unexpected(qp.error());
    QueuePair handle;
    handle.device_ = device_;
    handle.qp_ = *qp;
    return handle;
  });
}

}  // namespace rnic
