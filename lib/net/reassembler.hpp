/// \file
/// Where the octets of fragments wait for each other. `drivers/dpdk` implements it with
/// librte_ip_frag; what may be joined is decided here, in `fragments`.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"

namespace rnic::net {

/// One for each interface, its memory is bounded by its own limit. Single-threaded.
class Reassembler {
 public:
  static constexpr uint32_t kMaxFragments = 8;    ///< of one datagram, as librte_ip_frag has it
  static constexpr uint32_t kMaxOctets = 65'515;  ///< of one datagram's payload

  enum class Outcome : uint8_t {
    Kept,      ///< waits for the others
    Complete,  ///< `payload` is the whole datagram's
    Refused,   ///< no memory, or too long: the datagram was forgotten
  };
  struct Result {
    Outcome outcome = Outcome::Refused;
    base::ByteView payload;  ///< valid until the next call
  };

  virtual ~Reassembler() = default;
  /// Copies one fragment's octets. The caller has seen to it that fragments of one datagram do not
  /// overlap, are at most kMaxFragments, begin at multiples of 8 and end within kMaxOctets.
  /// \param datagram a number of the caller's; a new one begins a datagram
  virtual Result add(uint32_t datagram, uint32_t offset, bool more, base::ByteView octets,
                     base::Now now) = 0;
  /// Gives up a datagram of which fragments were kept.
  virtual void forget(uint32_t datagram, base::Now now) = 0;
};

}  // namespace rnic::net
