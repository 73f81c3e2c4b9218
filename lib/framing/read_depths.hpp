/// \file
/// How two ends agree on the depths of their Read queues (RFC 6581 s.9.1), whatever frame carries
/// them.
#pragma once

#include <cstdint>
#include <optional>

#include "framing/start.hpp"
#include "llp/framing.hpp"

namespace rnic::framing {

/// Most that is told of a queue's depth when nobody says (BUG-19).
inline constexpr uint32_t kReadsLimit = 128;

/// The pair as a frame has it; either may be kReadsByApplication.
struct ReadDepths {
  uint16_t ird = kReadsByApplication;
  uint16_t ord = kReadsByApplication;
};

/// What holds from then on; nothing where an end leaves it to the application.
struct AgreedReads {
  std::optional<uint32_t> ird;
  std::optional<uint32_t> ord;
};

/// Initiator: what the Request tells.
[[nodiscard]] ReadDepths depths_of_request(const StartWish& wish, uint32_t limit = kReadsLimit);

/// Responder: what the Reply to a Request with depths tells, and what then holds.
struct AnsweredReads {
  ReadDepths told;
  AgreedReads agreed;
  bool suffice = true;  ///< false: only a reject is possible; it tells what would have been needed
};
/// \param least_ird of what is told, where the responder is the one to say
[[nodiscard]] AnsweredReads answer_reads(const StartWish& wish, const StartOffer& request,
                                         uint32_t limit = kReadsLimit, uint16_t least_ird = 0);

/// Initiator: what an accepting Reply with depths means.
struct TakenReads {
  AgreedReads agreed;
  llp::FramingError error = llp::FramingError::None;  ///< to be told by Terminate
};
[[nodiscard]] TakenReads take_reads(const StartWish& wish, const StartOffer& reply,
                                    uint32_t limit = kReadsLimit);

}  // namespace rnic::framing
