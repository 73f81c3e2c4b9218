/// \file
/// Layer `wire`: formats only. Octets to values and back, at named offsets; no state, no policy, no
/// I/O.
///
/// A *view* reads fields in place after its length was checked once; a *repr* is a plain struct
/// that is parsed from, and emitted to, octets. Nothing is cast onto a packet, so there is no
/// padding, alignment or byte-order trap. All lengths are octets; all fields are network order on
/// the wire and host order here, except the MPA CRC, which is stored least significant octet first
/// (RFC 5044 s.4.4).
///
/// Not here: what a field means for a connection (tcp, mpa, ddp, rdmap), checksumming policy (net,
/// tcp).
#pragma once

#include "wire/arp.hpp"
#include "wire/ddp.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/mpa.hpp"
#include "wire/nd.hpp"
#include "wire/rdmap.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"
#include "wire/terminate.hpp"
