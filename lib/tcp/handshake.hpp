/// \file
/// Our SYN or SYN-ACK: what it offers, whether it is due, and how often it went out.
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
  /// What we offer; where the peer offered first, what of it we agree to.
  void offer(const SynOffer& offer) { offer_ = offer; }
  [[nodiscard]] const SynOffer& offered() const { return offer_; }

  /// It has to go out, maybe once more.
  void ask() { due_ = true; }
  /// Both sequence numbers are known.
  void done() { due_ = false; }
  [[nodiscard]] bool due() const { return due_; }
  /// \return for the first time
  bool sent();
  [[nodiscard]] bool was_sent() const { return sent_; }
  /// \return how often it has timed out, this time included
  uint32_t time_out();
  /// A SYN cookie: it went out, nobody knows when.
  void assume_sent();

  [[nodiscard]] uint32_t tries() const { return tries_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  /// Its answer tells the round trip (Karn's rule, RFC 6298 s.3): it went out once, whatever the
  /// reason for another would have been.
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
