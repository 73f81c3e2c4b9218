/// \file
/// Layer `net`: L2 and L3 below TCP for one port: Ethernet with or without a VLAN tag, ARP and
/// neighbour discovery, IPv4 and IPv6 with reassembly, ICMP and ICMPv6, routes and path MTUs, and
/// the one unsent burst that a port may have (design, section 5).
///
/// Specs: RFC 826, 791, 792, 815, 1122, 1191, 3168 s.5.3, 4443, 4861, 4862 s.5.4, 5227, 5722, 6980,
/// 8200, 8201.
///
/// An Interface hands up validated TCP packets and builds packets; it never fragments. Every table
/// or queue that an unknown host can fill has a limit. Not here: sockets, TCP, forwarding,
/// autoconfiguration (RFC 4862; duplicate address detection is there), router advertisements and
/// redirects (ignored: addresses and routes are configured), multicast beyond what neighbour
/// discovery needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "net/config.hpp"
#include "net/counters.hpp"
#include "net/packet.hpp"
#include "net/reassembler.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

class Interface {
 public:
  /// `port` and `reassembler` outlive the interface. Without a reassembler fragments are dropped.
  Interface(const Config& config, port::Port& port, base::Now now,
            Reassembler* reassembler = nullptr);
  ~Interface();

  /// Sets the user that is told of ICMP errors during input(); nullptr: they are only counted.
  void set_error_user(IcmpErrorUser* user);

  /// Takes one received frame. ARP, neighbour discovery and ICMP are answered here (the answers are
  /// queued). \return a TCP segment, valid until the frame is freed or the next call. The caller
  /// frees the frame.
  std::optional<TcpIn> input(const port::Packet& frame, base::Now now);

  /// Takes room for a packet. False: there is no route, the unsent burst is full, or there is no
  /// buffer (counted).
  /// \param source one of our addresses, of the destination's family.
  bool begin(const IpAddress& source, const IpAddress& destination, TxFrame& frame, base::Now now);
  /// The payload (`l4_length` octets from frame.l4) is complete. Consumes the frame: queued for the
  /// port, or parked until the neighbour's address is known (bounded, oldest dropped and counted).
  void send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now);
  void cancel(TxFrame& frame);
  /// Takes room for packets that go the same way, one at least and `most` at most. False: as
  /// begin().
  bool begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most, TxRun& run,
                 base::Now now);
  /// The payloads of the first packets of a run are complete, `l4_lengths` octets. They are sent in
  /// order, and the other packets are given back.
  void send_run(TxRun& run, uint8_t protocol, std::span<const uint32_t> l4_lengths, base::Now now);

  /// Hands the unsent burst to the port. \return true when nothing is left unsent.
  bool flush(base::Now now);
  /// Does the first part of flush(), for frames that somebody waits for: what is done for frames to
  /// come is left to flush().
  void hand_over(base::Now now);
  /// Frames waiting for the port.
  [[nodiscard]] uint32_t unsent() const;

  void on_timers(base::Now now);
  [[nodiscard]] base::Now next_deadline() const;

  [[nodiscard]] port::Port& port();
  [[nodiscard]] const Counters& counters() const;
  [[nodiscard]] bool has_route(IpAddress destination) const;
  /// The address of ours to use towards `destination` (RFC 9293 MUST-44); unspecified: there is no
  /// route.
  [[nodiscard]] IpAddress source_for(IpAddress destination) const;
  [[nodiscard]] bool is_ours(IpAddress address) const;
  /// Octets of the largest IP packet towards `destination`; 0 without a route.
  [[nodiscard]] uint32_t path_mtu(IpAddress destination, base::Now now) const;
  /// Octets of the largest IP packet on the link towards `destination`, whatever is known of the
  /// path; 0 without a route.
  [[nodiscard]] uint32_t link_mtu(IpAddress destination) const;
  /// Remembers a smaller path MTU (RFC 1191 s.3, RFC 8201 s.4) for Config::path_mtu_lifetime. In
  /// IPv4 a value below 68 counts as 68; in IPv6 a value below 1280 is impossible and ignored.
  void reduce_path_mtu(IpAddress destination, uint32_t mtu, base::Now now);

  /// Packets to `destination` stay unanswered (RFC 9293 s.3.8.3, R1): its next hop is asked whether
  /// it is still there.
  void doubt_path(IpAddress destination, base::Now now);

  /// Checks the invariants of all parts; for tests.
  void validate() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rnic::net
