#include <array>
#include <bit>

#include "rnic-spin/working.hpp"

namespace rnic::spin {

namespace {

using enum ErrorCode;

std::array<uint8_t, 4> token_of(const Pair& pair) {
  return std::bit_cast<std::array<uint8_t, 4>>(pair.life->number);
}

}  // namespace

void Connecting::connect(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const Device& peer = world_.other(side).device;
  const uint16_t port = world_.dice.chance(95) ? kPort : kPort + 1;
  const Status status = pair->handle.connect({peer.address(), port}, token_of(*pair));
  const Expect expect = pair->phase == Phase::None ? Expect::Either : Expect::Failure;
  if (world_.judge.answered("connect", status, expect, {WrongState, ResourceExhausted})) {
    pair->phase = Phase::Starting;
    pair->peer = 0;
  }
}

void Connecting::answer(Side& side) {
  if (side.asked.empty()) return;
  const size_t which = world_.dice.below(side.asked.size());
  const Asked asked = side.asked[which];
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr || world_.dice.chance(10)) {
    world_.judge.answered("reject", side.device.reject(asked.request), Expect::Either,
                          {NotFound});
  } else {
    const Status status = pair->handle.accept(asked.request, token_of(*pair));
    const Expect expect = pair->phase == Phase::None ? Expect::Either : Expect::Failure;
    if (!world_.judge.answered("accept", status, expect,
                               {NotFound, WrongState, ResourceExhausted})) {
      if (status.error().code != NotFound) return;  // another queue pair may take it
    } else {
      pair->phase = Phase::Starting;
      pair->peer = asked.peer;
    }
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
  const auto limits = side.device.limits();
  world_.judge.answered("limits", limits, Expect::Success, {});
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const auto attributes = pair->handle.query();
  world_.judge.answered("query", attributes, Expect::Success, {});
  world_.judge.require(attributes->number == pair->life->number, "another number than its own");
  world_.judge.require(attributes->send_depth >= pair->depth, "a queue is not as deep as asked");
  const auto info = pair->handle.info();
  world_.judge.answered("QueuePair::info", info, Expect::Success, {});
}

void Connecting::abort(Side& side) {
  const auto all = side.device.connections();
  world_.judge.answered("connections", all, Expect::Success, {});
  if (!all || all->empty()) return;
  const auto& one = (*all)[world_.dice.below(all->size())];
  world_.judge.answered("abort", side.device.abort(one.id), Expect::Either, {NotFound});
}

}  // namespace rnic::spin
