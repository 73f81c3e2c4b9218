#include "dpdk/refusal.hpp"

#include <rte_errno.h>

#include <cerrno>

namespace rnic::dpdk {

ErrorCode code_of(int rc) noexcept {
  switch (-rc) {
    case ENOTSUP:
    case EINVAL: return ErrorCode::Unsupported;
    case ENOMEM: return ErrorCode::ResourceExhausted;
    case EACCES: return ErrorCode::PermissionDenied;
    default: return ErrorCode::Environment;
  }
}

std::string reason_of(int rc) {
  if (rc == -EPERM) return "its driver gives no reason (-1)";
  return rte_strerror(-rc);
}

}  // namespace rnic::dpdk
