#include "tcp/handshake.hpp"

#include "base/check.hpp"

namespace rnic::tcp {

bool Handshake::sent() {
  const bool first = !sent_;
  due_ = false;
  resent_ = resent_ || sent_;
  sent_ = true;
  return first;
}

uint32_t Handshake::time_out() {
  timed_out_ = true;
  due_ = true;
  return ++tries_;
}

void Handshake::assume_sent() {
  sent_ = true;
  timed_out_ = true;
}

void Handshake::validate() const {
  RNIC_CHECK(!resent_ || sent_);
  RNIC_CHECK(tries_ == 0 || timed_out_);
}

}  // namespace rnic::tcp
