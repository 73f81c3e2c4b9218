#include "rnic-run/memory.hpp"

#include <cerrno>
#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <utility>

#include "rnic-run/queue_pairs.hpp"

namespace rnic::run {

namespace {

std::span<std::byte> octets(void* memory, size_t length) {
  return {static_cast<std::byte*>(memory), length};
}

/// As the kernel's verbs. \return 0, or errno
int check(int access) {
  // Hints, which the device may leave alone, are IBV_ACCESS_HUGETLB and those of the last range.
  constexpr int kKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                         IBV_ACCESS_HUGETLB | static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  if ((access & ~kKnown) != 0) {
    return refused(EOPNOTSUPP, "a region with an access that the device has not (paging on demand, "
                               "for one)");
  }
  const bool changed_by_peers =
      (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (changed_by_peers && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return refused(EINVAL, "a region in which peers may write, and this side may not");
  }
  return 0;
}

}  // namespace

AccessSet rights(unsigned access) {
  AccessSet out;
  if ((access & IBV_ACCESS_LOCAL_WRITE) != 0) out |= Access::LocalWrite;
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) out |= Access::RemoteWrite;
  if ((access & IBV_ACCESS_REMOTE_READ) != 0) out |= Access::RemoteRead;
  if ((access & IBV_ACCESS_REMOTE_ATOMIC) != 0) out |= Access::RemoteAtomic;
  if ((access & IBV_ACCESS_MW_BIND) != 0) out |= Access::Bind;
  return out;
}

AccessSet rights_of_window(unsigned access) {
  return rights(access & ~static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE));
}

ibv_pd* Domain::alloc(ibv_context* context) {
  auto made = Adapter::get()->device().alloc_pd();
  auto* pd = made ? new (std::nothrow) Domain : nullptr;
  if (pd == nullptr) {
    errno = made ? ENOMEM : as_errno(made.error());
    return nullptr;
  }
  pd->domain = std::move(*made);
  pd->shown.context = context;
  return &pd->shown;
}

int Domain::dealloc(ibv_pd* pd) {
  Domain& domain = of(pd);
  const int refused = given_back(domain.domain.destroy());
  if (refused == 0) delete &domain;
  return refused;
}

ibv_mr* Region::make(ibv_pd* pd, void* memory, size_t length, uint64_t offset, int access) {
  if (const int refused = check(access)) {
    errno = refused;
    return nullptr;
  }
  RegionOptions options{.access = rights(static_cast<unsigned>(access)), .offset = offset};
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) options.offset = 0;
  auto made = Domain::of(pd).domain.register_memory(octets(memory, length), options);
  auto* region = made ? new (std::nothrow) Region : nullptr;
  if (region == nullptr) {
    errno = made ? ENOMEM : as_errno(made.error());
    return nullptr;
  }
  region->region = std::move(*made);
  region->shown.access = access;
  region->shown.mr.lkey = region->region.stag();
  region->shown.mr.rkey = region->region.stag();
  return &region->shown.mr;
}

int Region::change(abi::Region* shown, int flags, ibv_pd* pd, void* memory, size_t length,
                   int access) {
  Region& region = of(&shown->mr);
  if (flags == 0) return refused(EINVAL, "rereg_mr: nothing is to be changed");
  RegionChanges changes;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    if (const int refused = check(access)) return refused;
    changes.access = rights(static_cast<unsigned>(access));
  }
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) changes.memory = octets(memory, length);
  ibv_pd* into = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : shown->mr.pd;
  auto status = Domain::of(into).domain.reregister(region.region, changes);
  if (!status) return as_errno(status.error());
  shown->mr.lkey = region.region.stag();
  shown->mr.rkey = region.region.stag();
  return 0;
}

int Region::deregister(abi::Region* shown) {
  Region& region = of(&shown->mr);
  const int refused = given_back(region.region.deregister());
  if (refused == 0) delete &region;
  return refused;
}

ibv_mw* Window::alloc(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    errno = EINVAL;
    return nullptr;
  }
  const WindowType kind = type == IBV_MW_TYPE_1 ? WindowType::Domain : WindowType::QueuePair;
  auto made = Domain::of(pd).domain.create_window(kind);
  auto* window = made ? new (std::nothrow) Window : nullptr;
  if (window == nullptr) {
    errno = made ? ENOMEM : as_errno(made.error());
    return nullptr;
  }
  window->window = std::move(*made);
  window->shown.context = pd->context;
  window->shown.pd = pd;
  window->shown.rkey = window->window.stag();
  window->shown.handle = window->window.stag();
  window->shown.type = type;
  return &window->shown;
}

int Window::dealloc(ibv_mw* shown) {
  Window& window = of(shown);
  const int refused = given_back(window.window.destroy());
  if (refused == 0) delete &window;
  return refused;
}

int Window::bind(ibv_qp* qp, ibv_mw* shown, ibv_mw_bind* how) {
  Window& window = of(shown);
  const ibv_mw_bind_info& info = how->bind_info;
  if (qp->pd != shown->pd || info.length > std::numeric_limits<uint32_t>::max()) return EINVAL;
  const bool unbinds = info.mr == nullptr || info.length == 0;
  const Status status =
      unbinds ? window.window.unbind()
              : window.window.bind(Region::of(info.mr).region, info.addr,
                                   static_cast<uint32_t>(info.length),
                                   rights_of_window(info.mw_access_flags));
  if (!status) return as_errno(status.error());
  shown->rkey = window.window.stag();
  const bool signaled = (how->send_flags & IBV_SEND_SIGNALED) != 0;
  return QueuePairs::of(qp).window_bound(how->wr_id, signaled) ? 0 : ENOMEM;
}

}  // namespace rnic::run
