/// \file
/// Our SYN or SYN-ACK: the options that it offers, whether it is due, and how often it was sent.
#pragma once

#include <cstdint>

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

  /// It has to be sent, or sent again.
  void ask() { due_ = true; }
  /// Both sequence numbers are known.
  void done() { due_ = false; }
  [[nodiscard]] bool due() const { return due_; }
  /// \return it is the first transmission
  bool sent();
  [[nodiscard]] bool was_sent() const { return sent_; }
  /// \return the number of time-outs, this one included
  uint32_t time_out();
  /// Our SYN-ACK was a SYN cookie: it was sent, at an unknown time.
  void assume_sent();

  [[nodiscard]] uint32_t tries() const { return tries_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  /// Its answer measures the round trip: it was sent only once (Karn's rule, RFC 6298 s.3). A
  /// second transmission rules that out whatever its reason was.
  [[nodiscard]] bool measures() const { return !timed_out_ && !resent_; }
  void validate() const;

 private:
  SynOffer offer_;
  bool due_ = false;
  bool sent_ = false;
  bool resent_ = false;
  bool timed_out_ = false;
  uint32_t tries_ = 0;
};

}  // namespace rnic::tcp
