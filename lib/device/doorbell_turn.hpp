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

/// Answers doorbells: of queue pairs, and of the sockets of a stack. They are served between taking
/// what has come and looking at it, so that a receive that was posted before the peer sent is there
/// when the peer's message is looked at.
class DoorbellTurn final : public llp::BeforeHandUp {
 public:
  /// All of them outlive it. \param own nullptr: there are no sockets
  DoorbellTurn(base::Doorbells& doorbells, Resources& resources, const ReceiveWaits& receive_waits,
               PortStack* own, base::Now now)
      : doorbells_(doorbells),
        resources_(resources),
        receive_waits_(receive_waits),
        own_(own),
        now_(now) {}

  void before_hand_up() override { serve(); }
  void serve();
  /// Doorbells answered since it was made.
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
