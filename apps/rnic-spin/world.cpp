#include "rnic-spin/world.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

namespace rnic::spin {

namespace {

ResourceCounts no_quotas() {
  return {kNoQuota, kNoQuota, kNoQuota, kNoQuota, kNoQuota,
          kNoQuota, kNoQuota, kNoQuota, kNoQuota, kNoQuota};
}

}  // namespace

void Domain::end() {
  ended = true;
  if (users == 0) owner->share.give_back({.pds = 1});
}

void Domain::drop_user(const ResourceCounts& amounts) {
  owner->share.give_back(amounts);
  if (--users == 0 && ended) end();
}

ResourceCounts Queue::share_of(uint32_t depth) {
  return {.cqs = 1, .cq_entries = std::bit_ceil(uint64_t{depth})};
}

void Queue::end() {
  ended = true;
  if (users == 0) owner->share.give_back(share_of(depth));
}

void Queue::drop_user() {
  if (--users == 0 && ended) end();
}

void SharedQueue::end() {
  ended = true;
  if (users == 0) domain->drop_user({.srqs = 1});
}

void SharedQueue::drop_user() {
  if (--users == 0 && ended) end();
}

Side::Side(Device of)
    : device(std::move(of)),
      on_sockets(device.port() == "socket"),
      application(std::make_shared<Owner>(
          Owner{.handle = {}, .share = {"application", no_quotas()}, .is_application = true})),
      free_slots(Field::kSlots) {
  std::iota(free_slots.begin(), free_slots.end(), size_t{0});
}

std::shared_ptr<Owner> Side::any_owner(Dice& dice) const {
  if (consumers.empty() || dice.chance(50)) return application;
  return dice.any(consumers);
}

ResourceCounts Side::given_out() const {
  ResourceCounts all = application->share.used();
  for (const auto& consumer : consumers) all = sum(all, consumer->share.used());
  for (const auto& consumer : unnamed) all = sum(all, consumer->share.used());
  return all;
}

std::shared_ptr<Pair> Side::pair_of(uint32_t number) const {
  const auto found = std::ranges::find_if(
      pairs, [&](const auto& pair) { return pair->life->number == number; });
  return found == pairs.end() ? nullptr : *found;
}

bool Side::is_granted(const Region& region) const {
  return std::ranges::any_of(grants, [&](const auto& grant) {
    return grant->state == Grant::State::Valid && grant->over.get() == &region;
  });
}

std::shared_ptr<Pair> Side::any_running(Dice& dice) const {
  std::vector<std::shared_ptr<Pair>> running;
  std::ranges::copy_if(pairs, std::back_inserter(running),
                       [](const auto& pair) { return pair->phase == Phase::Running; });
  return dice.any(running);
}

bool World::granted(const std::string& call, const Status& status, Share& share,
                    const ResourceCounts& more) {
  if (const auto quota = share.lacking(more)) {
    refused(call, status, share, *quota);
    return false;
  }
  if (!judge.answered(call, status, Expect::Success, {})) return false;
  share.take(more);
  return true;
}

void World::refused(const std::string& call, const Status& status, Share& share,
                    const std::string& quota) {
  if (judge.answered(call + " beyond " + quota, status, Expect::Failure,
                     {ErrorCode::ResourceExhausted})) {
    return;
  }
  const std::string& text = status.error().message;
  judge.require(text.find("\"" + share.name() + "\"") != std::string::npos &&
                    text.find(quota) != std::string::npos,
                "a refusal that names no consumer, or no quota: " + text);
  share.count_refusal();
}

}  // namespace rnic::spin
