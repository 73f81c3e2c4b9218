/// \file
/// The trace edge: who wants to know what happens to each segment of one connection. Nobody listens
/// by default.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "rnic/trace.hpp"

namespace rnic::base {

/// Listener for one connection; called on the worker, must not block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void record(TraceKind kind, Range range, Now now) = 0;
};

}  // namespace rnic::base
