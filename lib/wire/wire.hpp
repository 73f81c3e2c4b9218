/// \file
/// Layer `wire`: formats only. Octets to values and back, at named offsets; no state, no policy, no
/// I/O.
///
/// One style for all formats (docs/decisions/0041):
/// * All names are in rnic::wire and begin with their format's: `kTcpWindowAt`, `MpaStartHeader`.
///   Only the values of a field that many lines compare with are a namespace, as an enumeration
///   would be: `tcp_flag::kSyn`, `tcp_option::kNop`.
/// * `k<Format><Field>At` is the offset of a field from the beginning of its header, in octets.
/// * `parse_<format>(octets)` takes whatever came, never reads behind its end, and returns the
///   fields, or nothing where there are fewer octets than the format needs or a length, a version
///   or a kind in it is impossible. Reserved bits are not looked at. What is legal and still not
///   wanted is the caller's to judge.
/// * `write_<format>(p, fields)` writes to memory that has room for the whole of it, reserved bits
///   as zero. What it wrote is parsed to the same fields.
/// * `load_<field>(p)` and `store_<field>(p, value)` are for what has a fixed size and no
///   impossible value (an address, a marker): the caller knows that the octets are there.
/// * What is read on each segment's way is a view, `TcpView`: its `parse` checks the lengths once,
///   and each field is read where it stands. `TcpOptions` and `TcpOptionWriter` go through a list
///   of any length, and are classes for that.
///
/// Nothing is cast onto a packet, so there is no padding, alignment or byte-order trap. All lengths
/// are octets; all fields are network order on the wire and host order here, except the MPA CRC,
/// which is stored least significant octet first (RFC 5044 s.4.4).
///
/// The meaning of a field for a connection (tcp, mpa, ddp, rdmap) and the policy of checksums (net,
/// tcp) belong to other layers.
#pragma once

#include "wire/arp.hpp"
#include "wire/ddp.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ip_protocol.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/mpa.hpp"
#include "wire/nd.hpp"
#include "wire/rdmap.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"
#include "wire/terminate.hpp"
#include "wire/tuf.hpp"
