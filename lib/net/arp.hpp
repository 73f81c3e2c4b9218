/// \file
/// ARP of one interface (RFC 826, RFC 5227): requests and replies; class Neighbours has the table.
#pragma once

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "net/counters.hpp"
#include "net/neighbours.hpp"
#include "net/output.hpp"
#include "net/routes.hpp"
#include "wire/arp.hpp"

namespace rnic::net {

class Arp {
 public:
  /// All references outlive this.
  Arp(const port::MacAddress& mac, const Routes& routes, Neighbours& neighbours, Output& output,
      Counters& counters)
      : mac_(mac), routes_(routes), neighbours_(neighbours), output_(output), counters_(counters) {}

  /// Takes a received ARP packet: the octets behind the Ethernet header.
  void input(base::ByteView octets, base::Now now);
  /// Sends a request for the address of `target`. \param known its last known address; nullptr: the
  /// request is a broadcast
  void solicit(uint32_t target, const port::MacAddress* known, base::Now now);

 private:
  static constexpr base::Duration kDefendInterval = std::chrono::seconds(10);  // RFC 5227 s.1.1

  void conflict(const wire::Arp& claim, base::Now now);
  void send(const wire::Arp& arp, const port::MacAddress& to, uint64_t& counter, base::Now now);

  port::MacAddress mac_;
  const Routes& routes_;
  Neighbours& neighbours_;
  Output& output_;
  Counters& counters_;
  base::Now may_defend_{};
};

}  // namespace rnic::net
