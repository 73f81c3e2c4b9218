#include "rnic-spin/share.hpp"

#include <array>
#include <utility>

namespace rnic::spin {

namespace {

struct Kind {
  uint64_t ResourceCounts::*amount;
  const char* key;
};

constexpr std::array kKinds{Kind{&ResourceCounts::pds, "pds"},
                            Kind{&ResourceCounts::regions, "regions"},
                            Kind{&ResourceCounts::registered_octets, "registered_octets"},
                            Kind{&ResourceCounts::pieces, "pieces"},
                            Kind{&ResourceCounts::cqs, "cqs"},
                            Kind{&ResourceCounts::cq_entries, "cq_entries"},
                            Kind{&ResourceCounts::srqs, "srqs"},
                            Kind{&ResourceCounts::qps, "qps"},
                            Kind{&ResourceCounts::reads, "reads"},
                            Kind{&ResourceCounts::listeners, "listeners"},
                            Kind{&ResourceCounts::requests, "requests"},
                            Kind{&ResourceCounts::held_octets, "held_octets"}};
static_assert(sizeof(ResourceCounts) == kKinds.size() * sizeof(uint64_t));

/// The longest PDU with its markers finds room at a delivery point beyond any quota.
constexpr uint64_t kReserve = 70'000;

}  // namespace

Share::Share(std::string name, const ResourceCounts& quotas)
    : name_(std::move(name)), quotas_(quotas) {}

std::optional<std::string> Share::lacking(const ResourceCounts& more) const {
  for (const Kind& kind : kKinds) {
    const uint64_t left = quotas_.*kind.amount - used_.*kind.amount;
    if (more.*kind.amount > left) return std::string("quotas.") + kind.key;
  }
  return std::nullopt;
}

void Share::take(const ResourceCounts& more) { used_ = sum(used_, more); }

void Share::give_back(const ResourceCounts& amounts) {
  for (const Kind& kind : kKinds) used_.*kind.amount -= amounts.*kind.amount;
}

std::optional<std::string> Share::check(const ConsumerInfo& told, bool listened) const {
  if (told.name != name_) return "it is called \"" + told.name + "\"";
  if (told.quotas != quotas_) return "it has other quotas than it was given";
  for (const Kind& kind : kKinds) {
    const uint64_t has = told.used.*kind.amount;
    if (kind.amount == &ResourceCounts::held_octets) {
      if (quotas_.held_octets != kNoQuota && has > quotas_.held_octets + kReserve) {
        return "it holds " + std::to_string(has) + " octets";
      }
      continue;
    }
    if (has > quotas_.*kind.amount) return std::string("it has more than its quota: ") + kind.key;
    if (kind.amount == &ResourceCounts::requests && listened) continue;
    if (has == used_.*kind.amount) continue;
    return std::string("it has ") + std::to_string(has) + " " + kind.key + ", and was given " +
           std::to_string(used_.*kind.amount);
  }
  const bool as_counted = listened ? told.refused >= refused_ : told.refused == refused_;
  if (as_counted) return std::nullopt;
  return "it was refused " + std::to_string(told.refused) + " times, and " +
         std::to_string(refused_) + " calls of it were";
}

ResourceCounts sum(const ResourceCounts& one, const ResourceCounts& other) {
  ResourceCounts both = one;
  for (const Kind& kind : kKinds) both.*kind.amount += other.*kind.amount;
  return both;
}

}  // namespace rnic::spin
