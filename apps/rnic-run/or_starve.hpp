/// \file
/// or_starve: a call that C makes, which ends with an error where memory has run out, and in which
/// no thread is cancelled.
#pragma once

#include <cerrno>
#include <new>

#include "rnic-run/uncancelled.hpp"

namespace rnic::run {

template <auto kCall, auto kFailed>
struct OrStarve;

template <typename R, typename... Args, R (*kCall)(Args...), auto kFailed>
struct OrStarve<kCall, kFailed> {
  static R call(Args... args) noexcept {
    const Uncancelled whole;
    // C is above: nothing may be thrown there.
    try {
      return kCall(args...);
    } catch (const std::bad_alloc&) {
      errno = ENOMEM;
      return kFailed;
    }
  }
};

/// As `kCall`, and no cancellation point. Without memory it sets errno and returns `kFailed`.
template <auto kCall, auto kFailed>
inline constexpr auto or_starve = &OrStarve<kCall, kFailed>::call;

/// Some of libibverbs' calls return an errno, and others an object.
template <auto kCall>
inline constexpr auto errno_or_starve = or_starve<kCall, ENOMEM>;
template <auto kCall>
inline constexpr auto object_or_starve = or_starve<kCall, nullptr>;

}  // namespace rnic::run
