/// \file
/// Neighbour discovery of one interface (RFC 4861): solicitations and advertisements of neighbours.
/// Router and redirect messages are ignored: addresses and routes are configured. Duplicate address
/// detection (class Dad) uses the same messages.
#pragma once

#include "base/time.hpp"
#include "net/counters.hpp"
#include "net/dad.hpp"
#include "net/neighbours.hpp"
#include "net/output.hpp"
#include "net/packet.hpp"
#include "net/rate_limit.hpp"
#include "net/routes.hpp"
#include "wire/nd.hpp"

namespace rnic::net {

class Nd {
 public:
  /// All references outlive this.
  Nd(const port::MacAddress& mac, const Routes& routes, Dad& dad, Neighbours& neighbours,
     Output& output, Counters& counters, base::Now now)
      : mac_(mac),
        routes_(routes),
        dad_(dad),
        neighbours_(neighbours),
        output_(output),
        counters_(counters),
        answers_(Neighbours::kRequestsPerSecond, now),
        probe_answers_(Neighbours::kRequestsPerSecond, now) {}

  /// Takes an ICMPv6 message with a good checksum and a type of neighbour discovery.
  void input(const IpIn& in, uint8_t hop_limit, base::Now now);
  /// Sends a solicitation for `target`. \param known its last known address; nullptr: the
  /// solicited-node group is asked
  void solicit(const IpAddress& target, const port::MacAddress* known, base::Now now);
  /// Asks whether another host has a tentative address of ours (RFC 4862 s.5.4.2).
  void probe(const IpAddress& target, base::Now now);

 private:
  void on_solicitation(const IpIn& in, const wire::NeighbourMessage& message, base::Now now);
  void on_advertisement(const IpIn& in, const wire::NeighbourMessage& message, base::Now now);
  void malformed() { ++counters_.nd_malformed; }
  void send(const IpAddress& source, const IpAddress& destination, const port::MacAddress& mac,
            const wire::NeighbourMessage& message, base::Now now);

  port::MacAddress mac_;
  const Routes& routes_;
  Dad& dad_;
  Neighbours& neighbours_;
  Output& output_;
  Counters& counters_;
  RateLimit answers_;        // limit of answers to hosts that are not known
  RateLimit probe_answers_;  // limit of answers to hosts that have no address yet
};

}  // namespace rnic::net
