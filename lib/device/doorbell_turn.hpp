/// \file
/// The doorbells of one turn of a device.
#pragma once

#include <cstdint>

#include "base/doorbell.hpp"
#include "base/time.hpp"
#include "device/port_stack.hpp"
#include "device/resources.hpp"
#include "llp/transport.hpp"

namespace rnic::device {

/// Answers the doorbells of queue pairs and of a stack's sockets. The device serves them after it
/// has taken what arrived and before it processes it, so that a receive that was posted before the
/// peer sent is there when the peer's message is processed.
class DoorbellTurn final : public llp::BeforeHandUp {
 public:
  /// All parameters outlive the turn. \param own nullptr: there are no sockets
  DoorbellTurn(base::Doorbells& doorbells, Resources& resources, const ReceiveWaits& receive_waits,
               PortStack* own, base::Now now)
      : doorbells_(doorbells),
        resources_(resources),
        receive_waits_(receive_waits),
        own_(own),
        now_(now) {}

  void before_hand_up() override { serve(); }
  /// \return doorbells answered since the turn began
  uint32_t serve();
  /// How many that are so far.
  [[nodiscard]] uint32_t served() const { return served_; }

 private:
  base::Doorbells& doorbells_;
  Resources& resources_;
  const ReceiveWaits& receive_waits_;
  PortStack* const own_;
  const base::Now now_;
  uint32_t served_ = 0;
};

}  // namespace rnic::device
