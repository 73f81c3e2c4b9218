/// \file
/// ICMP echo (RFC 1122 s.3.2.2.6).
#pragma once

#include <cstring>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::net {

enum class IcmpKind : uint8_t { EchoRequest, Other, Malformed };

/// Length and checksum are judged here; no port checks them.
[[nodiscard]] inline IcmpKind classify_icmp(base::ByteView message) {
  if (message.size() < wire::kIcmpHeader ||
      wire::checksum_fold(wire::checksum_add(0, message)) != 0) {
    return IcmpKind::Malformed;
  }
  const bool echo =
      message[wire::kIcmpTypeAt] == wire::kIcmpEchoRequest && message[wire::kIcmpCodeAt] == 0;
  return echo ? IcmpKind::EchoRequest : IcmpKind::Other;
}

/// Writes the reply to an echo request, as long as the request.
inline void write_echo_reply(uint8_t* p, base::ByteView request) {
  std::memcpy(p, request.data(), request.size());
  p[wire::kIcmpTypeAt] = wire::kIcmpEchoReply;
  base::store_be16(p + wire::kIcmpChecksumAt, 0);
  base::store_be16(p + wire::kIcmpChecksumAt,
                   wire::checksum_fold(wire::checksum_add(0, {p, request.size()})));
}

}  // namespace rnic::net
