/// \file
/// The life of a connection: its state, the FINs of both sides, and how long it may take to end.
#pragma once

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/state.hpp"

namespace rnic::tcp {

struct ConnectionCore;

class Life {
 public:
  /// \param core outlives this. Its timer is Timer::Life: of an open, and behind our FIN. The
  /// prediction ends with ESTABLISHED, and where a close waits.
  explicit Life(ConnectionCore& core) : core_(core) {}

  [[nodiscard]] State state() const { return state_; }
  /// It has ended: nothing is called up but ended().
  [[nodiscard]] bool over() const { return state_ == State::Closed; }
  /// The user has closed; what it still has goes out before the FIN.
  [[nodiscard]] bool fin_wanted() const { return fin_wanted_; }
  /// Our FIN has its place in the sequence.
  [[nodiscard]] bool fin_queued() const {
    return in_any(state_, State::FinWait1, State::FinWait2, State::Closing, State::LastAck);
  }
  /// The FIN is still to be sent.
  [[nodiscard]] bool owes_fin() const { return fin_wanted_ && !fin_queued(); }

  /// SYN-SENT or SYN-RECEIVED. \param until it is given up then
  void open(State state, base::Now until);
  /// The SYNs have crossed.
  void cross() { set_state(State::SynReceived); }
  void establish();
  void want_fin();
  /// Our FIN went out for the first time.
  void fin_sent(base::Now now);
  /// The peer's FIN is in order. \return TIME-WAIT follows
  [[nodiscard]] bool fin_received();
  enum class Next : uint8_t { Same, TimeWait, Closed };
  /// All that we sent is acknowledged, and our FIN is queued.
  [[nodiscard]] Next fin_acked(base::Now now);
  void end();

  /// Something moved: behind our FIN the peer has Config::close_timeout anew.
  void progressed(base::Now now);
  /// A close that has not got on for Config::orphan_timeout (RFC 6429 s.5).
  [[nodiscard]] bool orphaned(base::Now now);
  /// It has got on.
  void forget_orphan() { orphan_until_ = base::kNever; }
  /// Our FIN goes out only for a user that has closed.
  void validate() const { RNIC_CHECK(!fin_queued() || fin_wanted_); }

 private:
  void set_state(State next);

  ConnectionCore& core_;
  State state_ = State::Closed;
  bool fin_wanted_ = false;
  base::Now orphan_until_ = base::kNever;
};

}  // namespace rnic::tcp
