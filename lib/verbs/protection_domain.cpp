// A handle of the public API: a protection domain, which makes regions and queue pairs.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "rnic/verbs.hpp"
#include "verbs/belonging.hpp"
#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/queue_lock.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::check_device;
using verbs::empty_handle;
using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

namespace {

/// Checks the memory for a queue pair's queues. Queues that are deeper than the limits allow pass
/// here, because the device refuses them.
Status enough_for(device::QueuePairSpec spec, const device::Limits& limits) {
  spec.send_depth = std::min(spec.send_depth, limits.max_work_depth);
  spec.receive_depth = std::min(spec.receive_depth, limits.max_work_depth);
  const uint64_t octets = device::QueuePair::octets_for(spec);
  if (octets < verbs::kWorthAsking) return {};
  return verbs::enough_memory("create_qp: queues of " + std::to_string(spec.send_depth) + " and " +
                                  std::to_string(spec.receive_depth) + " requests",
                              octets);
}

void set_memory(mem::RegionSpec& spec, std::span<std::byte> memory) {
  spec.address = reinterpret_cast<uint8_t*>(memory.data());
  spec.length = memory.size();
  spec.pieces = {};
}

/// The first offset of a region if the application gives none.
uint64_t base_of(const mem::RegionSpec& spec) { return reinterpret_cast<uint64_t>(spec.address); }

/// RFC 5042 s.7.3: an STag names memory of the process, and gives nobody more rights than the
/// process has.
Status check_memory(const char* call, const verbs::ProcessMaps& maps, const mem::RegionSpec& spec) {
  const bool writable =
      !AccessSet(Access::LocalRead | Access::RemoteRead | Access::RemoteInvalidate | Access::Bind)
           .contains(spec.rights);
  auto mapped = maps.check(call, std::as_bytes(std::span(spec.address, spec.length)), writable);
  for (const base::ByteSpan piece : spec.pieces) {
    if (mapped) mapped = maps.check(call, std::as_bytes(piece), writable);
  }
  return mapped;
}

}  // namespace

ProtectionDomain::ProtectionDomain(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t pd)
    : device_(std::move(device)), pd_(pd) {}

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

/// Registers a region. \param spec names the memory; the rest is filled in from `options`
Result<MemoryRegion> ProtectionDomain::register_spec(const char* call, mem::RegionSpec& spec,
                                                     const RegionOptions& options) {
  if (device_ == nullptr) return empty_handle();
  if (device_->is_abandoned()) return verbs::abandoned();
  spec.pd = pd_;
  spec.rights = options.access;
  spec.key = options.key;
  spec.offset = options.offset.value_or(base_of(spec));
  if (options.queue_pair != nullptr) {
    const QueuePair& only = *options.queue_pair;
    if (only.qp_ == nullptr) return empty_handle();
    if (auto ours = check_device("register: the queue pair", *device_, *only.device_); !ours) {
      return tl::unexpected(ours.error());
    }
    if (only.qp_->spec().pd != pd_) {
      return base::fail(ErrorCode::InvalidArgument,
                        "register: the queue pair belongs to another protection domain, and could "
                        "not use the region: register it in that one");
    }
  }
  if (auto mapped = check_memory(call, device_->runtime->maps(), spec); !mapped)
    return tl::unexpected(mapped.error());
  auto stag = on_worker(*device_, [&](base::Now) {
    // It is another one when the queue pair returns to Idle, which the worker sees to.
    if (options.queue_pair != nullptr) spec.stream = options.queue_pair->qp_->stream();
    return device_->device->register_memory(spec);
  });
  if (!stag) return tl::unexpected(stag.error());
  MemoryRegion region;
  region.device_ = device_;
  region.stag_ = stag->value;
  region.address_ = *spec.offset;
  region.length_ = spec.octets();
  return region;
}

Result<MemoryRegion> ProtectionDomain::register_memory(std::span<std::byte> memory,
                                                       const RegionOptions& options) {
  constexpr const char* kCall = "ProtectionDomain::register_memory";
  return guarded(kCall, [&] {
    mem::RegionSpec spec;
    set_memory(spec, memory);
    return register_spec(kCall, spec, options);
  });
}

Result<MemoryRegion> ProtectionDomain::register_pieces(std::span<const std::span<std::byte>> pieces,
                                                       const RegionOptions& options) {
  constexpr const char* kCall = "ProtectionDomain::register_pieces";
  return guarded(kCall, [&] {
    std::vector<base::ByteSpan> octets;
    octets.reserve(pieces.size());
    for (const std::span<std::byte> piece : pieces) {
      octets.emplace_back(reinterpret_cast<uint8_t*>(piece.data()), piece.size());
    }
    mem::RegionSpec spec;
    spec.pieces = octets;
    return register_spec(kCall, spec, options);
  });
}

Status ProtectionDomain::reregister(MemoryRegion& region, const RegionChanges& changes) {
  constexpr const char* kCall = "ProtectionDomain::reregister";
  return guarded(kCall, [&]() -> Status {
    if (device_ == nullptr || region.device_ == nullptr) return empty_handle();
    if (auto ours = check_device("reregister: the region", *device_, *region.device_); !ours) {
      return ours;
    }
    const mem::Stag stag{region.stag_};
    std::vector<base::ByteSpan> pieces;
    auto spec = on_worker(
        *device_, [&](base::Now) { return device_->device->memory().describe(stag, pieces); });
    if (!spec) return tl::unexpected(spec.error());
    spec->pd = pd_;
    spec->key = changes.key;
    spec->rights = changes.access.value_or(spec->rights);
    if (changes.memory) {
      set_memory(*spec, *changes.memory);
      spec->offset = base_of(*spec);
    }
    spec->offset = changes.offset.value_or(*spec->offset);
    if (auto mapped = check_memory(kCall, device_->runtime->maps(), *spec); !mapped) return mapped;
    const auto renamed = on_worker(
        *device_, [&](base::Now) { return device_->device->reregister_memory(stag, *spec); });
    if (!renamed) return tl::unexpected(renamed.error());
    region.stag_ = renamed->value;
    region.address_ = *spec->offset;
    region.length_ = spec->octets();
    return {};
  });
}

Result<MemoryRegion> ProtectionDomain::allocate_region(uint32_t max_pieces) {
  return guarded("ProtectionDomain::allocate_region", [&]() -> Result<MemoryRegion> {
    if (device_ == nullptr) return empty_handle();
    const auto stag = on_worker(
        *device_, [&](base::Now) { return device_->device->allocate_region(pd_, max_pieces); });
    if (!stag) return tl::unexpected(stag.error());
    MemoryRegion region;
    region.device_ = device_;
    region.stag_ = stag->value;
    return region;
  });
}

Result<SharedReceiveQueue> ProtectionDomain::create_srq(const SharedReceiveQueueOptions& options) {
  return guarded("ProtectionDomain::create_srq", [&]() -> Result<SharedReceiveQueue> {
    if (device_ == nullptr) return empty_handle();
    const device::SharedReceiveSpec spec{.pd = pd_,
                                         .depth = options.depth,
                                         .max_sges = options.max_sges,
                                         .context = options.context};
    // A depth above the limits passes here, because the device refuses it.
    const uint64_t octets = rdmap::SharedReceiveQueue::octets_for(
        std::min(spec.depth, device_->device->config().limits.max_work_depth),
        std::min(spec.max_sges, kMaxSge));
    if (octets >= verbs::kWorthAsking) {
      auto enough =
          verbs::enough_memory("create_srq: " + std::to_string(spec.depth) + " receives", octets);
      if (!enough) return tl::unexpected(enough.error());
    }
    auto lock = verbs::QueueLock::make_if(options.several_threads || device_->several_threads);
    auto srq = on_worker(*device_, [&](base::Now) { return device_->device->create_srq(spec); });
    if (!srq) return tl::unexpected(srq.error());
    SharedReceiveQueue handle;
    handle.device_ = device_;
    handle.srq_ = *srq;
    handle.lock_ = std::move(lock);
    return handle;
  });
}

Result<MemoryWindow> ProtectionDomain::create_window(WindowType type) {
  return guarded("ProtectionDomain::create_window", [&]() -> Result<MemoryWindow> {
    if (device_ == nullptr) return empty_handle();
    if (type != WindowType::Domain && type != WindowType::QueuePair) {
      return tl::unexpected(Error{ErrorCode::InvalidArgument,
                                  "a memory window is of type 1 or of type 2: use an enumerator"});
    }
    const auto stag =
        on_worker(*device_, [&](base::Now) { return device_->device->allocate_window(pd_, type); });
    if (!stag) return tl::unexpected(stag.error());
    return MemoryWindow(device_, stag->value);
  });
}

Result<QueuePair> ProtectionDomain::create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                                              const QueuePairOptions& options) {
  if (device_ == nullptr || send_cq.device_ == nullptr || receive_cq.device_ == nullptr) {
    return empty_handle();
  }
  if (options.srq != nullptr && options.srq->srq_ == nullptr) return empty_handle();
  constexpr const char* kQueue = "create_qp: a completion queue";
  auto ours = check_device(kQueue, *device_, *send_cq.device_);
  if (ours) ours = check_device(kQueue, *device_, *receive_cq.device_);
  if (ours && options.srq != nullptr) {
    ours = check_device("create_qp: the shared receive queue", *device_, *options.srq->device_);
  }
  if (!ours) return tl::unexpected(ours.error());
  const device::QueuePairSpec spec{options, pd_, send_cq.cq_, receive_cq.cq_,
                                   options.srq == nullptr ? nullptr : options.srq->srq_};
  return guarded("ProtectionDomain::create_qp", [&]() -> Result<QueuePair> {
    if (auto enough = enough_for(spec, device_->device->config().limits); !enough) {
      return tl::unexpected(enough.error());
    }
    const bool several = options.several_threads || device_->several_threads;
    auto send_lock = verbs::QueueLock::make_if(several);
    auto receive_lock = verbs::QueueLock::make_if(several);
    auto qp = on_worker(*device_, [&](base::Now) { return device_->device->create_qp(spec); });
    if (!qp) return tl::unexpected(qp.error());
    QueuePair handle;
    handle.device_ = device_;
    handle.qp_ = *qp;
    handle.send_lock_ = std::move(send_lock);
    handle.receive_lock_ = std::move(receive_lock);
    return handle;
  });
}

}  // namespace rnic
