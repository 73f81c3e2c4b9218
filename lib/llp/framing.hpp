/// \file
/// Framing: the service that MPA (or TUF) gives to DDP, in the terms of RFC 5041 section 3.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "llp/stream.hpp"
#include "llp/ulpdu_series.hpp"

namespace rnic::llp {

/// Errors of the framing layer (RFC 5044 section 8; RFC 6580 s.3.3).
enum class FramingError : uint8_t {
  None = 0,
  Closed = 1,          ///< TCP connection closed, terminated or lost
  Crc = 2,             ///< received MPA CRC does not match
  MarkerMismatch = 3,  ///< marker and ULPDU Length disagree on the start of an FPDU
  BadStartFrame = 4,   ///< invalid MPA Request or Reply frame
  // RFC 6581 s.8: errors that an initiator finds in the Reply and reports to the peer by a
  // Terminate.
  LocalCatastrophic = 5,
  InsufficientIrd = 6,
  NoMatchingRtr = 7,
};

[[nodiscard]] const char* to_string(FramingError error);

/// Room for another ULPDU.
struct UlpduRoom {
  uint32_t max = 0;         ///< its most octets; 0: there is no room
  bool whole_only = false;  ///< as in pull_ulpdu()
  bool lasts = false;       ///< each segment behind this one has the same room
};

/// Takes the octets of one ULPDU, inserts markers and computes the CRC.
class UlpduWriter {
 public:
  virtual ~UlpduWriter() = default;
  /// Copies the ULPDU into the frame: `header`, and behind it the pieces of `payload`. Called
  /// exactly once for a ULPDU. \param ulpdu_length octets of all of these together
  virtual void write(uint32_t ulpdu_length, base::ByteView header,
                     std::span<const base::ByteSpan> payload) = 0;
  /// The ULPDU that was written is complete, and the next one is to follow in the same call.
  /// \return the room for it; none: it cannot, and `written` is what pull_ulpdu() returns
  virtual UlpduRoom next(const PulledUlpdu& written) {
    static_cast<void>(written);
    return {};
  }
  /// Does write() for a ULPDU that has one piece of payload; behind another ULPDU next() before
  /// that. \param before that one, if one was written \return false: the ULPDU does not fit there,
  /// and nothing has happened
  [[nodiscard]] virtual bool append(const PulledUlpdu& before, base::ByteView header,
                                    base::ByteSpan payload) {
    static_cast<void>(before);
    static_cast<void>(header);
    static_cast<void>(payload);
    return false;
  }
  /// Does append() for one ULPDU of a series behind the other, for `most` of them or until one does
  /// not fit. \param before becomes what is told of the last one \return how many
  virtual uint32_t append_series(PulledUlpdu& before, UlpduSeries& series, uint32_t most) {
    uint32_t count = 0;
    for (; count < most && append(before, series.header(), series.payload()); ++count) {
      series.tell(before);
      series.advance();
    }
    return count;
  }
};

/// A whole ULPDU that was located and whose CRC was checked: its pieces in order, without markers.
struct UlpduView {
  std::span<const base::ByteView> pieces;
  uint32_t length = 0;  ///< sum of the pieces
  /// Not 0: the pieces are those of one run that has gaps, of as many octets, and all but the first
  /// and the last one have `between` octets.
  uint32_t gap = 0;
  uint32_t between = 0;

  /// Copies min(n, length) octets from the start into dst; \return how many.
  uint32_t copy_prefix(uint8_t* dst, uint32_t n) const;
  /// The first min(n, length) octets: where they are, or copied to `buffer` if they are in several
  /// pieces.
  [[nodiscard]] base::ByteView prefix(uint8_t* buffer, uint32_t n) const {
    n = std::min(n, length);
    if (!pieces.empty() && pieces[0].size() >= n) [[likely]]
      return pieces[0].first(n);
    return {buffer, copy_prefix(buffer, n)};
  }
};

enum class PlaceVerdict : uint8_t {
  Placed,
  Hold,   ///< the ULPDU is out of order and cannot be placed now (a check failed): place_ulpdu() is
          ///< called again when the order reaches it
  Fault,  ///< the ULPDU is in order and a check failed: FramingUser remembers the fault, and
          ///< deliver_ulpdu() reports it
  Wait,   ///< the ULPDU is in order and its buffer is not there yet: nothing behind it is delivered
          ///< before Framing::resume() has asked again
  Delivered,  ///< of take_ulpdu() only: the ULPDU is placed, or a check has failed, and it was
              ///< delivered, too
};

/// Octets at the start of a ULPDU that are kept for its delivery: the longest DDP and RDMAP header.
inline constexpr uint32_t kUlpduHeaderMax = 18 + 28;

/// The half that is called up: the user of a Framing.
class FramingUser {
 public:
  virtual ~FramingUser() = default;

  /// Writes the next ULPDU of at most `max` octets. `whole_only`: the segment being built is partly
  /// filled, so only a ULPDU that ends its message may be written; otherwise the length returned is
  /// 0 (RFC 5044 s.4.5, packing). More ULPDUs may follow as UlpduWriter::next() lets them; the
  /// last one is returned.
  virtual PulledUlpdu pull_ulpdu(uint32_t max, bool whole_only, UlpduWriter& out,
                                 base::Now now) = 0;
  /// For Nagle's rule. \return the waiting ULPDUs, each with `overhead` octets of framing, fill
  /// `octets`, or one of them must not wait, or none waits
  [[nodiscard]] virtual bool fills_segment(uint32_t octets, uint32_t overhead) const {
    static_cast<void>(octets);
    static_cast<void>(overhead);
    return true;
  }
  /// For the sender's silly window rule (RFC 9293 s.3.8.6.2.1 (2)). \return all waiting ULPDUs,
  /// each with `overhead` octets of framing, are at most `octets`; false when the user cannot tell
  [[nodiscard]] virtual bool all_fits(uint32_t octets, uint32_t overhead) const {
    static_cast<void>(octets);
    static_cast<void>(overhead);
    return false;
  }
  /// Writes the same ULPDU again. False: its memory is gone.
  virtual bool rebuild_ulpdu(const RecordTag& tag, UlpduWriter& out) = 0;
  /// The peer's TCP has all of this ULPDU.
  virtual void released_ulpdu(const RecordTag& tag) = 0;
  /// The peer's TCP has all of these ULPDUs. For a ULPDU this or released_ulpdu() is called.
  virtual void released_ulpdus(RecordRun run) {
    for (uint32_t i = 0; i < run.size(); ++i) released_ulpdu(run[i].tag);
  }

  /// Places a ULPDU, in or out of order. It is not called again for a ULPDU that got the verdict
  /// Placed.
  virtual PlaceVerdict place_ulpdu(const UlpduView& ulpdu, bool in_order, base::Now now) = 0;
  /// False: no ULPDU ever gets the verdict Wait, so the calls below say so each time. It never
  /// becomes true.
  [[nodiscard]] virtual bool ever_waits() const { return true; }
  /// \return one of the next `ulpdus` ULPDUs in order may get the verdict Wait now, so there has to
  /// be room to hold the octets behind it
  [[nodiscard]] virtual bool may_wait(uint32_t ulpdus) const {
    static_cast<void>(ulpdus);
    return false;
  }
  /// \return this ULPDU, in order behind others that get the verdict Placed, may get the verdict
  /// Wait now. Asked where the answer of the call above is true
  [[nodiscard]] virtual bool may_wait(const UlpduView& ulpdu) const {
    static_cast<void>(ulpdu);
    return true;
  }
  /// The order has reached a placed (or faulty) ULPDU: deliver. `header` is its first
  /// min(length, kUlpduHeaderMax) octets.
  virtual void deliver_ulpdu(base::ByteView header, uint32_t ulpdu_length, base::Now now) = 0;

  /// place_ulpdu() of a ULPDU in order, everything before which is delivered, and its
  /// deliver_ulpdu() at once unless the verdict is Wait. \param more other ULPDUs are placed before
  /// anything else is delivered, so the user delivers this one at once only if that ends nothing
  /// and changes nothing for them. \return Delivered, or the verdict of place_ulpdu()
  virtual PlaceVerdict take_ulpdu(const UlpduView& ulpdu, bool more, base::Now now) {
    const PlaceVerdict verdict = place_ulpdu(ulpdu, true, now);
    if (more || verdict == PlaceVerdict::Wait) return verdict;
    std::array<uint8_t, kUlpduHeaderMax> copied;
    deliver_ulpdu(ulpdu.prefix(copied.data(), kUlpduHeaderMax), ulpdu.length, now);
    return PlaceVerdict::Delivered;
  }

  /// The user may send from now on (RFC 5044 s.7.1.2): the initiator has the Reply, or the
  /// responder has validated an FPDU.
  virtual void may_send() = 0;
  virtual void mulpdu_changed(uint32_t mulpdu) = 0;
  /// Nothing has come from the peer although full operation began a while ago. The peer may have
  /// received an FPDU without noticing it, so the user may send one small message to wake it.
  virtual void peer_silent() {}
  /// There was error 2 or 3 at the delivery point, or 5 to 7 at the end of the start-up: nothing
  /// more will be passed up. The stream still sends.
  virtual void framing_error(FramingError error, base::Now now) = 0;
  /// The peer closed its direction at an FPDU boundary (`clean`) or inside one. Told behind all
  /// that came before it: not while a ULPDU waits.
  virtual void peer_finished(bool clean, base::Now now) = 0;
  /// The stream is gone. This is the last call.
  virtual void ended(StreamEnd how, base::Now now) = 0;
};

/// The half that is called down: the service to a FramingUser.
class Framing {
 public:
  virtual ~Framing() = default;

  /// Current MULPDU, octets; 128..64768 (RFC 5044 s.4.5).
  [[nodiscard]] virtual uint32_t mulpdu() const = 0;
  /// DDP/RDMAP version agreed: 1 (0 with a revision 0 peer).
  [[nodiscard]] virtual uint8_t version() const = 0;
  /// The user has news: pull_ulpdu() will give a ULPDU.
  virtual void ready() = 0;
  /// Drops everything that arrives from now on, since a Terminate was sent or received. TCP still
  /// acknowledges it.
  virtual void discard_received() = 0;
  /// Asks the user again to place a ULPDU that got the verdict Wait, and goes on behind it. Must
  /// not be called within a call up. \return a ULPDU waits now: the same or another one
  virtual bool resume(base::Now now) {
    static_cast<void>(now);
    return false;
  }
  /// Closes our direction behind everything that pull_ulpdu() still gives.
  virtual void close() = 0;
  virtual void abort() = 0;
  /// False: nothing may be sent before the peer has sent a valid FPDU (RFC 5044 s.7.1.2 rule 4).
  [[nodiscard]] virtual bool may_send() const { return true; }
};

}  // namespace rnic::llp
