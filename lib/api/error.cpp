#include "rnic/error.hpp"

namespace rnic {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return "invalid argument";
    case ErrorCode::NotFound: return "not found";
    case ErrorCode::AlreadyExists: return "already exists";
    case ErrorCode::ResourceExhausted: return "resource exhausted";
    case ErrorCode::WrongState: return "wrong state";
    case ErrorCode::PermissionDenied: return "permission denied";
    case ErrorCode::Unreachable: return "unreachable";
    case ErrorCode::TimedOut: return "timed out";
    case ErrorCode::Rejected: return "rejected";
    case ErrorCode::Reset: return "reset";
    case ErrorCode::Protocol: return "protocol error";
    case ErrorCode::Unsupported: return "unsupported";
    case ErrorCode::Environment: return "environment";
    case ErrorCode::MessageSize: return "message size";
    case ErrorCode::Abandoned: return "abandoned";
  }
  return "unknown";
}

}  // namespace rnic
