/// \file
/// What a world has: the counts and the states that a refused call must not change.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "starved/world.hpp"

namespace rnic::arguments {

/// Amounts by their names: "rnic0 regions".
using Counts = std::vector<std::pair<std::string, uint64_t>>;

/// What the devices, the consumer and the objects of the world have now.
[[nodiscard]] Counts counts(starved::World& w);

/// \return the amounts that differ, a line each; "": none
[[nodiscard]] std::string difference(const Counts& before, const Counts& now);

}  // namespace rnic::arguments
