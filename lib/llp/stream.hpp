/// \file
/// Stream: the service that a transport gives to a framing protocol, a byte stream with records.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "base/trace.hpp"
#include "llp/frame.hpp"
#include "llp/record.hpp"
#include "rnic/address.hpp"
#include "rnic/transport.hpp"

namespace rnic::llp {

/// The promises of this interface that a transport can keep.
struct StreamTraits {
  bool can_drop = false;        ///< inspect() may say Drop (silent drop of RFC 5044 s.8)
  bool out_of_order = false;    ///< place() is called ahead of ordered()
  bool atomic_records = false;  ///< segments begin at record boundaries
  bool release_on_ack = false;  ///< released() means acknowledged by the peer's TCP
  bool emss_exact = false;      ///< emss() octets fit a segment now
  bool shows_segments = false;  ///< the octets of one call of place() came in one segment
};

enum class InspectVerdict : uint8_t {
  Accept,
  Drop,    ///< as if the segment had been lost: nothing of it is used, no ACK for it
  NoRoom,  ///< the segment counts as ending before these octets; like Drop when none before them
           ///< are new
};

/// The memory that a user of a stream works with at nearly every segment. It is never read through
/// this, and may be gone.
struct WorkingSet {
  // Packed, since each connection has some.
  struct [[gnu::packed]] Part {
    const void* at = nullptr;
    uint16_t taking = 0;   ///< octets from there that are needed where text of the peer comes
    uint16_t sending = 0;  ///< the same where it has its turn to send
  };
  std::array<Part, 3> parts;
};

/// The half that is called up: the user of a Stream. Received octets that were not committed before
/// are pushed up in four steps, in this order: inspect, (commit inside the transport), place,
/// ordered. Octets to send are pulled.
///
/// A callback may call ready(), close() and abort() of the stream; abort() takes effect (and
/// ended() is called) after the callback returned.
class StreamUser {
 public:
  virtual ~StreamUser() = default;

  /// The connection is established; `emss` octets fit a segment now.
  virtual void established(uint32_t emss, base::Now now) = 0;

  /// Writes the next record of at most `n` octets straight into `out`. `n` is EMSS less what the
  /// segment being built already holds (n < emss(): packing), never the remainder of a window.
  /// `offset` is the stream offset of the record's first octet: it is fixed from here on. Returning
  /// length 0 means "nothing now"; call ready() when that changes. A single record longer than `n`
  /// is never written. The user may go on with the next record as long as Frame::next() lets it,
  /// and returns the last one.
  virtual Pulled pull(uint32_t n, uint64_t offset, Frame& out, base::Now now) = 0;

  /// Writes the same octets of an unacknowledged record again, all of it. `out` has room for
  /// `length`. False: the octets are gone (memory revoked); the transport then aborts the stream.
  virtual bool rebuild(const RecordTag& tag, uint64_t offset, uint32_t length, Frame& out) = 0;

  /// A record has to be cut, and `piece` is the part that fits the segment (design, section 3:
  /// `split_ok`). \return how many octets of `piece` go into this segment: at least one; the others
  /// follow in the next. A framing protocol shortens a piece that the peer would take for a whole
  /// frame.
  [[nodiscard]] virtual uint32_t cut(base::ByteView piece) {
    return static_cast<uint32_t>(piece.size());
  }

  /// Every octet below `offset` is acknowledged. Called with the tag of each record fully covered,
  /// in order.
  virtual void released(const RecordTag& tag, uint64_t end_offset) = 0;

  /// Does the same for all records that one ACK covers; a transport calls this or released() for a
  /// record, never both. An abort() meanwhile does not cut the run short.
  virtual void released_run(RecordRun run) {
    for (uint32_t i = 0; i < run.size(); ++i) released(run[i].tag, run[i].end());
  }

  /// Called before step 1 when only parts of a segment, all inside `range`, are new. Not called for
  /// a segment that is new as a whole.
  virtual void clipped(base::Range range) { (void)range; }

  /// Step 1: judges octets that would be committed. The verdict is the only effect that anybody can
  /// see.
  virtual InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) = 0;

  /// Step 3, after commit: these octets will never be handed up again. `octets` is valid only
  /// during the call. `in_order`: range.begin is the delivery point.
  virtual void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) = 0;

  /// Step 4: the stream is complete up to `offset`. Deliveries and errors take effect here.
  virtual void ordered(uint64_t offset, base::Now now) = 0;

  /// Steps 3 and 4 of a segment that is in order while nothing beyond it has come: a user that can
  /// takes both at once. \return step 4 is done; false: the transport calls ordered(range.end) next
  [[nodiscard]] virtual bool place_ordered(base::Range range, base::ByteView octets,
                                           base::Now now) {
    place(range, octets, true, now);
    return false;
  }

  /// EMSS has changed. The user learns it before the next pull.
  virtual void emss_changed(uint32_t emss) = 0;

  /// The number of octets past the delivery point that the user is prepared to take (the receive
  /// window).
  [[nodiscard]] virtual uint32_t receive_room() const = 0;

  // A transport that cannot drop segments leaves octets that the user cannot take with the system.

  /// Octets in order that the user can take now, whatever their contents are. For more of them
  /// takes() has to be asked.
  [[nodiscard]] virtual uint32_t sure_room() const { return UINT32_MAX; }
  /// \return how many of `octets`, the next in order, which the transport has not taken yet, the
  /// user can take now. 0: to be asked again when room_grew() was called for any stream of the
  /// transport, or when more octets have come
  [[nodiscard]] virtual uint32_t takes(base::Range range, base::ByteView octets) {
    static_cast<void>(range);
    return static_cast<uint32_t>(octets.size());
  }

  /// Octets that pull() could give now; Nagle's rule for plain octets needs this. The default means
  /// at least a full segment.
  [[nodiscard]] virtual uint32_t pending() const { return UINT32_MAX; }

  /// For the sender's silly window rule (RFC 9293 s.3.8.6.2.1 (2)). \return all that pull() could
  /// give now, framing included, is at most `octets`. False when the user cannot tell: a record
  /// then waits for a window that holds a segment
  [[nodiscard]] virtual bool all_fits(uint32_t octets) const { return pending() <= octets; }

  /// For Nagle's rule. \return pull() may be called although a short segment is unacknowledged,
  /// since its octets fill `octets` or must not wait
  [[nodiscard]] virtual bool fills_segment(uint32_t octets) const { return pending() >= octets; }

  /// Octets handed up that the application has not taken yet (half-duplex close needs it).
  [[nodiscard]] virtual uint32_t unread() const { return 0; }

  /// The peer has announced urgent octets up to stream offset `end` (RFC 9293 s.3.8.5). Called
  /// whenever that offset moves forward; the octets stay in their place in the stream.
  virtual void urgent(uint64_t end, base::Now now) {
    (void)end;
    (void)now;
  }

  /// The peer's FIN was reached: no octet follows. Sending may go on.
  virtual void peer_finished(base::Now now) = 0;

  /// The last call: the stream is gone, the Stream object must not be used any more. Unreleased
  /// records will not be asked for again.
  virtual void ended(StreamEnd how, base::Now now) = 0;
};

/// The half that is called down: the service to a StreamUser.
class Stream {
 public:
  virtual ~Stream() = default;

  [[nodiscard]] virtual StreamTraits traits() const = 0;
  [[nodiscard]] virtual uint32_t emss() const = 0;
  [[nodiscard]] virtual Endpoint local() const = 0;
  [[nodiscard]] virtual Endpoint remote() const = 0;

  /// The user has news: pull() will give octets. Marks the connection for the output stage; cheap
  /// and idempotent.
  virtual void ready() = 0;

  /// Closes our direction: the FIN goes out after pull() has returned 0. Received octets are still
  /// handed up.
  virtual void close() = 0;

  /// Ends the connection by a RST. ended(Aborted) follows.
  virtual void abort() = 0;

  /// The user goes, and waits for no answer of the peer. A transport that has taken all octets, the
  /// FIN behind them, and can send them without the user, does so; any other aborts. ended()
  /// follows.
  virtual void leave() { abort(); }

  /// receive_room() has grown: the transport asks for it again.
  virtual void room_grew() = 0;

  /// Calls go to `user` from now on, which knows the state that it takes over. Must not be called
  /// within a call up.
  virtual void set_user(StreamUser& user) = 0;

  /// A transport with many streams may fetch what its user works with into the caches when the turn
  /// of the stream is near. Another user has none at first.
  virtual void set_working_set(const WorkingSet& used) { (void)used; }

  /// nullptr: no tracing. The sink outlives the stream or is removed first.
  virtual void set_trace(base::TraceSink* sink) = 0;
  [[nodiscard]] virtual base::TraceSink* trace() const = 0;
};

}  // namespace rnic::llp
