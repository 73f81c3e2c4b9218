/// \file
/// Events of a session of ULP framing that other framings do not have.
#pragma once

#include "base/time.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

/// The owner of a session gets these calls besides those of framing::StartEvents.
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  /// Something between the ends resegments the stream (s.5.2).
  virtual void middlebox_suspected(base::Now now) = 0;
  /// The framed stream is broken; after this call the FramingUser is told error 3 (RFC 5044 s.8).
  virtual void stream_broken(framing::PduError error, base::Now now) = 0;
};

}  // namespace rnic::tuf
