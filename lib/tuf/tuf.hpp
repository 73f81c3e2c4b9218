/// \file
/// Layer `tuf`: ULP framing for TCP (draft-ietf-tsvwg-tcp-ulp-frame-00), beside MPA.
///
/// Two modes let a receiver find PDUs behind a hole in the stream. *Alignment mode*: every segment
/// is one framing PDU, 8 octets of length and key and one or more ULP PDUs; a segment whose length
/// and key are right is placed whatever came before it. *Marker mode*: at every interval of the
/// stream 4 octets tell where the next PDU begins. *Atomic mode* adds nothing and sends each buffer
/// as one segment.
///
///   FramedStream  the user's face: whole PDUs in and out, in order
///   Session       under DDP, in the place of MPA: PDUs are placed as soon as they are found
///
/// Invariants: a part of a framing PDU never looks like a whole one on the wire (s.5.2); nothing is
/// delivered before every earlier octet has arrived (s.1, s.5.4). There is no checksum of its own:
/// TCP's is all there is. Readings of the draft: docs/decisions/0006.
#pragma once

#include "tuf/counters.hpp"
#include "tuf/framed_stream.hpp"
#include "tuf/key_source.hpp"
#include "tuf/modes.hpp"
#include "tuf/session.hpp"
