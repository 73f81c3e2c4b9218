/// \file
/// Layer `mpa`: Marker PDU Aligned Framing (RFC 5044), revisions 0 (draft-ietf-rddp-mpa-00), 1 and
/// 2 (RFC 6581).
///
/// A Session sits between an llp::Stream and an llp::FramingUser (ddp). It begins with the start-up
/// frames (RFC 5044 s.7.1), at once or behind octets of streaming mode, and then carries FPDUs:
/// markers by arithmetic on stream offsets, CRC32C, silent drop before commit, placement of
/// out-of-order FPDUs that a marker locates, bounded hold of the rest.
///
/// No octet goes up before the CRC of its FPDU was verified (when CRC is on).
#pragma once

#include "framing/framing.hpp"
#include "mpa/config.hpp"
#include "mpa/counters.hpp"
#include "mpa/negotiation.hpp"
#include "mpa/session.hpp"
