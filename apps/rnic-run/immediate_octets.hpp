/// \file
/// The 8 octets of RFC 7306's Immediate Data, of which libibverbs has 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rnic/work.hpp"

namespace rnic::run {

/// The program's 4, as they stand in network order, and one that says what they came with: on the
/// wire an empty Send with immediate and the message behind a Write are one kind of message. A peer
/// that is no `rnic-run` says nothing there that is meant.
inline constexpr size_t kSentAloneAt = sizeof(uint32_t);

[[nodiscard]] inline ImmediateData immediate_octets(uint32_t in_network_order, bool sent_alone) {
  ImmediateData octets{};
  std::memcpy(octets.data(), &in_network_order, sizeof(in_network_order));
  octets[kSentAloneAt] = sent_alone ? 1 : 0;
  return octets;
}

[[nodiscard]] inline bool was_sent_alone(const ImmediateData& octets) {
  return octets[kSentAloneAt] == 1;
}

}  // namespace rnic::run
