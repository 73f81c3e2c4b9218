/// \file
/// The receiving half of a connection: which segments are acceptable, what of their text is new,
/// and what is offered to the peer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"
#include "tcp/ack_policy.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/connection_info.hpp"
#include "tcp/range_pool.hpp"
#include "tcp/segment.hpp"

namespace rnic::tcp {

/// The receiver writes the receive sequence variables of the Tcb.
class Receiver {
 public:
  /// Both parameters outlive this. The receiver uses Timer::DelayedAck.
  Receiver(ConnectionCore& core, Timers& timers)
      : core_(core),
        committed_(core.shared.ranges),
        ack_(core.tcb, committed_, timers, core.shared.config) {}

  [[nodiscard]] const AckPolicy& ack() const { return ack_; }
  /// Ranges beyond RCV.NXT that will never be asked for again.
  [[nodiscard]] const PooledRanges& committed() const { return committed_; }
  /// Stream offset behind the last octet taken from the peer, in or out of order.
  [[nodiscard]] uint64_t taken_to() const {
    return committed_.empty() ? core_.tcb.rcv_nxt : committed_.ranges().back().end;
  }
  /// The precondition of header prediction: there is no hole, FIN or mark that the next segment in
  /// order could affect.
  [[nodiscard]] bool predictable() const {
    return committed_.empty() && unmarked() &&
           core_.tcb.snd_wl1 <= static_cast<int64_t>(core_.tcb.rcv_nxt);
  }
  /// No FIN has been seen, and no mark is being echoed.
  [[nodiscard]] bool unmarked() const { return !fin_seen() && !core_.ecn.echoes(); }

  // --- A segment, step by step (RFC 9293 s.3.10.7.4) ---

  /// First step: PAWS (RFC 7323 s.5.3). A segment that fails is answered with an ACK.
  [[nodiscard]] bool survives_paws(const Segment& segment, base::Now now);
  /// First step: the sequence number. A segment that fails is answered with an ACK.
  [[nodiscard]] bool acceptable(const Segment& segment);
  /// Updates TS.Recent, after the ACK field was checked.
  void take_timestamp(const Segment& segment, base::Now now);
  /// The segment has octets beyond RCV.NXT, which a user who has closed will not read (s.3.6.1,
  /// MAY-1).
  [[nodiscard]] bool has_new_text(const Segment& segment) const {
    const int64_t end =
        core_.tcb.rcv_offset(segment.seq) + static_cast<int64_t>(segment.payload.size());
    return !segment.payload.empty() && end > static_cast<int64_t>(core_.tcb.rcv_nxt);
  }
  /// Sixth step: the urgent pointer.
  void take_urgent(const Segment& segment, base::Now now);
  /// Takes CE and CWR of a segment with text (RFC 3168 s.6.1.3, RFC 8257 s.3.2).
  void take_ecn(const Segment& segment);

  /// The text of a segment, as its header describes it.
  struct Text {
    int64_t begin = 0;  ///< its offset, which may lie outside of the window
    base::ByteView octets;
    bool push = false;
    bool fin = false;  ///< our peer's FIN is behind it

    [[nodiscard]] int64_t end() const { return begin + static_cast<int64_t>(octets.size()); }
    /// Only of text that does not begin before the stream.
    [[nodiscard]] base::Range range() const {
      return {static_cast<uint64_t>(begin), static_cast<uint64_t>(end())};
    }
  };
  [[nodiscard]] Text text_of(const Segment& segment) const {
    return {core_.tcb.rcv_offset(segment.seq), segment.payload,
            segment.has(wire::tcp_flag::kPsh), segment.has(wire::tcp_flag::kFin)};
  }
  /// The new part of a segment's text.
  struct NewText {
    base::Range whole;      ///< clipped to the window and to the peer's FIN
    base::ByteView octets;  ///< of `whole`
    uint32_t gaps = 0;      ///< number of new sub-ranges, which are in Shared::gaps
  };
  /// Seventh step, first part: inspects the text before anything of the segment is used. False: the
  /// whole segment counts as lost.
  [[nodiscard]] bool inspect_text(const Text& arrived, NewText& text, base::Now now);
  /// Seventh step: takes the text that inspect_text() has let through.
  void take_text(const Text& arrived, const NewText& text, base::Now now);
  /// The whole text lies in the window, ahead of the order, and is new: the two steps below are
  /// what the two above would be. The FIN has not been seen.
  [[nodiscard]] bool is_beyond(const Text& arrived) const {
    const base::Range range = arrived.range();
    return range.begin > core_.tcb.rcv_nxt && committed_.first_gap(range) == range &&
           committed_.can_insert(range);
  }
  [[nodiscard]] bool inspect_beyond(const Text& arrived, base::Now now);
  void take_beyond(const Text& arrived, base::Now now);
  /// Eighth step: processes the FIN once RCV.NXT has reached it. \return TIME-WAIT follows
  [[nodiscard]] bool take_fin(base::Now now) {
    return core_.tcb.peers_fin == PeersFin::Seen && process_fin(now);
  }

  // --- A predicted segment, in one step ---

  /// The timestamp of a segment passes PAWS (RFC 7323 s.5.3).
  [[nodiscard]] bool stamp_good(uint32_t stamp) const {
    return static_cast<int32_t>(stamp - core_.tcb.ts_recent) >= 0;
  }
  /// Updates TS.Recent (RFC 7323 s.4.3 (2)). Without timestamps its value is not used. \param begin
  /// offset of the segment
  void take_stamp(uint64_t begin, uint32_t stamp, base::Now now) {
    if (begin > ack_.last_ack_sent()) return;
    core_.tcb.ts_recent = stamp;
    core_.tcb.ts_recent_at = now;
  }
  /// The window has room for the whole text.
  [[nodiscard]] bool offers(const Text& arrived) const {
    return arrived.begin >= static_cast<int64_t>(core_.tcb.rcv_nxt) &&
           arrived.end() <= static_cast<int64_t>(core_.tcb.rcv_edge);
  }
  void take_in_order(base::Range range, base::ByteView text, bool push, base::Now now) {
    core_.tcb.rcv_nxt = range.end;
    core_.prediction.expect(core_.tcb.rcv_seq(range.end));
    core_.shared.counters.octets_in += text.size();
    // Before the user takes both steps at once, since what it delivers may ask for more of us.
    if (ack_.note_in_order(static_cast<uint32_t>(text.size()), push, now)) core_.ask_turn();
    if (core_.binding().user->place_ordered(range, text, now)) return;
    if (!core_.life.over()) core_.binding().user->ordered(range.end, now);
  }

  // --- ACKs ---

  /// An ACK is owed at the next output().
  void ask_ack() {
    ack_.ask();
    core_.ask_turn();
  }
  /// An ACK is owed that must not ride on data.
  void ask_ack_alone() {
    ack_.ask_alone();
    core_.ask_turn();
  }
  void delay_over() {
    if (ack_.unacknowledged() == 0) ++counters().repeated_acks_out;
    ack_.delay_over();
    core_.ask_turn();
  }
  /// The ACK that is owed waits for one turn. AckPolicy::may_wait() is true.
  void put_off_ack() { ack_.put_off(); }
  void ack_sent() { ack_.sent(); }
  void ack_sent_alone(base::Now now) { ack_.sent_alone(now); }
  [[nodiscard]] base::Seq32 take_ack_part() { return ack_.take_part(); }
  void forget_ack_parts() { ack_.forget_parts(); }
  [[nodiscard]] uint32_t fill_sack(AckPolicy::SackBlocks& blocks) { return ack_.fill_sack(blocks); }

  // --- The window ---

  /// The window field of the next segment.
  [[nodiscard]] uint16_t advertise();
  /// The user has taken octets. Sends a window update if the step is worth one (RFC 9293
  /// s.3.8.6.2.2).
  void room_grew();
  /// Takes the peer's SYN. \param shift Rcv.Wind.Shift
  void begin(const Segment& syn, uint8_t shift, base::Now now);
  /// Our SYN or SYN-ACK offers a window. \param edge its right edge
  void offer(uint64_t edge) { core_.tcb.rcv_edge = edge; }

  void describe(ConnectionInfo& info) const;
  void validate() const;

 private:
  [[nodiscard]] Counters& counters() { return core_.shared.counters; }
  [[nodiscard]] const Binding& binding() const { return core_.binding(); }
  void note_duplicate(const Segment& segment);
  /// Cuts the text where this gap begins: the rest is not used.
  void end_text_at(NewText& text, uint32_t gap);
  [[nodiscard]] bool fin_seen() const { return core_.tcb.peers_fin != PeersFin::None; }
  void set_peers_fin(PeersFin next);
  void note_fin(const Text& arrived);
  [[nodiscard]] bool process_fin(base::Now now);
  void commit(base::Range range);
  void note_partial_duplicate(int64_t begin, const NewText& text, uint64_t delivery_point);
  /// Octets beyond RCV.NXT for which the user has room, limited by what the scaled window field can
  /// express.
  [[nodiscard]] uint64_t room_to_offer();

  ConnectionCore& core_;
  PooledRanges committed_;
  AckPolicy ack_;
  uint32_t rcv_buff_ = 0;    // RCV.BUFF: the largest room that the user ever had
  uint64_t fin_offset_ = 0;  // of the peer's FIN; valid where Tcb::peers_fin is not None
  uint64_t urgent_end_ = 0;  // RCV.UP; 0: nothing was ever urgent
};

}  // namespace rnic::tcp
