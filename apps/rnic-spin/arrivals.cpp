#include "rnic-spin/arrivals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace rnic::spin {

namespace {

std::string name_of(const Completion& done) {
  return std::string(to_string(done.opcode)) + " " + std::to_string(done.id) + " of queue pair " +
         std::to_string(done.qp) + ": " + describe(done);
}

uint32_t number_in(const std::vector<uint8_t>& private_data) {
  uint32_t number = 0;
  if (private_data.size() == sizeof number) {
    std::memcpy(&number, private_data.data(), sizeof number);
  }
  return number;
}

}  // namespace

void Arrivals::begin_life(Side& side, Pair& pair) {
  pair.life = std::make_shared<Life>();
  pair.life->number = pair.handle.number();
  pair.life->shares_receives = pair.shared != nullptr;
  pair.phase = Phase::None;
  pair.peer = 0;
  world_.judge.require(!side.lives.contains(pair.life->number), "a number is used again");
  side.lives[pair.life->number] = pair.life;
  if (pair.shared != nullptr) side.shared_of[pair.life->number] = pair.shared;
}

void Arrivals::end_life(Side& side, Pair& pair) {
  drain(side, *pair.send_queue);
  drain(side, *pair.receive_queue);
  for (const Posted& posted : pair.life->receives.give_up()) free_slot(side, posted.place);
  // Those left are silent ones. Of two ends each Read would keep the other's life for ever.
  static_cast<void>(pair.life->sends.give_up());
  for (const auto& grant : side.grants) {
    using enum Grant::State;
    const bool pending = grant->state == Coming || grant->state == Going;
    const bool own = grant->only == pair.life->number && grant->state != Free;
    if (own || (pending && grant->by == pair.life)) grant->state = Doubtful;
  }
  side.lives.erase(pair.life->number);
  side.shared_of.erase(pair.life->number);
  // What this queue pair alone could use nobody can now.
  for (const auto& region : side.regions) {
    if (region->only == pair.life->number) region->may_be_gone = true;
  }
}

void Arrivals::give_up(Side& side, SharedQueue& shared) {
  for (const auto& [id, posted] : shared.posted) free_slot(side, posted.place);
  shared.posted.clear();
}

void Arrivals::free_slot(Side& side, size_t slot) {
  side.field.clear_slot(slot);
  side.free_slots.push_back(slot);
}

void Arrivals::poll(Side& side) {
  const auto queue = world_.dice.any(side.queues);
  if (queue == nullptr) return;
  std::array<Completion, 16> out;
  const uint32_t came = queue->handle.poll({out.data(), 1 + world_.dice.below(out.size())});
  for (uint32_t i = 0; i < came; ++i) completed(side, out[i]);
}

void Arrivals::arm_and_poll(Side& side) {
  const auto queue = world_.dice.any(side.queues);
  if (queue == nullptr) return;
  const auto what = world_.dice.chance(50) ? Notify::Next : Notify::Solicited;
  world_.judge.answered("arm", queue->handle.arm(what), Expect::Success, {});
  drain(side, *queue);
}

void Arrivals::drain(Side& side, Queue& queue) {
  std::array<Completion, 16> out;
  while (const uint32_t came = queue.handle.poll(out)) {
    for (uint32_t i = 0; i < came; ++i) completed(side, out[i]);
  }
}

void Arrivals::completed(Side& side, const Completion& done) {
  world_.judge.seen(std::string(to_string(done.opcode)) + " completed: " + to_string(done.status));
  const auto found = side.lives.find(done.qp);
  world_.judge.require(found != side.lives.end(),
                       "a completion for a queue pair that is not there: " + name_of(done));
  const std::shared_ptr<Life> life = found->second;
  const Posted posted = taken(side, *life, done);
  judge_status(side, posted, done);
  if (posted.grant != nullptr) conclude(*posted.grant, done);
  if (done.opcode == Opcode::Receive) return received(side, *life, posted, done);
  if (is_read(done.opcode) && done.status == CompletionStatus::Success) {
    if (posted.peer != nullptr) posted.peer->incoming.placed(posted.behind);
    if (may_change(side, {posted.place, posted.length})) return;
    const auto wrong = side.field.check_fetched(posted.place, posted.length);
    world_.judge.require(!wrong, wrong.value_or("") + ": " + name_of(done));
  }
}

Posted Arrivals::taken(Side& side, Life& life, const Completion& done) {
  if (done.opcode == Opcode::Receive && life.shares_receives) {
    auto& posted = side.shared_of.at(life.number)->posted;
    const auto found = posted.find(done.id);
    world_.judge.require(found != posted.end(),
                         "a receive that was not posted has completed: " + name_of(done));
    const Posted one = found->second;
    posted.erase(found);
    return one;
  }
  std::string wrong;
  Outstanding& queue = done.opcode == Opcode::Receive ? life.receives : life.sends;
  const auto one = queue.complete(done, wrong);
  world_.judge.require(wrong.empty(), name_of(done) + ": " + wrong);
  return *one;
}

void Arrivals::conclude(Grant& grant, const Completion& done) {
  using enum Grant::State;
  // Since then its handle, its region or its queue pair may have gone.
  if (grant.state != Coming && grant.state != Going) return;
  grant.by = nullptr;
  if (done.status != CompletionStatus::Success) {
    grant.state = Doubtful;
  } else if (done.opcode == Opcode::FastRegister) {
    grant.state = Valid;
  } else {
    grant.state = Free;
    grant.gone = grant.stag;
  }
}

void Arrivals::judge_status(const Side& side, const Posted& posted, const Completion& done) {
  const bool disturbed = posted.id < side.disturbed || !posted.sound;
  const bool local = done.status == CompletionStatus::LocalProtection ||
                     done.status == CompletionStatus::LocalLength;
  // A message may be longer than the receive that it finds.
  const bool longer = done.opcode == Opcode::Receive;
  world_.judge.require(!local || disturbed || longer,
                       "nothing was wrong with it: " + name_of(done));
  world_.judge.require(!posted.doomed || done.status != CompletionStatus::Success,
                       "it must not succeed: " + name_of(done));
  const auto pair = side.pair_of(done.qp);
  const bool ended = pair == nullptr || pair->phase != Phase::Running;
  world_.judge.require(
      !posted.has_room || ended || done.status != CompletionStatus::RemoteInvalidRequest,
      "the peer was to wait for a receive: " + name_of(done));
}

void Arrivals::received(Side& side, Life& life, const Posted& posted, const Completion& done) {
  if (done.status == CompletionStatus::Success) {
    std::string wrong;
    const auto message = life.messages.receive(done, wrong);
    world_.judge.require(wrong.empty(), wrong + ": " + name_of(done));
    const size_t octets = message->immediate ? 0 : done.length;
    const auto octet = side.field.check_message(posted.place, message->from, octets);
    world_.judge.require(!octet, octet.value_or("") + ": " + name_of(done));
    for (const auto& grant : side.grants) {
      if (message->invalidates != 0 && grant->stag == message->invalidates) conclude(*grant, done);
    }
  }
  free_slot(side, posted.place);
}

void Arrivals::watch(Side& side) {
  const auto event = side.device.poll_event();
  if (!event) return;
  world_.judge.seen(std::string("event: ") + event::to_string(*event) + " of queue pair " +
                    (event::common(*event).qp == 0 ? "0" : "n"));
  std::visit([&](const auto& kind) { happened(side, kind); }, *event);
}

void Arrivals::happened(Side& side, const event::ConnectRequest& event) {
  const auto number = std::bit_cast<uint64_t>(event.listener_context);
  const auto listening =
      std::ranges::find_if(side.listening, [&](const auto& one) { return one->number == number; });
  const bool there = listening != side.listening.end();
  world_.judge.require(!there || event.listener == (*listening)->local,
                       "a request names another listener than its own");
  side.asked.push_back(
      {event.request, number_in(event.private_data), there ? (*listening)->owner : nullptr});
}

void Arrivals::happened(Side& side, const event::Established& event) {
  const auto pair = side.pair_of(event.qp);
  if (pair == nullptr) return;  // destroyed, or idle again, before anybody looked
  world_.judge.require(pair->phase == Phase::Starting, "established without a start");
  pair->phase = Phase::Running;
  if (pair->peer == 0) pair->peer = number_in(event.private_data);
}

void Arrivals::happened(Side& side, const event::ConnectFailed& event) {
  const auto pair = side.pair_of(event.qp);
  if (pair == nullptr) return;
  world_.judge.require(pair->phase == Phase::Starting, "a connect has failed that was none");
  world_.judge.require(!event.detail.empty(), "a failed connect says nothing");
}

void Arrivals::happened(Side& side, const event::RequestWithdrawn& event) {
  std::erase_if(side.asked, [&](const Asked& asked) {
    return asked.request.index == event.request.index &&
           asked.request.generation == event.request.generation;
  });
}

void Arrivals::happened(Side& side, const event::Disconnected& event) {
  const auto pair = side.pair_of(event.qp);
  if (pair == nullptr) return;
  world_.judge.require(pair->phase != Phase::None && pair->phase != Phase::Over,
                       "a connection has ended that there was not");
  pair->phase = Phase::Over;
  pair->life->over = true;
  all_completed(side, *pair, "disconnected");
}

void Arrivals::happened(Side& side, const event::CompletionOverrun& event) {
  // One without a handle is polled by nobody.
  const bool polled = std::ranges::any_of(
      side.queues, [&](const auto& queue) { return queue->handle.number() == event.cq; });
  world_.judge.require(!polled, "an overrun, though the queue has room: " + event.detail);
}

void Arrivals::all_completed(Side& side, Pair& pair, const char* when) {
  const auto left = [&] {
    drain(side, *pair.send_queue);
    drain(side, *pair.receive_queue);
    const bool heard = pair.send_queue->handle.number() != 0;
    const bool received = pair.receive_queue->handle.number() != 0;
    return (heard ? pair.life->sends.awaited() : 0) +
           (received ? pair.life->receives.awaited() : 0);
  };
  // What was posted behind the end is flushed in the device's next turn.
  if (!world_.await([&] { return left() == 0; })) {
    world_.judge.broken(std::string(when) + ", and " + std::to_string(left()) + " requests of " +
                        std::to_string(pair.life->number) + " have not completed");
  }
}

bool Arrivals::may_change(const Side& side, const Stretch& where) const {
  return !world_.is_still() && std::ranges::any_of(side.lives, [&](const auto& one) {
    return one.second->may_change(where);
  });
}

void Arrivals::check_memory() {
  world_.judge.seen("the memory was looked at");
  for (const auto& side : world_.sides) {
    const auto wrong = side->field.check();
    world_.judge.require(!wrong, side->device.name() + ": " + wrong.value_or(""));
    for (const size_t slot : side->free_slots) {
      const auto written = side->field.check_message(slot, 0, 0);
      world_.judge.require(!written, "where no receive is posted: " + written.value_or(""));
    }
    for (size_t i = 0; i < Field::kWords; ++i) {
      world_.judge.require(side->field.word(i) <= side->added[i],
                           "more was added to a word than was posted");
    }
  }
}

}  // namespace rnic::spin
