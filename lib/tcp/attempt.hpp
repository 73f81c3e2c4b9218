/// \file
/// The result of one attempt to send.
#pragma once

#include <cstdint>

namespace rnic::tcp {

enum class Attempt : uint8_t {
  Sent,
  Nothing,
  Starved,   ///< a limit of the stack was reached; the next output() tries again
  PortFull,  ///< the port has no room for any connection; the next output() tries again
  Broken,    ///< the user no longer has the octets that it sent: the connection cannot go on
};

}  // namespace rnic::tcp
