/// \file
/// Planned faults: what a device does wrong because it was told to, so that a test sees how the
/// other side takes it. One line of text says one fault; the configuration (`device.fault`),
/// QueuePair::commit() and `rnic-run --fault` take the same lines:
///
///     drop fpdu 3 of message 7          its frame is lost once: TCP sends it again
///     bad crc on fpdu 1 of message 7    each time that it is sent
///     bad crc on read response 2        on the first FPDU of that message
///     terminate now                     a Terminate, local catastrophic error (RFC 5040 s.4.8)
///     terminate at message 7            in the place of that message
///     stall the responder 2s            Reads and atomics of the peer are answered 2 s later
///     stall the responder 2s at request 3
///
/// Messages are the RDMAP messages that this side sends on one connection, Read Requests, responses
/// and an RTR among them. They, the FPDUs of a message, Read Responses and requests of the peer are
/// counted from 1. A fault happens on each connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "rnic/error.hpp"

namespace rnic {

enum class PlannedFaultKind : uint8_t {
  DropFpdu,         ///< `fpdu` of `message` is not sent the first time
  BadCrc,           ///< `fpdu` of `message` has a wrong CRC
  BadReadResponse,  ///< the first FPDU of Read Response `message` has a wrong CRC
  Terminate,        ///< in the place of `message`; 0: as soon as the connection is made
  StallResponder,   ///< `request` of the peer is answered later by `delay`; 0: each one
};

/// A fault that a device commits on each connection.
struct PlannedFault {
  PlannedFaultKind kind = PlannedFaultKind::Terminate;
  uint32_t message = 0;
  uint32_t fpdu = 0;
  uint32_t request = 0;
  std::chrono::nanoseconds delay{0};
  friend bool operator==(const PlannedFault&, const PlannedFault&) = default;
};

/// The longest delay of a stall.
inline constexpr std::chrono::hours kLongestStall{1};

/// InvalidArgument says which word is wrong, and what may stand there.
[[nodiscard]] Result<PlannedFault> parse_planned_fault(std::string_view text);
/// The line that parse_planned_fault() takes.
[[nodiscard]] std::string to_string(const PlannedFault& fault);
/// \return whether it is done to frames, which a device on sockets of the system does not have
[[nodiscard]] bool needs_frames(const PlannedFault& fault);

}  // namespace rnic
