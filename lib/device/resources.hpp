/// \file
/// Resources of a device: protection domains, memory regions, completion queues, shared receive
/// queues and queue pairs, each in a table with a limit, the counts of their users, and the
/// consumers that they were made for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/page_store.hpp"
#include "device/completion_queue.hpp"
#include "device/config.hpp"
#include "device/consumers.hpp"
#include "device/counters.hpp"
#include "device/event_queue.hpp"
#include "device/queue_pair.hpp"
#include "device/queue_pair_numbers.hpp"
#include "device/shared_receive_queue.hpp"
#include "mem/stag_table.hpp"
#include "rnic/device_info.hpp"

namespace rnic::device {

/// Belongs to the worker.
class Resources final : private QueuePairContexts {
 public:
  /// \param config, counters, consumers outlive it
  Resources(const DeviceConfig& config, DeviceCounters& counters, Consumers& consumers,
            base::Now now);

  // Each object counts against the quotas of its consumer (ResourceExhausted): a domain and a
  // completion queue against those of the one that they are made for, everything else against those
  // of its domain's. Objects of two consumers are never used together (PermissionDenied).

  Result<uint32_t> alloc_pd(uint32_t consumer);
  /// WrongState while the domain has regions, shared receive queues or queue pairs.
  Status free_pd(uint32_t pd);
  /// The application's handle is gone: the domain goes with its last region, shared receive queue
  /// or queue pair.
  void release_pd(uint32_t pd);
  Result<mem::Stag> register_memory(const mem::RegionSpec& spec);
  /// Revokes a region: see Device::deregister_memory().
  Status deregister_memory(mem::Stag stag);
  /// Revokes a region with all windows that are bound to it.
  void release_memory(mem::Stag stag);
  Result<mem::Stag> reregister_memory(mem::Stag stag, const mem::RegionSpec& spec);
  /// Allocates an STag for fast registrations; deregister_memory() frees it.
  Result<mem::Stag> allocate_region(uint32_t pd, uint32_t max_pieces);
  /// Allocates the STag of a memory window; free_window() frees it.
  Result<mem::Stag> allocate_window(uint32_t pd, WindowType type);
  /// See mem::StagTable::bind_for_domain() and unbind().
  Result<mem::Stag> bind_window(const mem::Binding& binding);
  Status unbind_window(mem::Stag stag) { return memory_.unbind(stag); }
  void free_window(mem::Stag stag);
  /// With options.fits_all create_qp() and resize_*() refuse whatever could overrun the queue.
  /// InvalidArgument: the depth or the moderation is out of range.
  Result<CompletionQueue*> create_cq(uint32_t depth, const CompletionQueueOptions& options,
                                     uint32_t consumer);
  /// Gives the queue another depth; its completions stay. WrongState: it has more completions than
  /// that, or with `fits_all` the queues that complete there may bring more.
  Status resize_cq(CompletionQueue& cq, uint32_t depth);
  [[nodiscard]] CqInfo info(const CompletionQueue& cq) const;
  /// WrongState while queue pairs complete there.
  Status destroy_cq(CompletionQueue* cq);
  /// Nobody polls the queue any more: it goes with the last queue pair that completes there.
  void release_cq(CompletionQueue* cq);
  /// \param events of the device; outlives it
  Result<SharedReceiveQueue*> create_srq(const SharedReceiveSpec& spec, EventQueue& events);
  /// WrongState while queue pairs take from the queue. Receives posted to it are given up.
  Status destroy_srq(SharedReceiveQueue* srq);
  /// Nobody posts to the queue any more: it goes with the last queue pair that takes from it.
  void release_srq(SharedReceiveQueue* srq);
  /// Gives the queue another depth; its receives stay. WrongState: it has more receives than that.
  Status resize_srq(SharedReceiveQueue& srq, uint32_t depth);
  [[nodiscard]] SrqInfo info(const SharedReceiveQueue& srq) const;
  /// \param parts outlive the queue pair
  Result<QueuePair*> create_qp(const QueuePairSpec& spec, const QueuePairParts& parts);
  /// Gives the queue pair another IRD and ORD. In Error it also becomes Idle again, under its
  /// slot's next number. Called only in Idle and Error, and without a connection. When it fails or
  /// throws nothing has happened.
  Status set_reads(QueuePair& qp, uint32_t ird, uint32_t ord);
  /// The consumer that a queue pair belongs to.
  [[nodiscard]] uint32_t consumer_of(const QueuePair& qp) const {
    return domains_[qp.spec().pd].consumer;
  }
  /// Takes the queue pair out of the table; its domain and its completion queues lose a user.
  Result<std::unique_ptr<QueuePair>> take_qp(QueuePair* qp);

  /// The queue pair with that number; nullptr: there is none.
  [[nodiscard]] QueuePair* qp(uint32_t number) {
    QueuePair* found = qp_of_doorbell(numbers_.slot_of(number));
    return found != nullptr && found->number() == number ? found : nullptr;
  }
  /// The queue pair that rings that doorbell; nullptr: there is none.
  [[nodiscard]] QueuePair* qp_of_doorbell(uint32_t doorbell) {
    return doorbell < qps_.size() ? qps_[doorbell].get() : nullptr;
  }
  template <typename F>
  void for_each_qp(F&& f) {
    for (auto& qp : qps_) {
      if (qp != nullptr) f(qp.get());
    }
  }
  // --- The loop ---

  /// Resumes messages that wait for receives of shared queues as far as there are receives now,
  /// those of one queue in the order in which they began to wait. \return how many were resumed
  uint32_t resume_waiting(base::Now now);
  /// \return whether resume_waiting() would resume a message
  [[nodiscard]] bool can_resume() const;

  /// Sets the time with which completions are stamped until the next call.
  void begin_turn(base::Now now) { notify_.begin(now); }
  /// The time at which listeners have to be told of completions that were kept back.
  [[nodiscard]] base::Now next_deadline() const { return notify_.next_deadline(); }
  void on_timers(base::Now now) { notify_.on_timers(now); }

  /// Fills in, for each kind of resource, the limit and the number in use.
  void describe(DeviceLimits& limits) const;
  /// Adds to each consumer's counts, which stand at its number, what it has here; but for regions,
  /// which only the consumers tell apart.
  void count(std::vector<ResourceCounts>& found) const;
  /// The registered memory, where the device places and fetches octets.
  [[nodiscard]] const mem::StagTable& memory() const { return memory_; }
  void validate() const { pages_.validate(); }

 private:
  // QueuePairContexts
  [[nodiscard]] void* context_of(uint32_t qp) const override;

  /// What stands in a domain, by kind.
  struct DomainUsers {
    uint32_t regions = 0;  // and STags for fast registration
    uint32_t windows = 0;
    uint32_t srqs = 0;
    uint32_t qps = 0;

    [[nodiscard]] bool none() const { return *this == DomainUsers{}; }
    bool operator==(const DomainUsers&) const = default;
  };
  using UserKind = uint32_t DomainUsers::*;

  /// A protection domain, which has a number.
  struct Domain {
    bool used = false;
    bool released = false;  // it goes with its last user
    DomainUsers users;
    uint32_t consumer = 0;
  };

  [[nodiscard]] bool has_pd(uint32_t pd) const { return pd < domains_.size() && domains_[pd].used; }
  /// For an object that is to be made in the domain.
  [[nodiscard]] TakenShare share_in(uint32_t pd, const char* call, const ResourceCounts& amounts) {
    return TakenShare(consumers_, domains_[pd].consumer, call, amounts);
  }
  /// One user of the domain is gone, with what its consumer had for it.
  void drop_pd_user(uint32_t pd, UserKind kind, const ResourceCounts& amounts);
  void end_pd(uint32_t pd);
  [[nodiscard]] ResourceCounts region_share(mem::Stag stag) const;
  Status end_stag(mem::Stag stag);
  void drop_cq_user(CompletionQueue& cq);
  void drop_srq_user(SharedReceiveQueue& srq);
  /// The most completions that may be in the queue at once.
  [[nodiscard]] uint64_t demand_of(const CompletionQueue& cq) const;
  [[nodiscard]] bool takes_from(const CompletionQueue& cq, const SharedReceiveQueue& srq) const;
  [[nodiscard]] Status check_cq_depth(const char* call, uint32_t depth) const;
  [[nodiscard]] Status check_fits(const CompletionQueue& cq, uint64_t more) const;
  [[nodiscard]] Status check_demand(const QueuePairSpec& spec) const;
  [[nodiscard]] Status check_depth(const char* call, uint32_t depth) const;
  [[nodiscard]] Status check_spec(const QueuePairSpec& spec) const;
  [[nodiscard]] Status check_one_consumer(const QueuePairSpec& spec) const;

  const Limits& limits_;
  DeviceCounters& counters_;
  Consumers& consumers_;
  mem::StagTable memory_;
  std::vector<Domain> domains_;  // index: PD number; 0 is never given out
  NotifyTimers notify_;          // outlives the completion queues
  base::PageStore pages_;        // what the queues need seldom; outlives them
  std::vector<std::unique_ptr<CompletionQueue>> cqs_;
  // Events that nobody has read name a queue that is gone by its number, so each queue has another
  // one. These are the numbers that were given out last.
  uint32_t last_cq_ = 0;
  uint32_t last_srq_ = 0;
  std::vector<std::unique_ptr<SharedReceiveQueue>> srqs_;  // nullptr: a free place
  std::vector<std::unique_ptr<QueuePair>> qps_;  // index: slot, which is its doorbell, too; not 0
  QueuePairNumbers numbers_;
};

}  // namespace rnic::device
