/// \file
/// Layer `tuf`: ULP framing for TCP (draft-ietf-tsvwg-tcp-ulp-frame-00), beside MPA.
///
/// Two modes let a receiver find PDUs behind a hole in the stream. *Alignment mode*: every segment
/// is one framing PDU, 8 octets of length and key and one or more ULP PDUs; a segment whose length
/// and key are right is placed whether or not the octets before it have come. *Marker mode*: at
/// every interval of the stream 4 octets tell where the next PDU begins. *Atomic mode* adds nothing
/// and sends each buffer as one segment.
///
///   FramedStream  the user's face (framed_stream.hpp): whole PDUs in and out, in order
///   Session       under DDP, in the place of MPA: PDUs are placed as soon as they are found
///
/// Invariants: a part of a framing PDU never looks like a whole one on the wire (s.5.2); nothing is
/// delivered before every earlier octet has arrived (s.1, s.5.4). The framing has no checksum of
/// its own and relies on TCP's. docs/decisions/0006 has the readings of the draft.
#pragma once

#include <cstdint>
#include <memory>

#include "framing/framing.hpp"
#include "tuf/config.hpp"
#include "tuf/counters.hpp"
#include "tuf/modes.hpp"
#include "tuf/negotiation.hpp"
#include "tuf/session.hpp"

namespace rnic::tuf {

/// Remembers which ULPDUs were packed into a framing PDU, until it is acknowledged. A device has
/// one store, whose memory is all taken at the start.
class PackStore;
struct PackStoreDeleter {
  void operator()(PackStore* store) const;
};
using PackStorePtr = std::unique_ptr<PackStore, PackStoreDeleter>;
[[nodiscard]] PackStorePtr make_pack_store(uint32_t ulpdus);
/// The memory that a store of this size takes.
[[nodiscard]] uint64_t pack_store_octets(uint32_t ulpdus);
[[nodiscard]] uint32_t packed_ulpdus(const PackStore& store);
/// Checks the invariants of the store.
void validate(const PackStore& store);

}  // namespace rnic::tuf
