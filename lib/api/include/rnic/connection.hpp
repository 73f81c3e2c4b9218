/// \file
/// How one connection is set up, and what its start-up has agreed on.
#pragma once

#include <cstdint>
#include <optional>

#include "rnic/transport.hpp"

namespace rnic {

inline constexpr uint32_t kMaxPrivateData = 508;  ///< octets that every revision but 0 carries
/// As an IRD or ORD: not agreed in the start-up, the applications do that (RFC 6581 s.9.1).
inline constexpr uint16_t kReadsByApplication = 0x3fff;

/// The kinds of RTR (RFC 6581 s.9.2): the initiator's first message, of length zero.
enum class Rtr : uint8_t { None, Send, Write, Read };

/// How one connection is set up. What is not said comes from the configuration (`framing`, `mpa.*`)
/// and the queue pair.
struct ConnectOptions {
  std::optional<uint8_t> revision;  ///< connect: MPA revision, 0 to 2; not with ULP framing
  /// connect: agree on IRD and ORD (revision 2, or ULP framing, which does by default)
  std::optional<bool> exchange_reads;
  /// connect: either side may send first (revision 2; with ULP framing it always may)
  std::optional<bool> peer_to_peer;
  std::optional<uint32_t> ird;     ///< inbound Reads at once; not above the queue pair's
  std::optional<uint32_t> ord;     ///< outbound Reads at once; not above the queue pair's
  std::optional<bool> packing;     ///< several FPDUs in one segment; tcp.pack_records says it
                                   ///< for connections that do not
  std::optional<bool> nagle;       ///< small messages wait while a short segment is not
                                   ///< acknowledged, to share one; likewise tcp.nagle
  uint32_t ord_required = 0;       ///< accept: a peer that can take less is rejected
  std::optional<Framing> framing;  ///< connect: what the peer listens with
};

/// How one port is listened on. What is not said comes from the configuration.
struct ListenOptions {
  std::optional<Framing> framing;  ///< of everything that is accepted there
  /// The application's own: events of requests that come there bear it. Nobody looks at what it
  /// points to.
  void* context = nullptr;
};

/// What a start-up has agreed on.
struct ConnectionFacts {
  uint8_t revision = 1;          ///< of MPA, the lower one of both; with 0 DDP and RDMAP have
                                 ///< version 0, too
  bool crc = true;               ///< CRCs are sent and checked
  bool markers_send = false;     ///< this side puts markers into its stream
  bool markers_receive = false;  ///< the peer puts markers into its stream
  bool peer_to_peer = false;     ///< an RTR comes first
  Rtr rtr = Rtr::None;           ///< initiator: the kind that it sends
  // Nothing where they were not exchanged.
  std::optional<uint32_t> ird;       ///< inbound Reads in force
  std::optional<uint32_t> ord;       ///< outbound Reads in force
  std::optional<uint32_t> peer_ird;  ///< as the peer told it; kReadsByApplication
  std::optional<uint32_t> peer_ord;  ///< as the peer told it; kReadsByApplication
};

/// Names a connection request until it is answered.
struct RequestHandle {
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;
};

}  // namespace rnic
