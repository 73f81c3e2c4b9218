#include "tcp/cubic.hpp"

#include <cmath>

namespace rnic::tcp {

namespace {

constexpr double kC = 0.4;                                  // RFC 9438 s.4.1.1
constexpr double kBeta = 0.7;                               // s.4.6
constexpr double kAlpha = 3.0 * (1 - kBeta) / (1 + kBeta);  // s.4.3

double in_seconds(base::Duration d) { return static_cast<double>(d.count()) * 1e-9; }

}  // namespace

[[gnu::noinline, gnu::cold]] void Cubic::set_stage(CubicStage next) {
  RNIC_CHECK(kCubicTransitions.allows(stage_, next));
  stage_ = next;
}

void Cubic::begin_stage(double cwnd, base::Now now) {
  set_stage(CubicStage::Running);
  t_epoch_ = now;
  credit_ = 0;
  w_est_ = cwnd;  // s.4.3
  // W_max is undefined after a time-out (s.4.8) and after a slow start that ended without loss
  // (s.4.10), and slow start may have grown cwnd beyond it. In these cases K is 0 and W_max is the
  // window at which the stage starts.
  if (w_max_ < cwnd) w_max_ = cwnd;
  if (cwnd_prior_ == 0) cwnd_prior_ = cwnd;
  k_ = std::cbrt((w_max_ - cwnd) / kC);  // s.4.2
}

void Cubic::update(CongestionWindow& window, const AckSample& sample) {
  const double cwnd = static_cast<double>(window.cwnd) / window.smss;
  if (stage_ == CubicStage::None) begin_stage(cwnd, sample.now);
  if (stage_ == CubicStage::Paused) {  // s.4.2: t excludes the time in which cwnd was unused
    set_stage(CubicStage::Running);
    t_epoch_ += sample.now - paused_at_;
  }
  const auto w_cubic = [this](double t) { return kC * (t - k_) * (t - k_) * (t - k_) + w_max_; };
  const double t = in_seconds(sample.now - t_epoch_);
  const double segments_acked = static_cast<double>(acked_) / window.smss;
  // s.4.3: the window of a Reno flow; it grows like Reno's once it has passed the old maximum.
  w_est_ += (w_est_ >= cwnd_prior_ ? 1.0 : kAlpha) * segments_acked / cwnd;
  double grown = std::max(cwnd, w_est_);
  if (w_cubic(t) >= w_est_) {  // s.4.4, s.4.5: approach the window due one round trip from now
    const double target = std::clamp(w_cubic(t + in_seconds(sample.srtt)), cwnd, 1.5 * cwnd);
    grown = std::min(target, cwnd + (target - cwnd) / cwnd * segments_acked);
  }
  credit_ += (grown - cwnd) * window.smss;
  const double whole = std::floor(credit_);
  credit_ -= whole;
  window.set_cwnd(window.cwnd + static_cast<uint64_t>(whole));
  acked_ = 0;
  due_ = window.cwnd / kUpdates;
}

void Cubic::on_congestion(CongestionWindow& window, bool ecn, bool fast_convergence) {
  const double cwnd = static_cast<double>(window.cwnd) / window.smss;
  // s.4.7: a flow releases more bandwidth when its saturation point goes down.
  w_max_ = fast_convergence && cwnd < w_max_ ? cwnd * (1 + kBeta) / 2 : cwnd;
  cwnd_prior_ = cwnd;
  // s.4.6 with cwnd in place of flight_size: cwnd grows only while it is used in full.
  const auto reduced = static_cast<uint64_t>(window.cwnd * kBeta);
  window.set_ssthresh(reduced);
  if (ecn) window.set_cwnd(reduced);
  end_stage();
}

void Cubic::validate() const {
  RNIC_CHECK(due_ == 0 || acked_ < due_);
  RNIC_CHECK(credit_ >= 0 && credit_ < 1);
  RNIC_CHECK(w_max_ >= 0 && cwnd_prior_ >= 0 && k_ >= 0);
  if (stage_ == CubicStage::None) {
    RNIC_CHECK(acked_ == 0 && due_ == 0);
    return;
  }
  // Every stage has a saturation point, and the window of its Reno flow starts at cwnd.
  RNIC_CHECK(w_max_ > 0 && cwnd_prior_ > 0 && w_est_ > 0);
  RNIC_CHECK(stage_ == CubicStage::Running || due_ == 0);
}

}  // namespace rnic::tcp
