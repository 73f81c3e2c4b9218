/// \file
/// What a NIC's checksum offload does, in software: the drivers that take frames with open
/// checksums but cannot leave them open (`impair`, `pcap`) complete them here, and `dpdk` prepares
/// frames for devices.
///
/// TCP over IPv4 in plain Ethernet frames; every other frame is left as it is.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "port/port.hpp"

namespace rnic::offload {

inline constexpr uint32_t kEthernetHeader = 14;

/// Where the parts of a frame with an IPv4 packet are, as offsets from the Ethernet header; every
/// one is proven to lie in the frame.
struct Ipv4Layout {
  uint32_t ip = kEthernetHeader;
  uint32_t l4 = 0;   ///< behind the IP header and its options
  uint32_t end = 0;  ///< end of the IP packet; Ethernet padding may follow
  uint8_t protocol = 0;
  bool fragment = false;
};

/// Where TCP is; `payload == end` when the segment carries no data.
struct TcpLayout {
  uint32_t ip = kEthernetHeader;
  uint32_t tcp = 0;
  uint32_t payload = 0;
  uint32_t end = 0;

  [[nodiscard]] uint32_t payload_size() const { return end - payload; }
};

[[nodiscard]] std::optional<Ipv4Layout> locate_ipv4(base::ByteView frame);

/// Empty for everything that is not a whole (unfragmented) TCP segment over IPv4.
[[nodiscard]] std::optional<TcpLayout> locate_tcp(base::ByteView frame);

/// Writes the IPv4 header checksum.
void write_ip_checksum(base::ByteSpan frame, const Ipv4Layout& at);
/// Writes the TCP checksum over pseudo header, header and data.
void write_tcp_checksum(base::ByteSpan frame, const TcpLayout& at);
/// Writes the sum of the pseudo header into the TCP checksum field, as devices want it.
void write_tcp_pseudo_sum(base::ByteSpan frame, const TcpLayout& at);

[[nodiscard]] bool ip_checksum_good(base::ByteView frame, const Ipv4Layout& at);
[[nodiscard]] bool tcp_checksum_good(base::ByteView frame, const TcpLayout& at);

/// Completes what `packet` says is open, and says so in `packet`.
void complete_checksums(port::Packet& packet);

}  // namespace rnic::offload
