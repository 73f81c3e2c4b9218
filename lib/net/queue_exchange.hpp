/// \file
/// The receive queues of one device as ports whose users each see what concerns all of them.
///
/// A device's hash places whole TCP segments only. What else there is comes to a queue of its own
/// choice, and may be about a connection, or a neighbour, of another: answers of neighbours (ARP,
/// ICMPv6), ICMP errors, fragments of TCP, TCP behind IPv6 extension headers. Each of these is
/// copied to every other queue; questions (ARP requests, solicitations, echo requests) stay where
/// they came, so that they are answered once. A stack refuses what does not land on it
/// (tcp::Egress::lands_here), so that copies do no harm.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/spsc_ring.hpp"
#include "port/port.hpp"

namespace rnic::net {

/// True for a frame that other queues' users have to see, too. Any octets at all are safe.
[[nodiscard]] bool concerns_all_queues(base::ByteView frame);

/// Each port() may be used by a thread of its own. Copies wait in bounded rings; one that finds its
/// ring full or no buffer is dropped and counted, as the network might have dropped it.
class QueueExchange {
 public:
  static constexpr uint32_t kWaiting = 64;  ///< copies from one queue to another

  /// \param queues of one device, in the order of their numbers; outlive this
  explicit QueueExchange(const std::vector<port::Port*>& queues);
  ~QueueExchange();
  QueueExchange(const QueueExchange&) = delete;
  QueueExchange& operator=(const QueueExchange&) = delete;

  [[nodiscard]] port::Port& port(uint32_t queue);

 private:
  class QueuePort;
  std::vector<std::unique_ptr<QueuePort>> ports_;
};

}  // namespace rnic::net
