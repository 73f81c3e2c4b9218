/// \file
/// The reports of a device about itself and its connections: limits, and what each connection is
/// doing now.
#pragma once

#include <chrono>
#include <cstdint>

#include "rnic/address.hpp"
#include "rnic/connection.hpp"
#include "rnic/queue_info.hpp"
#include "rnic/queue_pair.hpp"
#include "rnic/work.hpp"

namespace rnic {

/// The limits of one device, and how much of each is in use. A request beyond one of them fails
/// with ResourceExhausted or InvalidArgument and an error that names the limit's key.
struct DeviceLimits {
  uint32_t max_qps = 0;          ///< limits.max_qps
  uint32_t qps = 0;              ///< in use
  uint32_t max_cqs = 0;          ///< limits.max_cqs
  uint32_t cqs = 0;              ///< in use
  uint32_t max_srqs = 0;         ///< limits.max_srqs
  uint32_t srqs = 0;             ///< in use
  uint32_t max_pds = 0;          ///< limits.max_pds
  uint32_t pds = 0;              ///< in use
  uint32_t max_regions = 0;      ///< limits.max_regions
  uint32_t regions = 0;          ///< in use
  uint32_t max_connections = 0;  ///< limits.max_connections
  uint32_t connections = 0;      ///< in use, those being made or ending included
  uint32_t max_consumers = 0;    ///< limits.max_consumers
  uint32_t consumers = 0;        ///< there are now, beside the application itself
  uint32_t max_work_depth = 0;   ///< of a send or receive queue: limits.max_work_depth
  uint32_t max_cq_depth = 0;     ///< of a completion queue: limits.max_cq_depth
  uint32_t max_reads = 0;        ///< IRD and ORD of a queue pair: limits.max_reads
  uint64_t max_registered_octets = 0;  ///< limits.registered_octets; kNoQuota: no limit
  uint64_t registered_octets = 0;      ///< of all regions
  uint64_t max_pieces = 0;             ///< limits.max_pieces
  uint64_t pieces = 0;                 ///< as ResourceCounts::pieces, of all consumers
  uint64_t max_cq_entries = 0;         ///< limits.cq_entries; kNoQuota: no limit
  uint64_t cq_entries = 0;             ///< that all completion queues hold together
  uint64_t max_total_reads = 0;        ///< limits.total_reads; kNoQuota: no limit
  uint64_t total_reads = 0;            ///< IRD and ORD of all queue pairs
  uint64_t max_peer_connections = 0;   ///< of one address: limits.peer_connections; kNoQuota: none
  uint32_t max_sge = kMaxSge;    ///< of a send, Read or receive request
  uint32_t max_private_data = kMaxPrivateData;  ///< octets that every revision but 0 carries
  uint32_t max_message = UINT32_MAX;            ///< octets (RFC 5041 s.5.2)
  uint32_t max_pending_requests = 0;  ///< unanswered ones of peers: limits.max_pending_requests
  uint32_t max_events = 0;            ///< not yet read: limits.max_events
  uint64_t max_held_octets = 0;       ///< received and not placed: limits.hold_octets
  uint64_t held_octets = 0;           ///< in use
};

/// The facts that a transport knows about a connection; unknown ones are 0.
struct TransportInfo {
  std::chrono::nanoseconds rtt{0};  ///< smoothed (RFC 6298); 0: not measured
  std::chrono::nanoseconds rtt_variation{0};
  std::chrono::nanoseconds rto{0};   ///< with back-off
  std::chrono::nanoseconds idle{0};  ///< since the peer was last heard
  uint32_t mss = 0;                  ///< octets of payload in a full segment now
  uint64_t cwnd = 0;                 ///< octets
  uint64_t ssthresh = 0;             ///< octets; UINT32_MAX and more: no loss yet
  uint64_t in_flight = 0;            ///< octets sent and believed to be in the network
  uint64_t peer_window = 0;          ///< octets; 0 also if the transport cannot tell
  uint64_t retransmitted = 0;        ///< segments sent again since it began, modulo 2^32
};

/// The reason why a queue pair does not send its next octet now.
enum class SendLimit : uint8_t {
  Application,     ///< nothing waits to be sent, or what waits is fenced or has no Read left (ORD)
  ReceiverWindow,  ///< the peer's window
  Congestion,      ///< the congestion window
  Pool,            ///< the port takes no frame, or has none to give
  Rtr,             ///< the start-up: a responder waits for the peer's first FPDU
};
/// The name as a text: "application", "receiver's window".
[[nodiscard]] const char* to_string(SendLimit limit);

/// How much of a peer's stream went the slow way; octets unless it says otherwise.
struct ReceivePaths {
  uint64_t arrived = 0;            ///< in order, so far
  uint64_t placed_early = 0;       ///< placed out of order
  uint64_t held = 0;               ///< copied to hold space, in total
  uint64_t held_now = 0;           ///< those of `held` that are not placed yet
  uint64_t dropped_damaged = 0;    ///< segments dropped before they were acknowledged: CRC
  uint64_t dropped_suspected = 0;  ///< segments: an FPDU cut, or its length damaged
  uint64_t dropped_no_room = 0;    ///< segments: no hold space

  /// The share of octets that were held before they could be placed, 0 to 1.
  [[nodiscard]] double slow_share() const {
    const uint64_t all = arrived > held ? arrived : held;
    return all == 0 ? 0.0 : static_cast<double>(held) / static_cast<double>(all);
  }
};

/// A queue pair and its connection at one moment (QueuePair::info()).
struct QueuePairInfo {
  QueuePairState state = QueuePairState::Idle;
  QueuePairCounters counters;
  bool connected =
      false;  ///< there is a connection, being made, in use or ending; else the rest is 0
  Endpoint local;
  Endpoint remote;
  ConnectionFacts facts;  ///< what the start-up has agreed on
  TransportInfo transport;
  uint32_t mulpdu = 0;  ///< octets of a DDP segment that fit one FPDU now (RFC 5044 s.4.5)
  ReceivePaths received;
  uint32_t sends_completed = 0;  ///< work requests of the send queue; wraps
  SendLimit limit = SendLimit::Application;
  /// A message has found no receive posted, and waits for one (QueuePairOptions::receive_wait).
  bool waits_for_receive = false;
  uint64_t receive_waits = 0;  ///< messages that waited so, on this or the last connection
};

/// Names a connection until it has ended, at the device whose connections() has given it; another
/// device answers InvalidArgument. The fields are the library's own.
struct ConnectionId {
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;
  uint32_t device = 0;  ///< a number that no other device of the process has; 0: none
  friend bool operator==(const ConnectionId&, const ConnectionId&) = default;
};

/// One connection, as an administrator sees it (Device::connections()).
struct ConnectionSummary {
  ConnectionId id;
  uint32_t qp = 0;          ///< QueuePair::number(); 0: a peer's request that nobody has answered
  bool inbound = false;     ///< the peer has asked for it
  bool running = false;     ///< in full operation; false: being made, or ending
  void* context = nullptr;  ///< the queue pair's
  Endpoint local;
  Endpoint remote;
  std::chrono::nanoseconds idle{0};  ///< since the peer was heard last
  ReceivePaths received;
  uint32_t srq = 0;  ///< SharedReceiveQueue::number() of the queue pair's; 0: it has none
  /// The receives that the queue pair has taken from there. They show whose peer takes more than
  /// its share, and which connection abort() is for (RFC 5042 s.6.4.3.1).
  SrqUse srq_use;
};

}  // namespace rnic
