/// \file
/// Driver `impair`: a bad network, seeded. A decorator around any port that loses, reorders,
/// duplicates, corrupts, delays and cuts the frames that are sent through it; what is received
/// passes as it is.
///
/// - Corruption comes in two kinds. *Unrepaired*: one bit behind the Ethernet header flips; the
///   checksum of IP or TCP catches it. *Repaired*: one bit of the TCP payload flips and the TCP
///   checksum is made right again, as a broken router does; only MPA's CRC catches it.
/// - The middlebox (`resegment`) cuts a TCP data segment in two with correct headers, so that the
///   second one does not begin at an FPDU.
///
/// Its checksums are not trusted: `info()` says Software, open checksums of sent frames are
/// completed, and received frames have unknown checksums. Hence on a trusted medium (ring pair)
/// **both** ends must be decorated: a bare end would send open checksums, which the other end takes
/// for errors, and would not check.
///
/// Order is kept unless `reorder` says otherwise: delay and jitter alone never let a frame
/// overtake. Deterministic: the same seed, configuration and calls give the same fate to every
/// frame.
#pragma once

#include "impair/config.hpp"
#include "impair/counters.hpp"
#include "impair/impaired_port.hpp"
