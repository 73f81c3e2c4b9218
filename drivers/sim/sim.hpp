/// \file
/// Driver `sim`: a link in virtual time, for tests and the simulator. No clock, no thread, no EAL:
/// time is what the caller says.
///
/// - `link.hpp`: `Link`, two ports joined by a wire with delay, rate and queue.
/// - `world.hpp`: `World`, the clock that jumps from event to event.
///
/// Faults of the wire (loss, reordering, corruption) are not here: put `impair` around a `SimPort`.
#pragma once

#include "sim/link.hpp"
#include "sim/world.hpp"
