/// \file
/// The output of one interface: writes headers, finds next hops and neighbours, and fills the
/// burst.
#pragma once

#include <cstdint>
#include <span>

#include "net/config.hpp"
#include "net/counters.hpp"
#include "net/ipv4_output.hpp"
#include "net/ipv6_output.hpp"
#include "net/link_header.hpp"
#include "net/neighbours.hpp"
#include "net/packet.hpp"
#include "net/routes.hpp"
#include "net/tx_queue.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

class Output {
 public:
  /// All references outlive this.
  Output(const Config& config, port::Port& port, const Routes& routes, Neighbours& neighbours,
         TxQueue& tx, Counters& counters);

  /// See Interface::begin() and Interface::send().
  bool begin(const IpAddress& source, const IpAddress& destination, TxFrame& frame, base::Now now);
  void send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now);

  /// See Interface::begin_run() and Interface::send_run().
  bool begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most, TxRun& run,
                 base::Now now);
  void send_run(TxRun& run, uint8_t protocol, std::span<const uint32_t> l4_lengths, base::Now now);

  /// Takes room for a packet to a neighbour or a group, without a look at the routes.
  bool begin_on_link(const IpAddress& source, const IpAddress& destination, TxFrame& frame,
                     base::Now now);
  /// Completes a packet of begin_on_link() and sends it to `mac`.
  void send_on_link(TxFrame& frame, uint8_t protocol, uint32_t l4_length,
                    const port::MacAddress& mac, base::Now now);

  /// Room for something that is not IP: its octets begin at \return, nullptr when there is no
  /// room.
  uint8_t* begin_raw(port::Packet& packet, base::Now now);
  void send_raw(port::Packet& packet, uint16_t ether_type, uint32_t length,
                const port::MacAddress& to, base::Now now);

  /// There is a route to the destination, which the last packet has gone to.
  [[nodiscard]] bool knows_hop(const IpAddress& destination) const {
    return hop_.valid && hop_.destination == destination;
  }
  /// Octets of IP payload that fit the link's MTU.
  [[nodiscard]] uint32_t room(bool v4) const { return v4 ? room4_ : room6_; }
  [[nodiscard]] const LinkHeader& link() const { return link_; }

 private:
  // The next hop of the last destination, which is remembered.
  struct Hop {
    bool valid = false;
    IpAddress destination;
    IpAddress next_hop;
    const port::MacAddress* mac = nullptr;  // nullptr: not looked up
    uint64_t generation = 0;                // Neighbours::generation() when mac was looked up
  };

  bool find_hop(const IpAddress& destination);
  const port::MacAddress* find_mac(const IpAddress& destination);
  void set_terms(const IpAddress& source, const IpAddress& destination, TxTerms& terms) const;
  void finish(TxFrame& frame, uint8_t protocol, uint32_t l4_length);
  void finish(port::Packet& packet, uint32_t length, port::Checksum l4_checksum) const;
  [[nodiscard]] static port::Checksum l4_checksum(const TxTerms& terms, uint8_t protocol) {
    // Ports complete checksums of TCP only.
    return terms.l4_checksum_open && protocol == wire::kProtocolTcp ? port::Checksum::Open
                                                                    : port::Checksum::Unknown;
  }
  void send_each(TxRun& run, uint8_t protocol, std::span<const uint32_t> l4_lengths,
                 base::Now now);
  void pad(port::Packet& packet) const;

  const Routes& routes_;
  Neighbours& neighbours_;
  TxQueue& tx_;
  Counters& counters_;
  LinkHeader link_;
  Ipv4Output ipv4_;
  Ipv6Output ipv6_;
  bool checksum_open_;
  uint32_t shortest_;  // shorter frames are padded to this length
  uint32_t room4_;
  uint32_t room6_;
  Hop hop_;
};

}  // namespace rnic::net
