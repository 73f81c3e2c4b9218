/// \file
/// The bounds of the framing of one direction of a connection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "framing/pdu_error.hpp"
#include "rnic/framing_options.hpp"
#include "rnic/transport.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

inline constexpr uint32_t kPduHeadMax = 260;  ///< the largest FrameFormat::head(), rounded up

/// Bounds of a marker interval in octets of the stream, the marker included.
inline constexpr uint16_t kIntervalMin = 16;
inline constexpr uint16_t kIntervalDefault = 2048;  // the draft's example

}  // namespace rnic::tuf
