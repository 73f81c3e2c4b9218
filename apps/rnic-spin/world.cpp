#include "rnic-spin/world.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace rnic::spin {

Side::Side(Device of) : device(std::move(of)), free_slots(Field::kSlots) {
  std::iota(free_slots.begin(), free_slots.end(), size_t{0});
}

std::shared_ptr<Pair> Side::pair_of(uint32_t number) const {
  const auto found = std::ranges::find_if(
      pairs, [&](const auto& pair) { return pair->life->number == number; });
  return found == pairs.end() ? nullptr : *found;
}

std::shared_ptr<Pair> Side::any_running(Dice& dice) const {
  std::vector<std::shared_ptr<Pair>> running;
  std::ranges::copy_if(pairs, std::back_inserter(running),
                       [](const auto& pair) { return pair->phase == Phase::Running; });
  return dice.any(running);
}

}  // namespace rnic::spin
