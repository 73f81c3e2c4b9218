/// \file
/// The life of a connection: its state, the FINs of both sides, and the limits on the time that a
/// close may take.
#pragma once

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/config.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/prediction.hpp"
#include "tcp/state.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

class Life {
 public:
  /// All parameters outlive this. Life uses Timer::Life during the open and after our FIN; in
  /// between KeepAlive uses it.
  /// \param prediction ended when the state changes and when the user closes
  Life(Prediction& prediction, Timers& timers, const ConnectionOptions& options,
       const Config& config)
      : prediction_(prediction), timers_(timers), options_(options), config_(config) {}

  [[nodiscard]] State state() const { return state_; }
  /// The connection has ended: the only call-up left is ended().
  [[nodiscard]] bool over() const { return state_ == State::Closed; }
  /// The user has closed; its remaining data goes out before the FIN.
  [[nodiscard]] bool fin_wanted() const { return fin_wanted_; }
  /// Our FIN has its sequence number.
  [[nodiscard]] bool fin_queued() const {
    return in_any(state_, State::FinWait1, State::FinWait2, State::Closing, State::LastAck);
  }
  /// The FIN is still to be sent.
  [[nodiscard]] bool owes_fin() const { return fin_wanted_ && !fin_queued(); }

  /// Enters SYN-SENT or SYN-RECEIVED. \param until when the open is given up
  void open(State state, base::Now until);
  /// The SYNs have crossed (simultaneous open): enters SYN-RECEIVED.
  void cross() { set_state(State::SynReceived); }
  void establish();
  void want_fin();
  /// Our FIN went out for the first time.
  void fin_sent(base::Now now);
  /// The peer's FIN is in order. \return TIME-WAIT follows
  [[nodiscard]] bool fin_received();
  enum class Next : uint8_t { Same, TimeWait, Closed };
  /// All sent data is acknowledged, our FIN included.
  [[nodiscard]] Next fin_acked(base::Now now);
  void end();

  /// Timer::Life has fired.
  void timer_fired() { timers_.clear(Timer::Life); }
  /// There was progress. If our FIN has been sent, Config::close_timeout starts anew.
  void progressed(base::Now now);
  /// A closed connection has made no progress for Config::orphan_timeout (RFC 6429 s.5).
  [[nodiscard]] bool orphaned(base::Now now);
  /// There was progress: Config::orphan_timeout starts anew.
  void forget_orphan() { orphan_until_ = base::kNever; }
  /// Checks that our FIN is sent, and the orphan time-out runs, only after the user has closed.
  void validate() const {
    RNIC_CHECK(!fin_queued() || fin_wanted_);
    RNIC_CHECK(orphan_until_ == base::kNever || fin_wanted_);
  }

 private:
  void set_state(State next);

  Prediction& prediction_;
  Timers& timers_;
  const ConnectionOptions& options_;
  const Config& config_;
  State state_ = State::Closed;
  bool fin_wanted_ = false;
  base::Now orphan_until_ = base::kNever;
};

}  // namespace rnic::tcp
