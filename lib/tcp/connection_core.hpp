/// \file
/// The state that the parts of one connection share.
#pragma once

#include "base/check.hpp"
#include "tcp/binding.hpp"
#include "tcp/connection_list.hpp"
#include "tcp/ecn_state.hpp"
#include "tcp/life.hpp"
#include "tcp/prediction.hpp"
#include "tcp/shared.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

/// The sender and the receiver read all of this state. The sender writes the send sequence
/// variables of the Tcb, the receiver writes the receive sequence variables, and the handshake
/// writes what the SYNs agree on. docs/owners.md lists which part may call the functions that
/// change the rest.
struct ConnectionCore {
  /// \param connection the owner, as the timer wheel and the round know it. \param with outlives
  /// this
  ConnectionCore(Connection& connection, Shared& with)
      : shared(with),
        timers_(with.wheel, &connection, prediction),
        life(prediction, timers_, binding_.options, with.config),
        place_(&connection) {}

  [[nodiscard]] const Binding& binding() const { return binding_; }
  [[nodiscard]] const Timers& timers() const { return timers_; }

  /// Puts the connection into the round because it may have something to send, unless it is in it
  /// or over.
  void ask_turn() {
    if (!place_.linked() && !life.over()) shared.round.join(place_);
  }
  /// The connection's turn to send is over, and the connection is not. \param more it has more to
  /// send: it is served again after the others
  void turn_over(bool more) {
    if (more) {
      shared.round.put_last(place_);
    } else {
      Round::leave(place_);
    }
  }
  /// The connection is served again in the next turn.
  void put_off(base::Now now) { shared.round.put_off(place_, now); }
  [[nodiscard]] bool in_round() const { return place_.linked() && !life.over(); }
  /// Enters CLOSED and moves from the round to the connections that wait for finish().
  void end() {
    life.end();
    Round::leave(place_);
    shared.closed.push_back(place_);
  }
  /// Leaves the list of closed connections, since finish() is being called.
  void leave_closed() { ConnectionList::erase(place_); }
  void validate() const {
    tcb.validate();
    ecn.validate();
    timers_.validate();
    life.validate();
    // A connection that is over is in the list of those that wait for finish().
    RNIC_CHECK(place_.linked() || !life.over());
  }

  Shared& shared;

 protected:
  Binding binding_;  // Only a derived class can write it: the connection's own core.

 public:
  Tcb tcb;
  Prediction prediction;

 protected:
  Timers timers_;  // Written like binding_; the connection passes it to the parts that own a timer.

 public:
  Life life;
  EcnState ecn;

 private:
  ConnectionLink place_;  // in the round or, once over, among the closed ones
};

}  // namespace rnic::tcp
