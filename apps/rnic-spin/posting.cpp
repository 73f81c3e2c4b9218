#include "rnic-spin/posting.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <vector>

namespace rnic::spin {

namespace {

using enum ErrorCode;

}  // namespace

bool Posting::post(Pair& pair, SendRequest request, Posted posted, uint32_t signaled) {
  // A place is free before its completion is polled, but the completion queue has room for two
  // completions a place and no more.
  const size_t outstanding = pair.life->sends.size();
  if (outstanding >= 2 * pair.depth) return false;
  const bool room = outstanding < pair.depth;
  request.id = posted.id = world_.next_id++;
  posted.opcode = request.opcode;
  posted.signaled = request.signaled =
      outstanding + 1 >= pair.depth || world_.dice.chance(signaled);
  const std::string call = std::string("post ") + to_string(request.opcode);
  if (!world_.judge.answered(call, pair.handle.post_send(request),
                             room ? Expect::Success : Expect::Either, {ResourceExhausted})) {
    return false;
  }
  pair.life->sends.post(posted);
  return true;
}

void Posting::post_message(const Side& side, Pair& pair, const SendRequest& request,
                           const Posted& posted, Message message) {
  message.solicited = request.solicited;
  message.length = posted.length;
  const auto peer = world_.other(side).pair_of(pair.peer);
  Posted noted = posted;
  noted.has_room = peer != nullptr && peer->wait == Wait::Long;
  if (post(pair, request, noted) && peer != nullptr) peer->life->messages.post(message);
}

bool Posting::post_write(const Side& side, Pair& pair, const SendRequest& request,
                         const Posted& posted, const Stretch& target) {
  if (!post(pair, request, posted)) return false;
  // The peer is there: reach() has given its memory.
  world_.other(side).pair_of(pair.peer)->life->incoming.post(target);
  return true;
}

void Posting::post_writes(const Side& side, Pair& pair, std::span<Drafted> list) {
  const size_t outstanding = pair.life->sends.size();
  if (outstanding + list.size() > 2 * pair.depth) return;
  std::vector<SendRequest> requests;
  size_t good = 0;  // requests before the first that is refused
  for (Drafted& each : list) {
    each.request.id = each.posted.id = world_.next_id++;
    each.posted.opcode = each.request.opcode;
    each.posted.signaled = each.request.signaled =
        outstanding + requests.size() + 1 >= pair.depth || world_.dice.chance(80);
    if (good == requests.size() && !each.request.sges.too_long()) ++good;
    requests.push_back(each.request);
  }
  const size_t sure = std::min(good, pair.depth - std::min<size_t>(outstanding, pair.depth));
  const ListPosted result = pair.handle.post_send(requests);
  world_.judge.answered("post of a list", result.status,
                        good < list.size()          ? Expect::Failure
                        : sure == list.size()       ? Expect::Success
                                                    : Expect::Either,
                        {InvalidArgument, ResourceExhausted});
  world_.judge.require(result.taken >= sure && result.taken <= good,
                       "of " + std::to_string(list.size()) + " requests " +
                           std::to_string(result.taken) + " were taken, where " +
                           std::to_string(sure) + " to " + std::to_string(good) + " could be");
  world_.judge.require((result.taken == list.size()) == result.status.has_value(),
                       "a list says another thing than the number of those that it took");
  const auto peer = world_.other(side).pair_of(pair.peer);
  for (const Drafted& each : list.first(result.taken)) {
    pair.life->sends.post(each.posted);
    peer->life->incoming.post(each.target);  // it is there: reach() has given its memory
  }
}

ImmediateData Posting::any_immediate() {
  return std::bit_cast<ImmediateData>(uint64_t{world_.dice.below(SIZE_MAX)});
}

bool Posting::post_read(const Side& side, Pair& pair, const SendRequest& request, Posted posted,
                        uint32_t signaled) {
  if (const auto peer = world_.other(side).pair_of(pair.peer)) {
    posted.peer = peer->life;
    posted.behind = peer->life->incoming.posted();
  }
  return post(pair, request, posted, signaled);
}

std::shared_ptr<Grant> Posting::any_local(const Side& side, const Domain& domain, Place place,
                                          const Stretch& what) {
  std::vector<std::shared_ptr<Grant>> fitting;
  std::ranges::copy_if(side.grants, std::back_inserter(fitting), [&](const auto& grant) {
    return grant->domain.get() == &domain && grant->only == 0 && grant->covers(place, what);
  });
  return world_.dice.any(fitting);
}

std::optional<SgeList> Posting::pieces(const Side& side, const Domain& domain, Place place,
                                       size_t from, size_t length) {
  std::vector<std::shared_ptr<Region>> fitting;
  std::ranges::copy_if(side.regions, std::back_inserter(fitting), [&](const auto& region) {
    return region->domain.get() == &domain && region->covers(place, from, length) &&
           region->only == 0 && !region->may_be_gone &&
           (place != Place::Target || region->access.contains(Access::RemoteWrite));
  });
  const auto grant = any_local(side, domain, place, {from, length});
  if (grant != nullptr && world_.dice.chance(30)) {
    return SgeList{{grant->offset + (from - grant->from), static_cast<uint32_t>(length),
                    grant->stag}};
  }
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

std::optional<Reach> Posting::reach(const Side& side, const Pair& pair, Place place,
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
  for (const auto& grant : there.grants) {
    const bool may = grant->domain == peer->domain && grant->covers(place, {grant->from, 0}) &&
                     grant->access.contains(access) && grant->serves(*peer->life);
    if (may) reaches.push_back({{grant->stag, grant->offset}, grant->from, grant->length});
  }
  if (reaches.empty()) return std::nullopt;
  return reaches[world_.dice.below(reaches.size())];
}

bool Posting::peer_receives(const Side& side, const Pair& pair) const {
  const auto peer = world_.other(side).pair_of(pair.peer);
  if (peer == nullptr) return false;
  const size_t posted =
      peer->shared == nullptr ? peer->life->receives.size() : peer->shared->posted.size();
  return posted > pair.life->sends.size();
}

void Posting::read_nothing(Side& side, Pair& pair) {
  post_read(side, pair, {.opcode = Opcode::Read}, {}, 100);
}

}  // namespace rnic::spin
