/// \file
/// What a process that has died leaves to be said for it.
#pragma once

#include <span>

#include "base/bytes.hpp"
#include "port/port.hpp"

namespace rnic::local {

/// Answers a TCP segment to a process that has died by the reset that its system would send if it
/// had had the connection (RFC 9293 s.3.5.3, group 1), so that its peer need not wait for a silence
/// to be long enough.
/// \param out a buffer with room for any header; its length and octets are set
/// \return false: the frame is none that is answered so, and `out` is as before
[[nodiscard]] bool reset_for(base::ByteView frame, port::Packet& out);

}  // namespace rnic::local
