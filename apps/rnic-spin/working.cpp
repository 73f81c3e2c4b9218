#include "rnic-spin/working.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostOctets = 4096;  // of a Write or Read

/// A part of the field for what moves: at a unit's begin.
struct Stretch {
  size_t from;
  size_t length;
};

Stretch any_stretch(Dice& dice, size_t from, size_t length, size_t most) {
  const size_t units = length / Field::kUnit;
  if (units == 0) return {from, 0};
  const size_t begin = dice.below(units) * Field::kUnit;
  return {from + begin, dice.below(std::min(length - begin, most) + 1)};
}

}  // namespace

void Working::post(Pair& pair, SendRequest request, Posted posted) {
  // A place is free before its completion is polled, but the completion queue has room for two
  // completions a place and no more.
  const size_t outstanding = pair.life->sends.size();
  if (outstanding >= 2 * pair.depth) return;
  const bool room = outstanding < pair.depth;
  request.id = posted.id = world_.next_id++;
  posted.opcode = request.opcode;
  posted.signaled = request.signaled = outstanding + 1 >= pair.depth || world_.dice.chance(80);
  const std::string call = std::string("post ") + to_string(request.opcode);
  if (world_.judge.answered(call, pair.handle.post_send(request),
                            room ? Expect::Success : Expect::Either, {ResourceExhausted})) {
    pair.life->sends.post(posted);
  }
}

std::optional<SgeList> Working::pieces(const Side& side, const Domain& domain, Place place,
                                       size_t from, size_t length) {
  std::vector<std::shared_ptr<Region>> fitting;
  std::ranges::copy_if(side.regions, std::back_inserter(fitting), [&](const auto& region) {
    return region->domain.get() == &domain && region->covers(place, from, length) &&
           region->only == 0 && !region->may_be_gone &&
           (place != Place::Target || region->access.contains(Access::RemoteWrite));
  });
  const auto region = world_.dice.any(fitting);
  if (region == nullptr) return std::nullopt;
  SgeList list;
  size_t at = from - region->from;
  size_t left = length;
  for (size_t more = place == Place::Target ? 0 : world_.dice.below(4); more > 0; --more) {
    const size_t piece = world_.dice.below(left + 1);
    list.push_back(region->handle.sge(at, static_cast<uint32_t>(piece)));
    at += piece;
    left -= piece;
  }
  list.push_back(region->handle.sge(at, static_cast<uint32_t>(left)));
  return list;
}

std::optional<Working::Reach> Working::reach(const Side& side, const Pair& pair, Place place,
                                             AccessSet access) {
  const Side& there = world_.other(side);
  const auto peer = there.pair_of(pair.peer);
  if (peer == nullptr) return std::nullopt;
  std::vector<Reach> reaches;
  for (const auto& region : there.regions) {
    const bool may = region->domain == peer->domain && region->place == place &&
                     region->access.contains(access) && !region->may_be_gone &&
                     (region->only == 0 || region->only == pair.peer);
    if (!may) continue;
    reaches.push_back({{region->handle.stag(), region->handle.address()},
                       region->from,
                       region->handle.length()});
  }
  for (const auto& window : there.windows) {
    const auto& region = window->bound;
    const bool may = region != nullptr && region->domain == peer->domain &&
                     region->place == place && window->access.contains(access);
    if (!may) continue;
    reaches.push_back({{window->handle.stag(), region->handle.address()},
                       region->from,
                       region->handle.length()});
  }
  if (reaches.empty()) return std::nullopt;
  return reaches[world_.dice.below(reaches.size())];
}

bool Working::peer_receives(const Side& side, const Pair& pair) const {
  const auto peer = world_.other(side).pair_of(pair.peer);
  if (peer == nullptr) return false;
  const size_t posted =
      peer->shared == nullptr ? peer->life->receives.size() : peer->shared->posted.size();
  return posted > pair.life->sends.size();
}

void Working::send(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr || !(peer_receives(side, *pair) || world_.dice.chance(1))) return;
  SendRequest request;
  request.solicited = world_.dice.chance(30);
  request.fence = world_.dice.chance(10);
  if (world_.dice.chance(15)) {
    request.opcode = Opcode::Immediate;
    post(*pair, request, {});
    return;
  }
  const Stretch what = any_stretch(world_.dice, 0, Field::kOctets, Field::kSlot / 2);
  Posted posted{.length = static_cast<uint32_t>(what.length)};
  if (what.length <= kMaxInline && world_.dice.chance(40)) {
    request.inline_data = side.field.store().subspan(what.from, what.length);
  } else {
    const auto sges = pieces(side, *pair->domain, Place::Store, what.from, what.length);
    if (!sges) return;
    request.sges = *sges;
  }
  post(*pair, request, posted);
}

void Working::write(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto there = reach(side, *pair, Place::Target, Access::RemoteWrite);
  if (!there) return;
  const Stretch what = any_stretch(world_.dice, there->from, there->length, kMostOctets);
  const auto sges = pieces(side, *pair->domain, Place::Store, what.from, what.length);
  if (!sges) return;
  SendRequest request{.opcode = Opcode::Write};
  if (peer_receives(side, *pair) && world_.dice.chance(20)) {
    request.opcode = Opcode::WriteImmediate;
  }
  request.sges = *sges;
  request.remote = {there->begin.stag, there->begin.offset + what.from - there->from};
  post(*pair, request, {.length = static_cast<uint32_t>(what.length)});
}

void Working::read(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto there = reach(side, *pair, Place::Store, Access::RemoteRead);
  if (!there) return;
  const Stretch what = any_stretch(world_.dice, there->from, there->length, kMostOctets);
  const auto sink = pieces(side, *pair->domain, Place::Target, what.from, what.length);
  if (!sink) return;
  SendRequest request{.opcode = Opcode::Read};
  request.sges = *sink;
  request.remote = {there->begin.stag, there->begin.offset + what.from - there->from};
  post(*pair, request,
       {.length = static_cast<uint32_t>(what.length), .place = what.from});
}

void Working::atomic(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto there = reach(side, *pair, Place::Words, Access::RemoteAtomic);
  if (!there) return;
  const size_t word = world_.dice.below(Field::kWords);
  SendRequest request{.opcode = Opcode::FetchAdd};
  request.remote = {there->begin.stag, there->begin.offset + word * kAtomicSize};
  request.atomic.data = 1;
  // It may be there before the call returns.
  ++world_.other(side).added[word];
  post(*pair, request, {.length = kAtomicSize});
}

void Working::local(Side& side) {
  const auto pair = side.any_running(world_.dice);
  const auto window = world_.dice.any(side.windows);
  const auto region = world_.dice.any(side.regions);
  if (pair == nullptr || window == nullptr || region == nullptr) return;
  const bool can = window->type == WindowType::QueuePair && region->domain == pair->domain &&
                   window->domain == pair->domain && region->access.contains(Access::Bind) &&
                   !region->may_be_gone;
  if (!can) return;
  SendRequest request{.opcode = Opcode::BindWindow};
  request.grant = {.stag = next_key(window->handle.stag()),
                   .access = Access::RemoteRead,
                   .offset = region->handle.address()};
  request.sges = {region->handle.sge(0, static_cast<uint32_t>(region->handle.length()))};
  region->may_be_bound = true;
  post(*pair, request, {.sound = false});  // it may be bound already
}

void Working::bad(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr || !world_.dice.chance(10)) return;
  const auto there = reach(side, *pair, Place::Target, Access::RemoteWrite);
  if (!there) return;
  // From the right place: where the spoilt piece has no octets the request is sound after all.
  const auto sges = pieces(side, *pair->domain, Place::Store, there->from, 64);
  if (!sges) return;
  SendRequest request{.opcode = Opcode::Write};
  request.sges = *sges;
  request.remote = there->begin;
  Posted posted{.length = 64};
  switch (world_.dice.below(5)) {
    case 0: request.remote.stag ^= 1u << world_.dice.below(32); break;
    case 1: request.remote.offset += there->length - 32; break;
    case 2: request.remote.offset -= 32; break;
    case 3: request.remote.offset = UINT64_MAX - 31; break;
    default:
      request.sges[0].stag ^= 0x100;
      posted.sound = false;
  }
  post(*pair, request, posted);
}

void Working::refused(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  SendRequest request;
  switch (world_.dice.below(4)) {
    case 0:
      for (uint32_t i = 0; i <= kMaxSge; ++i) request.sges.push_back({});
      break;
    case 1: request.inline_data = side.field.store().first(kMaxInline + 1); break;
    case 2:
      request.opcode = Opcode::Write;
      request.sges = {{UINT64_MAX, UINT32_MAX, 1}, {UINT64_MAX, UINT32_MAX, 1}};
      break;
    default: request.opcode = Opcode::Receive;
  }
  world_.judge.answered("post of what can never work", pair->handle.post_send(request),
                        Expect::Failure, {InvalidArgument});
}

void Working::receive(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr || side.free_slots.empty()) return;
  const size_t slot = side.free_slots.back();
  const auto sges =
      pieces(side, *pair->domain, Place::Inbox, slot * Field::kSlot, Field::kSlot);
  if (!sges) return;
  const ReceiveRequest request{.id = world_.next_id++, .sges = *sges};
  if (pair->shared != nullptr) {
    world_.judge.answered("post_receive beside a shared queue", pair->handle.post_receive(request),
                          Expect::Failure, {WrongState});
    return;
  }
  if (pair->life->receives.size() >= 2 * pair->depth) return;
  const bool room = pair->life->receives.size() < pair->depth;
  if (!world_.judge.answered("post_receive", pair->handle.post_receive(request),
                             room ? Expect::Success : Expect::Either, {ResourceExhausted})) {
    return;
  }
  side.free_slots.pop_back();
  pair->life->receives.post({.id = request.id, .opcode = Opcode::Receive, .place = slot});
}

void Working::receive_shared(Side& side) {
  const auto shared = world_.dice.any(side.shared);
  if (shared == nullptr || side.free_slots.empty()) return;
  const size_t slot = side.free_slots.back();
  const auto sges =
      pieces(side, *shared->domain, Place::Inbox, slot * Field::kSlot, Field::kSlot);
  if (!sges) return;
  const ReceiveRequest request{.id = world_.next_id++, .sges = *sges};
  if (shared->posted.size() >= 2 * shared->depth) return;
  const bool room = shared->posted.size() < shared->depth;
  if (!world_.judge.answered("SharedReceiveQueue::post_receive",
                             shared->handle.post_receive(request),
                             room ? Expect::Success : Expect::Either, {ResourceExhausted})) {
    return;
  }
  side.free_slots.pop_back();
  shared->posted[request.id] = {.id = request.id, .opcode = Opcode::Receive, .place = slot};
}

}  // namespace rnic::spin
