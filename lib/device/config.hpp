/// \file
/// The configuration that a device is made from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "mpa/mpa.hpp"
#include "net/net.hpp"
#include "rnic/planned_fault.hpp"
#include "rnic/quotas.hpp"
#include "rnic/transport.hpp"
#include "tcp/config.hpp"
#include "tuf/tuf.hpp"

namespace rnic::device {

/// Limits of one device. Memory for them is allocated at start, and touched as the tables fill.
struct Limits {
  uint32_t max_qps = 1024;              ///< queue pairs, 1..65535 (numbers begin at 1)
  uint32_t max_cqs = 1024;              ///< completion queues
  uint32_t max_pds = 256;               ///< protection domains
  uint32_t max_consumers = 64;          ///< consumers that an application creates
  uint32_t max_srqs = 256;              ///< shared receive queues
  uint32_t max_regions = 65536;         ///< registered memory regions, windows included
  uint64_t max_pieces = 1u << 20;       ///< pieces of all regions that have more than one
  uint32_t max_connections = 1024;      ///< connections, those being made included
  uint32_t max_starting = 256;          ///< inbound, without a whole Request; the oldest gives way
  base::Duration silence{0};            ///< silent ones give way after it, too; 0: never
  uint32_t max_pending_requests = 128;  ///< inbound requests the application has not answered
  uint32_t max_events = 4096;           ///< asynchronous events not yet read
  uint32_t max_work_depth = 65536;      ///< deepest send or receive queue
  uint32_t max_cq_depth = 0;            ///< deepest completion queue; 0: twice max_work_depth
  uint32_t max_reads = 128;             ///< highest IRD and ORD of a queue pair
  uint64_t registered_octets = 0;       ///< of all regions; 0: no limit
  uint64_t cq_entries = 0;              ///< of all completion queues; 0: no limit
  uint64_t total_reads = 0;             ///< IRD and ORD of all queue pairs; 0: no limit
  uint32_t peer_connections = 0;        ///< inbound, of one address (IPv6: a /64); 0: no limit
  uint64_t hold_octets = 8u << 20;      ///< octets committed that cannot be placed yet
  uint32_t max_packed = 16384;          ///< segments of DDP packed into framing PDUs of `tuf`
  uint32_t max_streams = 1024;          ///< streaming sockets, 1..4096
  uint32_t stream_buffer = 256u << 10;  ///< octets of a streaming socket's ring, each way
  uint64_t stream_octets = 128u << 20;  ///< octets of all rings in use
  uint32_t max_framed_streams = 128;    ///< framed streams, 1..4096
  uint32_t framed_buffer = 256u << 10;  ///< octets of a framed stream's ring, each way
};

/// \return whether established connections that are silent give way to newcomers
[[nodiscard]] inline bool evicts_silent(const Limits& limits) {
  return limits.silence > base::Duration(0);
}

[[nodiscard]] inline uint32_t deepest_cq(const Limits& limits) {
  return limits.max_cq_depth != 0 ? limits.max_cq_depth : 2 * limits.max_work_depth;
}

/// What all consumers may have together, beyond what the tables limit.
[[nodiscard]] inline ResourceCounts given_out(const Limits& limits) {
  return {.registered_octets = limits.registered_octets,
          .cq_entries = limits.cq_entries,
          .reads = limits.total_reads};
}

struct DeviceConfig {
  std::string name = "rnic0";
  net::Config net;
  tcp::Config tcp;
  Framing framing = Framing::Mpa;  ///< of connections that do not choose one
  mpa::Config mpa;
  tuf::Config tuf;
  Limits limits;
  ResourceCounts quotas;             ///< of each consumer that sets none itself; 0: none
  bool rdma_extensions = true;       ///< RFC 7306: atomics and Immediate Data
  bool check_aliases = false;        ///< mem::TableLimits::watch_aliases
  bool order_bursts = true;          ///< where a path reorders: see BurstOrder
  bool shortcuts = true;             ///< false, for tests: everything takes the longer way
  std::vector<PlannedFault> faults;  ///< of these the device commits those that need no frames
  /// The source of ports, STags, keys and initial sequence numbers (RFC 6528). The caller draws it
  /// from the system's randomness, or fixes it for repeatable runs.
  std::array<uint64_t, 2> secret{1, 2};
  uint64_t seed = 1;  ///< tells devices with the same secret apart
};

}  // namespace rnic::device
