/// \file
/// Consumers: the parts of an application that do not trust each other, and how much of a device
/// each of them may have (RFC 5042 s.3, RFC 5041 s.8.3.2).
#pragma once

#include <cstdint>
#include <string>

namespace rnic {

/// As a quota: as much as the device has.
inline constexpr uint64_t kNoQuota = UINT64_MAX;

/// Amounts of what a device gives out: those that a consumer has, or may have.
struct ResourceCounts {
  uint64_t pds = 0;                ///< protection domains
  uint64_t regions = 0;            ///< STags of its domains: regions, windows, allocated ones
  uint64_t registered_octets = 0;  ///< of its regions; fast registrations add none of their own
  uint64_t pieces = 0;             ///< of its regions that have several, and as many as its STags
                                   ///< for fast registrations may have
  uint64_t cqs = 0;                ///< completion queues
  uint64_t cq_entries = 0;         ///< completions that its completion queues hold together
  uint64_t srqs = 0;               ///< shared receive queues
  uint64_t qps = 0;                ///< queue pairs
  uint64_t reads = 0;              ///< Reads and atomics at once: IRD and ORD of its queue pairs
  uint64_t listeners = 0;          ///< endpoints that it listens on for RDMA connections, and
                                   ///< ports that it has reserved
  uint64_t requests = 0;           ///< requests of peers there that it has not answered
  uint64_t held_octets = 0;        ///< received on its connections and not placed yet

  friend bool operator==(const ResourceCounts&, const ResourceCounts&) = default;
};

/// How a consumer is made (Device::create_consumer()).
struct ConsumerOptions {
  std::string name;  ///< for errors; it need not be unique
  /// The most that it may have at once. 0: as the key of that name in `[quotas]` says; kNoQuota: as
  /// much as the device has.
  ResourceCounts quotas{};
};

/// What a consumer may have, and what it has.
struct ConsumerInfo {
  std::string name;
  ResourceCounts quotas;  ///< kNoQuota: as much as the device has
  ResourceCounts used;
  uint64_t refused = 0;  ///< calls, and requests of peers, that one of its quotas has refused
};

}  // namespace rnic
