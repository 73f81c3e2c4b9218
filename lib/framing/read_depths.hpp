/// \file
/// The agreement of two ends on the depths of their Read queues (RFC 6581 s.9.1), whatever frames
/// carry it.
#pragma once

#include <cstdint>
#include <optional>

#include "framing/start.hpp"
#include "llp/framing.hpp"

namespace rnic::framing {

/// The default of the greatest depth that the peer is told (BUG-19).
inline constexpr uint32_t kReadsLimit = 128;

/// IRD and ORD as a start frame carries them; either may be kReadsByApplication.
struct ReadDepths {
  uint16_t ird = kReadsByApplication;
  uint16_t ord = kReadsByApplication;
};

/// The depths that both ends keep to; a depth is empty if an end leaves it to its application.
struct AgreedReads {
  std::optional<uint32_t> ird;
  std::optional<uint32_t> ord;
};

/// Initiator: the depths that the Request tells.
[[nodiscard]] ReadDepths depths_of_request(const StartOptions& start_options,
                                           uint32_t limit = kReadsLimit);

/// Responder: the depths that the Reply to a Request with depths tells, and those that are agreed
/// by it.
struct AnsweredReads {
  ReadDepths told;
  AgreedReads agreed;
  bool suffice = true;  ///< false: the Reply has to reject and tells the ORD that was needed
};
/// Computes the depths of a Reply. \param least_ird the least IRD to tell if the Request gives an
/// ORD
[[nodiscard]] AnsweredReads answer_reads(const StartOptions& start_options,
                                         const StartOffer& request, uint32_t limit = kReadsLimit,
                                         uint16_t least_ird = 0);

/// Initiator: the result of an accepting Reply with depths.
struct TakenReads {
  AgreedReads agreed;
  llp::FramingError error = llp::FramingError::None;  ///< to be told by Terminate
};
[[nodiscard]] TakenReads take_reads(const StartOptions& start_options, const StartOffer& reply,
                                    uint32_t limit = kReadsLimit);

}  // namespace rnic::framing
