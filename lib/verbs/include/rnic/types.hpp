/// \file
/// Plain values of the public API: rights, requests, events, counters.
#pragma once

#include <cstdint>
#include <string>

#include "rnic/access.hpp"
#include "rnic/address.hpp"
#include "rnic/connection.hpp"
#include "rnic/device_info.hpp"
#include "rnic/event.hpp"
#include "rnic/fault.hpp"
#include "rnic/planned_fault.hpp"
#include "rnic/queue_pair.hpp"
#include "rnic/time.hpp"
#include "rnic/trace.hpp"
#include "rnic/transport.hpp"
#include "rnic/work.hpp"

namespace rnic {

struct Counter {
  std::string layer;  ///< port, net, tcp, mpa, rdmap, device, impair, capture
  std::string name;
  std::string unit;
  std::string help;
  uint64_t value = 0;
};

}  // namespace rnic
