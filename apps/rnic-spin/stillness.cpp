#include "rnic-spin/stillness.hpp"

#include <algorithm>
#include <chrono>

namespace rnic::spin {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(200);  // with an answer of a peer
constexpr Stretch kTarget{0, Field::kOctets};

}  // namespace

bool Stillness::reach() {
  if (is_there()) return true;
  for (const auto& side : world_.sides) {
    for (const auto& pair : side->pairs) {
      if (pair->phase == Phase::Running && is_busy(*side, *pair)) {
        posting_.read_nothing(*side, *pair);
      }
    }
  }
  if (world_.await([this] { return has_come(); }, kPatience)) return true;
  for (const auto& side : world_.sides) {
    for (const auto& pair : side->pairs) {
      if (!is_busy(*side, *pair)) continue;
      world_.judge.answered("modify to error",
                            pair->handle.modify({.state = QueuePairState::Error}), Expect::Success,
                            {});
      if (pair->phase == Phase::Running) pair->phase = Phase::Ending;
    }
  }
  if (world_.await([this] { return has_come(); })) return true;
  world_.judge.seen("memory did not come to rest");
  return false;
}

bool Stillness::is_there() const {
  return std::ranges::none_of(
      world_.sides, [this](const auto& side) { return arrivals_.may_change(*side, kTarget); });
}

bool Stillness::has_come() {
  for (const auto& side : world_.sides) {
    for (const auto& queue : side->queues) arrivals_.drain(*side, *queue);
    arrivals_.watch(*side);
  }
  return is_there();
}

bool Stillness::is_busy(const Side& side, const Pair& pair) const {
  const auto peer = world_.other(side).pair_of(pair.peer);
  return pair.life->may_change(kTarget) || (peer != nullptr && peer->life->may_change(kTarget));
}

}  // namespace rnic::spin
