#include "tcp/handshake.hpp"

#include "base/check.hpp"

namespace rnic::tcp {

[[gnu::noinline, gnu::cold]] void Handshake::set_state(HandshakeState next) {
  RNIC_CHECK(kHandshakeTransitions.allows(state_, next));
  state_ = next;
}

void Handshake::ask() {
  if (due()) return;
  switch (state_) {
    case HandshakeState::Idle: set_state(HandshakeState::Due); break;
    case HandshakeState::Sent: set_state(HandshakeState::DueAgain); break;
    default: set_state(HandshakeState::DueAmbiguous); break;
  }
}

bool Handshake::sent() {
  const bool first = state_ == HandshakeState::Due;
  set_state(first ? HandshakeState::Sent : HandshakeState::Ambiguous);
  return first;
}

uint32_t Handshake::time_out() {
  if (state_ != HandshakeState::DueAmbiguous) set_state(HandshakeState::DueAmbiguous);
  return ++tries_;
}

void Handshake::refuse() {
  if (state_ != HandshakeState::Refused) set_state(HandshakeState::Refused);
}

void Handshake::assume_sent() { set_state(HandshakeState::Assumed); }

void Handshake::done() { set_state(HandshakeState::Done); }

void Handshake::validate() const {
  const bool ambiguous =
      state_ == HandshakeState::Ambiguous || state_ == HandshakeState::DueAmbiguous ||
      state_ == HandshakeState::Refused || is_done();
  RNIC_CHECK(tries_ == 0 || ambiguous);
}

}  // namespace rnic::tcp
