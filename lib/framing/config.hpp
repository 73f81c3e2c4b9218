/// \file
/// The configuration of a session, whichever framing it speaks: how much its receiver offers and
/// keeps, and how long its start may take.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace rnic::framing {

struct Config {
  bool out_of_order = true;  ///< place PDUs that can be located ahead of the order
  base::Duration start_timeout = std::chrono::seconds(60);  ///< whole start-up exchange
  uint32_t receive_window = 4u << 20;  ///< octets offered past the delivery point
  uint32_t hold_limit = 1u << 20;      ///< octets held until they can be placed, per connection
  uint32_t early_limit = 4096;         ///< PDUs placed ahead of the order, per connection
  bool fast_path = true;  ///< false, in tests: a segment in order takes the general way, too
};

}  // namespace rnic::framing
