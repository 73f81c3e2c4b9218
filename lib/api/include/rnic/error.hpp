/// \file
/// Errors of the public API. No exception leaves it; every call that can fail returns a Result or
/// Status. Where the machine gives no memory, no thread or no descriptor that is ResourceExhausted,
/// the object is as it was before the call, and the call may be made again. What returns no Result
/// gives an empty value then: no counters, no text.
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
  WrongState,         ///< right call, wrong moment
  PermissionDenied,   ///< rights do not allow it
  Unreachable,        ///< no route, no neighbour, no listener
  TimedOut,
  Rejected,  ///< the peer's application said no
  Reset,     ///< the connection was lost
  Protocol,  ///< the peer broke a protocol rule
  Unsupported,
  Environment,  ///< hugepages, devices, files: the machine lacks something
  MessageSize,  ///< longer than what can be sent as one now (EMSGSIZE)
  Abandoned,    ///< the parent process's: this one was forked since, and has none of it
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
