#include "tcp/spurious_detector.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

void SpuriousDetector::watch(bool timeout, base::Now now) {
  cc_.save(tcb_.flight());
  rto_.save();
  may_undo_ = true;
  undo_marker_ = tcb_.snd_una;
  undo_octets_ = 0;
  retransmit_ts_ = tcb_.timestamp(now);
  eifel_armed_ = tcb_.ts_ok;
  frto_ = timeout && config_.frto ? Frto::AwaitAck : Frto::Off;
}

void SpuriousDetector::watch_on() {
  eifel_armed_ = false;
  frto_ = Frto::Off;
  undo_marker_ = tcb_.snd_una;
}

void SpuriousDetector::undone(bool timeout, Prediction& prediction) {
  may_undo_ = false;
  eifel_armed_ = false;
  frto_ = Frto::Off;
  if (!timeout) return;
  adapt_rto_ = true;
  prediction.end();
}

SpuriousDetector::Verdict SpuriousDetector::detect(AckResult& result, uint64_t point, uint64_t fack,
                                                   bool new_data) {
  if (result.acked != 0 && eifel_armed_) {
    // RFC 3522 s.3.2 steps 4 and 5: the first new ACK echoes a time before the retransmission.
    eifel_armed_ = false;
    if (result.echo && may_undo_ && static_cast<int32_t>(*result.echo - retransmit_ts_) < 0) {
      return Verdict::Eifel;
    }
  }
  const uint64_t smss = cc_.smss();
  if (frto_ == Frto::AwaitAck) {  // RFC 5682 s.3.1 step 2
    if (result.acked == 0) {
      if (!tcb_.sack_ok && result.duplicate) frto_ = Frto::Off;  // s.2.1 step 2a
      return Verdict::None;
    }
    frto_ = tcb_.snd_una < point && new_data ? Frto::NewData : Frto::Off;
    frto_new_ = 2;
    cc_.set_cwnd(2 * smss);
    result.keep_window = true;
    return Verdict::None;
  }
  if (frto_ != Frto::NewData) return Verdict::None;
  // Step 3: only the ACK of data that was sent before the time-out and not retransmitted shows that
  // it was spurious.
  if (result.acked == 0 && !result.duplicate && !result.new_sack) return Verdict::None;
  const bool beyond = std::max(tcb_.snd_una, fack) > point;
  if (!beyond && (result.acked != 0 || result.new_sack) && may_undo_) return Verdict::Frto;
  frto_ = Frto::Off;
  // Without SACK a duplicate ACK does not reduce pipe here: cwnd was two segments, and both are in
  // flight.
  cc_.set_cwnd(tcb_.sack_ok ? std::min<uint64_t>(cc_.cwnd(), 3 * smss) : 3 * smss);
  result.keep_window = true;
  return Verdict::None;
}

bool SpuriousDetector::dsack(uint64_t octets) {
  if (!may_undo_ || undo_octets_ <= 0) return false;
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
  RNIC_CHECK(!eifel_armed_ || (may_undo_ && tcb_.ts_ok));
  RNIC_CHECK(frto_ == Frto::Off || (config_.frto && frto_new_ <= 2));
}

}  // namespace rnic::tcp
