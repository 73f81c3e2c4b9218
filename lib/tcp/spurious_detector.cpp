#include "tcp/spurious_detector.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

[[gnu::noinline, gnu::cold]] void SpuriousDetector::set_frto(FrtoStep next) {
  RNIC_CHECK(kFrtoTransitions.allows(frto_, next));
  frto_ = next;
}

[[gnu::noinline, gnu::cold]] void SpuriousDetector::set_undo(UndoState next) {
  RNIC_CHECK(kUndoTransitions.allows(undo_, next));
  undo_ = next;
}

void SpuriousDetector::watch(bool timeout, base::Now now) {
  cc_.save(tcb_.flight());
  rto_.save();
  undo_marker_ = tcb_.snd_una;
  undo_octets_ = 0;
  retransmit_ts_ = tcb_.timestamp(now);
  set_undo(tcb_.ts_ok ? UndoState::AwaitEcho : UndoState::Saved);
  if (timeout && config_.frto) set_frto(FrtoStep::AwaitFirst);
}

void SpuriousDetector::watch_on() {
  stop_awaiting_echo();
  end_frto();
  undo_marker_ = tcb_.snd_una;
}

void SpuriousDetector::undone(bool timeout, Prediction& prediction) {
  set_undo(UndoState::Nothing);
  end_frto();
  if (!timeout) return;
  adapt_rto_ = true;
  prediction.end();
}

SpuriousDetector::Verdict SpuriousDetector::detect(AckResult& result, uint64_t point, uint64_t fack,
                                                   bool new_data) {
  if (result.acked != 0 && undo_ == UndoState::AwaitEcho) {
    // RFC 3522 s.3.2 steps 4 and 5: the retransmission was spurious if the first new ACK echoes a
    // timestamp from before it.
    set_undo(UndoState::Saved);
    if (result.echo && static_cast<int32_t>(*result.echo - retransmit_ts_) < 0) {
      return Verdict::Eifel;
    }
  }
  const uint64_t smss = cc_.smss();
  if (frto_ == FrtoStep::AwaitFirst) {  // RFC 5682 s.3.1 step 2
    if (result.acked == 0) {
      if (!tcb_.sack_ok && result.duplicate) end_frto();  // s.2.1 step 2a
      return Verdict::None;
    }
    set_frto(tcb_.snd_una < point && new_data ? FrtoStep::SendNew : FrtoStep::Off);
    frto_new_ = kFrtoSegments;
    cc_.set_cwnd(2 * smss);
    result.keep_window = true;
    return Verdict::None;
  }
  if (!frto()) return Verdict::None;
  // Step 3: only the ACK of data that was sent before the time-out and not retransmitted shows that
  // it was spurious.
  if (result.acked == 0 && !result.duplicate && !result.new_sack) return Verdict::None;
  const bool beyond = std::max(tcb_.snd_una, fack) > point;
  if (!beyond && (result.acked != 0 || result.new_sack)) return Verdict::Frto;
  end_frto();
  // Without SACK a duplicate ACK does not reduce pipe here: cwnd was two segments, and both are in
  // flight.
  cc_.set_cwnd(tcb_.sack_ok ? std::min<uint64_t>(cc_.cwnd(), 3 * smss) : 3 * smss);
  result.keep_window = true;
  return Verdict::None;
}

bool SpuriousDetector::dsack(uint64_t octets) {
  if (undo_ == UndoState::Nothing || undo_octets_ <= 0) return false;
  undo_octets_ -= static_cast<int64_t>(octets);
  return undo_octets_ <= 0;
}

bool SpuriousDetector::take_adaptation(uint64_t point) {
  if (!adapt_rto_ || tcb_.snd_una <= point) return false;
  adapt_rto_ = false;
  return true;
}

void SpuriousDetector::validate() const {
  RNIC_CHECK(undo_marker_ <= tcb_.snd_una);
  RNIC_CHECK(undo_ != UndoState::AwaitEcho || tcb_.ts_ok);
  RNIC_CHECK(!frto() || (config_.frto && undo_ != UndoState::Nothing));
  RNIC_CHECK(!frto_sends() || (frto_new_ != 0 && frto_new_ <= kFrtoSegments));
}

}  // namespace rnic::tcp
