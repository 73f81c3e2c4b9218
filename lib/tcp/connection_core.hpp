/// \file
/// What the parts of one connection have in core.
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

/// Both halves read all of it. Of the Tcb the sender writes the send sequence variables, the
/// receiver the receive sequence variables, and the handshake what the SYNs agree on.
struct ConnectionCore {
  /// \param connection whose it is, for the timer wheel and the round. \param with outlives this
  ConnectionCore(Connection& connection, Shared& with)
      : shared(with), turn(&connection), timers(with.wheel, &connection, prediction), life(*this) {}

  /// There may be something to send: a place in the round, unless it has one, or is over.
  void ask_turn() {
    if (!turn.linked() && !life.over()) shared.round.join(turn);
  }

  Shared& shared;
  ConnectionLink turn;  ///< in the round
  Binding binding;
  Tcb tcb;
  Prediction prediction;
  Timers timers;
  Life life;
  EcnState ecn;
};

}  // namespace rnic::tcp
