#include "rnic-spin/working.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostOctets = 4096;  // of a Write or Read

/// A part of the field for what moves: at a unit's begin.
Stretch any_stretch(Dice& dice, size_t from, size_t length, size_t most) {
  const size_t units = length / Field::kUnit;
  if (units == 0) return {from, 0};
  const size_t begin = dice.below(units) * Field::kUnit;
  return {from + begin, dice.below(std::min(length - begin, most) + 1)};
}

/// A swap after which a word is what it was: by the value that it is compared with, where the
/// values are the same, or by any other one of which no bit is taken.
AtomicOperands any_idle_swap(Dice& dice) {
  const uint64_t value = dice.below(64);
  const uint64_t all = ~uint64_t{0};
  if (dice.chance(50)) return {.data = value, .mask = all, .compare = value, .compare_mask = all};
  return {.data = ~value, .mask = 0, .compare = value, .compare_mask = dice.below(4)};
}

}  // namespace

void Working::send(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto peer = world_.other(side).pair_of(pair->peer);
  const bool waits = peer != nullptr && peer->wait == Wait::Long && world_.dice.chance(10);
  if (!posting_.peer_receives(side, *pair) && !waits && !world_.dice.chance(1)) return;
  SendRequest request;
  request.solicited = world_.dice.chance(30);
  request.fence = world_.dice.chance(10);
  if (world_.dice.chance(15)) {
    request.opcode = Opcode::Immediate;
    request.immediate = posting_.any_immediate();
    posting_.post_message(side, *pair, request, {}, {.immediate = request.immediate});
    return;
  }
  const Stretch what = any_stretch(world_.dice, 0, Field::kOctets, Field::kSlot / 2);
  Posted posted{.length = static_cast<uint32_t>(what.length)};
  if (what.length <= kMaxInline && world_.dice.chance(40)) {
    request.inline_data = side.field.store().subspan(what.from, what.length);
  } else {
    const auto sges = posting_.pieces(side, *pair->domain, Place::Store, what.from, what.length);
    if (!sges) return;
    request.sges = *sges;
  }
  posting_.post_message(side, *pair, request, posted, {.from = what.from});
}

void Working::write(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto there = posting_.reach(side, *pair, Place::Target, Access::RemoteWrite);
  if (!there) return;
  const Stretch what = any_stretch(world_.dice, there->from, there->length, kMostOctets);
  const auto sges = posting_.pieces(side, *pair->domain, Place::Store, what.from, what.length);
  if (!sges) return;
  SendRequest request{.opcode = Opcode::Write};
  const bool tells = posting_.peer_receives(side, *pair) && world_.dice.chance(20);
  request.sges = *sges;
  request.remote = {there->begin.stag, there->begin.offset + what.from - there->from};
  const Posted posted{.length = static_cast<uint32_t>(what.length)};
  if (!tells) {
    posting_.post_write(side, *pair, request, posted, what);
    return;
  }
  request.opcode = Opcode::WriteImmediate;
  request.immediate = posting_.any_immediate();
  if (posting_.post_write(side, *pair, request, posted, what)) {
    world_.other(side).pair_of(pair->peer)->life->messages.post({.immediate = request.immediate});
  }
}

void Working::write_list(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  std::vector<Drafted> list;
  for (size_t more = 1 + world_.dice.below(7); more > 0; --more) {
    const auto there = posting_.reach(side, *pair, Place::Target, Access::RemoteWrite);
    if (!there) return;
    const Stretch what = any_stretch(world_.dice, there->from, there->length, kMostOctets / 8);
    const auto sges = posting_.pieces(side, *pair->domain, Place::Store, what.from, what.length);
    if (!sges) return;
    SendRequest request{.opcode = Opcode::Write};
    request.sges = *sges;
    request.remote = {there->begin.stag, there->begin.offset + what.from - there->from};
    list.push_back({request, {.length = static_cast<uint32_t>(what.length)}, what});
  }
  if (world_.dice.chance(20)) {  // one that is refused, and those behind it with it
    SendRequest& request = list[world_.dice.below(list.size())].request;
    while (!request.sges.too_long()) request.sges.push_back({});
  }
  posting_.post_writes(side, *pair, list);
}

void Working::read(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto there = posting_.reach(side, *pair, Place::Store, Access::RemoteRead);
  if (!there) return;
  const Stretch what = any_stretch(world_.dice, there->from, there->length, kMostOctets);
  const auto sink = posting_.pieces(side, *pair->domain, Place::Target, what.from, what.length);
  if (!sink) return;
  SendRequest request{.opcode = Opcode::Read};
  request.sges = *sink;
  request.remote = {there->begin.stag, there->begin.offset + what.from - there->from};
  posting_.post_read(side, *pair, request,
            {.length = static_cast<uint32_t>(what.length), .place = what.from});
}

void Working::atomic(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr) return;
  const auto there = posting_.reach(side, *pair, Place::Words, Access::RemoteAtomic);
  if (!there) return;
  const size_t word = world_.dice.below(Field::kWords);
  SendRequest request{.opcode = Opcode::FetchAdd};
  request.remote = {there->begin.stag, there->begin.offset + word * kAtomicSize};
  if (world_.dice.chance(40)) {
    request.opcode = Opcode::CompareSwap;
    request.atomic = any_idle_swap(world_.dice);
    posting_.post(*pair, request, {.length = kAtomicSize});
    return;
  }
  request.atomic.data = 1;
  // It may be there before the call returns.
  ++world_.other(side).added[word];
  posting_.post(*pair, request, {.length = kAtomicSize});
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
  posting_.post(*pair, request, {.sound = false});  // it may be bound already
}

void Working::bad(Side& side) {
  const auto pair = side.any_running(world_.dice);
  if (pair == nullptr || !world_.dice.chance(10)) return;
  const auto there = posting_.reach(side, *pair, Place::Target, Access::RemoteWrite);
  if (!there) return;
  // From the right place: where the spoilt piece has no octets the request is sound after all.
  const auto sges = posting_.pieces(side, *pair->domain, Place::Store, there->from, 64);
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
  // Nobody knows what the STag is of, if anything.
  posting_.post_write(side, *pair, request, posted, {0, Field::kOctets});
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
  if (pair != nullptr) receive(side, *pair);
}

void Working::receive(Side& side, Pair& pair) {
  if (side.free_slots.empty()) return;
  const size_t slot = side.free_slots.back();
  const auto sges =
      posting_.pieces(side, *pair.domain, Place::Inbox, slot * Field::kSlot, Field::kSlot);
  if (!sges) return;
  const ReceiveRequest request{.id = world_.next_id++, .sges = *sges};
  if (pair.shared != nullptr) {
    world_.judge.answered("post_receive beside a shared queue", pair.handle.post_receive(request),
                          Expect::Failure, {WrongState});
    return;
  }
  if (pair.life->receives.size() >= 2 * pair.depth) return;
  const bool room = pair.life->receives.size() < pair.depth;
  if (!world_.judge.answered("post_receive", pair.handle.post_receive(request),
                             room ? Expect::Success : Expect::Either, {ResourceExhausted})) {
    return;
  }
  side.free_slots.pop_back();
  pair.life->receives.post({.id = request.id, .opcode = Opcode::Receive, .place = slot});
}

bool Working::relieve(Side& side, Pair& pair) {
  if (pair.shared != nullptr) return pair.life->messages.size() == 0;
  while (pair.life->receives.size() < pair.life->messages.size()) {
    const size_t before = pair.life->receives.size();
    if (before < pair.depth) receive(side, pair);
    if (pair.life->receives.size() == before) return false;
  }
  return true;
}

void Working::relieve(Side& side) {
  Side& there = world_.other(side);
  const auto pair = side.any_running(world_.dice);
  const auto peer = pair == nullptr ? nullptr : there.pair_of(pair->peer);
  const auto goes_on = [&] {
    return pair->phase == Phase::Running && peer->phase == Phase::Running;
  };
  if (peer == nullptr || peer->peer != pair->life->number || !goes_on()) return;
  if (pair->wait != Wait::Long || peer->wait != Wait::Long) return;
  // Nobody could poll what comes to a queue without a handle.
  if (pair->receive_queue->ended || peer->receive_queue->ended) return;
  if (pair->life->messages.size() + peer->life->messages.size() == 0) return;
  // Of two that wait each may keep the other from sending.
  if (!relieve(side, *pair) || !relieve(there, *peer)) return;
  // A responder sends nothing before the initiator has (RFC 5044 s.7.1.3).
  posting_.read_nothing(side, *pair);
  posting_.read_nothing(there, *peer);
  const bool relieved = world_.await([&] {
    arrivals_.drain(side, *pair->receive_queue);
    arrivals_.drain(there, *peer->receive_queue);
    arrivals_.watch(side);
    arrivals_.watch(there);
    return !goes_on() || pair->life->messages.size() + peer->life->messages.size() == 0;
  });
  world_.judge.require(relieved, "a message waits, though there is a receive");
  world_.judge.seen("messages that waited were received");
}

void Working::receive_shared(Side& side) {
  const auto shared = world_.dice.any(side.shared);
  if (shared == nullptr || side.free_slots.empty()) return;
  const size_t slot = side.free_slots.back();
  const auto sges =
      posting_.pieces(side, *shared->domain, Place::Inbox, slot * Field::kSlot, Field::kSlot);
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
