#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "rnic-spin/tcp_choice.hpp"
#include "rnic-spin/working.hpp"

namespace rnic::spin {

namespace {

using enum ErrorCode;

}  // namespace

std::array<uint8_t, 4> token_of(const Pair& pair) {
  return std::bit_cast<std::array<uint8_t, 4>>(pair.life->number);
}

Endpoint Connecting::any_remote(const Side& side) {
  const Side& there = world_.other(side);
  const auto listening = world_.dice.chance(95) ? world_.dice.any(there.listening) : nullptr;
  return {there.device.address(), listening == nullptr ? kNobody : listening->local.port};
}

void Connecting::connect(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const Status status = pair->handle.connect(any_remote(side), token_of(*pair));
  const Expect expect = pair->phase == Phase::None ? Expect::Either : Expect::Failure;
  if (world_.judge.answered("connect", status, expect, {WrongState, ResourceExhausted})) {
    pair->phase = Phase::Starting;
    pair->peer = 0;
  }
}

void Connecting::connect_reserved(Side& side) {
  const auto reserved = world_.dice.any(side.reserved);
  const bool elsewhere = world_.dice.chance(5);
  const auto pair = world_.dice.any(elsewhere ? world_.other(side).pairs : side.pairs);
  if (pair == nullptr || reserved == nullptr) return;
  PortReservation& from = reserved->handle;
  const Status status = pair->handle.connect(from, any_remote(side), token_of(*pair));
  const bool foreign = pair->domain->owner != reserved->owner;
  const bool may = !elsewhere && !foreign && pair->phase == Phase::None;
  const Judge::Codes other_device{InvalidArgument};
  // What the port was used for before may be in TIME-WAIT towards the same peer.
  const Judge::Codes right{WrongState, ResourceExhausted, AlreadyExists};
  const Judge::Codes wrong{WrongState, PermissionDenied};
  if (!world_.judge.answered("connect from a reserved port", status,
                             may ? Expect::Either : Expect::Failure,
                             elsewhere ? other_device : (foreign ? wrong : right))) {
    world_.judge.require(from.local() == reserved->local, "a reservation has gone with a refusal");
    world_.judge.require(status.error().message.find("has it)") == std::string::npos,
                         "it is in its own way: " + status.error().message);
    return;
  }
  world_.judge.require(from.local() == Endpoint{}, "a reservation that was used is still there");
  pair->phase = Phase::Starting;
  pair->peer = 0;
  reserved->owner->share.give_back({.listeners = 1});
  std::erase(side.reserved, reserved);
}

bool Connecting::accept(Pair& pair, const Asked& asked) {
  const Status status = pair.handle.accept(asked.request, token_of(pair));
  const bool known = asked.owner != nullptr;
  const bool foreign = known && asked.owner != pair.domain->owner;
  const bool may = pair.phase == Phase::None && !foreign;
  const Judge::Codes by_owner{NotFound, WrongState, ResourceExhausted};
  const Judge::Codes by_others{NotFound, WrongState, ResourceExhausted, PermissionDenied};
  if (!world_.judge.answered(foreign ? "accept for another consumer" : "accept", status,
                             may ? Expect::Either : Expect::Failure,
                             known && !foreign ? by_owner : by_others)) {
    return status.error().code == NotFound;  // else another queue pair may take it
  }
  pair.phase = Phase::Starting;
  pair.peer = asked.peer;
  return true;
}

std::shared_ptr<Pair> Connecting::any_answering(const Side& side, const Asked& asked) {
  if (world_.dice.chance(10)) return world_.dice.any(side.pairs);
  std::vector<std::shared_ptr<Pair>> fitting;
  std::ranges::copy_if(side.pairs, std::back_inserter(fitting), [&](const auto& pair) {
    return asked.owner == nullptr || pair->domain->owner == asked.owner;
  });
  return world_.dice.any(fitting);
}

void Connecting::answer(Side& side) {
  if (side.asked.empty()) return;
  const size_t which = world_.dice.below(side.asked.size());
  const Asked asked = side.asked[which];
  const auto pair = any_answering(side, asked);
  if (pair == nullptr || world_.dice.chance(10)) {
    world_.judge.answered("reject", side.device.reject(asked.request), Expect::Either,
                          {NotFound});
  } else if (!accept(*pair, asked)) {
    return;
  }
  side.asked.erase(side.asked.begin() + static_cast<std::ptrdiff_t>(which));
}

void Connecting::close(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const bool running = pair->phase == Phase::Running || pair->phase == Phase::Ending;
  const Status status = pair->handle.disconnect();
  world_.judge.answered("disconnect", status, running ? Expect::Success : Expect::Either,
                        {WrongState});
  if (pair->phase == Phase::Running && status) pair->phase = Phase::Ending;
}

void Connecting::reset(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  if (world_.dice.chance(50)) {
    world_.judge.answered("drain", pair->handle.drain(std::chrono::milliseconds(1)),
                          Expect::Success, {});
  } else {
    world_.judge.answered("modify to error",
                          pair->handle.modify({.state = QueuePairState::Error}), Expect::Success,
                          {});
  }
  if (pair->phase == Phase::Running) pair->phase = Phase::Ending;
  // Without a connection no event comes.
  if (pair->phase == Phase::None) pair->phase = Phase::Over;
}

void Connecting::to_idle(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const Expect expect = pair->phase == Phase::Over ? Expect::Success : Expect::Either;
  const Status status = pair->handle.modify({.state = QueuePairState::Idle});
  if (!world_.judge.answered("modify to idle", status, expect, {WrongState})) return;
  if (pair->handle.number() == pair->life->number) return;  // it was idle
  arrivals_.end_life(side, *pair);
  arrivals_.begin_life(side, *pair);
}

void Connecting::ask(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const auto attributes = pair->handle.query();
  world_.judge.answered("query", attributes, Expect::Success, {});
  world_.judge.require(attributes->number == pair->life->number, "another number than its own");
  world_.judge.require(attributes->send_depth >= pair->depth, "a queue is not as deep as asked");
  world_.judge.require(attributes->ird <= pair->ird && attributes->ord <= pair->ord,
                       "more Reads than were asked for");
  const auto info = pair->handle.info();
  world_.judge.answered("QueuePair::info", info, Expect::Success, {});
  const bool waited = info->waits_for_receive || info->receive_waits > 0;
  world_.judge.require(!waited || pair->wait != Wait::Never, "a message waits that must not");
  if (waited) world_.judge.seen("a message has waited for a receive");
}

void Connecting::abort(Side& side) {
  const auto all = side.device.connections();
  world_.judge.answered("connections", all, Expect::Success, {});
  if (!all || all->empty()) return;
  const auto& one = (*all)[world_.dice.below(all->size())];
  // A stream that speaks on after a reject is still among them.
  for (const auto& ends : {std::pair(one.local, one.remote), std::pair(one.remote, one.local)}) {
    if (const auto found = world_.talks.find(ends); found != world_.talks.end()) {
      found->second->doubt();
    }
  }
  world_.judge.answered("abort", side.device.abort(one.id), Expect::Either, {NotFound});
}

void Connecting::choose_tcp(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const bool wrong = world_.dice.chance(20);
  QueuePairChange change{.tcp = wrong ? impossible_tcp(world_.dice) : any_tcp(world_.dice)};
  const bool systems = world_.dice.chance(20);
  if (systems) change.tcp->pacing = world_.dice.chance(50);
  if (world_.dice.chance(10)) change.state = QueuePairState::Closing;
  const auto info = pair->handle.info();
  const Status status = pair->handle.modify(change);
  if (systems && side.on_sockets) {
    world_.judge.answered("modify the system's TCP", status, Expect::Failure, {Unsupported});
  } else if (wrong) {
    world_.judge.answered("modify TCP to what cannot be", status, Expect::Failure,
                          {InvalidArgument});
  } else if (!world_.is_still()) {
    const bool before = pair->phase == Phase::None || change.state;
    world_.judge.answered("modify TCP", status, before ? Expect::Failure : Expect::Either,
                          {WrongState, InvalidArgument});
  } else {
    const bool connected = info && info->connected;
    world_.judge.answered("modify TCP", status, unless(!connected || change.state),
                          {connected ? InvalidArgument : WrongState});
  }
}

}  // namespace rnic::spin
