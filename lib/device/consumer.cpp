#include "device/consumer.hpp"

#include <array>

#include "base/check.hpp"
#include "base/fail.hpp"

namespace rnic::device {

namespace {

/// One kind of what a consumer has: its words, and the key of its quota.
struct Kind {
  uint64_t ResourceCounts::*amount;
  const char* words;
  const char* key;
};

constexpr std::array kKinds{
    Kind{&ResourceCounts::pds, "protection domains", "quotas.pds"},
    Kind{&ResourceCounts::regions, "regions and windows", "quotas.regions"},
    Kind{&ResourceCounts::registered_octets, "registered octets", "quotas.registered_octets"},
    Kind{&ResourceCounts::cqs, "completion queues", "quotas.cqs"},
    Kind{&ResourceCounts::cq_entries, "completions in all its queues", "quotas.cq_entries"},
    Kind{&ResourceCounts::srqs, "shared receive queues", "quotas.srqs"},
    Kind{&ResourceCounts::qps, "queue pairs", "quotas.qps"},
    Kind{&ResourceCounts::reads, "Reads (IRD and ORD of its queue pairs)", "quotas.reads"},
    Kind{&ResourceCounts::listeners, "listeners", "quotas.listeners"},
    Kind{&ResourceCounts::requests, "unanswered requests", "quotas.requests"}};
static_assert(sizeof(ResourceCounts) == kKinds.size() * sizeof(uint64_t));

/// The kind of which a consumer that has `used` may not have `more`; nullptr: there is none.
const Kind* lacking(const ResourceCounts& quotas, const ResourceCounts& used,
                    const ResourceCounts& more) noexcept {
  for (const Kind& kind : kKinds) {
    if (more.*kind.amount > quotas.*kind.amount - used.*kind.amount) return &kind;
  }
  return nullptr;
}

}  // namespace

bool Consumer::admit(const ResourceCounts& more) noexcept {
  if (lacking(quotas_, used_, more) != nullptr) {
    ++refused_;
    return false;
  }
  for (const Kind& kind : kKinds) used_.*kind.amount += more.*kind.amount;
  return true;
}

Status Consumer::take(const char* call, const ResourceCounts& more) {
  if (admit(more)) return {};
  const Kind& kind = *lacking(quotas_, used_, more);
  return base::fail(ErrorCode::ResourceExhausted,
                    std::string(call) + ": consumer \"" + name_ + "\" may have " +
                        std::to_string(quotas_.*kind.amount) + " " + kind.words + ", has " +
                        std::to_string(used_.*kind.amount) + " and asks for " +
                        std::to_string(more.*kind.amount) + " more: give some back, or raise " +
                        kind.key + " or its own quota");
}

void Consumer::give_back(const ResourceCounts& amounts) {
  for (const Kind& kind : kKinds) {
    RNIC_CHECK(amounts.*kind.amount <= used_.*kind.amount);
    used_.*kind.amount -= amounts.*kind.amount;
  }
}

}  // namespace rnic::device
