#include "ddp/untagged.hpp"

namespace rnic::ddp {

Fault UntaggedQueue::check(uint32_t msn) const {
  const uint32_t ahead = msn - deliver_msn_;
  if (ahead < buffers_) return kNoFault;
  return ahead == buffers_ ? kUntaggedNoBuffer : kUntaggedMsnRange;
}

void UntaggedQueue::reached(const wire::DdpUntaggedHeader& header, uint32_t payload, uint64_t key) {
  coverage_.add(header.mo, payload, key);
  if (!begun_) {
    begun_ = true;
    rsvd_ulp_ = header.rsvd_ulp;
    rsvd_ulp_tail_ = header.rsvd_ulp_tail;
  } else if (rsvd_ulp_ != header.rsvd_ulp || rsvd_ulp_tail_ != header.rsvd_ulp_tail) {
    mixed_ = true;
  }
}

Fault check_offset(uint32_t mo, uint32_t payload, uint64_t buffer) {
  if (mo > buffer) return kUntaggedMo;
  if (payload > buffer - mo) return kUntaggedTooLong;
  return kNoFault;
}

}  // namespace rnic::ddp
