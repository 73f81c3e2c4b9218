/// \file
/// An ACK as loss detection, recovery and congestion control see it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace rnic::tcp {

struct AckResult {
  uint64_t acked = 0;      ///< octets by which SND.UNA advanced
  uint64_t delivered = 0;  ///< octets newly known to have arrived
  uint64_t dsack_octets = 0;
  bool dsack = false;
  bool new_sack = false;
  bool duplicate = false;    ///< RFC 5681 s.2
  bool ece = false;          ///< the ACK carries ECN-Echo, and the connection uses ECN
  bool first_try = false;    ///< the ACK covers a record that was sent once and not SACKed before
  bool keep_window = false;  ///< this ACK has set cwnd, or must not grow it
  std::optional<uint32_t> echo{};  ///< TSecr
  base::Duration rtt{-1};          ///< of the newest record acknowledged that was sent once
};

}  // namespace rnic::tcp
