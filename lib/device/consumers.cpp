#include "device/consumers.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "base/fail.hpp"
#include "base/quantities.hpp"

namespace rnic::device {

using base::fail;

namespace {

/// The quotas of a consumer that sets `own`, where the configuration has `configured`.
ResourceCounts combined(const ResourceCounts& own, const ResourceCounts& configured) {
  const auto one = [](uint64_t first, uint64_t second) {
    if (first != 0) return first;
    return second != 0 ? second : kNoQuota;
  };
  return {.pds = one(own.pds, configured.pds),
          .regions = one(own.regions, configured.regions),
          .registered_octets = one(own.registered_octets, configured.registered_octets),
          .pieces = one(own.pieces, configured.pieces),
          .cqs = one(own.cqs, configured.cqs),
          .cq_entries = one(own.cq_entries, configured.cq_entries),
          .srqs = one(own.srqs, configured.srqs),
          .qps = one(own.qps, configured.qps),
          .reads = one(own.reads, configured.reads),
          .listeners = one(own.listeners, configured.listeners),
          .requests = one(own.requests, configured.requests),
          .held_octets = one(own.held_octets, configured.held_octets)};
}

/// The objects among what a consumer has.
std::string objects_in_words(const ResourceCounts& used) {
  return base::in_words(
      {{used.pds, "protection domain", "protection domains"},
       {used.regions, "region or window", "regions and windows"},
       {used.cqs, "completion queue", "completion queues"},
       {used.srqs, "shared receive queue", "shared receive queues"},
       {used.qps, "queue pair", "queue pairs"},
       {used.listeners, "listener or reserved port", "listeners and reserved ports"},
       {used.requests, "unanswered request", "unanswered requests"}});
}

}  // namespace

Consumers::Consumers(uint32_t most, const ResourceCounts& quotas, const ResourceCounts& in_all)
    : quotas_(quotas), all_(size_t{most} + 1), in_all_(combined({}, in_all)) {
  all_[0] = std::make_unique<Consumer>(0, "application", combined({}, quotas_));
}

Result<uint32_t> Consumers::create(const ConsumerOptions& options) {
  if (options.name.empty()) {
    return fail(ErrorCode::InvalidArgument,
                "create_consumer: give the consumer a name, by which errors can tell it apart");
  }
  const auto place = std::find(all_.begin(), all_.end(), nullptr);
  if (place == all_.end()) {
    return fail(ErrorCode::ResourceExhausted, "no consumer left: raise limits.max_consumers (now " +
                                                  std::to_string(all_.size() - 1) +
                                                  ") or destroy one");
  }
  const auto number = static_cast<uint32_t>(place - all_.begin());
  *place = std::make_unique<Consumer>(number, options.name, combined(options.quotas, quotas_));
  return number;
}

Status Consumers::check(const char* call, uint32_t number) const {
  if (exist(number)) return {};
  return fail(ErrorCode::NotFound, std::string(call) + ": there is no consumer " +
                                       std::to_string(number) + ": use one that has its handle");
}

Status Consumers::destroy(uint32_t number) {
  if (auto status = check("destroy", number); !status) return status;
  if (all_[number]->has_anything()) {
    return fail(ErrorCode::WrongState, "destroy: the consumer \"" + all_[number]->name() +
                                           "\" still has " +
                                           objects_in_words(all_[number]->used()) +
                                           ": destroy, unlisten() or answer these first");
  }
  end(number);
  return {};
}

void Consumers::release(uint32_t number) {
  if (!exist(number)) return;
  all_[number]->release();
  give_back(number, {});
}

Result<ConsumerInfo> Consumers::info(uint32_t number) const {
  if (auto status = check("info", number); !status) return tl::unexpected(status.error());
  return all_[number]->info();
}

std::optional<uint32_t> Consumers::owner_of(const framing::HoldSharePtr& share) const {
  for (uint32_t number = 0; number < all_.size(); ++number) {
    if (exist(number) && hold_share(number) == share) return number;
  }
  return std::nullopt;
}

bool Consumers::admit(uint32_t number, const ResourceCounts& more) noexcept {
  Consumer& consumer = *all_[number];
  if (!consumer.admit(more)) return false;
  if (in_all_.lacking(more) != nullptr) {
    consumer.give_back(more);
    ++refused_in_all_;
    return false;
  }
  in_all_.take(more);
  return true;
}

Status Consumers::take(uint32_t number, const char* call, const ResourceCounts& more) {
  Consumer& consumer = *all_[number];
  if (auto status = consumer.take(call, more); !status) return status;
  if (const ResourceKind* kind = in_all_.lacking(more)) {
    consumer.give_back(more);
    ++refused_in_all_;
    return fail(ErrorCode::ResourceExhausted,
                std::string(call) + ": the device gives out " +
                    std::to_string(in_all_.limits().*kind->amount) + " " + kind->words +
                    ", of which " + std::to_string(in_all_.used().*kind->amount) +
                    " are taken, and is asked for " + std::to_string(more.*kind->amount) +
                    " more: give some back, or raise " + kind->in_all);
  }
  in_all_.take(more);
  return {};
}

void Consumers::give_back(uint32_t number, const ResourceCounts& amounts) {
  Consumer& consumer = *all_[number];
  consumer.give_back(amounts);
  in_all_.give_back(amounts);
  if (consumer.is_released() && !consumer.has_anything()) end(number);
}

void Consumers::end(uint32_t number) {
  refused_before_ += all_[number]->refused();
  all_[number].reset();
}

void Consumers::describe(DeviceLimits& limits) const {
  limits.max_consumers = static_cast<uint32_t>(all_.size() - 1);  // number 0 is the application
  limits.consumers = static_cast<uint32_t>(
      std::count_if(all_.begin() + 1, all_.end(), [](const auto& one) { return one != nullptr; }));
  limits.max_registered_octets = in_all_.limits().registered_octets;
  limits.registered_octets = in_all_.used().registered_octets;
  limits.max_cq_entries = in_all_.limits().cq_entries;
  limits.cq_entries = in_all_.used().cq_entries;
  limits.max_total_reads = in_all_.limits().reads;
  limits.total_reads = in_all_.used().reads;
}

uint64_t Consumers::refused() const {
  uint64_t sum = refused_before_ + refused_in_all_;
  for (const auto& consumer : all_) sum += consumer == nullptr ? 0 : consumer->refused();
  return sum;
}

void Consumers::validate(const Found& found, uint64_t regions, uint64_t pieces) const {
  ResourceLedger sum(combined({}, {}));
  for (size_t number = 0; number < all_.size(); ++number) {
    ResourceCounts of_objects = all_[number] == nullptr ? ResourceCounts{} : all_[number]->used();
    sum.take(of_objects);
    regions -= of_objects.regions;
    of_objects.regions = 0;
    of_objects.registered_octets = 0;
    pieces -= of_objects.pieces;
    of_objects.pieces = 0;
    if (all_[number] != nullptr) all_[number]->hold_share()->validate(found[number].held_octets);
    of_objects.held_octets = found[number].held_octets;
    RNIC_CHECK(of_objects == found[number]);
  }
  RNIC_CHECK(regions == 0);
  RNIC_CHECK(pieces == 0);
  RNIC_CHECK(sum.used() == in_all_.used());
}

}  // namespace rnic::device
