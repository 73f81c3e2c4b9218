/// \file
/// One TCP connection: the stream that its user holds, and the event processing of RFC 9293 s.3.10
/// on its two halves.
#pragma once

#include <cstdint>

#include "base/prefetch.hpp"
#include "base/slab.hpp"
#include "base/time.hpp"
#include "llp/stream.hpp"
#include "llp/transport.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/connection_info.hpp"
#include "tcp/fast_path.hpp"
#include "tcp/half_open.hpp"
#include "tcp/keep_alive.hpp"
#include "tcp/opening.hpp"
#include "tcp/receiver.hpp"
#include "tcp/segment.hpp"
#include "tcp/sender.hpp"
#include "tcp/tcp.hpp"

namespace rnic::tcp {

/// The user may call ready(), close(), abort() and room_grew() from inside a call-up. A connection
/// is never freed while it is on the call stack: end() makes it CLOSED and puts it on the stack's
/// list of closed connections, and the stack calls finish() later.
class Connection final : public llp::Stream {
 public:
  explicit Connection(Shared& shared)
      : core_(*this, shared),
        receiver_(core_, core_.timers_),
        sender_(core_, core_.timers_, receiver_) {}

  // llp::Stream
  [[nodiscard]] llp::StreamTraits traits() const override {
    return {.can_drop = true,
            .out_of_order = true,
            .atomic_records = true,
            .release_on_ack = true,
            .emss_exact = true,
            .shows_segments = true};
  }
  [[nodiscard]] uint32_t emss() const override { return sender_.emss(); }
  [[nodiscard]] Endpoint local() const override { return core_.binding_.local; }
  [[nodiscard]] Endpoint remote() const override { return core_.binding_.remote; }
  void ready() override { sender_.user_has_news(); }
  void close() override;
  void abort() override;
  void room_grew() override { receiver_.room_grew(); }
  void set_user(llp::StreamUser& next) override {
    core_.binding_.user = &next;
    core_.binding_.used = {};
  }
  void set_working_set(const llp::WorkingSet& used) override { core_.binding_.used = used; }
  void set_trace(base::TraceSink* sink) override { core_.binding_.trace = sink; }
  [[nodiscard]] base::TraceSink* trace() const override { return core_.binding_.trace; }

  // --- Queries ---

  [[nodiscard]] base::Handle handle() const { return handle_; }
  [[nodiscard]] const Binding& binding() const { return core_.binding_; }
  [[nodiscard]] const Tcb& tcb() const { return core_.tcb; }
  [[nodiscard]] const Timers& timers() const { return core_.timers(); }
  [[nodiscard]] const EcnState& ecn() const { return core_.ecn; }
  [[nodiscard]] const Sender& sender() const { return sender_; }
  [[nodiscard]] const Receiver& receiver() const { return receiver_; }
  [[nodiscard]] State state() const { return core_.life.state(); }
  /// The connection has ended and waits for finish().
  [[nodiscard]] bool over() const { return core_.life.over(); }
  [[nodiscard]] bool half_open() const { return seat_.of_listener != nullptr; }
  /// The connection is half open and belongs to this listener.
  [[nodiscard]] bool half_open_of(const HalfOpenPlaces& listener) const {
    return seat_.of_listener == &listener;
  }
  [[nodiscard]] bool belongs_to(const Shared& shared) const { return &core_.shared == &shared; }
  [[nodiscard]] ConnectionInfo info(base::Now now) const;

  // --- Opening ---

  /// Called once, by the table. \param handle its handle there
  void name(base::Handle handle, const Endpoint& local, const Endpoint& remote);
  /// Sets where the send sequence begins. \param ts_offset offset of our timestamp clock
  void begin(base::Seq32 iss, uint32_t ts_offset, const ConnectionOptions& options, base::Now now);
  /// Moves the ISS beyond the sequence numbers of an old incarnation.
  void begin_beyond(base::Seq32 old_snd_nxt) { opening().begin_beyond(old_snd_nxt); }
  void open_active(llp::StreamUser& user, base::Now now);
  void open_passive(llp::Acceptor& acceptor, const Segment& syn, base::Now now);
  /// A passive open by the ACK of a SYN cookie. \param iss the sequence number of our SYN-ACK
  void open_by_cookie(llp::Acceptor& acceptor, const Segment& syn, base::Seq32 iss, base::Now now);
  /// Counts this connection among the half-open connections of its listener.
  void take_seat(HalfOpenPlaces& listener);
  void set_options(const ConnectionOptions& options, base::Now now);

  // --- Events ---

  /// See fast_path.hpp.
  [[nodiscard]] bool expects(const SegmentIn& in) const { return fast_path::expects(core_, in); }
  [[nodiscard]] bool expects_header(const uint8_t* header) const {
    return fast_path::expects_header(core_, header);
  }
  [[nodiscard]] fast_path::Taken take_predicted(const SegmentIn& in, base::Now now) {
    using fast_path::Taken;
    if (in.tcp.size() != core_.prediction.header_octets()) {
      return take_predicted_text(in.tcp, in.checksum_verified, in.ecn, now);
    }
    const Taken taken = fast_path::take_ack(core_, sender_, receiver_, keep_alive_, in, now);
    if (taken != Taken::ReorderedAck) [[likely]]
      return taken;
    predict();
    return Taken::Ack;
  }
  // The connection gets a segment or a turn soon, and others have been at work since its last one.
  /// Fetches the connection into the caches.
  void prefetch() const { base::prefetch(*this); }
  /// Fetches what its user needs where text comes. The connection itself has to be near.
  void prefetch_for_taking() const {
    for (const auto& part : core_.binding().used.parts) base::prefetch(part.at, part.taking);
  }
  /// \param predicting whether the next segment may be predicted
  void input(Segment& segment, bool predicting, base::Now now);
  /// \param seq the sequence number that the message quotes
  void icmp(const llp::IcmpError& error, base::Seq32 seq, base::Now now);
  void on_timers(base::Now now);

  [[nodiscard]] bool is_between(const SegmentIn& in) const {
    return fast_path::is_between(core_, in);
  }
  /// See fast_path.hpp. False: the segment has to take the slow path.
  [[nodiscard]] bool take_text_beside(const SegmentIn& in, base::Now now) {
    return fast_path::take_text_beside(core_, sender_, receiver_, keep_alive_, in, now) !=
           fast_path::Taken::No;
  }

  /// The state in which a turn to send leaves the connection.
  enum class Served : uint8_t {
    Idle,      ///< there is nothing more to send until an ACK, a timer or ready()
    More,      ///< the quantum is used up
    Starved,   ///< a limit of the stack was reached: the next output() tries again
    PortFull,  ///< the port is full for all connections
    Waits,     ///< an ACK waits for what the user may send in the next turn
  };
  /// \param quantum the octets that it may send
  [[nodiscard]] Served serve(uint64_t quantum, base::Now now);
  /// Does serve() where there is nothing to send but an ACK that waits. False: it may not wait, or
  /// there may be more, and nothing has happened.
  [[nodiscard]] bool only_puts_off(base::Now now) {
    const AckPolicy& ack = receiver_.ack();
    // A quiet sender has no SYN and no window probe due, see validate().
    if (!ack.may_wait() || !sender_.is_quiet() || keep_alive_.probe_due()) return false;
    if (ack.owes_parts() || ack.due_alone() || core_.ecn.owes_acks()) return false;
    return put_off_ack(now);
  }
  /// Puts the connection at the end of the round, or takes it out of the round if it has nothing to
  /// send before the next turn.
  void turn_over(Served served, base::Now now);

  /// Enters CLOSED, after which ended() is the only call-up. \param rst whether the peer is sent a
  /// RST
  void end(StreamEnd how, bool rst);
  /// Calls ended() of the user if that is still due.
  void finish(base::Now now);

  void validate() const;
  /// Adds what this connection holds of the stack's pools and lists.
  void add_to(Holdings& sum) const;

 private:
  // The parts of a connection see only the base class, through which they can write neither the
  // binding nor the timers.
  struct Core : ConnectionCore {
    using ConnectionCore::binding_;
    using ConnectionCore::ConnectionCore;
    using ConnectionCore::timers_;
  };

  // A segment.
  void input_syn_sent(const Segment& segment, base::Now now);
  void take_text_of_syn(const Segment& syn, base::Now now);
  /// \param segment its SYN is removed if that SYN was received before
  void input_synchronized(Segment& segment, base::Now now);
  /// The peer's SYN or SYN-ACK came in SYN-RECEIVED. \return nothing else of the segment is to be
  /// processed
  [[nodiscard]] bool syn_again(Segment& segment);
  [[nodiscard]] bool survives_rst(const Segment& segment, base::Now now);
  void take_syn_in_window(base::Now now);
  [[nodiscard]] bool survives_ack_check(const Segment& segment, base::Now now);
  [[nodiscard]] bool establish(const Segment& segment, base::Now now);
  [[nodiscard]] bool closed_reader(const Segment& segment);
  void process_ack(const Segment& segment, base::Now now);
  void challenge_ack(base::Now now);
  void end_in_time_wait(base::Now now);
  /// \return nullptr: no room for another reply
  Reply* queue_reply(uint8_t flags);
  Reply* queue_rst() { return queue_reply(wire::tcp_flag::kRst | wire::tcp_flag::kAck); }

  // Timers.
  void life_over(base::Now now);
  void keep_alive_due(base::Now now);
  void arm_keep_alive(base::Now now);
  void time_out();

  // These are functions of their own, so that a predicted ACK does not pay for their arguments.
  [[nodiscard]] fast_path::Taken take_predicted_text(base::ByteView tcp, bool checksum_verified,
                                                     uint8_t ecn, base::Now now);
  void predict();

  [[nodiscard]] bool passive() const { return acceptor_ != nullptr; }
  [[nodiscard]] Opening opening() { return {core_, sender_, receiver_, handshake_, acceptor_}; }

  // Output.
  [[nodiscard]] bool send_owed(base::Now now);
  [[nodiscard]] bool put_off_ack(base::Now now);
  [[nodiscard]] bool send_keep_alive(base::Now now);

  Core core_;
  base::Handle handle_;
  Receiver receiver_;
  Sender sender_;
  KeepAlive keep_alive_;
  HalfOpenSeat seat_;
  llp::Acceptor* acceptor_ = nullptr;  // set in a passive open: it will choose the user
  Handshake handshake_;
  bool soft_error_ = false;  // an ICMP soft error was received
  bool tell_end_ = false;    // ended() is owed
  StreamEnd how_ended_ = StreamEnd::Closed;
};

}  // namespace rnic::tcp
