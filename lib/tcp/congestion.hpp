/// \file
/// Congestion control of one connection: the window, and the state of the algorithm that was
/// selected: NewReno (RFC 5681), CUBIC (RFC 9438, with HyStart++ of RFC 9406) or DCTCP (RFC 8257).
/// The algorithm is chosen by a switch rather than a virtual call, so that an ACK pays for one
/// branch.
#pragma once

#include "tcp/config.hpp"
#include "tcp/congestion_window.hpp"
#include "tcp/cubic.hpp"
#include "tcp/dctcp.hpp"
#include "tcp/hystart.hpp"
#include "tcp/newreno.hpp"

namespace rnic::tcp {

class Congestion {
 public:
  /// \param config outlives this.
  explicit Congestion(const Config& config)
      : config_(&config), kind_(config.congestion_control), paced_(config.pacing) {
    window_.max_cwnd = config.max_cwnd;
  }

  /// Changes the algorithm, at any time and in any phase of the connection. The window stays; the
  /// state of the old algorithm is dropped.
  void select(CongestionControl kind);
  [[nodiscard]] CongestionControl kind() const { return kind_; }
  /// With pacing, slow start has no limit on the growth by one ACK (RFC 9406 s.4.3, L).
  void set_paced(bool paced) { paced_ = paced; }

  /// Called at ESTABLISHED, and when SMSS changes.
  void set_smss(uint32_t smss) {
    window_.smss = smss;
    window_.cwnd = std::max(window_.cwnd, smss);
  }
  /// Sets cwnd to the initial window, IW (RFC 5681 s.3.1, RFC 6928 s.2). \param syn_resent how
  /// often the SYN or SYN-ACK was retransmitted.
  void start(uint32_t syn_resent);

  /// New data was acknowledged outside fast recovery while cwnd was the limit.
  SlowStartEvent on_ack(const AckSample& sample) {
    if (in_slow_start()) return slow_start(sample);
    if (kind_ == CongestionControl::Cubic) {
      cubic_.on_ack(window_, sample);
    } else {
      newreno_.on_ack(window_, sample.acked);
    }
    return SlowStartEvent::None;
  }
  /// Counts the octets of an ACK. It replaces on_ack() for the ACKs at which cwnd does not grow
  /// yet, which are most of congestion avoidance. False: on_ack() has to be called.
  bool gather(uint64_t acked) {
    if (in_slow_start()) return false;
    return kind_ == CongestionControl::Cubic ? cubic_.gather(acked)
                                             : newreno_.gather(window_, acked);
  }
  /// New data was acknowledged that had been sent while cwnd was not the limit (RFC 9438 s.4.2).
  void on_unused_window(base::Now now) { cubic_.pause(now); }
  /// Updates DCTCP's estimate, with every ACK of new data on a connection that uses ECN.
  void count_marks(const AckSample& sample, bool ece) {
    if (kind_ == CongestionControl::Dctcp) dctcp_.on_ack(sample, ece, config_->dctcp_gain_shift);
  }
  /// A loss was found by SACK, RACK or duplicate ACKs: sets ssthresh and leaves cwnd to the
  /// recovery.
  void on_loss(uint64_t flight);
  /// ECN-Echo was received: sets ssthresh and cwnd. The caller calls this at most once per window
  /// of data.
  void on_ecn();
  /// The retransmission timer expired: sets cwnd to one segment. \param reduce no earlier time-out
  /// has retransmitted the segment (RFC 5681 s.3.1).
  void on_timeout(uint64_t flight, bool reduce);
  /// Nothing was sent for longer than the RTO (RFC 5681 s.4.1). \param since when the idle time
  /// began
  void on_idle(base::Now since);

  /// Saves the state before a reduction that may turn out to be spurious. \param flight octets in
  /// flight
  void save(uint64_t flight);
  /// Undoes a spurious reduction (RFC 4015 s.3.1 step 9, RFC 9438 s.4.9.2). \param flight octets in
  /// flight now. \param acked octets covered by the ACK that showed the reduction to be spurious.
  /// False: the window has outgrown the saved one meanwhile.
  bool undo(uint64_t flight, uint64_t acked);

  [[nodiscard]] uint32_t cwnd() const { return window_.cwnd; }
  [[nodiscard]] uint32_t ssthresh() const { return window_.ssthresh; }
  [[nodiscard]] uint32_t smss() const { return window_.smss; }
  [[nodiscard]] bool in_slow_start() const { return window_.cwnd < window_.ssthresh; }
  void set_cwnd(uint64_t cwnd) { window_.set_cwnd(cwnd); }
  [[nodiscard]] uint32_t initial_window() const;
  [[nodiscard]] const Cubic& cubic() const { return cubic_; }
  [[nodiscard]] const Dctcp& dctcp() const { return dctcp_; }
  /// \param snd_nxt SND.NXT, beyond which no round is measured
  void validate(uint64_t snd_nxt) const {
    window_.validate();
    newreno_.validate(window_);
    cubic_.validate();
    dctcp_.validate(snd_nxt);
    hystart_.validate(*config_, snd_nxt);
  }

 private:
  SlowStartEvent slow_start(const AckSample& sample);

  const Config* config_;
  CongestionControl kind_;
  bool paced_;
  bool after_timeout_ = false;  // a time-out has set cwnd, and ssthresh is not reached yet
  CongestionWindow window_;
  NewReno newreno_;
  Cubic cubic_;
  Dctcp dctcp_;
  HyStart hystart_;

  struct Saved {
    Cubic cubic;
    uint32_t cwnd = 0;
    uint32_t ssthresh = 0;
    uint32_t pipe_prev = 0;  // RFC 4015 s.3.2
    CongestionControl kind = CongestionControl::NewReno;
  };
  Saved saved_;
};

}  // namespace rnic::tcp
