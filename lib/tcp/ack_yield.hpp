/// \file
/// What one ACK yields: for loss detection, recovery and congestion control.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace rnic::tcp {

struct AckYield {
  uint64_t acked = 0;      ///< SND.UNA moved by this much
  uint64_t delivered = 0;  ///< octets newly known to have arrived
  uint64_t dsack_octets = 0;
  bool dsack = false;
  bool new_sack = false;
  bool duplicate = false;          ///< RFC 5681 s.2
  bool ece = false;                ///< with ECN-Echo, on a connection that uses ECN
  bool first_try = false;          ///< of a record that was sent once, and not SACKed before
  bool keep_window = false;        ///< cwnd was set, or must not grow, by this ACK
  std::optional<uint32_t> echo{};  ///< TSecr
  base::Duration rtt{-1};          ///< of the newest record acknowledged that was sent once
};

}  // namespace rnic::tcp
