/// \file
/// Counters of L2 and L3.
#pragma once

#include "base/counters.hpp"

#define RNIC_NET_COUNTERS(X)                                                               \
  X(frames_in, "frames", "received frames")                                                \
  X(frames_out, "frames", "frames queued for the port")                                    \
  X(short_frames, "frames", "dropped: shorter than their headers say")                     \
  X(not_ours, "frames", "dropped: another MAC address")                                    \
  X(unknown_ethertype, "frames", "dropped: not IPv4 or ARP")                               \
  X(arp_in, "frames", "ARP packets received")                                              \
  X(arp_malformed, "frames", "ARP packets dropped")                                        \
  X(arp_requests_out, "frames", "ARP requests sent")                                       \
  X(arp_replies_out, "frames", "ARP replies sent")                                         \
  X(arp_table_full, "events", "neighbour not learned, or the oldest replaced: table full") \
  X(arp_unresolved, "frames", "frames dropped: neighbour did not answer or queue full")    \
  X(ip_in, "packets", "IPv4 packets received for this host")                               \
  X(ip_bad_header, "packets", "dropped: version, length or options impossible")            \
  X(ip_checksum_errors, "packets", "dropped: header checksum wrong")                       \
  X(ip_not_ours, "packets", "dropped: another destination address")                        \
  X(ip_bad_source, "packets", "dropped: source address impossible")                        \
  X(ip_fragments, "packets", "dropped: fragments are not reassembled yet")                 \
  X(ip_unknown_protocol, "packets", "dropped: neither TCP nor ICMP")                       \
  X(icmp_echo_in, "packets", "echo requests answered")                                     \
  X(icmp_limited, "packets", "echo requests not answered: rate limit")                     \
  X(icmp_malformed, "packets", "ICMP dropped: length or checksum wrong")                   \
  X(icmp_other, "packets", "ICMP received and ignored")                                    \
  X(no_route, "packets", "not sent: no route")                                             \
  X(no_buffer, "events", "not sent now: the port's pool is empty")                         \
  X(port_full, "events", "the port did not take a whole burst")

namespace rnic::net {

RNIC_DEFINE_COUNTERS(Counters, RNIC_NET_COUNTERS)

}  // namespace rnic::net
