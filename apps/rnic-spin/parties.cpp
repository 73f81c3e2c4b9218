#include "rnic-spin/parties.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostConsumers = 3;

}  // namespace

/// Each is small enough to be reached, or absent.
ResourceCounts Parties::any_quotas() {
  const auto one = [&](size_t least, size_t most) {
    return world_.dice.chance(40) ? kNoQuota : least + world_.dice.below(most - least + 1);
  };
  return {.pds = one(1, 3),
          .regions = one(1, 8),
          .registered_octets = one(1, 4 * Field::kOctets),
          .pieces = one(1, 12),
          .cqs = one(1, 3),
          .cq_entries = one(1, 1024),
          .srqs = one(1, 2),
          .qps = one(1, 4),
          .reads = one(2, 24),
          .listeners = one(1, 3),
          .requests = one(1, 3),
          .held_octets = one(1, 1 << 16)};
}

void Parties::make_consumer(Side& side) {
  if (world_.dice.chance(5)) {
    world_.judge.answered("create_consumer without a name", side.device.create_consumer({}),
                          Expect::Failure, {InvalidArgument});
    return;
  }
  if (side.consumers.size() == kMostConsumers) return;
  const std::string name = "party " + std::to_string(world_.next_number++);
  const ResourceCounts quotas = any_quotas();
  auto made = side.device.create_consumer({.name = name, .quotas = quotas});
  if (!world_.judge.answered("create_consumer", made, Expect::Success, {})) return;
  side.consumers.push_back(
      std::make_shared<Owner>(Owner{.handle = std::move(*made), .share = {name, quotas}}));
}

void Parties::ask_consumer(Side& side) {
  const auto consumer = world_.dice.any(side.consumers);
  if (consumer == nullptr) return;
  const auto info = consumer->handle.info();
  if (!world_.judge.answered("Consumer::info", info, Expect::Success, {})) return;
  const auto wrong = consumer->share.check(*info, consumer->has_listened);
  world_.judge.require(!wrong, consumer->share.name() + ": " + wrong.value_or(""));
}

uint64_t Parties::requests_of(const Owner& consumer) {
  const auto info = consumer.handle.info();
  world_.judge.answered("Consumer::info", info, Expect::Success, {});
  return info->used.requests;
}

template <typename Ender>
void Parties::stop_listening(Side& side, const std::shared_ptr<Owner>& consumer, Ender& ender) {
  std::erase_if(side.listening, [&](const auto& one) {
    if (one->owner != consumer) return false;
    world_.judge.answered("unlisten", ender.unlisten(one->local), Expect::Success, {});
    consumer->share.give_back({.listeners = 1});
    return true;
  });
}

void Parties::end_consumer(Side& side) {
  const auto consumer = world_.dice.any(side.consumers);
  if (consumer == nullptr) return;
  // Peers may be about to ask it then.
  if (world_.dice.chance(50)) stop_listening(side, consumer, consumer->handle);
  const bool listens =
      std::ranges::any_of(side.listening, [&](const auto& one) { return one->owner == consumer; });
  const bool asked = requests_of(*consumer) > 0;
  if (world_.dice.chance(70)) {
    const bool has = consumer->share.has_anything();
    // A worker may see a peer withdraw its request meanwhile, or take one.
    const bool either = !world_.is_still() && !has && asked;
    const Expect expect = either ? Expect::Either : unless(has || asked);
    const Status status = consumer->handle.destroy();
    if (!world_.judge.answered("Consumer::destroy", status, expect, {WrongState})) return;
  } else if (asked || (listens && !world_.is_still())) {
    return;  // of requests that a worker sees meanwhile nobody could ask any more
  }
  consumer->handle = {};
  stop_listening(side, consumer, side.device);
  if (consumer->share.has_anything()) side.unnamed.push_back(consumer);
  std::erase(side.consumers, consumer);
}

void Parties::ask_limits(Side& side) {
  const auto limits = side.device.limits();
  if (!world_.judge.answered("limits", limits, Expect::Success, {})) return;
  std::erase_if(side.unnamed, [](const auto& one) { return !one->share.has_anything(); });
  const ResourceCounts all = side.given_out();
  const auto same = [&](const char* what, uint64_t told, uint64_t have) {
    world_.judge.require(told == have, side.device.name() + " has given out " +
                                           std::to_string(told) + " " + what + ", and not " +
                                           std::to_string(have));
  };
  same("consumers", limits->consumers, side.consumers.size() + side.unnamed.size());
  same("domains", limits->pds, all.pds);
  same("regions and windows", limits->regions, all.regions);
  same("registered octets", limits->registered_octets, all.registered_octets);
  same("pieces", limits->pieces, all.pieces);
  same("completion queues", limits->cqs, all.cqs);
  same("completions", limits->cq_entries, all.cq_entries);
  same("shared receive queues", limits->srqs, all.srqs);
  same("queue pairs", limits->qps, all.qps);
  same("Reads", limits->total_reads, all.reads);
}

}  // namespace rnic::spin
