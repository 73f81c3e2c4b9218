/// \file
/// Driver `dpdk`: ports over DPDK ethdevs, and the clock of a worker. The only folder with DPDK
/// headers and DPDK's compile flags; these public headers have neither.
///
/// - `eal.hpp`: starts DPDK once per process, with or without hugepages.
/// - `ethdev.hpp`: opens ports: two that are joined by memory of this process, an existing device,
///   or a virtual device that is plugged on demand (net_af_packet, net_memif,
///   ...).
/// - `reassembler.hpp`: keeps fragments for `net`, on librte_ip_frag.
/// - `tsc_clock.hpp`: `base::Now` from the TSC.
///
/// A frame's octets are one mbuf segment: the mbufs are sized for the MTU, and a received chain is
/// made contiguous (counted). A port is one receive and one transmit queue; a device with
/// receive-side scaling can be several ports.
#pragma once

#include "dpdk/eal.hpp"
#include "dpdk/ethdev.hpp"
#include "dpdk/reassembler.hpp"
#include "dpdk/tsc_clock.hpp"
