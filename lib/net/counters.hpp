/// \file
/// Counters of L2 and L3.
#pragma once

#include "base/counters.hpp"

#define RNIC_NET_COUNTERS(X)                                                                      \
  X(frames_in, "frames", "received frames")                                                       \
  X(frames_out, "frames", "frames queued for the port")                                           \
  X(short_frames, "frames", "dropped: shorter than their headers say")                            \
  X(not_ours, "frames", "dropped: another MAC address")                                           \
  X(other_vlan, "frames", "dropped: tagged for another VLAN, or not tagged for ours")             \
  X(unknown_ethertype, "frames", "dropped: not IPv4, IPv6 or ARP")                                \
  X(arp_in, "frames", "ARP packets received")                                                     \
  X(arp_malformed, "frames", "ARP packets dropped")                                               \
  X(arp_requests_out, "frames", "ARP requests sent")                                              \
  X(arp_replies_out, "frames", "ARP replies sent")                                                \
  X(nd_in, "packets", "neighbour discovery messages received")                                    \
  X(nd_malformed, "packets", "neighbour discovery messages dropped")                              \
  X(nd_ignored, "packets", "router advertisements, redirects and the like: not used")             \
  X(nd_solicitations_out, "packets", "neighbour solicitations sent")                              \
  X(nd_advertisements_out, "packets", "neighbour advertisements sent")                            \
  X(duplicate_addresses, "events", "our IPv6 addresses that somebody has: not used (RFC 4862)")   \
  X(address_conflicts, "events", "somebody claimed an address that we use (RFC 5227)")            \
  X(address_defences, "frames", "claims answered by an announcement of ours")                     \
  X(neighbours_full, "events", "neighbour not learned, or the oldest replaced: table full")       \
  X(neighbour_guessed, "frames", "sent to where a segment came from: too many to ask for")        \
  X(neighbour_unresolved, "frames", "frames dropped: neighbour did not answer or queue full")     \
  X(ip_in, "packets", "IPv4 packets received for this host")                                      \
  X(ip6_in, "packets", "IPv6 packets received for this host")                                     \
  X(ip_bad_header, "packets", "dropped: version, length or options impossible")                   \
  X(ip_checksum_errors, "packets", "dropped: header checksum wrong")                              \
  X(ip_not_ours, "packets", "dropped: another destination address")                               \
  X(ip_bad_source, "packets", "dropped: source address impossible")                               \
  X(ip6_bad_extension, "packets", "dropped: extension header malformed, unknown or too many")     \
  X(ip_fragments, "packets", "fragments received")                                                \
  X(ip_fragments_dropped, "packets", "fragments malformed, repeated, or of a datagram given up")  \
  X(ip_reassembled, "packets", "datagrams made of fragments")                                     \
  X(ip_reassembly_failed, "packets", "datagrams given up: overlap, limits, or ECN marks at odds") \
  X(ip_reassembly_timeouts, "packets", "datagrams given up: fragments missing")                   \
  X(ip_reassembly_full, "events", "the oldest datagram gave its place to a new one")              \
  X(ip_reassembly_refused, "packets", "datagrams not kept: more than net.fragments allows")       \
  X(ip_unknown_protocol, "packets", "dropped: neither TCP nor ICMP")                              \
  X(icmp_echo_in, "packets", "echo requests answered")                                            \
  X(icmp_limited, "packets", "answers and errors not sent: rate limit")                           \
  X(icmp_malformed, "packets", "ICMP dropped: length or checksum wrong")                          \
  X(icmp_other, "packets", "ICMP received and ignored")                                           \
  X(icmp_errors_in, "packets", "ICMP errors handed to TCP")                                       \
  X(icmp_errors_unusable, "packets", "ICMP errors about nothing that we can have sent")           \
  X(icmp_errors_out, "packets", "ICMP errors sent")                                               \
  X(no_route, "packets", "not sent: no route")                                                    \
  X(no_buffer, "events", "not sent now: the port's pool is empty")                                \
  X(port_full, "events", "the port did not take a whole burst")

namespace rnic::net {

RNIC_DEFINE_COUNTERS(Counters, RNIC_NET_COUNTERS)

}  // namespace rnic::net
