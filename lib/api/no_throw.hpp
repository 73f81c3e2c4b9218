/// \file
/// The boundary that no exception passes (rnic/error.hpp), for the functions of this room, which
/// need memory for nothing but a text. As verbs/boundary.hpp, which this room may not include.
#pragma once

#include <exception>
#include <string>

#include "rnic/error.hpp"

namespace rnic {

/// The text that `make` returns; empty where there is no memory for it.
template <typename F>
[[nodiscard]] std::string text_or_none(F&& make) noexcept {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

/// The Result that `make` returns; ResourceExhausted where there is no memory for it.
template <typename F>
[[nodiscard]] auto result_or_exhausted(F&& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception&) {
    // The words fit into a std::string without memory of its own.
    return tl::unexpected(Error{ErrorCode::ResourceExhausted, "out of memory"});
  }
}

}  // namespace rnic
