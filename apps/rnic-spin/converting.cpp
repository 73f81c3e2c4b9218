#include "rnic-spin/converting.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "rnic-spin/working.hpp"

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostLast = 100;  // of the last message

bool is_sound(const Speaking& end) {
  const Conversation::Speaker& said = end.talk->at(end.role);
  return !end.was_converted && !end.finished && !said.finished && !said.aborted &&
         end.handle.state() == StreamState::Open;
}

std::shared_ptr<Speaking> other_end(const std::vector<std::shared_ptr<Speaking>>& of,
                                    const Speaking& end) {
  const auto found = std::ranges::find_if(of, [&](const auto& one) {
    return one->talk == end.talk && one->role == other(end.role);
  });
  return found == of.end() ? nullptr : *found;
}

}  // namespace

bool Converting::hear(Speaking& one, Speaking& peer) {
  const auto all = [](const Speaking& end) {
    return end.talk->at(end.role).received == end.talk->at(other(end.role)).sent;
  };
  return world_.await([&] {
    for (Speaking* const end : {&one, &peer}) streaming_.take(*end);
    return all(one) && all(peer);
  });
}

bool Converting::await_rdma(Speaking& acceptor) {
  std::array<uint8_t, kMostLast> octets;
  const auto last = std::span(octets).first(world_.dice.below(kMostLast + 1));
  acceptor.talk->fill(acceptor.role, last);
  const Status status = acceptor.handle.await_rdma(last);
  if (!world_.judge.answered("Stream::await_rdma", status, Expect::Success, {})) return false;
  acceptor.talk->at(acceptor.role).sent += last.size();
  world_.judge.require(acceptor.handle.is_converted(), "a stream that waits for RDMA streams");
  world_.judge.answered("send() on a stream that waits for RDMA", acceptor.handle.send(octets),
                        Expect::Failure, {WrongState});
  world_.judge.answered("await_rdma() of one that does already", acceptor.handle.await_rdma(),
                        Expect::Failure, {WrongState});
  return true;
}

void Converting::convert(Side& side) {
  Side& there = world_.other(side);
  const auto one = world_.dice.any(side.speaking);
  if (one == nullptr || one->role != StreamRole::Initiator || one->talk->is_doubtful()) return;
  const auto peer = other_end(there.speaking, *one);
  if (peer == nullptr || !is_sound(*one) || !is_sound(*peer)) return;
  std::vector<std::shared_ptr<Pair>> fitting;
  std::ranges::copy_if(side.pairs, std::back_inserter(fitting), [&](const auto& pair) {
    // A queue without a handle may have overrun, as nobody polls it.
    return pair->phase == Phase::None && pair->domain->owner == side.application &&
           !pair->send_queue->ended && !pair->receive_queue->ended;
  });
  const auto pair = world_.dice.any(fitting);
  if (pair == nullptr) return;
  world_.judge.require(hear(*one, *peer), "octets of a stream do not come");
  if (!await_rdma(*peer)) return;
  const bool unread = one->talk->at(StreamRole::Initiator).received !=
                      one->talk->at(StreamRole::Acceptor).sent;
  world_.judge.require(world_.await([&] { return !unread || one->handle.readable() > 0; }),
                       "the last message of a stream does not come");
  if (unread && world_.dice.chance(20)) {
    world_.judge.answered("connect over a stream with unread octets",
                          pair->handle.connect(one->handle), Expect::Failure, {WrongState});
  }
  world_.judge.require(hear(*one, *one), "the last message of a stream is not whole");
  world_.judge.answered("connect over a stream",
                        pair->handle.connect(one->handle, token_of(*pair)), Expect::Success, {});
  pair->phase = Phase::Starting;
  pair->peer = 0;
  for (const auto& end : {one, peer}) {
    end->was_converted = true;
    Side& of = end == one ? side : there;
    std::erase(of.speaking, end);
    of.converted.push_back(end);
  }
}

void Converting::move_back(Side& side, const std::shared_ptr<Speaking>& one) {
  std::erase(side.converted, one);
  side.speaking.push_back(one);
}

void Converting::look(Side& side) {
  const auto one = world_.dice.any(side.converted);
  if (one == nullptr) return;
  Side& there = world_.other(side);
  const auto peer = other_end(there.converted, *one);
  // Both are streams again after a reject, and of one that has ended nothing else is known.
  if (peer == nullptr || one->handle.is_converted() || peer->handle.is_converted()) return;
  if (one->handle.how_ended() || peer->handle.how_ended()) return;
  move_back(side, one);
  move_back(there, peer);
  world_.judge.seen("a stream speaks on after a reject");
}

void Converting::close(Side& side) {
  const auto one = world_.dice.any(side.converted);
  if (one == nullptr) return;
  one->talk->at(one->role).closed = true;
  one->handle.close();
  std::erase(side.converted, one);
  streaming_.forget(*one);
}

}  // namespace rnic::spin
