/// \file
/// CUBIC (RFC 9438): the window as a cubic function of the time since the last reduction.
#pragma once

#include "tcp/congestion_window.hpp"
#include "tcp/cubic_stage.hpp"

namespace rnic::tcp {

/// The variables of RFC 9438 section 4.1.2, with windows in segments and times in seconds. Section
/// 4.9.2 saves and restores a copy of the whole object.
class Cubic {
 public:
  /// An ACK of new data came in congestion avoidance while cwnd was the limit. cwnd is updated
  /// kUpdates times a round trip, by the sum of the ACKs since the last update.
  void on_ack(CongestionWindow& window, const AckSample& sample) {
    acked_ += static_cast<uint32_t>(sample.acked);
    if (acked_ >= due_) update(window, sample);
  }
  /// Replaces on_ack() until the next update of cwnd is due. False: on_ack() has to be called.
  bool gather(uint64_t acked) {
    if (acked_ + acked >= due_) return false;
    acked_ += static_cast<uint32_t>(acked);
    return true;
  }
  /// Responds to congestion (RFC 9438 s.4.6, s.4.7): sets ssthresh. \param ecn the signal is
  /// ECN-Echo, which sets cwnd, too, down to one segment; after a loss the recovery sets cwnd.
  void on_congestion(CongestionWindow& window, bool ecn, bool fast_convergence);
  /// A time-out (RFC 9438 s.4.8); called after on_congestion(). The next stage starts with K = 0 at
  /// the window that it finds.
  void on_timeout() {
    w_max_ = 0;
    end_stage();
  }
  /// Stops t until cwnd is updated again, because the application, not cwnd, was the limit (RFC
  /// 9438 s.4.2).
  void pause(base::Now now) {
    if (stage_ != CubicStage::Running) return;
    set_stage(CubicStage::Paused);
    paused_at_ = now;
    due_ = 0;
  }
  /// The next ACK in congestion avoidance begins a stage.
  void end_stage() {
    if (stage_ != CubicStage::None) set_stage(CubicStage::None);
    acked_ = due_ = 0;
  }

  [[nodiscard]] double w_max() const { return w_max_; }
  [[nodiscard]] double w_est() const { return w_est_; }
  [[nodiscard]] double k() const { return k_; }
  [[nodiscard]] double cwnd_prior() const { return cwnd_prior_; }
  [[nodiscard]] CubicStage stage() const { return stage_; }
  void validate() const;

 private:
  static constexpr uint64_t kUpdates = 4;

  /// The one place that sets the stage.
  void set_stage(CubicStage next);
  void update(CongestionWindow& window, const AckSample& sample);
  void begin_stage(double cwnd, base::Now now);

  double w_max_ = 0;  // 0: undefined
  double w_est_ = 0;
  double k_ = 0;
  double cwnd_prior_ = 0;  // 0: undefined
  double credit_ = 0;      // the fraction of an octet by which cwnd still has to grow
  uint32_t acked_ = 0;     // octets since the last update(), never more than a window
  uint32_t due_ = 0;       // octets that make the next update()
  base::Now t_epoch_{};
  base::Now paused_at_{};
  CubicStage stage_ = CubicStage::None;
};

}  // namespace rnic::tcp
