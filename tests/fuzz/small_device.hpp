/// \file
/// A device whose tables are as small as they may be: one is made for each input, and filling large
/// tables takes longer than running the input.
#pragma once

#include "device/config.hpp"

namespace rnic::fuzz {

/// \param index 0 or 1: of 10.0.0.1 and 10.0.0.2
inline device::DeviceConfig small_device(uint32_t index) {
  device::DeviceConfig config;
  config.seed = index + 1;
  config.net.address = rnic::IpAddress::v4(0x0a000001u + index);
  config.net.neighbours = 8;
  config.net.reassembly_datagrams = 4;
  config.tcp.max_connections = 16;
  config.tcp.max_time_wait = 16;
  config.tcp.max_range_sets = 16;
  config.tcp.max_listeners = 4;
  config.tcp.max_half_open = config.tcp.max_half_open_per_listener = 8;
  config.tcp.max_records = 512;
  config.tcp.max_records_per_connection = 256;
  config.tcp.max_saved_octets = 64u << 10;
  config.mpa.hold_limit = config.tuf.hold_limit = 128u << 10;
  config.mpa.early_limit = config.tuf.early_limit = 256;
  config.limits.max_qps = 16;
  config.limits.max_cqs = 4;
  config.limits.max_pds = 4;
  config.limits.max_regions = 16;
  config.limits.max_connections = 8;
  config.limits.max_pending_requests = 4;
  config.limits.max_events = 64;
  config.limits.hold_octets = 256u << 10;
  config.limits.max_packed = 64;
  config.limits.max_streams = 8;
  config.limits.stream_octets = 1u << 20;
  config.limits.max_framed_streams = 4;
  return config;
}

}  // namespace rnic::fuzz
