/// \file
/// The state that the parts of one connection share.
#pragma once

#include "tcp/binding.hpp"
#include "tcp/connection_list.hpp"
#include "tcp/ecn.hpp"
#include "tcp/life.hpp"
#include "tcp/prediction.hpp"
#include "tcp/shared.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

/// Both halves read all of it. The sender writes the send sequence variables of the Tcb, the
/// receiver writes the receive sequence variables, and the handshake writes what the SYNs agree on.
struct ConnectionCore {
  /// \param connection the owner, as the timer wheel and the round know it. \param with outlives
  /// this
  ConnectionCore(Connection& connection, Shared& with)
      : shared(with), turn(&connection), timers(with.wheel, &connection, prediction), life(*this) {}

  /// Puts the connection into the round because it may have something to send, unless it is in it
  /// or over.
  void ask_turn() {
    if (!turn.linked() && !life.over()) shared.round.join(turn);
  }

  Shared& shared;
  ConnectionLink turn;  ///< place in the round
  Binding binding;
  Tcb tcb;
  Prediction prediction;
  Timers timers;
  Life life;
  EcnState ecn;
};

}  // namespace rnic::tcp
