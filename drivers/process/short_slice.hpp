/// \file
/// A thread that wants the processor often, and never for long.
#pragma once

namespace rnic::process {

/// Asks the system to let the calling thread in soon when it is woken, for the price of being
/// interrupted sooner: its share stays what it was. A thread that others wait for in a loop would
/// otherwise wait for the end of their slices, milliseconds long. Linux has it since 6.12; an
/// earlier one ignores it.
void ask_for_short_slices();

}  // namespace rnic::process
