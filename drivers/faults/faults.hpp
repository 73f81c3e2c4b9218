/// \file
/// Driver `faults`: planned faults of frames. A decorator around any port that follows the FPDUs
/// (RFC 5044) in what is sent through it, connection by connection, and does to the ones that the
/// plan names what the plan says; what is received passes as it is.
///
/// - *drop fpdu* takes the octets of an FPDU out of the frames that bring them for the first time.
///   A frame that brings others, too, goes out in parts around the gap.
/// - *bad crc* changes the CRC of an FPDU each time that it is sent, as a sender would whose CRC is
///   wrong, and makes the TCP checksum right again.
///
/// An octet is sent for the first time when its sequence number is beyond all others before. MPA of
/// every revision is followed, with markers, too; a connection is followed from its SYN on.
/// Not followed, and left alone: ULP framing, streams of plain octets and connections that began as
/// such, and a connection whose first octets did not all pass here in order (lost_track).
///
/// Nothing is drawn: the same plan and the same calls give the same frames. As with `impair` the
/// checksums below are not trusted, so that on a medium of memory both ends have to be decorated.
///
/// Specifications: RFC 5044 s.4 (FPDU, marker), s.7.1 (start frames); RFC 5041 s.4 (DDP control);
/// RFC 5040 s.4.1 (opcode).
#pragma once

#include "faults/counters.hpp"
#include "faults/fault_port.hpp"
