/// \file
/// The port of a streaming world's host whose packets go through `net`: frames on one side,
/// datagrams on the other. On its link is a router that answers for every neighbour.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "port/port.hpp"
#include "stream/datagram.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

class WirePort final : public port::Port {
 public:
  using Send = std::function<void(Datagram&&, base::Now)>;

  /// \param verdict fails when something is sent that is neither TCP nor a question for a neighbour
  WirePort(uint32_t mtu, Verdict& verdict, Send send);

  /// A packet comes from the router.
  void receive(std::vector<uint8_t> frame);
  [[nodiscard]] bool waiting() const { return !received_.empty(); }

  const port::PortInfo& info() const override { return info_; }
  const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override;
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override;

 private:
  void transmit(base::ByteView frame, base::Now now);
  void answer_arp(base::ByteView packet);
  void answer_solicitation(base::ByteView packet);

  Verdict& verdict_;
  Send send_;
  port::PortInfo info_;
  port::PortCounters counters_;
  std::deque<std::vector<uint8_t>> received_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> buffers_;
  std::vector<std::vector<uint8_t>*> free_;
};

/// What a router sends to the source of `quoted` about it.
/// \param mtu of a PacketTooBig \param quoted_length total octets that the quoted IP header tells
/// \param quote octets of the quoted TCP segment
[[nodiscard]] std::vector<uint8_t> icmp_frame(uint8_t type, uint8_t code, uint32_t mtu,
                                              const IpAddress& source, const IpAddress& destination,
                                              uint32_t quoted_length, base::ByteView quote);

}  // namespace rnic::simulation
