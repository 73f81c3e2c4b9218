/// \file
/// Makes the receive queues of one device ports, and copies frames that concern all queues to each
/// of them.
///
/// A device's hash places only whole TCP segments. Any other frame may come to any queue and may
/// concern a connection, or a neighbour, of another one: answers of neighbours (ARP, ICMPv6), ICMP
/// errors, fragments of TCP, TCP behind IPv6 extension headers. Each of these frames is copied to
/// every other queue. Questions (ARP requests, solicitations, echo requests) stay in the queue to
/// which they came, so that they are answered once. A stack ignores segments of connections that
/// belong to another one (tcp::Egress::lands_here), so copies do no harm.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/spsc_ring.hpp"
#include "port/port.hpp"

namespace rnic::net {

/// The frame has to be seen by the users of the other queues, too. Any octets at all are safe.
[[nodiscard]] bool concerns_all_queues(base::ByteView frame);

/// Each port() may be used by a thread of its own. Copies wait in bounded rings. A copy is dropped
/// and counted if its ring is full or there is no buffer, as the network might have dropped the
/// frame.
class QueueExchange {
 public:
  static constexpr uint32_t kWaiting = 64;  ///< copies that wait between two queues

  /// \param queues the queues of one device, in the order of their numbers; outlive this
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
