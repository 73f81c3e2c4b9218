/// \file
/// How one connection is set up. What is not said comes from the configuration and the queue pair.
#pragma once

#include <cstdint>
#include <optional>

#include "device/config.hpp"
#include "mpa/mpa.hpp"

namespace rnic::device {

struct QueuePairSpec;

struct ConnectOptions {
  std::optional<uint8_t> revision;     ///< connect: 0, 1 or 2 (mpa.revision)
  std::optional<bool> exchange_reads;  ///< connect: tell IRD and ORD (mpa.exchange_reads)
  std::optional<bool> peer_to_peer;    ///< connect: an explicit RTR (mpa.peer_to_peer)
  std::optional<uint32_t>
      ird;  ///< inbound Reads, <= the queue pair's; mpa::kReadsByUlp: not agreed
  std::optional<uint32_t> ord;     ///< outbound Reads likewise
  std::optional<Framing> framing;  ///< connect: what the peer listens with (framing)
  std::optional<bool> packing;     ///< several FPDUs in one segment (tcp.pack_records)
  std::optional<bool> nagle;       ///< small FPDUs wait for a short segment's ACK (tcp.nagle)
  uint32_t ord_required = 0;       ///< accept: with less the request is rejected (RFC 6581 s.9.1)
};

/// The wish that options, configuration and queue pair make together.
[[nodiscard]] mpa::StartWish make_wish(const ConnectOptions& options, const mpa::Config& config,
                                       const QueuePairSpec& spec);

}  // namespace rnic::device
