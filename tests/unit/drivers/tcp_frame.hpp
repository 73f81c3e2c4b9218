/// \file
/// A TCP segment over IPv4 for the tests of the drivers.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/endian.hpp"
#include "offload/offload.hpp"
#include "port/port.hpp"

namespace rnic::driver_test {

inline constexpr uint32_t kHeaders = 14 + 20 + 20;
inline constexpr uint8_t kAck = 0x10;
inline constexpr uint8_t kPsh = 0x08;

/// Writes a segment with `payload` octets counting up from `first`; checksums are left open (zero).
inline void write_segment(port::Packet& packet, uint32_t seq, uint32_t payload, uint8_t first = 0,
                          uint8_t flags = kAck | kPsh) {
  std::memset(packet.data, 0, kHeaders);
  base::store_be16(packet.data + 12, 0x0800);
  uint8_t* ip = packet.data + 14;
  ip[0] = 0x45;
  base::store_be16(ip + 2, static_cast<uint16_t>(40 + payload));
  base::store_be16(ip + 6, 0x4000);
  ip[8] = 64;
  ip[9] = 6;
  base::store_be32(ip + 12, 0x0a000001);
  base::store_be32(ip + 16, 0x0a000002);
  uint8_t* tcp = ip + 20;
  base::store_be16(tcp, 40000);
  base::store_be16(tcp + 2, 4791);
  base::store_be32(tcp + 4, seq);
  tcp[12] = 0x50;
  tcp[13] = flags;
  base::store_be16(tcp + 14, 0xffff);
  for (uint32_t i = 0; i < payload; ++i) tcp[20 + i] = static_cast<uint8_t>(first + i);
  packet.length = kHeaders + payload;
  packet.ip_checksum = packet.l4_checksum = port::Checksum::Open;
}

inline uint32_t segment_seq(base::ByteView frame) { return base::load_be32(frame.data() + 38); }

/// True when both checksums are right.
inline bool checksums_good(base::ByteView frame) {
  const auto ip = offload::locate_ip(frame);
  const auto tcp = offload::locate_tcp(frame);
  return ip && tcp && offload::ip_checksum_good(frame, *ip) &&
         offload::tcp_checksum_good(frame, *tcp);
}

/// True when the payload is what write_segment() wrote, beginning with `first`.
inline bool payload_counts_from(base::ByteView frame, uint8_t first) {
  for (size_t i = kHeaders; i < frame.size(); ++i) {
    if (frame[i] != static_cast<uint8_t>(first + i - kHeaders)) return false;
  }
  return true;
}

}  // namespace rnic::driver_test
