#include "device/resource_ledger.hpp"

#include <array>

#include "base/check.hpp"

namespace rnic::device {

namespace {

using Counts = ResourceCounts;

constexpr std::array kKinds{
    ResourceKind{&Counts::pds, "protection domains", "quotas.pds", nullptr},
    ResourceKind{&Counts::regions, "regions and windows", "quotas.regions", nullptr},
    ResourceKind{&Counts::registered_octets, "registered octets", "quotas.registered_octets",
                 "limits.registered_octets"},
    // Those of all consumers together are counted where they are kept (mem::Holdings).
    ResourceKind{&Counts::pieces, "pieces of memory", "quotas.pieces", nullptr},
    ResourceKind{&Counts::cqs, "completion queues", "quotas.cqs", nullptr},
    ResourceKind{&Counts::cq_entries, "completions in all queues", "quotas.cq_entries",
                 "limits.cq_entries"},
    ResourceKind{&Counts::srqs, "shared receive queues", "quotas.srqs", nullptr},
    ResourceKind{&Counts::qps, "queue pairs", "quotas.qps", nullptr},
    ResourceKind{&Counts::reads, "Reads (IRD and ORD of queue pairs)", "quotas.reads",
                 "limits.total_reads"},
    ResourceKind{&Counts::listeners, "listeners", "quotas.listeners", nullptr},
    ResourceKind{&Counts::requests, "unanswered requests", "quotas.requests", nullptr},
    // Nobody asks for these in a call: they are counted by the share (Consumer::hold_share()).
    ResourceKind{&Counts::held_octets, "held octets", "quotas.held_octets", "limits.hold_octets"}};
static_assert(sizeof(ResourceCounts) == kKinds.size() * sizeof(uint64_t));

}  // namespace

const ResourceKind* ResourceLedger::lacking(const ResourceCounts& more) const noexcept {
  for (const ResourceKind& kind : kKinds) {
    if (more.*kind.amount > limits_.*kind.amount - used_.*kind.amount) return &kind;
  }
  return nullptr;
}

void ResourceLedger::take(const ResourceCounts& more) noexcept {
  for (const ResourceKind& kind : kKinds) used_.*kind.amount += more.*kind.amount;
}

void ResourceLedger::give_back(const ResourceCounts& amounts) {
  for (const ResourceKind& kind : kKinds) {
    RNIC_CHECK(amounts.*kind.amount <= used_.*kind.amount);
    used_.*kind.amount -= amounts.*kind.amount;
  }
}

}  // namespace rnic::device
