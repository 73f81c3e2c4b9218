#include "device/doorbell_turn.hpp"

namespace rnic::device {

uint32_t DoorbellTurn::serve() {
  doorbells_.answer([this](uint32_t number) {
    if (QueuePair* qp = resources_.qp_of_doorbell(number); qp != nullptr) {
      qp->serve(now_);
      ++served_;
    } else if (own_ != nullptr && own_->serve_doorbell(number, now_)) {
      ++served_;
    }
  });
  // A post to a shared receive queue does not ring the doorbells of its queue pairs.
  if (receive_waits_.any()) served_ += resources_.resume_waiting(now_);
  return served_;
}

}  // namespace rnic::device
