#include "rnic-spin/asking.hpp"

#include <chrono>
#include <string>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostTraced = 64;  // events

}  // namespace

void Asking::start_trace(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const auto info = pair->handle.info();
  const Status status = pair->handle.start_trace(world_.dice.below(kMostTraced + 1));
  const bool connected = info && info->connected;
  world_.judge.answered("start_trace", status,
                        world_.is_still() ? unless(!connected) : Expect::Either, {WrongState});
  if (status) pair->traced = true;
}

void Asking::take_trace(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  const auto events = pair->handle.take_trace();
  const bool taken =
      world_.judge.answered("take_trace", events, unless(!pair->traced), {WrongState});
  pair->traced = false;
  if (!taken) return;
  world_.judge.require(events->size() <= kMostTraced, "a trace is longer than was asked for");
  std::chrono::nanoseconds before{0};
  for (const TraceEvent& event : *events) {
    world_.judge.require(event.begin <= event.end, "a trace has octets that end before they begin");
    world_.judge.require(event.time >= before, "a trace goes back in time");
    before = event.time;
  }
}

void Asking::name(Side& side) {
  const auto pair = world_.dice.any(side.pairs);
  if (pair == nullptr) return;
  void* const context = &pair->depth;
  world_.judge.answered("modify the context", pair->handle.modify({.context = context}),
                        Expect::Success, {});
  const auto attributes = pair->handle.query();
  world_.judge.require(attributes && attributes->context == context,
                       "a queue pair has another context than it was given");
  world_.judge.answered("set_context", side.device.set_context(&side), Expect::Success, {});
}

void Asking::moderate(Side& side) {
  const auto queue = world_.dice.any(side.queues);
  if (queue == nullptr) return;
  NotifyModeration how{.count = static_cast<uint32_t>(1 + world_.dice.below(8)),
                       .period = std::chrono::microseconds(world_.dice.below(2000))};
  const bool wrong = world_.dice.chance(20);
  if (wrong) how.count = kMaxNotifyCount + 1;
  const bool endless = how.count > 1 && how.period.count() == 0;
  world_.judge.answered("moderate", queue->handle.moderate(how), unless(wrong || endless),
                        {InvalidArgument});
}

void Asking::descriptors(Side& side) {
  const auto queue = world_.dice.any(side.queues);
  if (queue != nullptr) {
    const auto fd = queue->handle.fd();
    world_.judge.answered("CompletionQueue::fd", fd, Expect::Success, {});
    const auto again = queue->handle.fd();
    world_.judge.require(fd && again && *fd == *again, "a queue has two descriptors");
  }
  if (!world_.dice.chance(20)) return;
  const auto of_events = side.device.event_fd();
  world_.judge.answered("event_fd", of_events, Expect::Success, {});
  world_.judge.answered("Context::fd", world_.context.fd(), unless(world_.context.threaded()),
                        {Unsupported});
  if (!world_.context.threaded()) static_cast<void>(world_.context.arm());
}

void Asking::counts(Side& side) {
  const auto all = side.device.counters();
  world_.judge.require(!all.empty(), "a device counts nothing");
  const Counter& one = all[world_.dice.below(all.size())];
  world_.judge.answered("counter", side.device.counter(one.layer, one.name), Expect::Success, {});
  world_.judge.answered("counter of no name", side.device.counter(one.layer, one.name + "?"),
                        Expect::Failure, {NotFound});
  world_.judge.answered("terminates", side.device.terminates(), Expect::Success, {});
  const auto pair = world_.dice.any(side.pairs);
  // Nobody dials, or somebody does: an event tells how it went.
  if (pair == nullptr || !world_.dice.chance(20)) return;
  const bool dials = pair->phase == Phase::Starting || pair->phase == Phase::Ending;
  world_.judge.answered("cancel_connect", pair->handle.cancel_connect(),
                        dials ? Expect::Either : Expect::Failure, {WrongState});
}

}  // namespace rnic::spin
