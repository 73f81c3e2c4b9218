/// \file
/// ConnectionInfo: a snapshot of one connection for users. It is made on demand; the data path
/// maintains nothing for it.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/state.hpp"

namespace rnic::tcp {

/// The phase of the sender's loss recovery.
enum class LossState : uint8_t {
  Open,      ///< nothing is missing
  Disorder,  ///< SACKs or duplicate ACKs came, but a loss is not certain yet
  Recovery,  ///< fast recovery (RFC 6675, RFC 6582)
  Loss,      ///< after a retransmission time-out
};

/// A snapshot of one connection: octets, sequence numbers relative to the first octet, durations.
/// "Segments" are the sender's own: a record, or several packed together, that left in one packet.
struct ConnectionInfo {
  State state = State::Closed;
  LossState loss_state = LossState::Open;

  // Agreed on the SYNs.
  bool timestamps = false;
  bool sack = false;
  bool window_scaling = false;
  bool ecn = false;            ///< RFC 3168
  uint8_t snd_wind_shift = 0;  ///< the peer's scale
  uint8_t rcv_wind_shift = 0;  ///< ours

  // Sizes, octets.
  uint32_t emss = 0;      ///< payload of a full segment now, options deducted
  uint32_t rcv_mss = 0;   ///< payload of a full segment of the peer, as estimated; 536 at first
  uint32_t path_mtu = 0;  ///< 0: no route

  // Congestion control, octets.
  uint32_t cwnd = 0;
  uint32_t ssthresh = 0;  ///< UINT32_MAX: no loss yet
  bool slow_start = false;

  // Sending.
  uint64_t snd_una = 0;
  uint64_t snd_nxt = 0;
  uint32_t snd_wnd = 0;          ///< the peer's window, octets
  uint64_t pipe = 0;             ///< octets believed to be in the network (RFC 6675)
  uint32_t unacked = 0;          ///< segments sent and not cumulatively acknowledged
  uint32_t sacked = 0;           ///< of these: SACKed, or counted by duplicate ACKs
  uint32_t lost = 0;             ///< of these: presumed lost
  uint32_t retransmitted = 0;    ///< of these: a retransmission is in the network
  uint32_t total_resent = 0;     ///< of these: sent more than once
  uint64_t resent_segments = 0;  ///< sent again since the connection began, modulo 2^32
  uint32_t reorder_degree = 3;   ///< segments of reordering that are tolerated (RFC 5681: 3)
  bool reordering_seen = false;  ///< RFC 8985 s.6.2

  // Receiving.
  uint64_t rcv_nxt = 0;
  uint32_t rcv_wnd = 0;              ///< octets that the peer may still send
  uint32_t out_of_order_ranges = 0;  ///< separate ranges received beyond RCV.NXT

  // Time.
  base::Duration srtt{0};  ///< 0: not measured
  base::Duration rttvar{0};
  base::Duration min_rtt{0};
  base::Duration rto{0};       ///< with back-off
  uint32_t rto_backoff = 0;    ///< consecutive time-outs, or window probes
  uint32_t window_probes = 0;  ///< sent since the peer closed its window
  base::Duration idle{0};      ///< since the peer was heard

  friend bool operator==(const ConnectionInfo&, const ConnectionInfo&) = default;
};

}  // namespace rnic::tcp
