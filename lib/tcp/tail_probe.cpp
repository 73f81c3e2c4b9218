#include "tcp/tail_probe.hpp"

#include "base/check.hpp"

namespace rnic::tcp {

[[gnu::noinline, gnu::cold]] void TailProbe::set_state(ProbeState next) {
  RNIC_CHECK(kProbeTransitions.allows(state_, next));
  state_ = next;
}

[[gnu::noinline, gnu::cold]] void TailProbe::set_turn(ProbeTurn next) {
  RNIC_CHECK(kProbeTurnTransitions.allows(turn_, next));
  turn_ = next;
}

void TailProbe::arm(RecoveryPhase phase, uint32_t emss, base::Now now, base::Now time_out) {
  // The last retransmissions of a recovery can be lost, too, and no later segment reveals that. In
  // a recovery the earliest segment is probed (as in RFC 9002), which is sooner than the RTO. RFC
  // 8985 s.7.2 arms no timer there (SHOULD): Config::recovery_probe.
  stop();
  if (!wanted()) return;
  if (count_ > kMaxProbes) return;
  if (phase == RecoveryPhase::Open) {
    if (board_.sacked_octets() != 0) return;  // RACK's reordering timer runs
    if (!idle()) return;                      // s.7.3: after a probe the sender waits for the RTO
  } else if (follows_timeout(phase) || !config_.recovery_probe) {
    return;
  }
  base::Duration pto = rto_.probe_timeout();
  if (rto_.measured() && board_.tcb().flight() <= emss) pto += config_.tlp_max_ack_delay;
  pto *= int64_t{1} << count_;  // in a recovery a lost probe is repeated with back-off
  if (now + pto < time_out) {
    timers_.set(Timer::Probe, now + pto);
  } else if (phase == RecoveryPhase::Open) {
    timers_.set(Timer::Probe, time_out);  // the probe takes the place of the time-out
  }
}

void TailProbe::fired() {
  stop();
  if (!due()) set_turn(unmeasured() ? ProbeTurn::DueAgain : ProbeTurn::Due);
}

void TailProbe::drop() {
  if (due()) set_turn(unmeasured() ? ProbeTurn::Unmeasured : ProbeTurn::Open);
}

void TailProbe::sent(RecoveryPhase phase, bool again, uint32_t emss, base::Now now,
                     base::Now time_out, Prediction& prediction) {
  set_turn(ProbeTurn::Unmeasured);
  set_state(again && phase == RecoveryPhase::Open ? ProbeState::Repeated : ProbeState::Plain);
  prediction.end();
  end_ = board_.tcb().snd_nxt;
  ++count_;
  arm(phase, emss, now, time_out);
}

bool TailProbe::acked(const AckResult& result, RecoveryPhase phase) {
  const uint64_t ack = board_.tcb().snd_una;
  if (result.acked != 0 || result.new_sack) count_ = 0;
  if (result.rtt >= base::Duration(0) && unmeasured()) {
    set_turn(due() ? ProbeTurn::Due : ProbeTurn::Open);
  }
  if (!outstanding()) return false;
  if (phase == RecoveryPhase::Recovery && result.acked != 0) {
    forget();  // the recovery goes on and has reduced cwnd already
    return false;
  }
  if (ack < end_) return false;
  const bool needless = state_ == ProbeState::Plain || result.dsack;
  const bool repaired = !needless && ack > end_;  // a loss that was not detected otherwise
  const bool both_arrived = result.duplicate && !result.new_sack;
  if (!needless && !repaired && !both_arrived) return false;
  forget();
  return repaired && phase == RecoveryPhase::Open;
}

void TailProbe::recovers() {
  forget();
  stop();
}

void TailProbe::timed_out() {
  stop();
  forget();
  drop();
  count_ = 0;
}

void TailProbe::validate() const {
  RNIC_CHECK(end_ <= board_.tcb().snd_nxt);
  RNIC_CHECK(unmeasured() || count_ == 0);
  RNIC_CHECK(!due() || state_ != ProbeState::Repeated);
  RNIC_CHECK(!timers_.runs(Timer::Probe) || board_.tcb().flight() != 0);
  RNIC_CHECK(!timers_.runs(Timer::Probe) || wanted());
}

}  // namespace rnic::tcp
