/// \file
/// The interface of the memory in which the octets of fragments wait for each other. `drivers/dpdk`
/// implements it with librte_ip_frag; class Fragments decides which fragments may be joined.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"

namespace rnic::net {

/// Each interface has a Reassembler of its own, which bounds its memory. It is single-threaded.
class Reassembler {
 public:
  static constexpr uint32_t kMaxFragments = 8;    ///< of one datagram, the limit of librte_ip_frag
  static constexpr uint32_t kMaxOctets = 65'515;  ///< of one datagram's payload

  enum class Outcome : uint8_t {
    Kept,      ///< the fragment waits for the others
    Complete,  ///< `payload` is that of the whole datagram
    Refused,   ///< there is no memory, or the datagram is too long: it was forgotten
  };
  struct Result {
    Outcome outcome = Outcome::Refused;
    base::ByteView payload;  ///< valid until the next call
  };

  virtual ~Reassembler() = default;
  /// Copies the octets of one fragment. The caller makes sure that the fragments of a datagram do
  /// not overlap, are at most kMaxFragments, begin at multiples of 8 and end within kMaxOctets.
  /// \param datagram a number chosen by the caller; a new number begins a datagram
  virtual Result add(uint32_t datagram, uint32_t offset, bool more, base::ByteView octets,
                     base::Now now) = 0;
  /// Gives up a datagram of which fragments were kept.
  virtual void forget(uint32_t datagram, base::Now now) = 0;
};

}  // namespace rnic::net
