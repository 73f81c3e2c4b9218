/// \file
/// Driver `socket`: the fully layered variant of RFC 5044 section 5. The same MPA, DDP and RDMAP
/// run over ordinary TCP sockets of the system: no DPDK, no privileges, no reserved memory.
///
/// - System is the boundary to the operating system: every call goes through it, so that a
/// simulated
///   kernel can take its place.
/// - Transport is an llp::Transport over non-blocking sockets and one epoll; Connection is its
///   llp::Stream. No threads: the worker that polls a device polls it.
/// - Reservation keeps a port before it is used: a socket that is bound, does not listen, and has
///   its port alone (decision 52).
/// - EMSS comes from the system if it tells one (emss.hpp); a change is reported before the next
///   pull. Nagle's algorithm is off, and MSG_EOR makes a segment begin where an FPDU begins
///   (RFC 5044 s.5.1).
/// - Received octets go up in order, straight from one buffer of fixed size. What nobody above has
///   room for stays in the system's buffer, and its window tells the peer.
/// - released() means that the system holds a copy (decision 7), not that the peer has it.
/// - Segments are not to be seen in either direction: alignment mode of ULP framing does not exist
///   here, marker mode does.
/// - What the system's TCP decides stays with it: congestion control, retransmission, SACK, ECN.
///   Silent drop and early placement do not exist here (StreamTraits say so).
///
/// Limits: Linux; link-local IPv6 addresses need a scope, which IpAddress does not carry.
#pragma once

#include "socket/calls.hpp"
#include "socket/config.hpp"
#include "socket/counters.hpp"
#include "socket/emss.hpp"
#include "socket/reservation.hpp"
#include "socket/transport.hpp"
