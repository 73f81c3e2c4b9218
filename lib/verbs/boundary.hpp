/// \file
/// The edge that no exception passes: what the machine does not give (memory, threads, descriptors)
/// becomes an error of the call that asked for it.
///
/// Every call of the public API that may allocate, or that a worker carries out, has its body in
/// guarded(), guarded_or() or quietly(). A call that does neither, and touches what the worker or
/// the system has, asks DeviceRuntime::is_abandoned() first. What is below leaves its objects as
/// they were when it throws.
#pragma once

#include <exception>
#include <utility>

#include "base/starved.hpp"
#include "rnic/error.hpp"

namespace rnic::verbs {

/// What a call would reach is the parent's: on_worker() throws it.
class AbandonedRuntime final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "abandoned by a fork"; }
};

/// The error that the exception being handled stands for. \param call of the API, for the message
[[nodiscard]] Error error_of_thrown(const char* call) noexcept;

/// The answer of a handle that nothing was put into, or that was moved from or destroyed.
[[nodiscard]] tl::unexpected<Error> empty_handle();

/// The answer of a handle that was made before this process was forked.
[[nodiscard]] tl::unexpected<Error> abandoned();

/// What `body` returns, a Result or a Status; the error of what it throws.
template <typename F>
auto guarded(const char* call, F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception&) {
    return tl::unexpected(error_of_thrown(call));
  }
}

/// For what has no error to return: what `body` returns, or `otherwise` when it throws.
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
    // Calls below have done their work when they throw, or there was none.
    return;
  }
}

}  // namespace rnic::verbs
