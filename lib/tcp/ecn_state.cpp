#include "tcp/ecn_state.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

[[gnu::noinline, gnu::cold]] void EcnState::set_agreement(EcnAgreement next) {
  RNIC_CHECK(kEcnTransitions.allows(agreement_, next));
  agreement_ = next;
}

[[gnu::noinline, gnu::cold]] void EcnState::set_cwr(CwrState next) {
  if (next == cwr_) return;
  RNIC_CHECK(kCwrTransitions.allows(cwr_, next));
  cwr_ = next;
}

bool EcnState::fall_back() {
  if (agreement_ == EcnAgreement::Withdrawn || agreement_ == EcnAgreement::Declined) return false;
  set_agreement(agreement_ == EcnAgreement::Offered ? EcnAgreement::Withdrawn
                                                    : EcnAgreement::Declined);
  return true;
}

void EcnState::take_syn(bool setup, bool answer, bool willing) {
  if (agreement_ == EcnAgreement::Declined) return;
  const bool offered = agreement_ != EcnAgreement::None;
  if (!setup || !(answer ? offered : willing)) return set_agreement(EcnAgreement::Declined);
  if (on()) return;
  const bool asks = agreement_ != EcnAgreement::Withdrawn;
  set_agreement(asks ? EcnAgreement::Agreed : EcnAgreement::EchoOnly);
}

void EcnState::set_echo(bool echo, Prediction& prediction) {
  echo_ = echo;
  if (echo) prediction.end();
}

bool EcnState::arrived(bool ce, bool cwr, Prediction& prediction) {
  // CWR is processed before CE.
  const bool echoed = echo_;
  if (cwr) set_echo(false, prediction);
  if (ce) set_echo(true, prediction);
  // The sender is told of the first mark at once. After CWR the ACK is not delayed either: a sender
  // that has just reduced may have so small a window that a delayed ACK would stall it.
  return cwr || echo_ != echoed;
}

EcnState::Change EcnState::arrived_dctcp(bool ce, bool unacknowledged, base::Seq32 ack,
                                         Prediction& prediction) {
  if (ce == echo_) return Change::None;
  set_echo(ce, prediction);
  if (!unacknowledged) return Change::Changed;
  if (owed_count_ < kMaxOwed) {
    owed_[owed_count_++] = ack;
    return Change::Changed;
  }
  --owed_count_;
  return Change::Merged;
}

EcnState::Owed EcnState::take_owed() {
  const Owed oldest{owed_[0], echo_ != ((owed_count_ & 1) != 0)};  // the marks alternate
  std::copy(owed_.begin() + 1, owed_.begin() + owed_count_, owed_.begin());
  --owed_count_;
  return oldest;
}

bool EcnState::take_cwr() {
  if (cwr_ != CwrState::Owed) return false;
  set_cwr(CwrState::Said);
  return true;
}

void EcnState::note_reduction(uint64_t snd_nxt) {
  if (!on()) return;
  // CWR answers marks, and without ECT nothing that we send is marked.
  set_cwr(sends_ect() ? CwrState::Owed : CwrState::Said);
  reduced_until_ = snd_nxt;
}

uint32_t EcnState::hold() {
  const uint8_t before = holds_;
  if (holds_ < kMaxHolds) ++holds_;
  return before;
}

void EcnState::validate() const {
  RNIC_CHECK(owed_count_ <= kMaxOwed && holds_ <= kMaxHolds);
  RNIC_CHECK(on() || (!echo_ && cwr_ == CwrState::None && owed_count_ == 0));
}

}  // namespace rnic::tcp
