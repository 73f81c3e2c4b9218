/// \file
/// The parts that plain and framed streams have in common.
#pragma once

#include <string>
#include <utility>

#include "rnic/error.hpp"
#include "rnic/stream.hpp"
#include "tcp/connection_options.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

[[nodiscard]] inline tl::unexpected<Error> error(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message)});
}
/// The error of a call on a stream that has ended.
[[nodiscard]] tl::unexpected<Error> stream_failure(StreamEnd end, const std::string& peer);
/// The error of a call on a handle that the application has closed.
[[nodiscard]] tl::unexpected<Error> gone();
/// Rings a doorbell of the device, and wakes the thread that drives it. Does nothing if the device
/// is abandoned.
inline void ring(DeviceRuntime& runtime, uint32_t doorbell) {
  if (runtime.is_abandoned()) return;
  runtime.device->ring_doorbell(doorbell);
  runtime.wake();
}

}  // namespace rnic::verbs
