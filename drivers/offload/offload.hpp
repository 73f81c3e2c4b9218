/// \file
/// The checksum offload of a NIC in software. Drivers that take frames with open checksums but
/// cannot leave them open (`impair`, `pcap`) complete them with it, and `dpdk` prepares frames for
/// devices.
///
/// It handles TCP over IPv4, or over IPv6 without extension headers, in Ethernet frames with or
/// without one VLAN tag; every other frame is left as it is.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "port/port.hpp"

namespace rnic::offload {

inline constexpr uint32_t kEthernetHeader = 14;

/// Offsets of the parts of a frame with an IP packet, from the Ethernet header on. Every one is
/// checked to lie in the frame.
struct IpLayout {
  bool v4 = true;
  uint32_t ip = kEthernetHeader;
  uint32_t l4 = 0;   ///< behind the IP header and its options, or the fixed IPv6 header
  uint32_t end = 0;  ///< end of the IP packet; Ethernet padding may follow
  uint8_t protocol = 0;
  bool fragment = false;
};

/// The offsets of a TCP segment; `payload == end` if it carries no data.
struct TcpLayout {
  bool v4 = true;
  uint32_t ip = kEthernetHeader;
  uint32_t tcp = 0;
  uint32_t payload = 0;
  uint32_t end = 0;

  [[nodiscard]] uint32_t payload_size() const { return end - payload; }
};

[[nodiscard]] std::optional<IpLayout> locate_ip(base::ByteView frame);

/// Finds a TCP segment; empty for anything but a whole (unfragmented) TCP segment over IP.
[[nodiscard]] std::optional<TcpLayout> locate_tcp(base::ByteView frame);

/// Makes the IP header say that the segment ends at `at.end`, with its checksum.
void write_ip_length(base::ByteSpan frame, const TcpLayout& at);
/// Writes the IPv4 header checksum; IPv6 has none.
void write_ip_checksum(base::ByteSpan frame, const IpLayout& at);
/// Writes the TCP checksum over pseudo header, header and data.
void write_tcp_checksum(base::ByteSpan frame, const TcpLayout& at);
/// Writes the sum of the pseudo header into the TCP checksum field, as devices want it (the segment
/// length is part of it: no device cuts our segments).
void write_tcp_pseudo_sum(base::ByteSpan frame, const TcpLayout& at);

/// \return whether the IPv4 header checksum is right; true for IPv6
[[nodiscard]] bool ip_checksum_good(base::ByteView frame, const IpLayout& at);
[[nodiscard]] bool tcp_checksum_good(base::ByteView frame, const TcpLayout& at);

/// Completes the checksums that `packet` says are open, and marks them as complete in `packet`.
void complete_checksums(port::Packet& packet);

}  // namespace rnic::offload
