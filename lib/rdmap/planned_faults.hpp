/// \file
/// What an endpoint does wrong because it was told to (rnic/planned_fault.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "rnic/fault.hpp"
#include "rnic/planned_fault.hpp"

namespace rnic::rdmap {

/// A local catastrophic error (RFC 5040 s.4.8), which no message of the peer has caused.
inline constexpr Fault kPlannedTerminate{FaultLayer::Rdmap, 0x0, 0x00, "none: a planned fault"};

/// The time by which the peer's Reads and atomics are answered later.
struct Stall {
  base::Duration delay{0};
  uint32_t request = 0;  ///< which one, from 1 on; 0: each

  /// \return by how much request `number` is answered later
  [[nodiscard]] base::Duration of(uint32_t number) const {
    return request == 0 || request == number ? delay : base::Duration(0);
  }
};

/// The faults of each endpoint of a device.
struct EndpointFaults {
  EndpointFaults() = default;
  /// Faults that are done to frames are left out.
  explicit EndpointFaults(std::span<const PlannedFault> plan) {
    for (const PlannedFault& fault : plan) {
      if (fault.kind == PlannedFaultKind::Terminate) {
        terminate_at = std::min(terminate_at.value_or(fault.message), fault.message);
      } else if (fault.kind == PlannedFaultKind::StallResponder) {
        stalls.push_back({fault.delay, fault.request});
      }
    }
  }

  /// The message of this side, from 1 on, in whose place a Terminate is sent; 0: it is sent as soon
  /// as the connection is made. Nothing: there is none.
  std::optional<uint32_t> terminate_at;
  std::vector<Stall> stalls;
};

}  // namespace rnic::rdmap
