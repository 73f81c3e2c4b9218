/// \file
/// Errors of the public API. No exception leaves it; every call that can fail returns a Result or a
/// Status. If the machine gives no memory, thread or descriptor the error is ResourceExhausted, the
/// object is as it was before the call, and the call may be made again. A call that returns no
/// Result gives an empty value then: no counters, no text.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace rnic {

enum class ErrorCode : uint8_t {
  InvalidArgument,    ///< a value that can never be right
  NotFound,           ///< the thing named does not exist
  AlreadyExists,      ///< address, port or name is taken
  ResourceExhausted,  ///< a configured limit or the machine's memory is reached
  WrongState,         ///< the object's state does not allow the call now
  PermissionDenied,   ///< rights do not allow it
  Unreachable,        ///< no route, no neighbour, no listener
  TimedOut,
  Rejected,  ///< the peer's application said no
  Reset,     ///< the connection was lost
  Protocol,  ///< the peer broke a protocol rule
  Unsupported,
  Environment,  ///< hugepages, devices, files: the machine lacks something
  MessageSize,  ///< longer than a message can be now (EMSGSIZE)
  Abandoned,    ///< the object belongs to the parent: this process was forked since
};

[[nodiscard]] const char* to_string(ErrorCode code);

/// What is wrong and what to do about it, in one line.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

}  // namespace rnic
