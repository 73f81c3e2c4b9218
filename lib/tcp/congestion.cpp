#include "tcp/congestion.hpp"

namespace rnic::tcp {

void Congestion::select(CongestionControl kind) {
  if (kind == kind_) return;
  kind_ = kind;
  newreno_ = {};
  cubic_ = {};
  dctcp_ = {};
  hystart_ = {};
}

uint32_t Congestion::initial_window() const {
  const uint64_t smss = window_.smss;
  const uint64_t segments = config_->initial_window_segments;
  if (segments == 0) {  // the table of RFC 5681 s.3.1
    return static_cast<uint32_t>(smss * (smss > 2190 ? 2 : smss > 1095 ? 3 : 4));
  }
  // RFC 6928 s.2: min(10 * MSS, max(2 * MSS, 14600)), for 10
  constexpr uint64_t kEthernetMss = 1460;
  return static_cast<uint32_t>(
      std::min(segments * smss, std::max(2 * smss, segments * kEthernetMss)));
}

void Congestion::start(uint32_t syn_resent) {
  // RFC 5681 s.3.1 with RFC 6928 s.2: a SYN lost more than once is taken for congestion.
  window_.set_cwnd(syn_resent > 1 ? window_.smss : initial_window());
}

SlowStartEvent Congestion::slow_start(const AckSample& sample) {
  // RFC 5681 (2) with the limit L of RFC 3465 s.2.2 and RFC 9406 s.4.2: an ACK that covers a burst
  // counts as several.
  uint64_t limit =
      paced_ ? UINT64_MAX : uint64_t{std::max(config_->growth_limit_segments, 1u)} * window_.smss;
  // RFC 3465 s.2.3: after a time-out an ACK of many octets covers octets that had arrived before
  // the time-out; it does not show how much the path carries now.
  if (after_timeout_) limit = window_.smss;
  uint64_t step = std::min(sample.acked, limit);
  const bool first = window_.ssthresh == UINT32_MAX;
  if (!first || !config_->hystart || kind_ != CongestionControl::Cubic) {
    window_.set_cwnd(std::min<uint64_t>(window_.cwnd + step, window_.ssthresh));
    after_timeout_ = after_timeout_ && in_slow_start();
    return SlowStartEvent::None;
  }
  if (hystart_.conservative()) step /= std::max(config_->hystart_css_growth_divisor, 2u);
  window_.set_cwnd(window_.cwnd + step);
  const SlowStartEvent event = hystart_.on_ack(sample, *config_);
  if (event == SlowStartEvent::Left) window_.set_ssthresh(window_.cwnd);
  return event;
}

void Congestion::on_loss(uint64_t flight) {
  after_timeout_ = false;
  if (kind_ == CongestionControl::Cubic) {
    cubic_.on_congestion(window_, false, config_->cubic_fast_convergence);
  } else {
    newreno_.on_loss(window_, flight);  // DCTCP, too: RFC 8257 s.3.5
  }
}

void Congestion::on_ecn() {
  switch (kind_) {
    case CongestionControl::Cubic:
      cubic_.on_congestion(window_, true, config_->cubic_fast_convergence);
      break;
    case CongestionControl::Dctcp: dctcp_.reduce(window_); break;
    case CongestionControl::NewReno: newreno_.on_ecn(window_); break;
  }
}

void Congestion::on_timeout(uint64_t flight, bool reduce) {
  if (reduce) on_loss(flight);
  window_.set_cwnd(window_.smss);
  after_timeout_ = true;
  newreno_.reset();
  cubic_.on_timeout();
}

void Congestion::on_idle(base::Now since) {
  // RFC 5681 s.4.1; ssthresh keeps what was learnt about the path, as in RFC 7661 s.4.4.
  if (window_.ssthresh != UINT32_MAX) {
    window_.set_ssthresh(std::max<uint64_t>(window_.ssthresh, uint64_t{window_.cwnd} / 4 * 3));
  }
  window_.set_cwnd(std::min(window_.cwnd, initial_window()));
  cubic_.pause(since);
}

void Congestion::save(uint64_t flight) {
  saved_.cubic = cubic_;
  saved_.kind = kind_;
  saved_.cwnd = window_.cwnd;
  saved_.ssthresh = window_.ssthresh;
  saved_.pipe_prev = static_cast<uint32_t>(std::min<uint64_t>(flight, UINT32_MAX));
}

bool Congestion::undo(uint64_t flight, uint64_t acked) {
  after_timeout_ = false;
  if (window_.cwnd >= saved_.cwnd) return false;
  // RFC 4015 s.3.4: the burst is limited to an initial window; slow start fills up the rest.
  const uint64_t cwnd = flight + std::min<uint64_t>(acked, initial_window());
  window_.set_cwnd(std::clamp<uint64_t>(cwnd, window_.cwnd, saved_.cwnd));
  window_.ssthresh = std::max(saved_.ssthresh, saved_.pipe_prev);
  if (saved_.kind == kind_) cubic_ = saved_.cubic;
  return true;
}

}  // namespace rnic::tcp
