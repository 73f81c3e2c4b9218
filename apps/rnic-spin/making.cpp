#include "rnic-spin/making.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostDomains = 6;
constexpr size_t kMostQueues = 9;
constexpr size_t kMostShared = 3;
constexpr size_t kMostRegions = 24;
constexpr size_t kMostWindows = 10;
constexpr size_t kMostPairs = 12;
constexpr auto kLongWait = std::chrono::minutes(10);
constexpr auto kBriefWait = std::chrono::milliseconds(2);
constexpr AccessSet kRemote = Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic;

/// Some rights: each of `of` in half of the cases.
AccessSet some(Dice& dice, AccessSet of) {
  AccessSet chosen;
  for (uint32_t bit = 0; bit < 7; ++bit) {
    const AccessSet right = static_cast<Access>(1u << bit);
    if (of.contains(right) && dice.chance(50)) chosen |= right;
  }
  return chosen;
}

std::span<std::byte> octets_of(const Field& field, Place place) {
  switch (place) {
    case Place::Store: return field.store();
    case Place::Target: return field.target();
    case Place::Inbox: return field.inbox();
    case Place::Words: return field.words();
  }
  return {};
}

AccessSet rights_for(Dice& dice, Place place) {
  switch (place) {
    case Place::Store: return Access::LocalRead | some(dice, Access::RemoteRead | Access::Bind);
    case Place::Target: {
      AccessSet rights = Access::LocalWrite;
      rights |= some(dice, Access::RemoteWrite | Access::RemoteRead | Access::Bind);
      return rights;
    }
    case Place::Inbox: return Access::LocalWrite;
    case Place::Words: {
      AccessSet rights = Access::LocalWrite | Access::RemoteAtomic;
      return rights | some(dice, Access::Bind);
    }
  }
  return {};
}

using Pieces = std::vector<std::span<std::byte>>;

/// Pieces that follow each other, some of no octets. Atomics do not cross the border of two, so the
/// borders are at words.
Pieces cut(Dice& dice, std::span<std::byte> memory) {
  Pieces pieces;
  for (size_t more = 1 + dice.below(6); more > 0; --more) {
    const size_t piece = dice.below(memory.size() / Field::kUnit + 1) * Field::kUnit;
    pieces.push_back(memory.first(piece));
    memory = memory.subspan(piece);
  }
  pieces.push_back(memory);
  return pieces;
}

/// How many of them a region keeps, where it has to: one that has octets in one piece needs none.
uint64_t kept_of(const Pieces& pieces) {
  const auto all = std::ranges::count_if(pieces, [](auto piece) { return !piece.empty(); });
  return all > 1 ? static_cast<uint64_t>(all) : 0;
}

/// The receives of a shared queue may all complete where one of its queue pairs does.
uint64_t demand_of(const Pair& pair) {
  return 2 * pair.depth + (pair.shared == nullptr ? 0 : 2 * pair.shared->depth);
}

ResourceCounts share_of(const Pair& pair) {
  return {.qps = 1, .reads = uint64_t{pair.ird} + pair.ord};
}

}  // namespace

void Making::make_domain(Side& side) {
  if (side.domains.size() == kMostDomains) return;
  const auto owner = side.any_owner(world_.dice);
  auto made = owner->is_application ? side.device.alloc_pd() : owner->handle.alloc_pd();
  if (!world_.granted("alloc_pd", made, owner->share, {.pds = 1})) return;
  side.domains.push_back(
      std::make_shared<Domain>(Domain{.handle = std::move(*made), .owner = owner}));
}

void Making::end_domain(Side& side) {
  const auto domain = world_.dice.any(side.domains);
  if (domain == nullptr) return;
  if (world_.dice.chance(70)) {
    const Status status = domain->handle.destroy();
    if (!world_.judge.answered("ProtectionDomain::destroy", status, unless(domain->users > 0),
                               {WrongState})) {
      return;
    }
  }
  domain->handle = {};
  domain->end();
  std::erase(side.domains, domain);
}

void Making::make_queue(Side& side) {
  if (side.queues.size() == kMostQueues) return;
  const auto depth = static_cast<uint32_t>(1 + world_.dice.below(256));
  CompletionQueueOptions options{.fits_all = world_.dice.chance(50)};
  options.several_threads = world_.dice.chance(30);
  const auto owner = side.any_owner(world_.dice);
  auto made = owner->is_application ? side.device.create_cq(depth, options)
                                    : owner->handle.create_cq(depth, options);
  if (!world_.granted("create_cq", made, owner->share, Queue::share_of(depth))) return;
  side.queues.push_back(std::make_shared<Queue>(
      Queue{.handle = std::move(*made), .owner = owner, .depth = depth}));
}

void Making::change_queue(Side& side) {
  const auto queue = world_.dice.any(side.queues);
  if (queue == nullptr) return;
  const auto depth = static_cast<uint32_t>(1 + world_.dice.below(256));
  if (depth < queue->demand) return;  // it would overrun, which loses completions
  const uint64_t had = Queue::share_of(queue->depth).cq_entries;
  const uint64_t wanted = Queue::share_of(depth).cq_entries;
  Share& share = queue->owner->share;
  const Status status = queue->handle.resize(depth);
  if (const auto quota = share.lacking({.cq_entries = wanted > had ? wanted - had : 0})) {
    return world_.refused("CompletionQueue::resize", status, share, *quota);
  }
  // Nobody has polled what came meanwhile.
  if (world_.judge.answered("CompletionQueue::resize", status, Expect::Either, {WrongState})) {
    share.give_back({.cq_entries = had});
    share.take({.cq_entries = wanted});
    queue->depth = depth;
  }
}

void Making::end_queue(Side& side) {
  const auto queue = world_.dice.any(side.queues);
  if (queue == nullptr) return;
  if (world_.dice.chance(80)) {
    const Status status = queue->handle.destroy();
    if (!world_.judge.answered("CompletionQueue::destroy", status, unless(queue->users > 0),
                               {WrongState})) {
      return;
    }
  } else if (queue->users > 0 && world_.dice.chance(80)) {
    return;  // else few queue pairs would live long enough to be of use
  }
  queue->handle = {};
  queue->end();
  std::erase(side.queues, queue);
}

void Making::make_shared(Side& side) {
  const auto domain = world_.dice.any(side.domains);
  if (domain == nullptr || side.shared.size() == kMostShared) return;
  const auto depth = static_cast<uint32_t>(1 + world_.dice.below(32));
  auto made =
      domain->handle.create_srq({.depth = depth, .several_threads = world_.dice.chance(30)});
  if (!world_.granted("create_srq", made, domain->owner->share, {.srqs = 1})) return;
  ++domain->users;
  side.shared.push_back(std::make_shared<SharedQueue>(
      SharedQueue{.handle = std::move(*made), .domain = domain, .depth = depth}));
}

void Making::change_shared(Side& side) {
  const auto shared = world_.dice.any(side.shared);
  if (shared == nullptr) return;
  const auto number = static_cast<uint32_t>(world_.dice.below(40));
  switch (world_.dice.below(3)) {
    case 0:
      world_.judge.answered("arm_limit", shared->handle.arm_limit(number), Expect::Either,
                            {InvalidArgument});
      return;
    case 1:
      world_.judge.answered("arm_high_water", shared->handle.arm_high_water(number),
                            Expect::Either, {InvalidArgument});
      return;
    default: {
      const auto info = shared->handle.info();
      world_.judge.answered("SharedReceiveQueue::info", info, Expect::Success, {});
      if (info) {
        world_.judge.require(info->posted + info->taken <= shared->posted.size(),
                             "a shared receive queue has more than was posted");
      }
    }
  }
}

void Making::end_shared(Side& side) {
  const auto shared = world_.dice.any(side.shared);
  if (shared == nullptr) return;
  if (world_.dice.chance(70)) {
    const Status status = shared->handle.destroy();
    if (!world_.judge.answered("SharedReceiveQueue::destroy", status, unless(shared->users > 0),
                               {WrongState})) {
      return;
    }
  }
  shared->handle = {};
  shared->end();
  std::erase(side.shared, shared);
  if (shared->users == 0) arrivals_.give_up(side, *shared);
}

RegionOptions Making::any_options(Side& side, Region& region) {
  RegionOptions options{.access = region.access};
  if (world_.dice.chance(50)) options.offset = world_.dice.below(1u << 30) * Field::kUnit;
  if (world_.dice.chance(30)) options.key = static_cast<uint8_t>(world_.dice.below(256));
  const auto pair = world_.dice.any(side.pairs);
  if (pair != nullptr && pair->domain == region.domain && region.place == Place::Target &&
      world_.dice.chance(30)) {
    options.queue_pair = &pair->handle;
    options.access |= Access::RemoteInvalidate;
    region.access = options.access;
    region.only = pair->life->number;
  }
  return options;
}

void Making::make_region(Side& side) {
  const auto domain = world_.dice.any(side.domains);
  if (domain == nullptr || side.regions.size() == kMostRegions) return;
  auto region = std::make_shared<Region>();
  region->domain = domain;
  region->place = static_cast<Place>(world_.dice.below(4));
  region->access = rights_for(world_.dice, region->place);
  const auto octets = octets_of(side.field, region->place);
  const bool whole = region->place >= Place::Inbox || world_.dice.chance(30);
  region->from = whole ? 0 : world_.dice.below(octets.size() / Field::kUnit) * Field::kUnit;
  const size_t length = whole ? octets.size() : world_.dice.below(octets.size() - region->from);
  const auto memory = octets.subspan(region->from, length);
  const RegionOptions options = any_options(side, *region);
  region->is_cut = world_.dice.chance(25);
  const auto pieces = region->is_cut ? cut(world_.dice, memory) : Pieces{memory};
  region->pieces = kept_of(pieces);
  auto made = region->is_cut ? domain->handle.register_pieces(pieces, options)
                             : domain->handle.register_memory(memory, options);
  const char* const call = region->is_cut ? "register_pieces" : "register_memory";
  if (!world_.granted(
          call, made, domain->owner->share,
          {.regions = 1, .registered_octets = length, .pieces = region->pieces})) {
    return;
  }
  region->handle = std::move(*made);
  ++domain->users;
  side.regions.push_back(std::move(region));
}

void Making::change_region(Side& side) {
  const auto region = world_.dice.any(side.regions);
  const auto domain = world_.dice.any(side.domains);
  if (region == nullptr || domain == nullptr || region->only != 0) return;
  const uint32_t before = region->handle.stag();
  const bool foreign = region->domain->owner != domain->owner;
  const AccessSet access = rights_for(world_.dice, region->place);
  const Status status = domain->handle.reregister(region->handle, {.access = access});
  if (foreign) {
    world_.judge.answered("reregister for another consumer", status, Expect::Failure,
                          {PermissionDenied});
    return;
  }
  if (!world_.judge.answered("reregister", status, may_end(side, *region),
                             {WrongState, NotFound})) {
    return;
  }
  world_.judge.require(region->handle.stag() != before, "a region registered anew has its STag");
  side.disturbed = world_.next_id;
  ++domain->users;
  region->domain->drop_user({});
  region->domain = domain;
  region->access = access;
}

void Making::end_region(Side& side) {
  const auto region = world_.dice.any(side.regions);
  if (region == nullptr) return;
  side.disturbed = world_.next_id;
  const uint64_t octets = region->handle.length();
  if (world_.dice.chance(70)) {
    if (!world_.judge.answered("deregister", region->handle.deregister(), may_end(side, *region),
                               {WrongState, NotFound})) {
      return;
    }
  }
  region->handle = {};
  region->domain->drop_user(
      {.regions = 1, .registered_octets = octets, .pieces = region->pieces});
  forget_windows(side, *region);
  std::erase(side.regions, region);
}

Expect Making::may_end(const Side& side, const Region& region) {
  if (side.is_granted(region)) return Expect::Failure;
  const bool doubtful = region.may_be_bound || region.may_be_gone;
  return doubtful ? Expect::Either : unless(region.windows > 0);
}

void Making::forget_windows(Side& side, const Region& region) {
  for (const auto& grant : side.grants) {
    if (grant->over.get() == &region && grant->state != Grant::State::Free) {
      grant->state = Grant::State::Doubtful;
    }
  }
  for (const auto& window : side.windows) {
    if (window->bound.get() == &region) window->bound = nullptr;
  }
}

void Making::make_window(Side& side) {
  const auto domain = world_.dice.any(side.domains);
  if (domain == nullptr || side.windows.size() == kMostWindows) return;
  const WindowType type = world_.dice.chance(50) ? WindowType::Domain : WindowType::QueuePair;
  auto made = domain->handle.create_window(type);
  if (!world_.granted("create_window", made, domain->owner->share, {.regions = 1})) return;
  ++domain->users;
  side.windows.push_back(std::make_shared<Window>(
      Window{.handle = std::move(*made), .domain = domain, .type = type}));
}

void Making::bind_window(Side& side) {
  const auto window = world_.dice.any(side.windows);
  const auto region = world_.dice.any(side.regions);
  if (window == nullptr || region == nullptr) return;
  const AccessSet access = some(world_.dice, kRemote);
  const auto length = static_cast<uint32_t>(region->handle.length());
  const Status status =
      window->handle.bind(region->handle, region->handle.address(), length, access);
  if (!world_.judge.answered("MemoryWindow::bind", status, Expect::Either,
                             {PermissionDenied, InvalidArgument, WrongState, NotFound})) {
    return;
  }
  const bool may = window->type == WindowType::Domain && region->domain == window->domain &&
                   region->access.contains(Access::Bind);
  world_.judge.require(may, "a window was bound to what it must not");
  if (window->bound != nullptr) --window->bound->windows;
  window->bound = region;
  window->access = access;
  ++region->windows;
}

void Making::end_window(Side& side) {
  const auto window = world_.dice.any(side.windows);
  if (window == nullptr) return;
  if (world_.dice.chance(30)) {
    if (!world_.judge.answered("unbind", window->handle.unbind(), Expect::Either,
                               {WrongState, NotFound})) {
      return;
    }
  } else {
    if (world_.dice.chance(50)) {
      world_.judge.answered("MemoryWindow::destroy", window->handle.destroy(), Expect::Success,
                            {});
    }
    window->handle = {};
    window->domain->drop_user({.regions = 1});
    std::erase(side.windows, window);
  }
  if (window->bound != nullptr) --window->bound->windows;
  window->bound = nullptr;
}

std::shared_ptr<Queue> Making::any_queue(Side& side, const std::shared_ptr<Owner>& owner,
                                         uint64_t demand) {
  std::vector<std::shared_ptr<Queue>> fitting;
  const bool of_others = world_.dice.chance(8);
  std::ranges::copy_if(side.queues, std::back_inserter(fitting), [&](const auto& queue) {
    return queue->demand + demand <= queue->depth && (queue->owner == owner || of_others);
  });
  return world_.dice.any(fitting);
}

void Making::make_pair(Side& side) {
  const auto domain = world_.dice.any(side.domains);
  if (domain == nullptr || side.pairs.size() == kMostPairs) return;
  auto pair = std::make_shared<Pair>();
  pair->domain = domain;
  pair->depth = static_cast<uint32_t>(1 + world_.dice.below(16));
  pair->wait = static_cast<Wait>(world_.dice.below(3));
  pair->ird = pair->ord = static_cast<uint32_t>(1 + world_.dice.below(4));
  if (const auto shared = world_.dice.any(side.shared); shared != nullptr) {
    if (shared->domain == domain && world_.dice.chance(50)) pair->shared = shared;
  }
  // Room for both queues in each: they may be one.
  const uint64_t demand = demand_of(*pair);
  pair->send_queue = any_queue(side, domain->owner, 2 * demand);
  pair->receive_queue = any_queue(side, domain->owner, 2 * demand);
  if (pair->send_queue == nullptr || pair->receive_queue == nullptr) return;
  if (!create_pair(*pair)) return;
  ++domain->users;
  if (pair->shared != nullptr) ++pair->shared->users;
  for (const auto& queue : {pair->send_queue, pair->receive_queue}) {
    ++queue->users;
    queue->demand += demand;
  }
  arrivals_.begin_life(side, *pair);
  side.pairs.push_back(std::move(pair));
}

bool Making::create_pair(Pair& pair) {
  QueuePairOptions options{.send_depth = pair.depth, .receive_depth = pair.depth};
  options.ird = pair.ird;
  options.ord = pair.ord;
  if (pair.wait != Wait::Never) {
    options.receive_wait = pair.wait == Wait::Long ? kLongWait : kBriefWait;
  }
  options.answer_close = world_.dice.chance(80);
  options.srq = pair.shared == nullptr ? nullptr : &pair.shared->handle;
  options.several_threads = world_.dice.chance(30);
  Domain& domain = *pair.domain;
  auto made =
      domain.handle.create_qp(pair.send_queue->handle, pair.receive_queue->handle, options);
  if (pair.send_queue->owner != domain.owner || pair.receive_queue->owner != domain.owner) {
    return world_.judge.answered("create_qp with another consumer's queue", made, Expect::Failure,
                                 {PermissionDenied});
  }
  if (!world_.granted("create_qp", made, domain.owner->share, share_of(pair))) return false;
  pair.handle = std::move(*made);
  return true;
}

void Making::change_reads(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const auto ird = static_cast<uint32_t>(1 + world_.dice.below(6));
  const auto ord = static_cast<uint32_t>(1 + world_.dice.below(6));
  const Status status = pair->handle.modify({.ird = ird, .ord = ord});
  if (pair->phase != Phase::None) {
    world_.judge.answered("modify IRD and ORD of a used queue pair", status, Expect::Failure,
                          {WrongState});
    return;
  }
  const uint64_t had = share_of(*pair).reads;
  const uint64_t wanted = uint64_t{ird} + ord;
  Share& share = pair->domain->owner->share;
  if (!world_.granted("modify IRD and ORD", status, share,
                      {.reads = wanted > had ? wanted - had : 0})) {
    return;
  }
  share.give_back({.reads = had > wanted ? had - wanted : 0});
  pair->ird = ird;
  pair->ord = ord;
}

void Making::end_pair(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const uint64_t demand = demand_of(*pair);
  if (world_.dice.chance(50)) {
    world_.judge.answered("QueuePair::destroy", pair->handle.destroy(), Expect::Success, {});
  }
  pair->handle = {};
  arrivals_.end_life(side, *pair);
  if (pair->shared != nullptr) {
    pair->shared->drop_user();
    if (pair->shared->users == 0 && pair->shared->ended) arrivals_.give_up(side, *pair->shared);
  }
  pair->domain->drop_user(share_of(*pair));
  for (const auto& queue : {pair->send_queue, pair->receive_queue}) {
    queue->demand -= demand;
    queue->drop_user();
  }
  std::erase(side.pairs, pair);
}

void Making::end_any(Side& side) {
  switch (world_.dice.below(6)) {
    case 0: return end_domain(side);
    case 1: return end_queue(side);
    case 2: return end_shared(side);
    case 3: return end_region(side);
    case 4: return end_window(side);
    default: return end_pair(side);
  }
}

}  // namespace rnic::spin
