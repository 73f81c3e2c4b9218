/// \file
/// Layer `verbs`: the public API (`include/rnic/`) and the composition root behind it: it reads the
/// configuration, starts DPDK, opens ports and decorators, reads the clock and the system's
/// randomness, and runs devices inline or on worker threads.
///
/// Nothing below this layer reads a clock or knows a thread.
#pragma once

#include "settings/settings.hpp"
#include "verbs/runtime.hpp"
#include "verbs/worker.hpp"
