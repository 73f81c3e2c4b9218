#include "base/result.hpp"

namespace rnic::base {

const char* to_string(Errc code) {
  switch (code) {
    case Errc::InvalidArgument: return "invalid argument";
    case Errc::NotFound: return "not found";
    case Errc::AlreadyExists: return "already exists";
    case Errc::ResourceExhausted: return "resource exhausted";
    case Errc::WrongState: return "wrong state";
    case Errc::PermissionDenied: return "permission denied";
    case Errc::Unreachable: return "unreachable";
    case Errc::TimedOut: return "timed out";
    case Errc::Rejected: return "rejected";
    case Errc::Reset: return "reset";
    case Errc::Protocol: return "protocol error";
    case Errc::Unsupported: return "unsupported";
    case Errc::Environment: return "environment";
    case Errc::MessageSize: return "message size";
  }
  return "unknown";
}

}  // namespace rnic::base
