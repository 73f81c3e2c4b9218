/// \file
/// Calls on handles that are empty.
#pragma once

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Makes some call on an empty handle: it has to be refused, or to do nothing.
void use_empty(World& world, const Side& side);

}  // namespace rnic::spin
