/// \file
/// One IP packet of a streaming world: addresses, the two fields of the IP header that TCP sees,
/// and the TCP segment to the octet.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "rnic/address.hpp"
#include "wire/tcp.hpp"

namespace rnic::simulation {

struct Datagram {
  IpAddress source;
  IpAddress destination;
  std::vector<uint8_t> tcp;
  uint8_t traffic_class = 0;  ///< DSCP << 2 | ECN

  [[nodiscard]] uint32_t ip_length() const {
    return static_cast<uint32_t>(tcp.size()) + (source.is_v4() ? 20 : 40);
  }
  [[nodiscard]] uint8_t flags() const { return tcp[wire::kTcpFlagsAt]; }
  [[nodiscard]] bool has(uint8_t flag) const { return (flags() & flag) != 0; }
  [[nodiscard]] uint32_t sequence() const { return base::load_be32(&tcp[wire::kTcpSequenceAt]); }
  [[nodiscard]] uint32_t header() const { return (tcp[wire::kTcpDataOffsetAt] >> 4) * 4u; }
  [[nodiscard]] uint32_t payload() const { return static_cast<uint32_t>(tcp.size()) - header(); }
};

[[nodiscard]] bool checksum_right(const Datagram& d);
void complete_checksum(Datagram& d);
/// As it would look on a wire, for a capture.
[[nodiscard]] std::vector<uint8_t> ethernet_frame(const Datagram& d);

/// What became of a segment that reached a host's stack.
enum class Fate : uint8_t {
  Taken,
  Dropped,  ///< without a word: it counts as lost
  Refused,  ///< none of it was used, and its sender is to be told where the stack stands
};

}  // namespace rnic::simulation
