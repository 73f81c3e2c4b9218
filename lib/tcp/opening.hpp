/// \file
/// How a connection comes to stand (RFC 9293 s.3.5): our SYN or SYN-ACK goes out, the peer's is
/// taken.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "llp/transport.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/handshake.hpp"
#include "tcp/receiver.hpp"
#include "tcp/segment.hpp"
#include "tcp/sender.hpp"

namespace rnic::tcp {

/// It writes what the SYNs agree on. It remembers nothing itself: a connection makes one for each
/// step, and a connection that stands has none.
class Opening {
 public:
  /// All of them outlive this. Its timers are Timer::Rto and Timer::Life of SYN-SENT and
  /// SYN-RECEIVED. \param acceptor passive open: who will name the user
  Opening(ConnectionCore& core, Sender& sender, Receiver& receiver, Handshake& handshake,
          const llp::Acceptor* acceptor)
      : core_(core),
        sender_(sender),
        receiver_(receiver),
        handshake_(handshake),
        acceptor_(acceptor) {}

  /// Where both sequences begin. \param iss our initial send sequence number
  void begin(base::Seq32 iss, uint32_t ts_offset, base::Now now);
  /// Beyond every sequence number of an old incarnation, and its window (s.3.6.1, MAY-2).
  void begin_beyond(base::Seq32 old_snd_nxt);
  /// SYN-SENT: our SYN has to go out.
  void connect(base::Now now);
  /// SYN-RECEIVED: the peer's came.
  void accept(const Segment& syn, base::Now now) {
    take_peer(syn, now);
    ask();
  }
  /// The same, and our SYN-ACK went out as a cookie, nobody knows when. \param iss that it had
  void accept_by_cookie(const Segment& syn, base::Seq32 iss, base::Now now) {
    core_.tcb.iss = iss;
    take_peer(syn, now);
    handshake_.assume_sent();
  }
  /// The peer's SYN or SYN-ACK answers ours, or crosses it. \param answers ours
  void take_answer(const Segment& syn, bool answers, base::Now now);
  /// The SYNs have crossed: ours goes out again, as a SYN-ACK.
  void cross();

  /// Our SYN or SYN-ACK has to go out, maybe once more.
  void ask() {
    handshake_.ask();
    core_.ask_turn();
  }
  /// False: the port is full.
  [[nodiscard]] bool send(base::Now now);
  /// False: it went out often enough.
  [[nodiscard]] bool time_out(base::Now now);
  /// Of SYN-RECEIVED: the peer's SYN again. RFC 3168 s.6.1.1: it has fallen back, or never asked.
  void take_syn_again(const Segment& syn) {
    if (core_.ecn.on()) take_syn_ecn(syn);
  }
  /// One that comes behind the handshake that another has made.
  void take_late_syn(const Segment& syn);
  /// Karn's rule (RFC 6298 s.3), whether our timer or a SYN that came again made us repeat ours.
  void measure(base::Now now) { sender_.measure_handshake(handshake_.measures(), now); }
  /// ESTABLISHED. \param first segment of it
  void done(const Segment& first, base::Now now);

 private:
  void take_peer(const Segment& syn, base::Now now);
  void take_syn(const Segment& syn, bool ours_offered, base::Now now);
  void take_syn_ecn(const Segment& syn);
  /// \return flags
  [[nodiscard]] uint8_t offer_ecn(bool with_ack, TxSlot& slot);
  [[nodiscard]] uint16_t window() const;

  ConnectionCore& core_;
  Sender& sender_;
  Receiver& receiver_;
  Handshake& handshake_;
  const llp::Acceptor* acceptor_;
};

}  // namespace rnic::tcp
