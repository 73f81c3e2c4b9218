/// \file
/// Layer `base`: the freestanding vocabulary of the tree.
///
/// What may live here: types and containers that every layer needs and that know nothing of
/// packets, protocols, ports or memory registration: octet views, endian loads, serial numbers,
/// time as a value, results, checks, fixed-capacity containers, the seeded generator, counters, the
/// log, the trace edge.
///
/// Rules: no clock is read here, no randomness is drawn from the system, nothing allocates after
/// construction. The only atomics of the tree are those of `spsc_ring.hpp` and `doorbell.hpp`.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/endian.hpp"
#include "base/fail.hpp"
#include "base/seq32.hpp"
#include "base/time.hpp"
