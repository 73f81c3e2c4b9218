#include "device/resources.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace rnic::device {

using base::fail;

Resources::Resources(const DeviceConfig& config, DeviceCounters& counters)
    : limits_(config.limits),
      counters_(counters),
      memory_({.stags = config.limits.max_regions, .max_pieces = config.limits.max_pieces,
               .watch_aliases = config.check_aliases},
              {config.secret[0] ^ config.seed, config.secret[1]}),
      pds_(config.limits.max_pds + 1),
      released_pds_(config.limits.max_pds + 1),
      pd_users_(config.limits.max_pds + 1),
      qps_(config.limits.max_qps + 1),
      numbers_(config.limits.max_qps) {}

Result<uint32_t> Resources::alloc_pd() {
  for (uint32_t pd = 1; pd < pds_.size(); ++pd) {
    if (pds_[pd]) continue;
    pds_[pd] = true;
    released_pds_[pd] = false;
    pd_users_[pd] = 0;
    return pd;
  }
  return fail(ErrorCode::ResourceExhausted,
              "no protection domain left: raise limits.max_pds (now " +
                  std::to_string(limits_.max_pds) + ") or free one");
}

Status Resources::free_pd(uint32_t pd) {
  if (!has_pd(pd)) {
    return fail(ErrorCode::NotFound, "no such protection domain: " + std::to_string(pd));
  }
  if (pd_users_[pd] != 0) {
    return fail(ErrorCode::WrongState, "the protection domain still has " +
                                           std::to_string(pd_users_[pd]) +
                                           " regions or queue pairs: remove them first");
  }
  pds_[pd] = false;
  return {};
}

void Resources::release_pd(uint32_t pd) {
  if (!has_pd(pd)) return;
  released_pds_[pd] = true;
  pds_[pd] = pd_users_[pd] != 0;
}

void Resources::drop_pd_user(uint32_t pd) {
  --pd_users_[pd];
  if (released_pds_[pd]) release_pd(pd);
}

Result<mem::Stag> Resources::register_memory(const mem::RegionSpec& spec) {
  if (!has_pd(spec.pd)) {
    return fail(ErrorCode::NotFound, "register_memory: no such protection domain");
  }
  auto stag = memory_.add(spec);
  if (!stag) return stag;
  ++pd_users_[spec.pd];
  ++counters_.regions_registered;
  return stag;
}

Result<mem::Stag> Resources::reregister_memory(mem::Stag stag, const mem::RegionSpec& spec) {
  if (!has_pd(spec.pd)) {
    return fail(ErrorCode::NotFound, "reregister_memory: no such protection domain");
  }
  const uint32_t before = memory_.pd_of(stag);
  auto renamed = memory_.change(stag, spec);
  if (!renamed) return renamed;
  ++pd_users_[spec.pd];
  drop_pd_user(before);
  ++counters_.regions_reregistered;
  return renamed;
}

Result<mem::Stag> Resources::allocate_region(uint32_t pd, uint32_t max_pieces) {
  if (!has_pd(pd)) {
    return fail(ErrorCode::NotFound, "allocate_region: no such protection domain");
  }
  auto stag = memory_.add_allocated(pd, max_pieces);
  if (!stag) return stag;
  ++pd_users_[pd];
  ++counters_.regions_registered;
  return stag;
}

Result<mem::Stag> Resources::allocate_window(uint32_t pd, WindowType type) {
  if (!has_pd(pd)) {
    return fail(ErrorCode::NotFound, "allocate_window: no such protection domain");
  }
  auto stag = memory_.add_window(pd, type);
  if (!stag) return stag;
  ++pd_users_[pd];
  ++counters_.windows_allocated;
  return stag;
}

Result<mem::Stag> Resources::bind_window(const mem::Binding& binding) {
  auto stag = memory_.bind_for_domain(binding);
  if (stag) ++counters_.windows_bound;
  return stag;
}

void Resources::free_window(mem::Stag stag) {
  const uint32_t pd = memory_.pd_of(stag);
  if (!memory_.remove(stag)) return;
  drop_pd_user(pd);
  ++counters_.windows_freed;
}

Status Resources::deregister_memory(mem::Stag stag) {
  if (const uint32_t bound = memory_.dependents(stag); bound != 0) {
    return fail(ErrorCode::WrongState, "the region has " + std::to_string(bound) +
                                           " windows bound to it: end these first");
  }
  const uint32_t pd = memory_.pd_of(stag);
  if (auto status = memory_.remove(stag); !status) return status;
  drop_pd_user(pd);
  ++counters_.regions_deregistered;
  return {};
}

void Resources::release_memory(mem::Stag stag) {
  const uint32_t pd = memory_.pd_of(stag);
  if (!memory_.remove(stag)) return;
  drop_pd_user(pd);
  ++counters_.regions_deregistered;
}

Result<CompletionQueue*> Resources::create_cq(uint32_t depth) {
  if (depth == 0 || depth > 2 * limits_.max_work_depth) {
    return fail(ErrorCode::InvalidArgument, "completion queue depth " + std::to_string(depth) +
                                                " is outside 1.." +
                                                std::to_string(2 * limits_.max_work_depth));
  }
  if (cqs_.size() >= limits_.max_cqs) {
    return fail(ErrorCode::ResourceExhausted,
                "no completion queue left: raise limits.max_cqs (now " +
                    std::to_string(limits_.max_cqs) + ") or destroy one");
  }
  cqs_.push_back(std::make_unique<CompletionQueue>(depth));
  return cqs_.back().get();
}

Status Resources::destroy_cq(CompletionQueue* cq) {
  const auto it = std::find_if(cqs_.begin(), cqs_.end(), [&](auto& c) { return c.get() == cq; });
  if (it == cqs_.end()) return fail(ErrorCode::NotFound, "no such completion queue");
  if (cq->users() != 0) {
    return fail(ErrorCode::WrongState, "the completion queue is used by " +
                                           std::to_string(cq->users()) +
                                           " queue pairs: destroy them first");
  }
  cqs_.erase(it);
  return {};
}

void Resources::release_cq(CompletionQueue* cq) {
  cq->release();
  if (cq->users() == 0) static_cast<void>(destroy_cq(cq));
}

void Resources::drop_cq_user(CompletionQueue& cq) {
  cq.drop_user();
  if (cq.is_released()) release_cq(&cq);
}

Status Resources::check_spec(const QueuePairSpec& spec) const {
  if (!has_pd(spec.pd)) {
    return fail(ErrorCode::NotFound, "create_qp: no such protection domain");
  }
  if (spec.send_cq == nullptr || spec.receive_cq == nullptr) {
    return fail(ErrorCode::InvalidArgument,
                "create_qp: a send and a receive completion queue are needed");
  }
  if (spec.send_depth > limits_.max_work_depth || spec.receive_depth > limits_.max_work_depth) {
    return fail(ErrorCode::InvalidArgument,
                "create_qp: a queue is deeper than limits.max_work_depth (" +
                    std::to_string(limits_.max_work_depth) + ")");
  }
  if (spec.ird > limits_.max_reads || spec.ord > limits_.max_reads) {
    return fail(ErrorCode::InvalidArgument, "create_qp: IRD or ORD is above limits.max_reads (" +
                                                std::to_string(limits_.max_reads) + ")");
  }
  return {};
}

Result<QueuePair*> Resources::create_qp(const QueuePairSpec& spec, const QueuePairParts& parts) {
  if (auto status = check_spec(spec); !status) return tl::unexpected(status.error());
  const std::optional<uint32_t> number = numbers_.take();
  if (!number) {
    return fail(ErrorCode::ResourceExhausted, "no queue pair left: raise limits.max_qps (now " +
                                                  std::to_string(limits_.max_qps) +
                                                  ") or destroy one");
  }
  const uint32_t slot = numbers_.slot_of(*number);
  try {
    qps_[slot] = std::make_unique<QueuePair>(*number, slot, spec, parts, memory_);
  } catch (...) {
    numbers_.give_back(*number);
    throw;
  }
  ++pd_users_[spec.pd];
  spec.send_cq->add_user();
  spec.receive_cq->add_user();
  return qps_[slot].get();
}

Result<std::unique_ptr<QueuePair>> Resources::take_qp(QueuePair* qp) {
  // One that is gone may not be asked for its number.
  const auto place = std::find_if(qps_.begin(), qps_.end(), [&](auto& q) { return q.get() == qp; });
  if (qp == nullptr || place == qps_.end()) return fail(ErrorCode::NotFound, "no such queue pair");
  const QueuePairSpec& spec = qp->spec();
  numbers_.give_back(qp->number());
  drop_pd_user(spec.pd);
  // The first of two drops leaves one user where both are the same queue.
  drop_cq_user(*spec.send_cq);
  drop_cq_user(*spec.receive_cq);
  return std::move(*place);
}

}  // namespace rnic::device
