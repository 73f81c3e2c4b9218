/// \file
/// Framing: what MPA (or TUF) gives to DDP, in the words of RFC 5041 section 3.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "llp/stream.hpp"

namespace rnic::llp {

/// Errors of the framing layer (RFC 5044 section 8; RFC 6580 s.3.3).
enum class FramingError : uint8_t {
  None = 0,
  Closed = 1,          ///< TCP connection closed, terminated or lost
  Crc = 2,             ///< received MPA CRC does not match
  MarkerMismatch = 3,  ///< marker and ULPDU Length disagree on the start of an FPDU
  BadStartFrame = 4,   ///< invalid MPA Request or Reply frame
  // RFC 6581 s.8: found by an initiator in the Reply, told to the peer by Terminate.
  LocalCatastrophic = 5,
  InsufficientIrd = 6,
  NoMatchingRtr = 7,
};

[[nodiscard]] const char* to_string(FramingError error);

/// Receives the octets of one ULPDU while it is being built; puts in markers, computes the CRC. One
/// pass over each octet.
class UlpduWriter {
 public:
  virtual ~UlpduWriter() = default;
  /// Exactly once, first: the ULPDU's length in octets.
  virtual void begin(uint32_t ulpdu_length) = 0;
  /// The next octets of the ULPDU, copied into the frame.
  virtual void put(base::ByteView octets) = 0;
};

/// What pull_ulpdu() wrote.
struct PulledUlpdu {
  uint32_t length = 0;  ///< octets of the ULPDU; 0: nothing to send (a ULPDU is never empty)
  bool last = false;    ///< last ULPDU of a DDP message
  RecordTag tag;
};

/// A whole, located, CRC-checked ULPDU: pieces in order, markers already removed.
struct UlpduView {
  std::span<const base::ByteView> pieces;
  uint32_t length = 0;  ///< sum of the pieces

  /// Copies min(n, length) octets from the start into dst; \return how many.
  uint32_t copy_prefix(uint8_t* dst, uint32_t n) const;
};

enum class PlaceVerdict : uint8_t {
  Placed,
  Hold,   ///< out of order and not placeable now (a check failed): try again when the order reaches
          ///< it
  Fault,  ///< in order and a check failed: FramingUser remembers the fault; deliver_ulpdu() reports
          ///< it
  Wait,   ///< in order and its buffer is not there yet: nothing is delivered past it before
          ///< Framing::resume() has asked again
};

/// How many octets of a ULPDU's start are kept for its delivery: the longest DDP+RDMAP header.
inline constexpr uint32_t kUlpduHeaderMax = 18 + 28;

/// The half that is called up.
class FramingUser {
 public:
  virtual ~FramingUser() = default;

  /// The next ULPDU of at most `max` octets. `whole_only`: the segment being built is partly
  /// filled; take part only with a ULPDU that ends its message, otherwise return length 0 (RFC 5044
  /// s.4.5, packing).
  virtual PulledUlpdu pull_ulpdu(uint32_t max, bool whole_only, UlpduWriter& out,
                                 base::Now now) = 0;
  /// Nagle's rule: with `overhead` octets of framing for each, the ULPDUs that wait fill `octets`,
  /// or there is something that must not wait. Also true when nothing waits.
  [[nodiscard]] virtual bool fills_segment(uint32_t octets, uint32_t overhead) const {
    static_cast<void>(octets);
    static_cast<void>(overhead);
    return true;
  }
  /// The sender's silly window rule (RFC 9293 s.3.8.6.2.1 (2)): with `overhead` octets of framing
  /// for each, all ULPDUs that wait are at most `octets`. False when the user cannot tell.
  [[nodiscard]] virtual bool all_fits(uint32_t octets, uint32_t overhead) const {
    static_cast<void>(octets);
    static_cast<void>(overhead);
    return false;
  }
  /// The same ULPDU again. False: its memory is gone.
  virtual bool rebuild_ulpdu(const RecordTag& tag, UlpduWriter& out) = 0;
  /// The peer's TCP has all of this ULPDU.
  virtual void released_ulpdu(const RecordTag& tag) = 0;

  /// Placement, in or out of order. Called at most once with the verdict Placed for one ULPDU.
  virtual PlaceVerdict place_ulpdu(const UlpduView& ulpdu, bool in_order, base::Now now) = 0;
  /// Of the next `ulpdus` in order one may get the verdict Wait now: there has to be room to hold
  /// what stands behind it.
  [[nodiscard]] virtual bool may_wait(uint32_t ulpdus) const {
    static_cast<void>(ulpdus);
    return false;
  }
  /// A ULPDU waits, and no octet follows that the peer has not sent: the user ends the wait by
  /// Framing::resume(), and gives that verdict no more.
  virtual void end_wait(base::Now now) { static_cast<void>(now); }
  /// The order has reached a placed (or faulty) ULPDU: deliver. `header` is its first
  /// min(length, kUlpduHeaderMax) octets.
  virtual void deliver_ulpdu(base::ByteView header, uint32_t ulpdu_length, base::Now now) = 0;

  /// Full operation may send from now on (RFC 5044 s.7.1.2: initiator has the Reply, responder has
  /// validated an FPDU).
  virtual void may_send() = 0;
  virtual void mulpdu_changed(uint32_t mulpdu) = 0;
  /// Nothing has come from the peer although full operation began a while ago: the peer may have
  /// what was sent and not know it. The user may send one small message to wake it.
  virtual void peer_silent() {}
  /// Error 2 or 3 at the delivery point, or 5 to 7 at the end of the start-up: nothing more will be
  /// passed up. The stream still sends.
  virtual void framing_error(FramingError error, base::Now now) = 0;
  /// The peer closed its direction at an FPDU boundary (`clean`) or inside one.
  virtual void peer_finished(bool clean, base::Now now) = 0;
  /// The last call.
  virtual void ended(StreamEnd how, base::Now now) = 0;
};

/// The half that is called down.
class Framing {
 public:
  virtual ~Framing() = default;

  /// Current MULPDU, octets; 128..64768 (RFC 5044 s.4.5).
  [[nodiscard]] virtual uint32_t mulpdu() const = 0;
  /// DDP/RDMAP version agreed: 1 (0 with a revision 0 peer).
  [[nodiscard]] virtual uint8_t version() const = 0;
  /// pull_ulpdu() will have something.
  virtual void ready() = 0;
  /// From here on drop what arrives (a Terminate was sent or received); TCP still acknowledges.
  virtual void discard_received() = 0;
  /// Asks the user again to place a ULPDU that got the verdict Wait, and goes on behind it. Not
  /// within a call up, but for FramingUser::end_wait(). \return one waits now: the same or another
  virtual bool resume(base::Now now) {
    static_cast<void>(now);
    return false;
  }
  /// Half close after everything pulled.
  virtual void close() = 0;
  virtual void abort() = 0;
  /// False: nothing may leave before the peer has sent something good (RFC 5044 s.7.1.2 rule 4).
  [[nodiscard]] virtual bool may_send() const { return true; }
};

}  // namespace rnic::llp
