/// \file
/// The boundary that no exception passes: if the machine does not give memory, a thread or a
/// descriptor, the call that needed it returns an error.
///
/// Every call of the public API that may allocate, or that a worker carries out, has its body in
/// guarded(), guarded_or() or quietly(). Any other call that touches objects of the worker or the
/// system checks DeviceRuntime::is_abandoned() first. Code below this layer leaves its objects as
/// they were when it throws.
#pragma once

#include <exception>
#include <utility>

#include "base/starved.hpp"
#include "rnic/error.hpp"

namespace rnic::verbs {

/// Thrown by on_worker() when the runtime belongs to the parent of this process.
class AbandonedRuntime final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "abandoned by a fork"; }
};

/// The error for the exception being handled. \param call the API's call, for the message
[[nodiscard]] Error error_of_thrown(const char* call) noexcept;

/// The error of a handle that nothing was put into, or that was moved from or destroyed.
[[nodiscard]] tl::unexpected<Error> empty_handle();

/// The error of a handle that was made before this process was forked.
[[nodiscard]] tl::unexpected<Error> abandoned();

/// Returns what `body` returns, a Result or a Status, or the error for what it throws.
template <typename F>
auto guarded(const char* call, F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception&) {
    return tl::unexpected(error_of_thrown(call));
  }
}

/// For a call that cannot return an error: returns what `body` returns, or `otherwise` if it
/// throws.
template <typename R, typename F>
R guarded_or(R otherwise, F&& body) {
  try {
    return body();
  } catch (const std::exception&) {
    return otherwise;
  }
}

/// For destructors, which have nobody to report to.
template <typename F>
void quietly(F&& body) noexcept {
  try {
    body();
  } catch (const std::exception&) {
    // A call below that throws has either done its work or had none to do.
    return;
  }
}

}  // namespace rnic::verbs
