/// \file
/// Our SYN or SYN-ACK: the options that it offers, whether it is due, and how often it was sent.
#pragma once

#include <cstdint>

#include "tcp/handshake_state.hpp"

namespace rnic::tcp {

/// Options that a SYN may carry (RFC 7323, RFC 2018).
struct SynOffer {
  bool sack = false;
  bool timestamps = false;
  bool scale = false;
};

class Handshake {
 public:
  /// Sets the options that we offer, or, if the peer offered first, those that we agree to.
  void offer(const SynOffer& offer) { offer_ = offer; }
  [[nodiscard]] const SynOffer& offered() const { return offer_; }

  /// Our SYN or SYN-ACK has to be sent, or sent again.
  void ask();
  /// Both sequence numbers are known: nothing is asked, sent or measured after that.
  void done();
  [[nodiscard]] HandshakeState state() const { return state_; }
  [[nodiscard]] bool is_done() const { return state_ == HandshakeState::Done; }
  /// Our SYN or SYN-ACK waits for its turn to be sent.
  [[nodiscard]] bool due() const { return state_ >= HandshakeState::Due; }
  /// Our SYN or SYN-ACK went out. \return it is the first transmission
  bool sent();
  [[nodiscard]] bool was_sent() const {
    return state_ != HandshakeState::Idle && state_ != HandshakeState::Due;
  }
  /// The timer has fired: it has to be sent again. \return the number of time-outs, this one
  /// included
  uint32_t time_out();
  /// A RST has answered our SYN, which will be asked for again.
  void refuse();
  /// Our SYN-ACK was a SYN cookie: it was sent, at an unknown time.
  void assume_sent();

  [[nodiscard]] uint32_t tries() const { return tries_; }
  /// Our SYN or SYN-ACK has timed out, or may have: the time at which a SYN cookie was sent is
  /// unknown. To be called before done().
  [[nodiscard]] bool timed_out() const { return tries_ != 0 || state_ == HandshakeState::Assumed; }
  /// The answer to our SYN or SYN-ACK measures the round trip, since it was sent only once (Karn's
  /// rule, RFC 6298 s.3). A second transmission rules that out, whatever its reason was.
  [[nodiscard]] bool measures() const {
    return state_ == HandshakeState::Sent || state_ == HandshakeState::DueAgain;
  }
  void validate() const;

 private:
  /// The one place that sets the state.
  void set_state(HandshakeState next);

  SynOffer offer_;
  HandshakeState state_ = HandshakeState::Idle;
  uint32_t tries_ = 0;
};

}  // namespace rnic::tcp
