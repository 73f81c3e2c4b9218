/// \file
/// The state of an Endpoint, and the framing that it is bound to.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "llp/framing.hpp"
#include "rdmap/endpoint_state.hpp"

namespace rnic::rdmap {

/// The state that both directions of an endpoint read. Only the endpoint, which knows the
/// consequences, changes it.
class Life {
 public:
  [[nodiscard]] EndpointState state() const { return state_; }
  /// \return whether work is carried out and segments are delivered
  [[nodiscard]] bool running() const { return is_running(state_); }
  /// RV and DV of the stream.
  [[nodiscard]] uint8_t version() const { return version_; }
  /// Asks the framing, if there is one, to pull what waits.
  void call_ready() const {
    if (framing_ != nullptr) framing_->ready();
  }

  /// Enters a state that the table of endpoint_state.hpp allows.
  void enter(EndpointState next) {
    RNIC_CHECK(kEndpointTransitions.allows(state_, next));
    state_ = next;
  }
  /// Goes from Idle to Connected. \param framing outlives this, or unbind() is called first
  void bind(llp::Framing& framing) {
    framing_ = &framing;
    version_ = framing.version();
    enter(EndpointState::Connected);
  }
  void unbind() { framing_ = nullptr; }
  /// Reads the version from the framing, which may know it only now.
  void learn_version() {
    if (framing_ != nullptr) version_ = framing_->version();
  }
  /// Forgets what was received and not delivered.
  void discard_received() {
    if (framing_ != nullptr) framing_->discard_received();
  }
  /// As llp::Framing::resume().
  bool resume(base::Now now) { return framing_ != nullptr && framing_->resume(now); }
  void close() {
    if (framing_ != nullptr) framing_->close();
  }
  void abort() {
    if (framing_ != nullptr) framing_->abort();
  }
  [[nodiscard]] bool is_bound() const { return framing_ != nullptr; }
  /// \return whether a message could leave now. Precondition: is_bound().
  [[nodiscard]] bool may_send() const { return framing_->may_send(); }

  void validate() const { RNIC_CHECK(!running() || is_bound()); }

 private:
  llp::Framing* framing_ = nullptr;
  EndpointState state_ = EndpointState::Idle;
  uint8_t version_ = 1;
};

}  // namespace rnic::rdmap
