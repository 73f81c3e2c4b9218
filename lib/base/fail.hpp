/// \file
/// How a function of ours fails: with the public error (rnic/error.hpp). A peer's error is a
/// `Fault` (rdmap), a bug of our own a CHECK.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "rnic/error.hpp"

namespace rnic::base {

/// `return fail(ErrorCode::NotFound, "no device \"x\": the config has rnic0, rnic1");`
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace rnic::base
