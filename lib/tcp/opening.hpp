/// \file
/// The handshake of a connection (RFC 9293 s.3.5): sends our SYN or SYN-ACK and takes the peer's.
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

/// Opening writes what the SYNs agree on. It has no state of its own: a connection makes an Opening
/// for each step, and none once it is established.
class Opening {
 public:
  /// All parameters outlive this. In SYN-SENT and SYN-RECEIVED it uses the timers of Flight and
  /// Life: Timer::Rto and Timer::Life. \param acceptor will choose the user of a passive open;
  /// nullptr: an active open
  Opening(ConnectionCore& core, Sender& sender, Receiver& receiver, Handshake& handshake,
          const llp::Acceptor* acceptor)
      : core_(core),
        sender_(sender),
        receiver_(receiver),
        handshake_(handshake),
        acceptor_(acceptor) {}

  /// Sets where both sequences begin. \param iss our initial send sequence number
  void begin(base::Seq32 iss, uint32_t ts_offset, base::Now now);
  /// Moves our ISS beyond every sequence number of an old incarnation and its window (s.3.6.1,
  /// MAY-2).
  void begin_beyond(base::Seq32 old_snd_nxt);
  /// SYN-SENT: our SYN has to go out.
  void connect(base::Now now);
  /// SYN-RECEIVED: the peer's SYN came.
  void accept(const Segment& syn, base::Now now) {
    take_peer(syn, now);
    ask();
  }
  /// SYN-RECEIVED: our SYN-ACK was a SYN cookie, sent at an unknown time. \param iss its sequence
  /// number
  void accept_by_cookie(const Segment& syn, base::Seq32 iss, base::Now now) {
    core_.tcb.iss = iss;
    take_peer(syn, now);
    handshake_.assume_sent();
  }
  /// SYN-SENT: the peer's SYN or SYN-ACK came. \param answers it acknowledges our SYN
  void take_answer(const Segment& syn, bool answers, base::Now now);
  /// SYN-SENT: a RST came, with an ACK of our SYN. \return ours goes out again, after a pause;
  /// false: that is the end
  [[nodiscard]] bool take_refusal(base::Now now);
  /// The SYNs have crossed: ours goes out again, as a SYN-ACK.
  void cross();

  /// Our SYN or SYN-ACK has to be sent, or sent again.
  void ask() {
    handshake_.ask();
    core_.ask_turn();
  }
  /// Sends our SYN or SYN-ACK. False: the port is full.
  [[nodiscard]] bool send(base::Now now);
  /// Timer::Rto has fired: our SYN or SYN-ACK is to be sent again, as nothing has answered it or a
  /// RST has. False: it was sent as often as the Config allows.
  [[nodiscard]] bool time_out(base::Now now);
  /// SYN-RECEIVED: the peer has retransmitted its SYN, and may have fallen back to one without ECN
  /// (RFC 3168 s.6.1.1).
  void take_syn_again(const Segment& syn) {
    if (core_.ecn.on()) take_syn_ecn(syn);
  }
  /// A SYN arrived after another one had completed the handshake.
  void take_late_syn(const Segment& syn);
  /// Measures the round trip, unless our SYN or SYN-ACK was sent again, by our timer or for a
  /// repeated SYN (Karn's rule, RFC 6298 s.3).
  void measure(base::Now now) { sender_.measure_handshake(handshake_.measures(), now); }
  /// Enters ESTABLISHED. \param first the segment that completes the handshake
  void done(const Segment& first, base::Now now);

 private:
  void take_peer(const Segment& syn, base::Now now);
  void take_syn(const Segment& syn, bool ours_offered, base::Now now);
  void take_syn_ecn(const Segment& syn);
  /// Asks for ECN or agrees to it. \return the flags ECE and CWR of our SYN or SYN-ACK
  [[nodiscard]] uint8_t offer_ecn(bool with_ack, TxSlot& slot);
  [[nodiscard]] uint16_t window() const;

  ConnectionCore& core_;
  Sender& sender_;
  Receiver& receiver_;
  Handshake& handshake_;
  const llp::Acceptor* acceptor_;
};

}  // namespace rnic::tcp
