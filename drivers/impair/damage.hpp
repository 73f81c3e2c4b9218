/// \file
/// Damage to the octets of one frame.
#pragma once

#include "base/prng.hpp"
#include "port/port.hpp"

namespace rnic::impair {

/// Flips one bit behind the Ethernet header; with `repair` flips one bit of the TCP payload and
/// makes the TCP checksum right again. A frame without TCP payload is never repaired; a frame
/// shorter than an Ethernet header stays intact. \return whether it was repaired
bool flip_bit(port::Packet& packet, bool repair, base::Prng& prng);

/// \return whether `packet` is a TCP segment that a middlebox may cut: two octets of payload or
/// more, no SYN, RST or URG, and correct checksums (cutting would make wrong ones right)
[[nodiscard]] bool can_cut(const port::Packet& packet);

/// Cuts the segment behind a random octet of its payload: `packet` keeps the first part, `rest` (an
/// empty buffer with enough room) gets the second. PSH and FIN go with the second, CWR with the
/// first.
void cut(port::Packet& packet, port::Packet& rest, base::Prng& prng);

}  // namespace rnic::impair
