#include <cmath>

#include "tcp/congestion.hpp"

namespace rnic::tcp {

namespace {

constexpr double kC = 0.4;
constexpr double kBeta = 0.7;
constexpr double kAlpha = 3.0 * (1 - kBeta) / (1 + kBeta);  // RFC 9438 s.4.3
// A pause this long means that the application, not cwnd, was the limit: t does not run meanwhile.
constexpr base::Duration kApplicationPause = std::chrono::milliseconds(200);

double seconds(base::Duration d) { return static_cast<double>(d.count()) * 1e-9; }

}  // namespace

void Congestion::cubic_reduce() {
  const double segments = static_cast<double>(cwnd_) / smss_;
  // s.4.7, fast convergence: give way when the saturation point is going down.
  w_max_ = segments < w_max_ ? segments * (1 + kBeta) / 2 : segments;
  ssthresh_ = static_cast<uint32_t>(std::max(cwnd_ * kBeta, 2.0 * smss_));  // s.4.6
  epoch_running_ = false;
}

void Congestion::cubic_avoidance(uint32_t acked, base::Duration srtt, base::Now now) {
  const double cwnd = static_cast<double>(cwnd_) / smss_;
  if (!epoch_running_) {
    epoch_running_ = true;
    epoch_ = now;
    cubic_credit_ = 0;
    w_est_ = cwnd;
    if (w_max_ < cwnd) w_max_ = cwnd;
    k_ = std::cbrt((w_max_ - cwnd) / kC);  // s.4.2
  } else if (now - last_ack_ > kApplicationPause + srtt) {
    epoch_ += now - last_ack_;  // s.4.2: t excludes application-limited time
  }
  last_ack_ = now;
  const double t = seconds(now - epoch_ + srtt);
  const double cubic = kC * (t - k_) * (t - k_) * (t - k_) + w_max_;
  const double target = std::clamp(cubic, cwnd, 1.5 * cwnd);
  // s.4.3: the window a Reno flow would have; alpha is 1 once it passed the old maximum.
  const double segments_acked = static_cast<double>(acked) / smss_;
  w_est_ += (w_est_ >= w_max_ ? 1.0 : kAlpha) * segments_acked / cwnd;
  double grown = cwnd;
  if (cubic < w_est_) {
    grown = std::max(cwnd, w_est_);
  } else {
    grown = cwnd + (target - cwnd) / cwnd * segments_acked;  // s.4.4, s.4.5
  }
  cubic_credit_ += (grown - cwnd) * smss_;
  const double whole = std::floor(cubic_credit_);
  cubic_credit_ -= whole;
  set_cwnd(cwnd_ + static_cast<uint64_t>(whole));
}

}  // namespace rnic::tcp
