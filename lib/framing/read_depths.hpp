/// \file
/// How two ends agree on the depths of their Read queues (RFC 6581 s.9.1), whatever frame carries
/// them.
#pragma once

#include <cstdint>
#include <optional>

#include "framing/start.hpp"
#include "llp/framing.hpp"

namespace rnic::framing {

/// The greatest depth that is told when nobody configures one (BUG-19).
inline constexpr uint32_t kReadsLimit = 128;

/// The pair as a frame has it; either may be kReadsByApplication.
struct ReadDepths {
  uint16_t ird = kReadsByApplication;
  uint16_t ord = kReadsByApplication;
};

/// Both ends hold to it; a depth is empty where an end leaves it to its application.
struct AgreedReads {
  std::optional<uint32_t> ird;
  std::optional<uint32_t> ord;
};

/// Initiator: what the Request tells.
[[nodiscard]] ReadDepths depths_of_request(const StartOptions& start_options,
                                           uint32_t limit = kReadsLimit);

/// Responder: what the Reply to a Request with depths tells, and what then holds.
struct AnsweredReads {
  ReadDepths told;
  AgreedReads agreed;
  bool suffice = true;  ///< false: the Reply has to reject, and tells what would have been needed
};
/// \param least_ird the least IRD to tell where the Request asks for one
[[nodiscard]] AnsweredReads answer_reads(const StartOptions& start_options,
                                         const StartOffer& request, uint32_t limit = kReadsLimit,
                                         uint16_t least_ird = 0);

/// Initiator: what an accepting Reply with depths means.
struct TakenReads {
  AgreedReads agreed;
  llp::FramingError error = llp::FramingError::None;  ///< to be told by Terminate
};
[[nodiscard]] TakenReads take_reads(const StartOptions& start_options, const StartOffer& reply,
                                    uint32_t limit = kReadsLimit);

}  // namespace rnic::framing
