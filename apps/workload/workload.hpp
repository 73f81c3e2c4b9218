/// \file
/// What the applications share: memory with a checkable content, a connected pair of queue pairs in
/// one context, transfers that verify, and the machine's description. Built on the public API
/// alone.
#pragma once

#include "workload/buffer.hpp"
#include "workload/machine.hpp"
#include "workload/operation.hpp"
#include "workload/pair.hpp"
#include "workload/pattern.hpp"
#include "workload/remote.hpp"
#include "workload/transfer.hpp"
