/// \file
/// Layer `llp`: the three edges between a transport, a framing protocol and DDP (design, section
/// 3).
///
///   Transport  listen, connect -> Stream                      implemented by `tcp`
///   Stream     a byte stream *with records*                   implemented by `tcp`, used by `mpa`
///   Framing    ULPDUs in RFC 5041 section 3's words           implemented by `mpa`, used by `ddp`
///
/// Each edge has two halves: the object that is called down (Stream, Framing) and the user that is
/// called up (StreamUser, FramingUser). Only interfaces and plain values live here. All calls are
/// made on the one worker that owns the connection. Offsets are 64-bit and never wrap: offset 0 is
/// the first octet after the SYN, in each direction.
#pragma once

#include "llp/frame.hpp"
#include "llp/framing.hpp"
#include "llp/icmp_error.hpp"
#include "llp/pseudo_header.hpp"
#include "llp/stream.hpp"
#include "llp/transport.hpp"
#include "rnic/address.hpp"
