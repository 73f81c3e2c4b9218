/// \file
/// The sending half of a connection: it chooses the next segment and processes ACKs, timers and
/// ICMP messages.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.hpp"
#include "tcp/ack_result.hpp"
#include "tcp/attempt.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/connection_info.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/effective_mss.hpp"
#include "tcp/flight.hpp"
#include "tcp/path_mtu_discovery.hpp"
#include "tcp/persist.hpp"
#include "tcp/receiver.hpp"
#include "tcp/retransmitter.hpp"
#include "tcp/segment.hpp"
#include "tcp/segment_writer.hpp"

namespace rnic::tcp {

/// The sender and its Flight write the send sequence variables of the Tcb.
class Sender {
 public:
  /// All parameters outlive this. The sender uses Timer::Persist and the timers of Flight.
  Sender(ConnectionCore& core, Timers& timers, Receiver& receiver);

  [[nodiscard]] const Flight& flight() const { return flight_; }
  [[nodiscard]] const PathMtuDiscovery& path() const { return path_; }
  [[nodiscard]] const Persist& persist() const { return persist_; }
  /// EMSS: payload octets of a full segment.
  [[nodiscard]] uint32_t emss() const { return emss_.octets(); }
  /// The precondition of header prediction: an ACK can only advance SND.UNA and update the window.
  [[nodiscard]] bool predictable() const {
    return flight_.predictable() && !path_.probing() && core_.tcb.snd_wnd != 0 &&
           !core_.timers().runs(Timer::Persist);
  }

  // --- Before, and at, ESTABLISHED ---

  void apply(const ConnectionOptions& options) {
    flight_.select(options.congestion_control, options.pacing);
  }
  /// \param peer_mss the MSS until the peer's SYN gives another
  void begin(uint16_t peer_mss, base::Now now) {
    set_peer_mss(peer_mss);
    flight_.begin(now);
  }
  /// MSS option of the peer's SYN (RFC 9293 MUST-14).
  void set_peer_mss(uint16_t mss) { emss_.set_peer_mss(mss); }
  /// Takes the window of the peer's SYN, which is never scaled (RFC 7323 s.2.2).
  void take_first_window(uint16_t window, uint8_t shift);
  void syn_sent(bool first, base::Now now) { flight_.syn_sent(first, now); }
  void syn_timed_out() { flight_.syn_timed_out(); }
  void ask_syn_at(base::Now at) { flight_.ask_syn_at(at); }
  void syn_asked() { flight_.syn_asked(); }
  void measure_handshake(bool measures, base::Now now) { flight_.measure_handshake(measures, now); }
  /// \param first the segment that completes the handshake. See Flight.
  void establish(const Segment& first, uint32_t syn_tries, bool timed_out, base::Now now);
  /// RFC 4821: starts with packets that nearly every path carries and searches upward, if the
  /// Config asks for it.
  void start_path_search(base::Now now);

  // --- Output ---

  /// Room for a header with any options. False: the port is full.
  [[nodiscard]] bool open(TxSlot& slot, base::Now now) { return writer_.open(slot, now); }

  /// The user's pull() may give octets.
  void user_has_news() {
    user_ready_ = true;
    core_.ask_turn();
  }
  /// user_has_news() was called before ESTABLISHED.
  [[nodiscard]] bool user_is_ready() const { return user_ready_; }
  /// send_next() would send nothing and note nothing, and nobody has to be told of EMSS: nothing is
  /// lost or owed while segments are predicted, and the user has nothing.
  [[nodiscard]] bool is_quiet() const {
    return !user_ready_ && core_.prediction.on() && !flight_.board().has_waiting() &&
           !flight_.pacing().gated();
  }
  /// Computes EMSS anew from the path, the options and the peer (RFC 9293 s.3.7.1). \param tell the
  /// user is told when EMSS has changed
  void update_emss(bool tell, base::Now now);
  /// Sends the next segment: a probe, a retransmission or new data, of which it may send several
  /// segments. \param quantum octets that the connection may send in this turn, not 0; EMSS is
  /// taken off for each segment but one
  [[nodiscard]] Attempt send_next(uint64_t& quantum, base::Now now);
  /// Sends an ACK without data. False: the port is full.
  [[nodiscard]] bool send_ack(base::Now now) { return writer_.send_ack(now); }
  [[nodiscard]] bool send_owed_acks(base::Now now) {
    return writer_.send_owed_acks(core_.ecn, now);
  }
  [[nodiscard]] bool send_part_acks(base::Now now) { return writer_.send_part_acks(now); }
  [[nodiscard]] bool send_window_probe(base::Now now);
  /// Sends a keep-alive probe (RFC 9293 s.3.8.4), unless data is in flight, which asks for an ACK
  /// as well. False: the port is full.
  [[nodiscard]] bool send_keep_alive(base::Now now);

  // --- Input ---

  /// Processes the ACK field of an acceptable segment. \return the state that follows if our FIN is
  /// acknowledged
  [[nodiscard]] Life::Next take_ack(const Segment& segment, base::Now now);
  void packet_too_big(const llp::IcmpError& error, bool outstanding, base::Now now);
  /// Does the part of take_ack() that a predicted ACK needs. \param acked the result of
  /// Flight::plain_ack(). \param echo TSecr, where timestamps are on. False: there may be a loss
  [[nodiscard]] bool take_plain_ack(uint32_t acked, uint32_t echo, base::Now now);
  /// Takes the window of a predicted segment. \param window the field of its header
  void take_plain_window(uint16_t window) {
    core_.tcb.snd_wnd = uint32_t{window} << core_.tcb.snd_wind_shift;
    core_.tcb.snd_max_wnd = std::max(core_.tcb.snd_max_wnd, core_.tcb.snd_wnd);
  }
  /// A predicted segment with text arrived that acknowledges nothing new. False: there may be a
  /// loss
  [[nodiscard]] bool take_plain_text(base::Now now) {
    note_window();
    if (!flight_.rack().overtaken()) return true;
    settle_plain(0, base::Duration(-1), now);
    return false;
  }

  /// Text arrived whose header is as expected but for its place, and acknowledges nothing new. The
  /// caller has taken its window. \param seq offset of the segment
  void take_beside_text(int64_t seq, base::Now now);

  // --- Timers ---

  /// Handles the timers of synchronized states. False: R2 was reached without progress.
  [[nodiscard]] bool on_timers(base::Now now);

  /// The connection ends.
  void clear() { flight_.clear(); }
  void describe(ConnectionInfo& info, base::Now now) const;
  void validate() const;

 private:
  static constexpr uint32_t kPackRoomMin = 24;  // the smallest FPDU with payload: tagged, one octet

  [[nodiscard]] const Config& config() const { return core_.shared.config; }
  [[nodiscard]] Counters& counters() { return core_.shared.counters; }
  [[nodiscard]] const Binding& binding() const { return core_.binding(); }
  // Takes room for a full segment. FINs, window probes and keep-alive probes wait for it, too.
  [[nodiscard]] bool begin(TxSlot& slot, base::Now now) { return writer_.begin(emss(), slot, now); }

  // Output.
  [[nodiscard]] Attempt send_tail_probe(base::Now now);
  [[nodiscard]] Attempt send_lost(base::Now now);
  [[nodiscard]] Attempt send_again(uint64_t number, base::Now now);
  [[nodiscard]] Attempt send_during_frto(base::Now now);
  [[nodiscard]] Attempt send_new(uint64_t& quantum, base::Now now);
  /// Sends the next record, and those that fit the same segment.
  [[nodiscard]] Attempt send_pulled(base::Now now, bool probe) {
    uint64_t none = 0;
    return send_burst(0, none, probe, now);
  }
  /// Does the same again and again, as long as `room` has a further full segment. What send_next()
  /// has looked at for the first segment holds for these, too.
  [[nodiscard]] Attempt send_burst(uint64_t room, uint64_t& quantum, bool probe, base::Now now);
  [[nodiscard]] Attempt send_segments(SegmentRun& run, bool probe, base::Now now);
  [[nodiscard]] uint32_t take_passed(SegmentRun& run, const llp::FrameRow& row, uint32_t packed,
                                     uint8_t& flags, base::Now now);
  void take_segments(SegmentRun& run, std::span<const llp::Pulled> records, uint8_t flags,
                     base::Now now);
  void complete_segment(SegmentRun& run, uint32_t octets, uint8_t flags, base::Now now);
  /// Another record may go into a segment that has so many octets left.
  [[nodiscard]] bool has_place_behind(uint32_t octets) const {
    return binding().options.pack_records && octets >= kPackRoomMin && !flight_.board().full();
  }
  /// Octets of new data that may go out now without another look at each segment. \param usable
  /// the part of the peer's window that is left
  [[nodiscard]] uint64_t burst_room(uint64_t usable, uint64_t quantum, base::Now now) const;
  [[nodiscard]] Attempt send_mtu_probe(uint32_t larger, base::Now now);
  [[nodiscard]] Attempt pull_into_saved(base::Now now);
  [[nodiscard]] Attempt send_waiting(base::Now now);
  [[nodiscard]] Attempt send_fin(base::Now now);
  [[nodiscard]] Attempt wait_for_window(base::Now now);
  [[nodiscard]] bool held_by_nagle() const;
  /// The user has closed and has nothing more to send: the FIN may ride on its last octets.
  [[nodiscard]] bool ends_here() const;
  void push_record(const llp::Pulled& pulled, uint16_t flags, base::Now now);
  /// Gives our FIN its sequence number. \param flags kSegmentStart if the FIN goes out in a segment
  /// of its own
  void queue_fin(uint16_t flags, base::Now now);
  /// Counts a segment of new data. \param aligned the range is a whole number of records
  void count_sent(base::Range range, bool aligned, base::Now now);

  // Input.
  void settle(AckResult& result, base::Now now);
  /// Takes a predicted ACK of records that were overtaken: a record that was sent later had arrived
  /// before. \return false: there may be a loss
  [[nodiscard]] bool take_reordered_ack(uint32_t acked, uint32_t echo, base::Now now);
  void settle_plain(uint64_t acked, base::Duration rtt, base::Now now);
  void take_window(const Segment& segment, int64_t ack, bool advanced, base::Now now);
  void note_window() {
    core_.tcb.snd_wl1 = static_cast<int64_t>(core_.tcb.rcv_nxt);
    core_.tcb.snd_wl2 = static_cast<int64_t>(core_.tcb.snd_una);
    if (user_ready_ || flight_.board().has_waiting()) core_.ask_turn();
  }

  // Timers.
  [[nodiscard]] bool time_out(base::Now now);
  [[nodiscard]] bool persist_due(base::Now now);
  void reorder_due(base::Now now);

  // The path's MTU.
  void lower_path_mtu(uint32_t mtu, base::Now now);
  void suspect_black_hole(base::Now now);
  /// EMSS of an MTU probe that is due now; 0: none.
  [[nodiscard]] uint32_t probe_due(base::Now now);
  void probe_acked(base::Now now);
  void probe_failed(base::Now now);
  /// \return data other than the probe is lost, too
  [[nodiscard]] bool lost_beside_probe(base::Now now);

  ConnectionCore& core_;
  Flight flight_;
  PathMtuDiscovery path_;
  EffectiveMss emss_;
  Persist persist_;
  SegmentWriter writer_;
  CutProgress cut_;
  bool sent_several_ = false;  // at once, when it last sent new data
  bool user_ready_ = false;    // the user's pull() may give octets
  uint8_t last_octet_ = 0;     // the octet at SND.NXT - 1, for window probes
  uint64_t small_end_ = 0;     // end of the last segment that was not full (Nagle)
};

[[gnu::always_inline]] inline bool Sender::take_plain_ack(uint32_t acked, uint32_t echo,
                                                          base::Now now) {
  Flight::PlainAck ack = flight_.plain_records(acked);
  if (!flight_.in_order(ack, now)) [[unlikely]]
    return take_reordered_ack(acked, echo, now);
  flight_.take_plain_ack(ack, echo, now);
  note_window();
  flight_.settle_plain_ack(ack, now);
  flight_.release(ack);
  return true;
}

}  // namespace rnic::tcp
