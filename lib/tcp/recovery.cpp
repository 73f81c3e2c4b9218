#include "tcp/recovery.hpp"

namespace rnic::tcp {

void Recovery::enter() {
  phase_ = RecoveryPhase::Recovery;
  point_ = board_.tcb().snd_nxt;
  prr_delivered_ = 0;
  prr_out_ = 0;
  recover_fs_ = std::max<uint64_t>(board_.tcb().flight(), 1);
  forced_ = true;
}

void Recovery::time_out() {
  phase_ = RecoveryPhase::Loss;
  point_ = board_.tcb().snd_nxt;
  forced_ = alone_ = true;  // the earliest segment, not several
}

void Recovery::end() {
  phase_ = RecoveryPhase::Open;
  forced_ = alone_ = false;
}

void Recovery::leave() {
  if (phase_ == RecoveryPhase::Recovery) cc_.set_cwnd(cc_.ssthresh());
  end();
}

void Recovery::proportional_rate(uint64_t delivered, uint32_t smss) {
  // With the slow start reduction bound.
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

bool Recovery::detect_by_duplicates(AckYield& yield, uint32_t smss) {
  if (yield.acked != 0) {
    const bool partial = phase_ == RecoveryPhase::Recovery && board_.tcb().snd_una < point_;
    // RFC 6937 s.3: counted as duplicates.
    yield.delivered -= std::min(yield.delivered, board_.reno_acked(yield.acked, partial, smss));
    if (phase_ == RecoveryPhase::Loss && board_.tcb().snd_una < board_.lost_again_to()) {
      return front_lost_again();
    }
    if (!partial || board_.empty() || board_.front().is(record_flag::kLost)) return false;
    forced_ = true;  // RFC 6582 s.3.2 step 3, whatever pipe says
    board_.lose(board_.first());
    return true;
  }
  if (!yield.duplicate) return false;
  // RFC 5681 s.3.1: behind a time-out only new ACKs let anything out.
  yield.delivered += board_.reno_duplicate(phase_ != RecoveryPhase::Loss, smss);
  if (board_.duplicate_acks() != kDupThresh) return false;
  if (phase_ == RecoveryPhase::Loss) return lost_again(smss);
  if (phase_ != RecoveryPhase::Open) return false;
  // RFC 6582 s.3.2 step 2: the ACK covers more than `recover`; the duplicates may be of what a
  // recovery sent again.
  if (point_ != 0 && board_.tcb().snd_una <= point_) return false;
  board_.lose_first_segment();
  return true;
}

/// RFC 6582 s.4.1. Duplicates of what a time-out sent again for nothing follow an ACK that covered
/// much, since most had arrived before; where it covered little, a retransmission was lost.
bool Recovery::lost_again(uint32_t smss) {
  const uint64_t cwnd = cc_.cwnd();
  if (cwnd <= smss || board_.reno_advance() > 4 * smss || board_.empty()) return false;
  if (!board_.front().is(record_flag::kRetransmitted)) return false;  // its turn comes anyway
  cc_.on_loss(cwnd);
  cc_.set_cwnd(std::min<uint64_t>(cwnd, cc_.ssthresh()));  // that is two segments at least
  board_.note_lost_again();
  return front_lost_again();
}

/// RFC 6582 s.3.2 step 3, behind a time-out, too: a partial ACK tells of the next one that was lost
/// again. Where nothing measures a round trip another time-out would be a minute away.
bool Recovery::front_lost_again() {
  if (board_.empty() || !board_.front().is(record_flag::kRetransmitted)) return false;
  forced_ = true;
  board_.lose(board_.first());
  return true;
}

void Recovery::validate() const {
  RNIC_CHECK(point_ <= board_.tcb().snd_nxt);
  RNIC_CHECK(!open() || (!forced_ && !alone_));
  RNIC_CHECK(!alone_ || phase_ == RecoveryPhase::Loss);
}

}  // namespace rnic::tcp
