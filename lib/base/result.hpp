/// \file
/// Errors of the user and of the API. A peer's error is a `Fault` (rdmap), our own bug is a CHECK.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace rnic::base {

/// What kind of thing went wrong; the message says what to do about it.
enum class Errc : uint8_t {
  InvalidArgument,    ///< a value that can never be right
  NotFound,           ///< the thing named does not exist
  AlreadyExists,      ///< address, port or name is taken
  ResourceExhausted,  ///< a configured limit or the machine's memory is reached
  WrongState,         ///< right call, wrong moment
  PermissionDenied,   ///< rights of the user or of a region do not allow it
  Unreachable,        ///< no route, no neighbour, no listener
  TimedOut,
  Rejected,  ///< the peer said no
  Reset,     ///< the connection was lost
  Protocol,  ///< the peer broke a protocol rule
  Unsupported,
  Environment,  ///< hugepages, devices, files: the machine lacks something
  MessageSize,  ///< longer than what can be sent as one now (EMSGSIZE)
};

[[nodiscard]] const char* to_string(Errc code);

/// An error with one clear line for the user: what is wrong and what to do.
struct [[nodiscard]] Error {
  Errc code = Errc::InvalidArgument;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

/// `return fail(Errc::NotFound, "no device \"x\": the config has rnic0, rnic1");`
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace rnic::base
