/// \file
/// What one attempt to send gave.
#pragma once

#include <cstdint>

namespace rnic::tcp {

enum class Attempt : uint8_t {
  Sent,
  Nothing,
  Starved,   ///< a limit of the stack: to be tried again at the next output()
  PortFull,  ///< the same, and for nobody is there room
  Broken,    ///< the user has not kept what it sent: the connection cannot go on
};

}  // namespace rnic::tcp
