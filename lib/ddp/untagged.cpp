#include "ddp/untagged.hpp"

namespace rnic::ddp {

Fault UntaggedQueue::check(uint32_t msn) const {
  const uint32_t ahead = msn - deliver_msn_;
  if (ahead < buffers_) return kNoFault;
  return ahead == buffers_ ? kUntaggedNoBuffer : kUntaggedMsnRange;
}

Fault check_offset(uint32_t mo, uint32_t payload, uint64_t buffer) {
  if (mo > buffer) return kUntaggedMo;
  if (payload > buffer - mo) return kUntaggedTooLong;
  return kNoFault;
}

}  // namespace rnic::ddp
