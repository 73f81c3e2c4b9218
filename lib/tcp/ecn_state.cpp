#include "tcp/ecn_state.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

bool EcnState::fall_back() {
  const bool first = !fell_back_;
  fell_back_ = true;
  return first;
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
  const Owed oldest{owed_[0], echo_ != ((owed_count_ & 1) != 0)};  // they alternate
  std::copy(owed_.begin() + 1, owed_.begin() + owed_count_, owed_.begin());
  --owed_count_;
  return oldest;
}

bool EcnState::take_cwr() {
  const bool due = cwr_due_;
  cwr_due_ = false;
  return due;
}

void EcnState::note_reduction(uint64_t snd_nxt) {
  if (!on_) return;
  // CWR answers marks, and without ECT nothing that we send is marked.
  cwr_due_ = sends_ect();
  reduced_ = true;
  reduced_until_ = snd_nxt;
}

uint32_t EcnState::hold() {
  const uint8_t before = holds_;
  if (holds_ < kMaxHolds) ++holds_;
  return before;
}

void EcnState::validate() const {
  RNIC_CHECK(owed_count_ <= kMaxOwed && holds_ <= kMaxHolds);
  RNIC_CHECK(on_ || (!echo_ && !cwr_due_ && !reduced_ && owed_count_ == 0));
}

}  // namespace rnic::tcp
