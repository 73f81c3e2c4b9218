/// \file
/// Layer `net`: everything of L2 and L3 beside TCP for one port: Ethernet, ARP, IPv4, ICMP echo,
/// and the one unsent burst that a port may have (design, section 5).
///
/// No sockets, no TCP: an Interface hands up validated IPv4 payloads and builds IPv4 frames. Not
/// here yet: IPv6, fragments (counted and dropped), path MTU, VLAN, routes beyond one gateway.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "llp/endpoint.hpp"
#include "net/counters.hpp"
#include "port/port.hpp"

namespace rnic::net {

struct Config {
  llp::IpAddress address;
  uint8_t prefix_length = 24;
  llp::IpAddress gateway;  ///< unspecified: none
  uint32_t mtu = 1500;     ///< octets of an IP packet; <= the port's
  uint8_t ttl = 64;
  uint32_t arp_entries = 256;  ///< neighbours at once
  base::Duration arp_lifetime = std::chrono::minutes(5);
  base::Duration arp_retry = std::chrono::seconds(1);
  uint32_t arp_retries = 5;
  uint32_t icmp_per_second = 100;  ///< echo replies
};

/// A validated IPv4 packet for this host; views into the received frame.
struct Ipv4In {
  llp::IpAddress source;
  llp::IpAddress destination;
  uint8_t protocol = 0;
  uint8_t ecn = 0;
  bool l4_checksum_good = false;  ///< the port vouches for the transport checksum
  base::ByteView payload;         ///< exactly the IP payload, no padding
};

/// An outgoing IPv4 frame being built.
struct TxFrame {
  port::Packet packet;
  uint8_t* l4 = nullptr;  ///< where the IP payload starts
  uint32_t l4_room = 0;   ///< octets of IP payload that fit the MTU
  bool l4_checksum_open = false;
  llp::IpAddress source;
  llp::IpAddress destination;
  uint8_t traffic_class = 0;  ///< DSCP << 2 | ECN; may be set between begin() and send()
  uint8_t hop_limit = 0;      ///< TTL; 0: the interface's default; likewise
};

class Interface {
 public:
  /// `port` outlives the interface.
  Interface(const Config& config, port::Port& port, base::Now now);
  ~Interface();

  /// One received frame. ARP and ICMP are answered here (the answers are queued). \return a packet
  /// for the transport, valid as long as the frame's buffer. The caller frees the frame.
  std::optional<Ipv4In> input(const port::Packet& frame, base::Now now);

  /// Room for an IPv4 packet. False: no route, the unsent burst is full, or no buffer (counted).
  /// \param source one of our addresses.
  bool begin(llp::IpAddress source, llp::IpAddress destination, TxFrame& frame);
  /// The payload (`l4_length` octets from frame.l4) is complete. Consumes the frame: queued for the
  /// port, or parked until the neighbour's address is known (bounded, oldest dropped and counted).
  void send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now);
  void cancel(TxFrame& frame);

  /// Hands the unsent burst to the port. \return true when nothing is left unsent.
  bool flush(base::Now now);
  /// Frames waiting for the port.
  [[nodiscard]] uint32_t unsent() const;

  void on_timers(base::Now now);
  [[nodiscard]] base::Now next_deadline() const;

  [[nodiscard]] const Config& config() const;
  [[nodiscard]] port::Port& port();
  [[nodiscard]] const Counters& counters() const;
  [[nodiscard]] bool has_route(llp::IpAddress destination) const;
  /// Octets of the largest IP packet towards `destination`; 0 without a route.
  [[nodiscard]] uint32_t path_mtu(llp::IpAddress destination) const;
  /// Remembers a smaller path MTU (RFC 1191 s.3, RFC 8201 s.4), never below 68 or 1280.
  void reduce_path_mtu(llp::IpAddress destination, uint32_t mtu, base::Now now);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rnic::net
