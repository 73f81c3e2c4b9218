/// \file
/// Somebody off the path who knows addresses and ports and guesses the rest: forged segments that a
/// careful TCP survives (RFC 5961, RFC 7323 s.5).
#pragma once

#include "base/prng.hpp"
#include "stream/datagram.hpp"
#include "stream/judge.hpp"

namespace rnic::simulation {

class Attacker {
 public:
  explicit Attacker(uint64_t seed) : prng_(seed) {}

  /// A segment that claims to come from the peer of `judge`'s side `side`. It never hits what only
  /// the ends can know: RST is never at RCV.NXT, data and ACKs never carry an acceptable ACK.
  [[nodiscard]] Datagram forge(const Judge& judge, uint32_t side, const Judge::Numbers& numbers);
  /// A packet that side `side` never sent, for an ICMP message to quote.
  [[nodiscard]] Datagram quoted(const Judge& judge, uint32_t side, const Judge::Numbers& numbers);
  /// A SYN from an address that nobody has.
  [[nodiscard]] Datagram spoofed_syn(const Endpoint& victim);

 private:
  base::Prng prng_;
};

}  // namespace rnic::simulation
