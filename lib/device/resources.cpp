#include "device/resources.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/quantities.hpp"

namespace rnic::device {

using base::fail;

namespace {

/// What the consumer of a queue pair has for it.
ResourceCounts share_of(const QueuePairSpec& spec) {
  return {.qps = 1, .reads = uint64_t{spec.ird} + spec.ord};
}

/// What of `amount` is beyond the other.
uint64_t beyond(uint64_t amount, uint64_t other) { return amount > other ? amount - other : 0; }

}  // namespace

Resources::Resources(const DeviceConfig& config, DeviceCounters& counters, Consumers& consumers,
                     base::Now now)
    : limits_(config.limits),
      counters_(counters),
      consumers_(consumers),
      memory_({.stags = config.limits.max_regions,
               .max_pieces = config.limits.max_pieces,
               .watch_aliases = config.check_aliases,
               .lasting = config.shortcuts},
              {config.secret[0] ^ config.seed, config.secret[1]}),
      domains_(config.limits.max_pds + 1),
      notify_(now),
      srqs_(config.limits.max_srqs),
      qps_(config.limits.max_qps + 1),
      numbers_(config.limits.max_qps) {}

Result<uint32_t> Resources::alloc_pd(uint32_t consumer) {
  if (auto status = consumers_.check("alloc_pd", consumer); !status) {
    return tl::unexpected(status.error());
  }
  for (uint32_t pd = 1; pd < domains_.size(); ++pd) {
    if (domains_[pd].used) continue;
    if (auto status = consumers_.take(consumer, "alloc_pd", {.pds = 1}); !status) {
      return tl::unexpected(status.error());
    }
    domains_[pd] = {.used = true, .consumer = consumer};
    return pd;
  }
  return fail(ErrorCode::ResourceExhausted,
              "no protection domain left: raise limits.max_pds (now " +
                  std::to_string(limits_.max_pds) + ") or free one");
}

void Resources::end_pd(uint32_t pd) {
  domains_[pd].used = false;
  consumers_.give_back(domains_[pd].consumer, {.pds = 1});
}

Status Resources::free_pd(uint32_t pd) {
  if (!has_pd(pd)) {
    return fail(ErrorCode::NotFound, "no such protection domain: " + std::to_string(pd));
  }
  const DomainUsers& users = domains_[pd].users;
  if (!users.none()) {
    const std::string has =
        base::in_words({{users.regions, "region", "regions"},
                        {users.windows, "window", "windows"},
                        {users.srqs, "shared receive queue", "shared receive queues"},
                        {users.qps, "queue pair", "queue pairs"}});
    return fail(ErrorCode::WrongState,
                "the protection domain still has " + has + ": destroy what it has first");
  }
  end_pd(pd);
  return {};
}

void Resources::release_pd(uint32_t pd) {
  if (!has_pd(pd)) return;
  domains_[pd].released = true;
  if (domains_[pd].users.none()) end_pd(pd);
}

void Resources::drop_pd_user(uint32_t pd, UserKind kind, const ResourceCounts& amounts) {
  consumers_.give_back(domains_[pd].consumer, amounts);
  --(domains_[pd].users.*kind);
  if (domains_[pd].released) release_pd(pd);
}

Result<mem::Stag> Resources::register_memory(const mem::RegionSpec& spec) {
  if (!has_pd(spec.pd)) {
    return fail(ErrorCode::NotFound, "register_memory: no such protection domain");
  }
  TakenShare share =
      share_in(spec.pd, "register_memory",
               {.regions = 1, .registered_octets = spec.octets(), .pieces = spec.kept_pieces()});
  if (!share.status()) return tl::unexpected(share.status().error());
  auto stag = memory_.add(spec);
  if (!stag) return stag;
  share.keep();
  ++domains_[spec.pd].users.regions;
  ++counters_.regions_registered;
  return stag;
}

Result<mem::Stag> Resources::reregister_memory(mem::Stag stag, const mem::RegionSpec& spec) {
  if (!has_pd(spec.pd)) {
    return fail(ErrorCode::NotFound, "reregister_memory: no such protection domain");
  }
  const uint32_t before = memory_.pd_of(stag);
  if (domains_[before].used && domains_[before].consumer != domains_[spec.pd].consumer) {
    return fail(ErrorCode::PermissionDenied,
                "reregister_memory: the region belongs to another consumer than the domain: "
                "deregister it there, and register it here");
  }
  if (spec.stream && domains_[before].used && before != spec.pd) {
    return fail(ErrorCode::InvalidArgument,
                "reregister_memory: the region is bound to a queue pair of the domain that it "
                "would leave, and nobody could use it: deregister it, and register it here");
  }
  const ResourceCounts had = region_share(stag);
  const ResourceCounts wanted{.registered_octets = spec.octets(), .pieces = spec.kept_pieces()};
  TakenShare more =
      share_in(spec.pd, "reregister_memory",
               {.registered_octets = beyond(wanted.registered_octets, had.registered_octets),
                .pieces = beyond(wanted.pieces, had.pieces)});
  if (!more.status()) return tl::unexpected(more.status().error());
  auto renamed = memory_.change(stag, spec);
  if (!renamed) return renamed;
  more.keep();
  ++domains_[spec.pd].users.regions;
  drop_pd_user(before, &DomainUsers::regions,
               {.registered_octets = beyond(had.registered_octets, wanted.registered_octets),
                .pieces = beyond(had.pieces, wanted.pieces)});
  ++counters_.regions_reregistered;
  return renamed;
}

Result<mem::Stag> Resources::allocate_region(uint32_t pd, uint32_t max_pieces) {
  if (!has_pd(pd)) {
    return fail(ErrorCode::NotFound, "allocate_region: no such protection domain");
  }
  TakenShare share = share_in(pd, "allocate_region", {.regions = 1, .pieces = max_pieces});
  if (!share.status()) return tl::unexpected(share.status().error());
  auto stag = memory_.add_allocated(pd, max_pieces);
  if (!stag) return stag;
  share.keep();
  ++domains_[pd].users.regions;
  ++counters_.regions_registered;
  return stag;
}

Result<mem::Stag> Resources::allocate_window(uint32_t pd, WindowType type) {
  if (!has_pd(pd)) {
    return fail(ErrorCode::NotFound, "allocate_window: no such protection domain");
  }
  TakenShare share = share_in(pd, "allocate_window", {.regions = 1});
  if (!share.status()) return tl::unexpected(share.status().error());
  auto stag = memory_.add_window(pd, type);
  if (!stag) return stag;
  share.keep();
  ++domains_[pd].users.windows;
  ++counters_.windows_allocated;
  return stag;
}

Result<mem::Stag> Resources::bind_window(const mem::Binding& binding) {
  auto stag = memory_.bind_for_domain(binding);
  if (stag) ++counters_.windows_bound;
  return stag;
}

/// What the consumer of an STag has for it.
ResourceCounts Resources::region_share(mem::Stag stag) const {
  return {.regions = 1,
          .registered_octets = memory_.octets_of(stag),
          .pieces = memory_.pieces_of(stag)};
}

/// Ends a region or a window that its owner has; its domain loses a user.
Status Resources::end_stag(mem::Stag stag) {
  const uint32_t pd = memory_.pd_of(stag);
  const ResourceCounts share = region_share(stag);
  const UserKind kind = memory_.is_window(stag) ? &DomainUsers::windows : &DomainUsers::regions;
  if (auto status = memory_.remove(stag); !status) return status;
  drop_pd_user(pd, kind, share);
  return {};
}

void Resources::free_window(mem::Stag stag) {
  if (end_stag(stag)) ++counters_.windows_freed;
}

Status Resources::deregister_memory(mem::Stag stag) {
  if (memory_.dependents(stag) != 0) {
    return fail(ErrorCode::WrongState,
                "the region has " + memory_.dependents_in_words(stag) + ": end these first");
  }
  auto status = end_stag(stag);
  if (status) ++counters_.regions_deregistered;
  return status;
}

void Resources::release_memory(mem::Stag stag) {
  if (end_stag(stag)) ++counters_.regions_deregistered;
}

Status Resources::check_cq_depth(const char* call, uint32_t depth) const {
  if (depth != 0 && depth <= deepest_cq(limits_)) return {};
  return fail(ErrorCode::InvalidArgument,
              std::string(call) + ": a depth of " + std::to_string(depth) + " is outside 1.." +
                  std::to_string(deepest_cq(limits_)) +
                  " (limits.max_cq_depth, or twice "
                  "limits.max_work_depth): raise one of them, or use several queues");
}

Result<CompletionQueue*> Resources::create_cq(uint32_t depth, const CompletionQueueOptions& options,
                                              uint32_t consumer) {
  auto status = check_cq_depth("create_cq", depth);
  if (status) status = NotifyModerator::check("create_cq", options.moderation);
  if (status) status = consumers_.check("create_cq", consumer);
  if (!status) return tl::unexpected(status.error());
  if (cqs_.size() >= limits_.max_cqs) {
    return fail(ErrorCode::ResourceExhausted,
                "no completion queue left: raise limits.max_cqs (now " +
                    std::to_string(limits_.max_cqs) + ") or destroy one");
  }
  TakenShare share(consumers_, consumer, "create_cq",
                   {.cqs = 1, .cq_entries = CompletionQueue::depth_for(depth)});
  if (!share.status()) return tl::unexpected(share.status().error());
  cqs_.push_back(
      std::make_unique<CompletionQueue>(last_cq_ + 1, depth, options, notify_, consumer, &pages_));
  share.keep();
  ++last_cq_;
  return cqs_.back().get();
}

Status Resources::resize_cq(CompletionQueue& cq, uint32_t depth) {
  if (auto status = check_cq_depth("resize", depth); !status) return status;
  if (const uint64_t demand = demand_of(cq); cq.fits_all() && depth < demand) {
    return fail(ErrorCode::WrongState, "resize: the queues that complete there need " +
                                           std::to_string(demand) + " completions, more than " +
                                           std::to_string(depth) + ": give it that depth");
  }
  const uint64_t had = cq.depth();
  const uint64_t wanted = CompletionQueue::depth_for(depth);
  TakenShare more(consumers_, cq.consumer(), "resize", {.cq_entries = beyond(wanted, had)});
  if (!more.status()) return more.status();
  if (!cq.resize(depth)) {
    return fail(ErrorCode::WrongState,
                "resize: the completion queue has " + std::to_string(cq.waiting()) +
                    " completions, more than " + std::to_string(depth) + ": poll it first");
  }
  more.keep();
  consumers_.give_back(cq.consumer(), {.cq_entries = beyond(had, wanted)});
  return {};
}

bool Resources::takes_from(const CompletionQueue& cq, const SharedReceiveQueue& srq) const {
  return std::any_of(qps_.begin(), qps_.end(), [&](const auto& qp) {
    return qp != nullptr && qp->spec().srq == &srq && qp->spec().receive_cq == &cq;
  });
}

/// RFC 5042 s.6.4.3.2: the sum of the sizes of all queues that complete there.
uint64_t Resources::demand_of(const CompletionQueue& cq) const {
  uint64_t demand = 0;
  for (const auto& qp : qps_) {
    if (qp == nullptr) continue;
    const QueuePairSpec& spec = qp->spec();
    if (spec.send_cq == &cq) demand += spec.send_depth;
    if (spec.receive_cq == &cq && spec.srq == nullptr) demand += spec.receive_depth;
  }
  for (const auto& srq : srqs_) {
    if (srq != nullptr && takes_from(cq, *srq)) demand += srq->depth();
  }
  return demand;
}

CqInfo Resources::info(const CompletionQueue& cq) const {
  return {.depth = cq.depth(),
          .waiting = cq.waiting(),
          .demand = demand_of(cq),
          .users = cq.users(),
          .overrun = cq.is_overrun(),
          .completions = cq.added(),
          .failed = cq.failed(),
          .lost = cq.lost()};
}

/// \param more completions that would be added to the present demand
Status Resources::check_fits(const CompletionQueue& cq, uint64_t more) const {
  if (!cq.fits_all()) return {};
  const uint64_t demand = demand_of(cq) + more;
  if (demand <= cq.depth()) return {};
  return fail(ErrorCode::InvalidArgument, "completion queue " + std::to_string(cq.number()) +
                                              " is to hold what can come to it (" +
                                              std::to_string(demand) +
                                              " completions), and has room for " +
                                              std::to_string(cq.depth()) + ": resize it first");
}

/// Checks that the completion queues hold what a queue pair of `spec` adds to their demand.
Status Resources::check_demand(const QueuePairSpec& spec) const {
  if (!spec.send_cq->fits_all() && !spec.receive_cq->fits_all()) return {};
  uint64_t receives = spec.receive_depth;
  if (spec.srq != nullptr) {
    receives = takes_from(*spec.receive_cq, *spec.srq) ? 0 : spec.srq->depth();
  }
  const bool one = spec.send_cq == spec.receive_cq;
  const uint64_t sends = spec.send_depth + (one ? receives : 0);
  if (auto status = check_fits(*spec.send_cq, sends); !status || one) return status;
  return check_fits(*spec.receive_cq, receives);
}

Status Resources::destroy_cq(CompletionQueue* cq) {
  const auto it = std::find_if(cqs_.begin(), cqs_.end(), [&](auto& c) { return c.get() == cq; });
  if (it == cqs_.end()) return fail(ErrorCode::NotFound, "no such completion queue");
  if (cq->users() != 0) {
    const std::string users =
        base::in_words({{cq->users(), "send or receive queue", "send and receive queues"}});
    return fail(ErrorCode::WrongState,
                "the completion queue is used by " + users + ": destroy their queue pairs first");
  }
  const ResourceCounts share{.cqs = 1, .cq_entries = cq->depth()};
  const uint32_t consumer = cq->consumer();
  cqs_.erase(it);
  consumers_.give_back(consumer, share);
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

Status Resources::check_depth(const char* call, uint32_t depth) const {
  if (depth != 0 && depth <= limits_.max_work_depth) return {};
  return fail(ErrorCode::InvalidArgument, std::string(call) + ": depth " + std::to_string(depth) +
                                              " is outside 1..limits.max_work_depth (" +
                                              std::to_string(limits_.max_work_depth) + ")");
}

Result<SharedReceiveQueue*> Resources::create_srq(const SharedReceiveSpec& spec,
                                                  EventQueue& events) {
  if (!has_pd(spec.pd)) return fail(ErrorCode::NotFound, "create_srq: no such protection domain");
  if (auto status = check_depth("create_srq", spec.depth); !status) {
    return tl::unexpected(status.error());
  }
  if (spec.max_sges > kMaxSge) {
    return fail(ErrorCode::InvalidArgument,
                "create_srq: receives of " + std::to_string(spec.max_sges) +
                    " scatter/gather elements: at most " + std::to_string(kMaxSge));
  }
  const auto place = std::find(srqs_.begin(), srqs_.end(), nullptr);
  if (place == srqs_.end()) {
    return fail(ErrorCode::ResourceExhausted,
                "no shared receive queue left: raise limits.max_srqs (now " +
                    std::to_string(limits_.max_srqs) + ") or destroy one");
  }
  TakenShare share = share_in(spec.pd, "create_srq", {.srqs = 1});
  if (!share.status()) return tl::unexpected(share.status().error());
  const QueuePairContexts& contexts = *this;
  *place = std::make_unique<SharedReceiveQueue>(last_srq_ + 1, spec, events, contexts);
  share.keep();
  ++last_srq_;
  ++domains_[spec.pd].users.srqs;
  return place->get();
}

Status Resources::destroy_srq(SharedReceiveQueue* srq) {
  const auto it = std::find_if(srqs_.begin(), srqs_.end(), [&](auto& s) { return s.get() == srq; });
  if (srq == nullptr || it == srqs_.end()) {
    return fail(ErrorCode::NotFound, "no such shared receive queue");
  }
  if (srq->users() != 0) {
    return fail(ErrorCode::WrongState,
                "the shared receive queue is used by " +
                    base::in_words({{srq->users(), "queue pair", "queue pairs"}}) +
                    ": destroy them first");
  }
  const uint32_t pd = srq->pd();
  it->reset();
  drop_pd_user(pd, &DomainUsers::srqs, {.srqs = 1});
  return {};
}

void Resources::release_srq(SharedReceiveQueue* srq) {
  srq->release();
  if (srq->users() == 0) static_cast<void>(destroy_srq(srq));
}

void Resources::drop_srq_user(SharedReceiveQueue& srq) {
  srq.drop_user();
  if (srq.is_released()) release_srq(&srq);
}

Status Resources::resize_srq(SharedReceiveQueue& srq, uint32_t depth) {
  if (auto status = check_depth("resize", depth); !status) return status;
  for (const auto& cq : cqs_) {
    if (depth <= srq.depth() || !cq->fits_all() || !takes_from(*cq, srq)) continue;
    if (auto status = check_fits(*cq, depth - srq.depth()); !status) return status;
  }
  if (srq.resize(depth)) return {};
  const uint32_t held = srq.posted() + srq.taken();
  return fail(ErrorCode::WrongState, "resize: the shared receive queue has " +
                                         std::to_string(held) + " receives, more than " +
                                         std::to_string(depth) + ": wait until fewer are posted");
}

SrqInfo Resources::info(const SharedReceiveQueue& srq) const {
  const rdmap::SharedReceiveQueue& queue = srq;
  SrqInfo info{.depth = queue.depth(),
               .max_sges = queue.max_sges(),
               .posted = queue.posted(),
               .taken = queue.taken(),
               .limit = queue.limit(),
               .high_water = queue.high_water(),
               .queue_pairs = {}};
  info.queue_pairs.reserve(srq.users());
  for (const auto& qp : qps_) {
    if (qp != nullptr && qp->spec().srq == &srq) info.queue_pairs.push_back(qp->srq_use());
  }
  return info;
}

uint32_t Resources::resume_waiting(base::Now now) {
  uint32_t resumed = 0;
  for (const auto& srq : srqs_) {
    while (srq != nullptr) {
      const std::optional<uint32_t> number = srq->to_resume();
      if (!number) break;
      qps_[numbers_.slot_of(*number)]->resume(now);
      ++resumed;
    }
  }
  return resumed;
}

bool Resources::can_resume() const {
  return std::any_of(srqs_.begin(), srqs_.end(),
                     [](const auto& srq) { return srq != nullptr && srq->to_resume(); });
}

void* Resources::context_of(uint32_t qp) const {
  const uint32_t slot = numbers_.slot_of(qp);
  const QueuePair* found = slot < qps_.size() ? qps_[slot].get() : nullptr;
  return found != nullptr && found->number() == qp ? found->context() : nullptr;
}

void Resources::describe(DeviceLimits& limits) const {
  const auto number_of = [](const auto& of, auto&& used) {
    return static_cast<uint32_t>(std::count_if(of.begin(), of.end(), used));
  };
  limits.max_pds = limits_.max_pds;
  limits.pds = number_of(domains_, [](const Domain& domain) { return domain.used; });
  limits.max_cqs = limits_.max_cqs;
  limits.cqs = static_cast<uint32_t>(cqs_.size());
  limits.max_srqs = limits_.max_srqs;
  limits.srqs = number_of(srqs_, [](const auto& srq) { return srq != nullptr; });
  limits.max_qps = limits_.max_qps;
  limits.qps = number_of(qps_, [](const auto& qp) { return qp != nullptr; });
  limits.max_regions = limits_.max_regions;
  limits.regions = memory_.live();
  limits.max_pieces = limits_.max_pieces;
  limits.pieces = memory_.pieces();
  limits.max_work_depth = limits_.max_work_depth;
  limits.max_cq_depth = deepest_cq(limits_);
  limits.max_reads = limits_.max_reads;
}

Status Resources::check_spec(const QueuePairSpec& spec) const {
  if (!has_pd(spec.pd)) {
    return fail(ErrorCode::NotFound, "create_qp: no such protection domain");
  }
  if (spec.send_cq == nullptr || spec.receive_cq == nullptr) {
    return fail(ErrorCode::InvalidArgument,
                "create_qp: a send and a receive completion queue are needed: give both");
  }
  if (spec.send_cq->is_overrun() || spec.receive_cq->is_overrun()) {
    return fail(ErrorCode::WrongState,
                "create_qp: a completion queue is in error, completions were lost: resize it, or "
                "make another one");
  }
  if (spec.receive_wait < base::Duration(0)) {
    return fail(ErrorCode::InvalidArgument,
                "create_qp: receive_wait is negative: give 0 for no wait for a receive");
  }
  if (spec.send_depth > limits_.max_work_depth || spec.receive_depth > limits_.max_work_depth) {
    return fail(ErrorCode::InvalidArgument,
                "create_qp: a queue is deeper than limits.max_work_depth (" +
                    std::to_string(limits_.max_work_depth) + "): raise that");
  }
  if (spec.srq != nullptr && spec.srq->pd() != spec.pd) {
    return fail(ErrorCode::InvalidArgument,
                "create_qp: the shared receive queue belongs to another protection domain: use one "
                "of the same");
  }
  if (spec.ird > limits_.max_reads || spec.ord > limits_.max_reads) {
    return fail(ErrorCode::InvalidArgument, "create_qp: IRD or ORD is above limits.max_reads (" +
                                                std::to_string(limits_.max_reads) +
                                                "): raise that");
  }
  return {};
}

/// RFC 5042 s.7.1: consumers that do not trust each other share no completion queue.
Status Resources::check_one_consumer(const QueuePairSpec& spec) const {
  const uint32_t consumer = domains_[spec.pd].consumer;
  if (spec.send_cq->consumer() == consumer && spec.receive_cq->consumer() == consumer) return {};
  return fail(ErrorCode::PermissionDenied,
              "create_qp: a completion queue belongs to another consumer than the protection "
              "domain: make both under one consumer, as consumers share no queues");
}

Result<QueuePair*> Resources::create_qp(const QueuePairSpec& spec, const QueuePairParts& parts) {
  if (auto status = check_spec(spec); !status) return tl::unexpected(status.error());
  if (auto status = check_one_consumer(spec); !status) return tl::unexpected(status.error());
  if (auto status = check_demand(spec); !status) return tl::unexpected(status.error());
  TakenShare share = share_in(spec.pd, "create_qp", share_of(spec));
  if (!share.status()) return tl::unexpected(share.status().error());
  QueuePairSpec whole = spec;
  whole.hold_share = consumers_.hold_share(domains_[spec.pd].consumer);
  const std::optional<uint32_t> number = numbers_.take();
  if (!number) {
    return fail(ErrorCode::ResourceExhausted, "no queue pair left: raise limits.max_qps (now " +
                                                  std::to_string(limits_.max_qps) +
                                                  ") or destroy one");
  }
  const uint32_t slot = numbers_.slot_of(*number);
  try {
    qps_[slot] = std::make_unique<QueuePair>(*number, slot, whole, parts, memory_, pages_);
  } catch (...) {
    numbers_.give_back(*number);
    throw;
  }
  share.keep();
  ++domains_[spec.pd].users.qps;
  spec.send_cq->add_user();
  spec.receive_cq->add_user();
  if (spec.srq != nullptr) spec.srq->add_user();
  return qps_[slot].get();
}

Result<std::unique_ptr<QueuePair>> Resources::take_qp(QueuePair* qp) {
  // `qp` may point to a queue pair that is gone, so only the pointer is compared.
  const auto place = std::find_if(qps_.begin(), qps_.end(), [&](auto& q) { return q.get() == qp; });
  if (qp == nullptr || place == qps_.end()) return fail(ErrorCode::NotFound, "no such queue pair");
  const QueuePairSpec& spec = qp->spec();
  numbers_.give_back(qp->number());
  qp->leave_srq();
  drop_pd_user(spec.pd, &DomainUsers::qps, share_of(spec));
  if (spec.srq != nullptr) drop_srq_user(*spec.srq);
  // If both are the same queue, the first drop leaves one user.
  drop_cq_user(*spec.send_cq);
  drop_cq_user(*spec.receive_cq);
  return std::move(*place);
}

Status Resources::set_reads(QueuePair& qp, uint32_t ird, uint32_t ord) {
  const uint64_t had = share_of(qp.spec()).reads;
  const uint64_t wanted = uint64_t{ird} + ord;
  TakenShare more = share_in(qp.spec().pd, "modify", {.reads = beyond(wanted, had)});
  if (!more.status()) return more.status();
  if (qp.state() == QueuePairState::Error) {
    qp.renew(numbers_.after(qp.number()), ird, ord);
  } else {
    qp.set_reads(ird, ord);
  }
  more.keep();
  consumers_.give_back(consumer_of(qp), {.reads = beyond(had, wanted)});
  return {};
}

void Resources::count(std::vector<ResourceCounts>& found) const {
  for (const Domain& domain : domains_) found[domain.consumer].pds += domain.used ? 1 : 0;
  for (const auto& cq : cqs_) {
    ++found[cq->consumer()].cqs;
    found[cq->consumer()].cq_entries += cq->depth();
  }
  for (const auto& srq : srqs_) {
    if (srq != nullptr) ++found[domains_[srq->pd()].consumer].srqs;
  }
  for (const auto& qp : qps_) {
    if (qp == nullptr) continue;
    ++found[consumer_of(*qp)].qps;
    found[consumer_of(*qp)].reads += share_of(qp->spec()).reads;
  }
}

}  // namespace rnic::device
