/// \file
/// The engine behind Stack. One class, its members spread over files by RFC concept:
/// engine.cpp (its life, and what its timers bring), listener.cpp and handshake.cpp (opens),
/// input.cpp (RFC 9293 s.3.10.7), prediction.cpp (its short cut), ack.cpp (the ACK side),
/// commit.cpp (the data side), ecn.cpp (both), output.cpp, pacing.cpp, retransmit.cpp and
/// transmit.cpp (segments out), close.cpp, keep_alive.cpp, icmp.cpp, path_mtu_discovery.cpp. The
/// mechanisms that a connection is made of, and what the stack has of its own, are classes with
/// headers that bear their names.
///
/// Call-ups may re-enter ready(), close(), abort(), room_grew() and connect(). Nothing is freed
/// under a caller's feet: connections are marked doomed and taken away by reap() when an entry
/// point is left.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/timer_wheel.hpp"
#include "tcp/ack_yield.hpp"
#include "tcp/challenge_acks.hpp"
#include "tcp/connection.hpp"
#include "tcp/connection_table.hpp"
#include "tcp/half_open.hpp"
#include "tcp/isn.hpp"
#include "tcp/listener_table.hpp"
#include "tcp/mss.hpp"
#include "tcp/reply_queue.hpp"
#include "tcp/saved_records.hpp"
#include "tcp/segment.hpp"
#include "tcp/syn_cookies.hpp"
#include "tcp/syn_terms.hpp"
#include "tcp/tcp.hpp"
#include "tcp/time_wait.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

inline ConnectionLink& ready_link_of(Connection& c) { return c.ready_link; }
inline ConnectionLink& doomed_link_of(Connection& c) { return c.doomed_link; }

class Engine {
 public:
  Engine(const Config& config, Egress& egress, const Secret& secret, uint64_t seed, base::Now now);

  Status listen(const Endpoint& local, llp::Acceptor& acceptor, const ConnectionOptions& options);
  Status unlisten(const Endpoint& local);
  Result<llp::Stream*> connect(const Endpoint& local, const Endpoint& remote, llp::StreamUser& user,
                               const ConnectionOptions& options, base::Now now);
  Status set_options(Connection& c, const ConnectionOptions& options, base::Now now);
  [[nodiscard]] const Config& config() const { return config_; }
  void on_timers(base::Now now);
  void output(base::Now now);
  [[nodiscard]] base::Now next_deadline() const;
  [[nodiscard]] static base::MemoryUses memory_use(const Config& config);
  void input(const SegmentIn& segment, base::Now now);
  void icmp_error(const IcmpError& error, base::Now now);
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] uint32_t live_connections() const {
    return connections_.live() + time_wait_.live();
  }
  [[nodiscard]] bool quiescent() const;
  void force_isn(std::optional<uint32_t> isn) { forced_isn_ = isn; }
  void set_prediction(bool on) { predicting_ = on; }
  [[nodiscard]] ConnectionInfo info(const Connection& c) const;
  void validate();

  // Down-calls of Connection.
  void make_ready(Connection& c) {
    if (c.ready_link.linked || c.doomed) return;
    ready_.push_back(c);
    output_pending_ = true;
  }
  void close_stream(Connection& c);
  void abort_stream(Connection& c);
  void room_grew(Connection& c);

 private:
  /// What serve() left behind.
  enum class Served : uint8_t {
    Idle,      ///< nothing more to send now: an ACK, a timer or ready() brings it back
    More,      ///< quantum used up
    Starved,   ///< a limit of the stack: try again at the next output()
    PortFull,  ///< Egress::begin() said no
  };
  /// What one attempt to send gave.
  enum class Sent : uint8_t { Yes, Nothing, Starved, PortFull };

  // listener.cpp
  Connection* new_connection(const Endpoint& local, const Endpoint& remote, base::Now now);
  [[nodiscard]] uint16_t choose_port(const Endpoint& local, const Endpoint& remote, base::Now now);
  /// \param old_snd_nxt of the incarnation in TIME-WAIT that the SYN ends
  void input_listen(Listener& listener, const Arrival& a, std::optional<base::Seq32> old_snd_nxt,
                    base::Now now);
  void keep_a_place(Listener& listener, base::Now now);
  void displace_half_open(const Listener& listener, const Endpoint& newcomer, base::Now now);
  static void begin_beyond(Connection& c, base::Seq32 old_snd_nxt);

  void send_cookie(Listener& listener, const Arrival& syn, base::Now now);
  [[nodiscard]] bool take_cookie(Listener& listener, const Arrival& a, base::Now now);

  // keep_alive.cpp
  void arm_keep_alive(Connection& c, base::Now now);
  void keep_alive_due(Connection& c, base::Now now);
  bool send_keep_alive(Connection& c, base::Now now);

  // icmp.cpp
  void take_icmp(Connection& c, const IcmpError& error, base::Seq32 seq, base::Now now);

  // path_mtu_discovery.cpp
  void packet_too_big(Connection& c, const IcmpError& error, bool outstanding, base::Now now);
  void lower_path_mtu(Connection& c, uint32_t mtu, base::Now now);
  void send_again_smaller(Connection& c);
  void start_path_search(Connection& c);
  void suspect_black_hole(Connection& c, base::Now now);
  /// EMSS of a probe that is to go out now; 0: none.
  [[nodiscard]] uint32_t probe_due(Connection& c, base::Now now);
  Sent send_mtu_probe(Connection& c, uint32_t larger, base::Now now);
  void probe_acked(Connection& c, base::Now now);
  void probe_failed(Connection& c, base::Now now);
  [[nodiscard]] bool lost_beside_probe(Connection& c, base::Now now);
  [[nodiscard]] static uint32_t ip_and_tcp_header(const Connection& c) {
    return (c.remote_end.address.is_v4() ? 20 : 40) + wire::kTcpHeaderMin;
  }
  /// A full segment as an IP packet.
  [[nodiscard]] static uint32_t packet_octets(const Connection& c) {
    return c.effective_mss + header_length(c) + ip_and_tcp_header(c) - wire::kTcpHeaderMin;
  }

  // handshake.cpp
  void input_syn_sent(Connection& c, const Arrival& a, base::Now now);
  void take_syn_options(Connection& c, const Arrival& a, bool ours_offered, base::Now now);
  void take_text_of_syn(Connection& c, const Arrival& syn, base::Now now);
  bool establish(Connection& c, const Arrival& a, base::Now now);
  static void measure_handshake(Connection& c, base::Now now);
  bool send_syn(Connection& c, base::Now now);
  void syn_timeout(Connection& c, base::Now now);
  void update_emss(Connection& c, bool tell);

  // input.cpp
  void input_any(Connection* c, SegmentIn segment, base::Now now);
  void input_no_connection(const Arrival& a, base::Now now);
  /// \param a a SYN that is known already is taken off it
  void input_synchronized(Connection& c, Arrival& a, base::Now now);
  [[nodiscard]] bool acceptable(Connection& c, const Arrival& a);
  [[nodiscard]] bool survives_paws(Connection& c, const Arrival& a, base::Now now);
  [[nodiscard]] bool survives_rst(Connection& c, const Arrival& a, base::Now now);
  [[nodiscard]] bool survives_ack_check(Connection& c, const Arrival& a, base::Now now);
  void reset_reply(const Arrival& a);
  void take_urgent(Connection& c, const Arrival& a, base::Now now);
  [[nodiscard]] bool closed_reader(Connection& c, const Arrival& a);
  void challenge_ack(Connection& c, base::Now now);
  static void note_duplicate(Connection& c, const Arrival& a);

  // prediction.cpp
  /// Nothing is under way that an expected segment would have to be looked at for.
  [[nodiscard]] static bool calm(const Connection& c);
  void predict(Connection& c) const;
  /// \param in of 20 octets at least. \param c its connection, if there is one.
  /// \return it begins as predicted
  [[nodiscard]] bool find_flow(const SegmentIn& in, Connection*& c);
  [[nodiscard]] bool take_predicted(Connection& c, const SegmentIn& in, base::Now now);
  [[nodiscard]] bool take_predicted_data(Connection& c, SegmentIn in, base::Now now);
  /// \param stamp set to the segment's, where timestamps are on
  [[nodiscard]] static bool stamp_good(const Connection& c, const uint8_t* p, uint32_t& stamp);
  void note_predicted(Connection& c, uint32_t stamp, base::Now now);
  /// Octets newly acknowledged, a whole record at least; 0: none, or not as plain as that.
  [[nodiscard]] static uint32_t plain_ack(Connection& c, const uint8_t* p);
  /// \param acked not 0
  void take_predicted_ack(Connection& c, uint32_t acked, const uint8_t* p, base::Now now);
  void take_carried_ack(Connection& c, uint32_t acked, const uint8_t* p, base::Now now);
  /// Takes the window over, unless it is shut. All else was judged before.
  [[nodiscard]] static bool window_stays_open(Connection& c, const uint8_t* p);
  /// Of one row of records.
  static void release(Connection& c, uint32_t count);
  static void release_rows(Connection& c, uint32_t count);
  void take_late_ack(Connection& c, uint32_t count, uint32_t acked, const uint8_t* p,
                     base::Now now);
  /// \param restarted set when the timers have been restarted for an ACK like this at `now`
  /// \return the round-trip time
  base::Duration advance_calm(Connection& c, uint32_t acked, base::Now sent_at, const uint8_t* p,
                              base::Now now, bool& restarted);
  void take_predicted_window(Connection& c);
  void take_predicted_text(Connection& c, base::Range range, base::ByteView text, bool push,
                           base::Now now);
  void settle_predicted(Connection& c, uint64_t acked, base::Duration rtt, base::Now now);
  void restart_calm(Connection& c, bool restarted, base::Now now);

  // commit.cpp: the data side.
  /// What of a segment's text is new.
  struct NewText {
    base::Range whole;      ///< clipped to the window and to the peer's FIN
    base::ByteView octets;  ///< of `whole`
    uint32_t gaps = 0;      ///< new sub-ranges, in gap_
  };
  [[nodiscard]] bool inspect_text(Connection& c, const Arrival& a, NewText& text, base::Now now);
  /// Nothing from this gap on is used.
  void end_text_at(NewText& text, uint32_t gap);
  void take_text(Connection& c, const Arrival& a, const NewText& text, base::Now now);
  void commit_range(Connection& c, base::Range range);
  void note_partial_duplicate(Connection& c, int64_t begin, const NewText& text,
                              uint64_t delivery_point);
  void take_fin(Connection& c, base::Now now);

  // ack.cpp: the ACK side.
  void process_ack(Connection& c, const Arrival& a, base::Now now);
  void advance_una(Connection& c, uint64_t ack, AckYield& yield, base::Now now);
  void update_window(Connection& c, const Arrival& a, int64_t ack, bool advanced, base::Now now);
  void window_opened(Connection& c, base::Now now);
  void measure(Connection& c, AckYield& yield, base::Now now);
  /// What follows from an ACK for loss, recovery, the window and the timers.
  void settle(Connection& c, AckYield& yield, base::Now now);
  [[nodiscard]] static bool detect_losses(Connection& c, base::Now now) {
    return c.rack.detect(!c.recovery.open(), now);
  }
  void our_fin_acked(Connection& c, base::Now now);

  void take_sack(Connection& c, const Arrival& a, uint64_t ack, AckYield& yield, base::Now now);

  void recover(Connection& c, AckYield& yield, bool lost, base::Now now);
  void enter_recovery(Connection& c, base::Now now);
  void leave_recovery(Connection& c);
  void grow_window(Connection& c, uint64_t acked, base::Duration rtt, base::Now now) {
    // An unused window is no evidence that more fits (RFC 9438 s.5.8). Slow start asks for half of
    // it only, in flight at once within the last round trip: what is in flight may double.
    const bool full = c.tcb.snd_una - acked < c.cwnd_full_to ||
                      (c.cc.in_slow_start() && 2 * c.flight_peak > c.cc.cwnd());
    if (!full) {
      c.cc.on_unused_window(now);
    } else if (!c.cc.gather(acked)) {
      open_window(c, acked, rtt, now);
    }
  }
  void open_window(Connection& c, uint64_t acked, base::Duration rtt, base::Now now);
  [[nodiscard]] static AckSample sample_of(const Connection& c, uint64_t acked, base::Duration rtt,
                                           base::Now now) {
    return {.acked = acked,
            .snd_una = c.tcb.snd_una,
            .snd_nxt = c.tcb.snd_nxt,
            .rtt = rtt,
            .srtt = c.rto.srtt(),
            .now = now};
  }
  void restart_after_idle(Connection& c);
  void tail_probe_acked(Connection& c, const AckYield& yield);
  void retransmission_timeout(Connection& c, base::Now now);
  void restart_timers(Connection& c, base::Now now);

  // ecn.cpp
  [[nodiscard]] uint8_t syn_ecn(Connection& c, bool with_ack, TxSlot& slot);
  [[nodiscard]] static bool is_ecn_setup(const Arrival& a);
  void take_syn_ecn(Connection& c, const Arrival& a);
  static void take_late_syn_ecn(Connection& c, const Arrival& a);
  void ecn_arrived(Connection& c, const Arrival& a);
  bool send_owed_acks(Connection& c, base::Now now);
  [[nodiscard]] uint8_t ecn_flags(const Connection& c, TxSlot& slot) const;
  [[nodiscard]] uint8_t mark_new_data(Connection& c, TxSlot& slot);
  void ecn_feedback(Connection& c, const Arrival& a, AckYield& yield, base::Now now);

  void detect_spurious(Connection& c, AckYield& yield);
  void try_undo(Connection& c, AckYield& yield);
  void undo_recovery(Connection& c, AckYield& yield);

  [[nodiscard]] bool gate_closed(Connection& c, base::Now now);
  void pace(Connection& c, uint64_t octets, base::Now now);

  // output.cpp
  Served serve(Connection& c, base::Now now);
  Sent send_next(Connection& c, base::Now now);
  Sent send_during_frto(Connection& c, base::Now now);
  Sent send_new(Connection& c, base::Now now);
  Sent send_pulled(Connection& c, base::Now now, bool probe);
  Sent pull_into_saved(Connection& c, base::Now now);
  Sent send_waiting(Connection& c, base::Now now);
  /// The user has closed and has nothing more to send: the FIN may ride on its last octets.
  [[nodiscard]] static bool ends_here(Connection& c);
  /// Our FIN takes its place in the sequence. \param flags of its record: whether it begins a
  /// segment
  void queue_fin(Connection& c, uint16_t flags, base::Now now);
  Sent send_fin(Connection& c, base::Now now);
  Sent wait_for_window(Connection& c, base::Now now);
  [[nodiscard]] static bool held_by_nagle(const Connection& c);
  void push_record(Connection& c, const llp::Pulled& pulled, uint16_t flags, base::Now now);
  void note_sent(Connection& c, uint64_t octets, base::Now now);

  // retransmit.cpp
  Sent send_lost(Connection& c, base::Now now);
  Sent retransmit_from(Connection& c, uint64_t number, base::Now now);
  Sent retransmit_cut(Connection& c, uint64_t number, base::Now now);
  bool keep_copy(Connection& c, uint64_t number);
  void note_retransmitted(Connection& c, uint64_t number, base::Now now);
  Sent send_tail_probe(Connection& c, base::Now now);

  // transmit.cpp: one segment.
  bool open_slot(Connection& c, TxSlot& slot);
  bool begin(Connection& c, TxSlot& slot);
  [[nodiscard]] static uint32_t header_length(const Connection& c) {
    return wire::kTcpHeaderMin + (c.tcb.ts_ok ? wire::kTcpTimestampsPadded : 0);
  }
  void finish(Connection& c, TxSlot& slot, uint64_t offset, uint32_t payload, uint8_t flags,
              base::Now now);
  void complete(TxSlot& slot, const Endpoint& local, const Endpoint& remote, uint32_t length,
                base::Now now);
  bool send_ack(Connection& c, base::Now now);
  bool send_window_probe(Connection& c, base::Now now);
  bool send_replies(base::Now now);
  /// Octets past RCV.NXT that the user has room for and the window field, scaled, can name.
  [[nodiscard]] uint64_t room_to_offer(const Connection& c) const;
  [[nodiscard]] uint16_t advertise(Connection& c);

  // engine.cpp: options, and what is due.
  void apply_options(Connection& c, const ConnectionOptions& options);
  void fire(Connection& c, base::Now now);
  void life_over(Connection& c, base::Now now);
  /// `next`, or the end of the user time-out when that is earlier.
  [[nodiscard]] static base::Now before_give_up(const Connection& c, base::Now next, base::Now now);
  void give_up(Connection& c);
  /// Aborts a closed connection that has not got on for Config::orphan_timeout.
  bool orphan_over(Connection& c, base::Now now);

  // close.cpp
  void doom(Connection& c, StreamEnd how, bool send_rst);
  /// nullptr: no room for another reply.
  Reply* queue_rst(const Connection& c);
  void push_life(Connection& c, base::Now now);
  void enter_time_wait(Connection& c, base::Now now);
  void reap(base::Now now);
  void release(Connection& c);

  // validate.cpp
  void validate_connection(Connection& c) const;

  const Config config_;
  Egress& egress_;
  const Secret secret_;
  base::SecretSource random_;
  Counters counters_;
  ChallengeAcks challenge_acks_;
  base::TimerWheel wheel_;
  RecordPool record_pool_;
  RangePool range_pool_;
  SavedRecords saved_;
  std::vector<uint8_t> scratch_;  // one record being rebuilt for cutting
  ListenerTable listeners_;
  HalfOpen half_open_;
  ConnectionTable connections_;
  ConnectionList<&ready_link_of> ready_;
  ConnectionList<&doomed_link_of> doomed_;
  ReplyQueue replies_;
  TimeWait time_wait_;
  SynTerms syn_terms_;
  SynCookies cookies_;
  std::optional<uint32_t> forced_isn_;
  std::array<base::Range, kMaxRanges + 1> gap_;  // of the segment in hand; see NewText
  bool predicting_ = true;
  bool output_pending_ = false;  // output() has something to do at once: news, or a quantum was up

  static constexpr uint32_t kNoticeTimeouts = 3;      // R1 (RFC 9293 s.3.8.3, SHLD-10)
  static constexpr uint32_t kLeastReassembled = 576;  // RFC 791: every host takes that much
  static constexpr uint64_t kQuantum = 64 * 1024;
  static constexpr uint32_t kMaxRecordOctets = 65536;
  static constexpr uint32_t kPackRoomMin = 24;  // the least FPDU with payload: tagged, one octet
};

}  // namespace rnic::tcp
