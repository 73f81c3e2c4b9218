/// \file
/// Layer `api`: the words of the public API that the layers below it speak, too.
///
/// Only plain values live here that a user writes or reads and that travel through the layers as
/// they are: errors, work requests, completions, events. They stand in include/rnic/, are
/// installed, and belong to namespace rnic; no layer has names of its own for the same things.
///
/// Rules: nothing of the tree is included, nothing allocates but a text for the user.
#pragma once

#include "rnic/access.hpp"
#include "rnic/address.hpp"
#include "rnic/connection.hpp"
#include "rnic/device_info.hpp"
#include "rnic/error.hpp"
#include "rnic/event.hpp"
#include "rnic/fault.hpp"
#include "rnic/planned_fault.hpp"
#include "rnic/queue_pair.hpp"
#include "rnic/queue_info.hpp"
#include "rnic/time.hpp"
#include "rnic/trace.hpp"
#include "rnic/transport.hpp"
#include "rnic/work.hpp"
