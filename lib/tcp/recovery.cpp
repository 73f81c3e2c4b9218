#include "tcp/recovery.hpp"

#include "base/check.hpp"

namespace rnic::tcp {

[[gnu::noinline, gnu::cold]] void Recovery::set_phase(RecoveryPhase next) {
  RNIC_CHECK(kRecoveryTransitions.allows(phase_, next));
  phase_ = next;
  if (next != RecoveryPhase::Open) board_.end_prediction();
}

void Recovery::enter() {
  set_phase(RecoveryPhase::Recovery);
  point_ = board_.tcb().snd_nxt;
  prr_delivered_ = 0;
  prr_out_ = 0;
  recover_fs_ = std::max<uint64_t>(board_.tcb().flight(), 1);
  forced_ = true;
}

void Recovery::time_out() {
  set_phase(RecoveryPhase::TimedOut);
  point_ = board_.tcb().snd_nxt;
  forced_ = true;  // RFC 6298 s.5.4
}

void Recovery::end() {
  set_phase(RecoveryPhase::Open);
  forced_ = false;
}

void Recovery::leave() {
  if (phase_ == RecoveryPhase::Recovery) cc_.set_cwnd(cc_.ssthresh());
  end();
}

void Recovery::proportional_rate(uint64_t delivered, uint32_t smss) {
  // Where pipe is not above ssthresh, the slow start reduction bound applies.
  const uint64_t ssthresh = cc_.ssthresh();
  const uint64_t pipe = board_.pipe();
  prr_delivered_ += delivered;
  uint64_t sndcnt = 0;
  if (pipe > ssthresh) {
    const uint64_t due = (prr_delivered_ * ssthresh + recover_fs_ - 1) / recover_fs_;
    sndcnt = due > prr_out_ ? due - prr_out_ : 0;
  } else {
    const uint64_t owed = prr_delivered_ > prr_out_ ? prr_delivered_ - prr_out_ : 0;
    sndcnt = std::min(ssthresh - pipe, std::max(owed, delivered) + smss);
  }
  if (forced_) sndcnt = std::max<uint64_t>(sndcnt, smss);
  cc_.set_cwnd(pipe + sndcnt);
}

bool Recovery::detect_by_duplicates(AckResult& result, uint32_t smss) {
  if (result.acked != 0) {
    const bool partial = phase_ == RecoveryPhase::Recovery && board_.tcb().snd_una < point_;
    // RFC 6937 s.3: octets that duplicate ACKs stood for were counted as delivered before.
    result.delivered -= std::min(result.delivered, board_.reno_acked(result.acked, partial, smss));
    if (follows_timeout(phase_) && board_.tcb().snd_una < board_.lost_again_to()) {
      return front_lost_again();
    }
    if (!partial || board_.empty() || board_.front().is(record_flag::kLost)) return false;
    forced_ = true;  // RFC 6582 s.3.2 step 3: the segment is retransmitted whatever pipe is
    board_.lose(board_.first());
    return true;
  }
  if (!result.duplicate) return false;
  // RFC 5681 s.3.1: after a time-out only new ACKs allow data to be sent.
  result.delivered += board_.reno_duplicate(!follows_timeout(phase_), smss);
  if (board_.duplicate_acks() != kDupThresh) return false;
  if (follows_timeout(phase_)) return lost_again(smss);
  if (phase_ != RecoveryPhase::Open) return false;
  // RFC 6582 s.3.2 step 2: the ACK has to cover more than `recover`; otherwise retransmissions may
  // have caused the duplicates.
  if (point_ != 0 && board_.tcb().snd_una <= point_) return false;
  board_.lose_first_segment();
  return true;
}

/// RFC 6582 s.4.1. If duplicates come from unnecessary retransmissions of a time-out, the ACK
/// before them covered much, since most data had arrived before. If it covered little, a
/// retransmission was lost.
bool Recovery::lost_again(uint32_t smss) {
  const uint64_t cwnd = cc_.cwnd();
  if (cwnd <= smss || board_.reno_advance() > 4 * smss || board_.empty()) return false;
  if (!board_.front().is(record_flag::kRetransmitted))
    return false;  // it will be retransmitted anyway
  cc_.on_loss(cwnd);
  cc_.set_cwnd(std::min<uint64_t>(cwnd, cc_.ssthresh()));  // ssthresh is at least two segments
  board_.note_lost_again();
  return front_lost_again();
}

/// RFC 6582 s.3.2 step 3, applied after a time-out, too: a partial ACK shows the next segment that
/// was lost again. Without a round-trip sample the RTO stays backed off, and another time-out may
/// take a minute.
bool Recovery::front_lost_again() {
  if (board_.empty() || !board_.front().is(record_flag::kRetransmitted)) return false;
  forced_ = true;
  board_.lose(board_.first());
  return true;
}

void Recovery::validate() const {
  RNIC_CHECK(point_ <= board_.tcb().snd_nxt);
  RNIC_CHECK(!open() || !forced_);
}

}  // namespace rnic::tcp
