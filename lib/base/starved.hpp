/// \file
/// What is done where no caller waits for an error and the machine gives no memory: a connection
/// that cannot be served, a line that cannot be made.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace rnic::base {

/// Fits into a std::string without memory of its own.
inline constexpr const char* kOutOfMemory = "out of memory";

/// Carries `call` out. False: there was no memory for it, and what it had made is gone again.
template <typename F>
[[nodiscard]] bool attempt(F&& call) {
  try {
    std::forward<F>(call)();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::length_error&) {  // more than any memory has
    return false;
  }
}

/// The line that `make` returns; kOutOfMemory where there is no memory for it.
template <typename F>
[[nodiscard]] std::string worded(F&& make) noexcept {
  try {
    return std::forward<F>(make)();
  } catch (const std::exception&) {
    return kOutOfMemory;
  }
}

}  // namespace rnic::base
