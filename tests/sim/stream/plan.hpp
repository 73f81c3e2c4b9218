/// \file
/// Streaming worlds: TCP alone, between two of our stacks or between one of ours and a plain peer,
/// over a hostile path. A profile and a seed give the parameters of one world.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/prng.hpp"
#include "base/time.hpp"
#include "tcp/config.hpp"

namespace rnic::simulation {

/// What a router says about a packet that does not fit its next link.
enum class RouterNews : uint8_t {
  Mtu,      ///< the MTU (RFC 1191, RFC 8201)
  NoMtu,    ///< too big, but not for what (RFC 1191 s.5)
  Nothing,  ///< a black hole (RFC 2923)
};

/// What happens to packets in one direction. Chances are per packet.
struct PathPlan {
  double drop = 0;
  double burst_enter = 0;  ///< Gilbert: a burst of loss begins with this packet
  double burst_leave = 1;
  double duplicate = 0;
  double corrupt = 0;  ///< one to three bits, such that the checksum tells
  double reorder = 0;  ///< held back by up to `reorder_span`
  base::Duration reorder_span{0};
  base::Duration delay{10'000};
  base::Duration jitter{0};
  bool jitter_reorders = false;
  double lose_opening = 0;       ///< of ACKs that open a closed window
  uint64_t bits_per_second = 0;  ///< 0: no limit
  uint32_t queue_packets = 64;   ///< at the bottleneck; more are lost
  uint32_t mark_packets = 0;     ///< CE on ECT packets that find so many queued; 0: never
  double mark = 0;               ///< CE by chance
  uint32_t later_mtu = 0;        ///< of the path, from `mtu_at` on; 0: it stays
  base::Duration mtu_at{0};
  RouterNews news = RouterNews::Mtu;
  double split = 0;  ///< a middlebox cuts a segment
  double merge = 0;  ///< a middlebox keeps a segment to join it with the next
  base::Duration merge_hold{200'000};
};

/// How the plain peer behaves.
struct PeerPlan {
  bool active = true;
  uint16_t mss = 1460;
  bool scale = true;
  uint8_t scale_shift = 4;
  bool timestamps = true;
  bool sack = true;
  uint32_t buffer = 65'536;  ///< octets that it receives before its user reads
  uint32_t ack_every = 2;    ///< segments
  base::Duration ack_delay{40'000'000};
  uint32_t flight_limit = 32'768;
  base::Duration pace{200'000};  ///< between what it sends, at most
  double overlap = 0;            ///< segments over committed octets, those with other content
  double duplicate = 0;          ///< old segments again
  double hole = 0;               ///< new octets are left out at first
  double urgent = 0;             ///< URG, at some place
  double beyond = 0;             ///< octets beyond the window
  double renege = 0;             ///< forgets what it has SACKed, each time it gets something
  double shrink = 0;             ///< takes back a part of its window, each time it gets something
};

/// How an application uses a stream.
struct ApplicationPlan {
  bool records = false;  ///< framed; else an octet stream
  uint64_t octets = 100'000;
  uint32_t record_max = 1448;
  uint32_t ring = 65'536;         ///< octet streams: send and receive rings
  double drop = 0;                ///< framed: inspected octets that are dropped
  uint32_t read_rate_octets = 0;  ///< a millisecond; 0: all at once
  uint64_t stop_at = UINT64_MAX;  ///< stops to read here
  base::Duration stop_for{0};
  base::Duration write_gap{0};  ///< pauses between writes, at most
  uint32_t write_max = 0;       ///< octet streams: octets of a write; 0: as many as the ring has
  bool close_after_peer = false;
};

struct StreamPlan {
  std::string profile;
  uint64_t seed = 0;
  bool plain_peer = false;  ///< side 1 is the plain peer
  PeerPlan peer;
  PathPlan path[2];  ///< of what each side sends
  uint32_t mtu[2] = {1500, 1500};
  tcp::Config tcp[2];
  ApplicationPlan application[2];
  uint32_t connections = 1;
  double port_full = 0;        ///< chance that the port has no room
  base::Duration poll_gap{0};  ///< a host looks at its port so rarely, at most
  double pause = 0;            ///< chance that a host sleeps, each 100 ms
  base::Duration pause_max{0};
  bool network = false;  ///< packets go through lib/net
  bool ipv6 = false;
  bool informed_forger = false;  ///< forged PacketTooBig quote octets that are in flight
  base::Duration attack_gap{0};  ///< between forged segments; 0: none
  uint32_t flood = 0;            ///< spoofed SYNs before the first connect, and more of them later
  bool whole_records = false;    ///< nothing gives a reason to cut one
  base::Duration limit = std::chrono::hours(1);
};

struct StreamProfile {
  const char* name;
  const char* what;
  void (*apply)(StreamPlan& plan, base::Prng& prng);
};

[[nodiscard]] std::span<const StreamProfile> stream_profiles();
[[nodiscard]] StreamPlan make_stream_plan(const StreamProfile& profile, uint64_t seed);

}  // namespace rnic::simulation
