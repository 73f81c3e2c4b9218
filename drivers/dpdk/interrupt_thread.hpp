/// \file
/// DPDK's own thread for events; private to the driver.
#pragma once

namespace rnic::dpdk {

/// Waits until DPDK's interrupt thread has served the events that were pending at the call.
/// Not for the data path. \return false when it did not get there within a second
bool drain_interrupt_thread();

}  // namespace rnic::dpdk
