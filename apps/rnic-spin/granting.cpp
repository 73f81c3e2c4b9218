#include "rnic-spin/granting.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostGrants = 8;
constexpr uint32_t kMostPieces = 3;
constexpr ResourceCounts kTaken{.regions = 1, .pieces = kMostPieces};  // by an allocated STag
constexpr size_t kLeast = 64;  // octets of a region of which a part is registered

}  // namespace

void Granting::allocate(Side& side) {
  const auto domain = world_.dice.any(side.domains);
  if (domain == nullptr || side.grants.size() == kMostGrants) return;
  if (world_.dice.chance(5) && !domain->owner->share.lacking({.regions = 1})) {
    world_.judge.answered("allocate_region of no pieces", domain->handle.allocate_region(0),
                          Expect::Failure, {InvalidArgument});
    return;
  }
  auto made = domain->handle.allocate_region(kMostPieces);
  if (!world_.granted("allocate_region", made, domain->owner->share, kTaken)) return;
  ++domain->users;
  auto grant = std::make_shared<Grant>();
  grant->domain = domain;
  grant->stag = made->stag();
  grant->handle = std::move(*made);
  side.grants.push_back(std::move(grant));
}

std::shared_ptr<Grant> Granting::any(const Side& side, State state, const Pair& pair) {
  std::vector<std::shared_ptr<Grant>> fitting;
  std::ranges::copy_if(side.grants, std::back_inserter(fitting), [&](const auto& grant) {
    return grant->state == state && grant->domain == pair.domain && grant->serves(*pair.life);
  });
  return world_.dice.any(fitting);
}

std::shared_ptr<Region> Granting::any_base(const Side& side, const Pair& pair, bool binds) {
  std::vector<std::shared_ptr<Region>> fitting;
  std::ranges::copy_if(side.regions, std::back_inserter(fitting), [&](const auto& region) {
    return region->domain == pair.domain && region->only == 0 && !region->may_be_gone &&
           !region->is_cut &&  // a registration may have so many pieces and no more
           (region->place == Place::Store || region->place == Place::Target) &&
           region->handle.length() >= kLeast && region->access.contains(Access::Bind) == binds;
  });
  return world_.dice.any(fitting);
}

AccessSet Granting::any_access(const Region& region) {
  AccessSet access = Access::RemoteRead;
  if (region.place == Place::Target) {
    access = Access::LocalWrite;
    if (world_.dice.chance(80)) access |= Access::RemoteWrite;
  }
  if (world_.dice.chance(50)) access |= Access::RemoteInvalidate;
  return access;
}

void Granting::choose_part(Grant& grant, const std::shared_ptr<Region>& region, const Pair& pair) {
  const size_t length = region->handle.length();
  const size_t begin = world_.dice.below((length - kLeast) / Field::kUnit + 1) * Field::kUnit;
  grant.over = region;
  grant.from = region->from + begin;
  grant.length = kLeast + world_.dice.below(length - begin - kLeast + 1);
  grant.offset = world_.dice.below(1u << 30) * Field::kUnit;
  grant.access = any_access(*region);
  grant.only = grant.access.contains(Access::RemoteInvalidate) ? pair.life->number : 0;
}

/// Parts of the region that follow each other.
SendRequest Granting::registration(const Grant& grant) {
  SendRequest request{.opcode = Opcode::FastRegister};
  request.grant = {.stag = next_key(grant.stag), .access = grant.access, .offset = grant.offset};
  size_t at = grant.from - grant.over->from;
  size_t left = grant.length;
  for (size_t more = world_.dice.below(kMostPieces); more > 0 && left > 1; --more) {
    const size_t piece = 1 + world_.dice.below(left - 1);
    request.sges.push_back(grant.over->handle.sge(at, static_cast<uint32_t>(piece)));
    at += piece;
    left -= piece;
  }
  request.sges.push_back(grant.over->handle.sge(at, static_cast<uint32_t>(left)));
  return request;
}

void Granting::register_part(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  std::vector<std::shared_ptr<Grant>> fitting;
  std::ranges::copy_if(side.grants, std::back_inserter(fitting), [&](const auto& grant) {
    return grant->state == State::Free && grant->domain == pair->domain;
  });
  const auto grant = world_.dice.any(fitting);
  const auto region = any_base(side, *pair, true);
  if (grant == nullptr || region == nullptr) return;
  choose_part(*grant, region, *pair);
  const SendRequest request = registration(*grant);
  if (!posting_.post(*pair, request, {.grant = grant}, 100)) return;
  grant->stag = request.grant.stag;
  grant->state = State::Coming;
  grant->by = pair->life;
  region->may_be_bound = true;
}

void Granting::invalidate(Side& side) {
  const auto pair = side.any_running(world_.dice);
  const auto grant = pair == nullptr ? nullptr : any(side, State::Valid, *pair);
  if (grant == nullptr) return;
  side.disturbed = world_.next_id;
  const SendRequest request{.opcode = Opcode::LocalInvalidate, .invalidate_stag = grant->stag};
  if (!posting_.post(*pair, request, {.grant = grant}, 100)) return;
  grant->state = State::Going;
  grant->by = pair->life;
}

void Granting::read_and_invalidate(Side& side) {
  const auto pair = side.any_running(world_.dice);
  const auto grant = pair == nullptr ? nullptr : any(side, State::Valid, *pair);
  if (grant == nullptr || grant->over->place != Place::Target) return;
  const auto there = posting_.reach(side, *pair, Place::Store, Access::RemoteRead);
  if (!there) return;
  const size_t from = std::max(there->from, grant->from);
  const size_t end = std::min(there->from + there->length, grant->from + grant->length);
  if (from >= end) return;
  const size_t length = 1 + world_.dice.below(std::min<size_t>(end - from, 4096));
  SendRequest request{.opcode = Opcode::ReadInvalidate};
  request.sges = {
      {grant->offset + (from - grant->from), static_cast<uint32_t>(length), grant->stag}};
  request.remote = {there->begin.stag, there->begin.offset + from - there->from};
  side.disturbed = world_.next_id;
  const Posted posted{.length = static_cast<uint32_t>(length), .place = from, .grant = grant};
  if (!posting_.post_read(side, *pair, request, posted, 100)) return;
  grant->state = State::Going;
  grant->by = pair->life;
}

uint32_t Granting::take_from_peer(Side& side, const Pair& pair) {
  Side& there = world_.other(side);
  const auto peer = there.pair_of(pair.peer);
  if (peer == nullptr) return 0;
  std::vector<std::shared_ptr<Grant>> grants;
  std::ranges::copy_if(there.grants, std::back_inserter(grants), [&](const auto& grant) {
    return grant->state == State::Valid && grant->only == pair.peer;
  });
  std::vector<std::shared_ptr<Region>> regions;
  std::ranges::copy_if(there.regions, std::back_inserter(regions), [&](const auto& region) {
    return region->only == pair.peer && !region->may_be_gone && region->handle.stag() != 0;
  });
  there.disturbed = world_.next_id;
  if (const auto grant = world_.dice.any(grants); grant != nullptr && world_.dice.chance(80)) {
    grant->state = State::Going;
    grant->by = peer->life;
    return grant->stag;
  }
  const auto region = world_.dice.any(regions);
  if (region == nullptr) return 0;
  region->may_be_gone = true;
  return region->handle.stag();
}

void Granting::send_and_invalidate(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr || !posting_.peer_receives(side, *pair)) return;
  SendRequest request{.opcode = Opcode::SendInvalidate};
  request.solicited = world_.dice.chance(30);
  request.invalidate_stag = take_from_peer(side, *pair);
  if (request.invalidate_stag == 0) return;
  const size_t from = world_.dice.below(Field::kOctets / Field::kUnit) * Field::kUnit;
  const size_t length = world_.dice.below(std::min<size_t>(Field::kOctets - from, kMaxInline) + 1);
  request.inline_data = side.field.store().subspan(from, length);
  posting_.post_message(side, *pair, request, {.length = static_cast<uint32_t>(length)},
                        {.from = from, .invalidates = request.invalidate_stag});
}

/// The peer reads by an STag that is not valid any more.
void Granting::read_by_peer(Side& side, const Pair& pair, const Grant& grant) {
  Side& there = world_.other(side);
  const auto peer = there.pair_of(pair.peer);
  if (peer == nullptr || peer->phase != Phase::Running || peer->peer != pair.life->number) return;
  const auto sink = posting_.pieces(there, *peer->domain, Place::Target, grant.from, 8);
  if (!sink) return;
  SendRequest request{.opcode = Opcode::Read};
  request.sges = *sink;
  request.remote = {grant.gone, grant.offset};
  const Posted posted{.length = 8, .place = grant.from, .doomed = true};
  posting_.post_read(there, *peer, request, posted, 100);
}

void Granting::fail(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr || !world_.dice.chance(10)) return;
  const auto free = any(side, State::Free, *pair);
  const auto valid = any(side, State::Valid, *pair);
  const auto unbound = any_base(side, *pair, false);
  const Posted posted{.sound = false, .doomed = true};
  switch (world_.dice.below(4)) {
    case 0:
      if (free != nullptr && free->gone != 0) read_by_peer(side, *pair, *free);
      return;
    case 1: {
      if (free == nullptr || free->gone == 0) return;
      SendRequest request;
      request.sges = {{free->offset, 8, free->gone}};
      posting_.post(*pair, request, posted, 100);
      return;
    }
    case 2: {
      if (valid == nullptr || valid->over == nullptr) return;
      // Without an end of what is valid. Nobody invalidates it before that comes to its turn.
      if (posting_.post(*pair, registration(*valid), posted, 100)) valid->state = State::Doubtful;
      return;
    }
    default: {
      if (free == nullptr || unbound == nullptr) return;
      Grant other;
      other.stag = free->stag;
      choose_part(other, unbound, *pair);
      posting_.post(*pair, registration(other), posted, 100);
    }
  }
}

void Granting::end(Side& side) {
  const auto grant = world_.dice.any(side.grants);
  if (grant == nullptr) return;
  side.disturbed = world_.next_id;
  if (world_.dice.chance(70)) {
    const bool known = grant->state == State::Free || grant->state == State::Valid;
    if (!world_.judge.answered("deregister what was allocated", grant->handle.deregister(),
                               known ? Expect::Success : Expect::Either, {WrongState, NotFound})) {
      return;
    }
  }
  grant->handle = {};
  grant->state = State::Doubtful;
  grant->domain->drop_user(kTaken);
  std::erase(side.grants, grant);
}

}  // namespace rnic::spin
